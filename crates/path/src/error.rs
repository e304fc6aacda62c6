//! What makes a configuration impossible.

use core::fmt;

/// Why there is no link, or no trace, of this configuration.
#[derive(Clone, Copy, Debug, PartialEq)]
#[non_exhaustive]
pub enum ConfigError {
    /// A schedule of steps without a step at time zero.
    NoFirstStep,
    /// Steps that are not in rising order of time.
    StepsUnordered,
    /// A queue that holds nothing.
    QueueOfNothing,
    /// A target, interval or update of queue management of no time.
    AqmOfNoTime,
    /// FQ-CoDel without a queue, or with a quantum of nothing or of more than a gigabyte.
    FqCodelOfNothing,
    /// RED, whose thresholds are shares of the queue's limit, without a limit.
    RedWithoutLimit,
    /// RED's lower threshold is not below the upper one.
    RedThresholds,
    /// A policer that lets nothing pass.
    PolicerOfNothing,
    /// Outages that overlap, are empty, or are not in rising order of time.
    OutagesUnordered,
    /// Periodic outages at least as long as their period, so that nothing ever leaves.
    OutageWithoutEnd,
    /// A table of loss against load without a row, or not in rising order of rate.
    LoadTableUnordered,
    /// Load measured over no time.
    NoLoadWindow,
    /// A trace shorter than ten seconds or longer than an hour.
    TraceDuration,
    /// A mean rate below 10 kbit/s or above 10 Gbit/s.
    TraceMean,
    /// A scheduling interval or a correlation time of zero, or a user who is never served.
    TraceSchedule,
    /// Hand-overs without time between them, or with a longest pause below the shortest.
    TraceHandover,
    /// A variation that this model cannot have over this duration.
    TraceVariation {
        /// What was asked for, as a fraction of the mean.
        wanted: f64,
        /// The smallest possible one: that of hand-overs and pauses alone.
        lowest: f64,
        /// The largest that still is a trace and not one spike.
        highest: f64,
    },
}

impl fmt::Display for ConfigError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            ConfigError::NoFirstStep => "the first step must be at 0s",
            ConfigError::StepsUnordered => "steps must be in rising order of time",
            ConfigError::QueueOfNothing => "the queue must hold something",
            ConfigError::AqmOfNoTime => "target, interval and update of queue management must not be zero",
            ConfigError::FqCodelOfNothing => "fq-codel needs a queue at least, and a quantum from 1b to 1gb",
            ConfigError::RedWithoutLimit => {
                "red's thresholds are shares of the queue's limit: it needs a queue with a limit"
            }
            ConfigError::RedThresholds => "red's min must be below its max",
            ConfigError::PolicerOfNothing => "a policer's rate and burst must not be zero",
            ConfigError::OutagesUnordered => {
                "outages must be in rising order of time, not empty, and must not overlap"
            }
            ConfigError::OutageWithoutEnd => "an outage must be shorter than the time from one to the next",
            ConfigError::LoadTableUnordered => {
                "the table of loss against rate needs rows in rising order of rate"
            }
            ConfigError::NoLoadWindow => "the window over which load is measured must not be zero",
            ConfigError::TraceDuration => "a generated trace lasts from 10s to 60min",
            ConfigError::TraceMean => "the mean of a generated trace lies between 10kbit and 10gbit",
            ConfigError::TraceSchedule => {
                "scheduling interval, share of intervals served and correlation time must not be zero"
            }
            ConfigError::TraceHandover => {
                "hand-overs need time between them, and a pause from a shorter to a longer one"
            }
            ConfigError::TraceVariation { wanted, lowest, highest } => {
                let [wanted, lowest, highest] = [wanted, lowest, highest].map(|share| share * 100.0);
                return write!(
                    f,
                    "a variation of {wanted:.0}% is not possible here; it must lie between {lowest:.0}% and {highest:.0}%"
                );
            }
        })
    }
}

impl core::error::Error for ConfigError {}
