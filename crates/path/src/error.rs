//! Errors of configurations.

use core::fmt;

/// Why a link or a trace cannot be made from this configuration.
#[derive(Clone, Copy, Debug, PartialEq)]
#[non_exhaustive]
pub enum ConfigError {
    /// A schedule of steps without a step at time zero.
    NoFirstStep,
    /// Steps that are not in rising order of time.
    StepsUnordered,
    /// A queue without any room.
    ZeroQueueLimit,
    /// A target, interval or update time of queue management that is zero.
    ZeroAqmTime,
    /// An update interval of PIE below 100 us.
    PieUpdateTooShort,
    /// FQ-CoDel without a queue, or with a quantum of zero or of more than a gigabyte.
    FqCodelQueues,
    /// RED with an unlimited queue. Its thresholds are shares of the queue's limit.
    RedWithoutLimit,
    /// RED's lower threshold is not below the upper one.
    RedThresholds,
    /// A policer that lets nothing pass.
    ZeroPolicer,
    /// Outages that overlap, are empty, or are not in rising order of time.
    OutagesUnordered,
    /// Periodic outages at least as long as their period, so that nothing ever leaves.
    PermanentOutage,
    /// A table of loss against load that has no row, or is not in rising order of rate.
    LoadTableUnordered,
    /// A window of zero for measuring load.
    NoLoadWindow,
    /// A trace shorter than ten seconds or longer than an hour.
    TraceDuration,
    /// A mean rate below 10 kbit/s or above 10 Gbit/s.
    TraceMean,
    /// A scheduling interval or a correlation time of zero, or a share of served intervals of zero.
    TraceSchedule,
    /// A mean time between hand-overs of zero, a shortest pause of zero, or a longest pause below the shortest.
    TraceHandover,
    /// A variation that is impossible for this model and duration.
    TraceVariation {
        /// The wanted variation, as a fraction of the mean.
        wanted: f64,
        /// The smallest possible variation, from hand-overs and pauses alone.
        lowest: f64,
        /// The largest variation at which the trace is not just a single spike.
        highest: f64,
    },
}

impl fmt::Display for ConfigError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            ConfigError::NoFirstStep => "the first step must be at 0s",
            ConfigError::StepsUnordered => "steps must be in rising order of time",
            ConfigError::ZeroQueueLimit => "the queue must hold something",
            ConfigError::ZeroAqmTime => "target, interval and update of queue management must not be zero",
            ConfigError::PieUpdateTooShort => "pie's update must be 100us or more",
            ConfigError::FqCodelQueues => "fq-codel needs a queue at least, and a quantum from 1b to 1gb",
            ConfigError::RedWithoutLimit => {
                "red's thresholds are shares of the queue's limit: it needs a queue with a limit"
            }
            ConfigError::RedThresholds => "red's min must be below its max",
            ConfigError::ZeroPolicer => "a policer's rate and burst must not be zero",
            ConfigError::OutagesUnordered => {
                "outages must be in rising order of time, not empty, and must not overlap"
            }
            ConfigError::PermanentOutage => "an outage must be shorter than the time from one to the next",
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
