//! Errors of configurations.

/// Why a link or a trace cannot be made from this configuration.
#[derive(Clone, Copy, Debug, PartialEq, thiserror::Error)]
#[non_exhaustive]
pub enum ConfigError {
    /// A schedule of steps without a step at time zero.
    #[error("the first step must be at 0s")]
    NoFirstStep,
    /// Steps that are not in rising order of time.
    #[error("steps must be in rising order of time")]
    StepsUnordered,
    /// A queue without any room.
    #[error("the queue must hold something")]
    ZeroQueueLimit,
    /// A target, interval or update time of queue management that is zero.
    #[error("target, interval and update of queue management must not be zero")]
    ZeroAqmTime,
    /// An update interval of PIE below 100 us.
    #[error("pie's update must be 100us or more")]
    PieUpdateTooShort,
    /// FQ-CoDel without a queue, or with a quantum of zero or of more than a gigabyte.
    #[error("fq-codel needs a queue at least, and a quantum from 1b to 1gb")]
    FqCodelQueues,
    /// RED with an unlimited queue. Its thresholds are shares of the queue's limit.
    #[error("red's thresholds are shares of the queue's limit: it needs a queue with a limit")]
    RedWithoutLimit,
    /// RED's lower threshold is not below the upper one.
    #[error("red's min must be below its max")]
    RedThresholds,
    /// A policer that lets nothing pass.
    #[error("a policer's rate and burst must not be zero")]
    ZeroPolicer,
    /// Outages that overlap, are empty, or are not in rising order of time.
    #[error("outages must be in rising order of time, not empty, and must not overlap")]
    OutagesUnordered,
    /// Periodic outages at least as long as their period, so that nothing ever leaves.
    #[error("an outage must be shorter than the time from one to the next")]
    PermanentOutage,
    /// A table of loss against load that has no row, or is not in rising order of rate.
    #[error("the table of loss against rate needs rows in rising order of rate")]
    LoadTableUnordered,
    /// A window of zero for measuring load.
    #[error("the window over which load is measured must not be zero")]
    NoLoadWindow,
    /// A trace shorter than ten seconds or longer than an hour.
    #[error("a generated trace lasts from 10s to 60min")]
    TraceDuration,
    /// A mean rate below 10 kbit/s or above 10 Gbit/s.
    #[error("the mean of a generated trace lies between 10kbit and 10gbit")]
    TraceMean,
    /// A scheduling interval or a correlation time of zero, or a share of served intervals of zero.
    #[error("scheduling interval, share of intervals served and correlation time must not be zero")]
    TraceSchedule,
    /// A mean time between hand-overs of zero, a shortest pause of zero, or a longest pause below the shortest.
    #[error("hand-overs need time between them, and a pause from a shorter to a longer one")]
    TraceHandover,
    /// A variation that is impossible for this model and duration.
    #[error(
        "a variation of {:.0}% is not possible here; it must lie between {:.0}% and {:.0}%",
        wanted * 100.0,
        lowest * 100.0,
        highest * 100.0
    )]
    TraceVariation {
        /// The wanted variation, as a fraction of the mean.
        wanted: f64,
        /// The smallest possible variation, from hand-overs and pauses alone.
        lowest: f64,
        /// The largest variation at which the trace is not just a single spike.
        highest: f64,
    },
}
