//! Propagation delay: the time from the bottleneck to the other end.

use alloc::vec::Vec;

use paceline_wire::Duration;

use crate::error::ConfigError;
use crate::rate::check_steps;

/// Propagation delay of one direction.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Delay {
    /// The same for all packets.
    Constant(Duration),
    /// Consecutive delays, the first from time zero on, as in a hand-over to a longer or shorter path. The time at
    /// which a packet leaves the bottleneck decides. Later packets do not overtake, even if the delay falls.
    Steps(Vec<DelayStep>),
}

/// A delay that holds from a time on.
#[derive(Clone, Copy, Debug, PartialEq, Eq, serde::Deserialize)]
#[serde(deny_unknown_fields)]
pub struct DelayStep {
    /// Time since the start of the link.
    #[serde(deserialize_with = "crate::units::de::duration")]
    pub at: Duration,
    /// The delay from then on.
    #[serde(deserialize_with = "crate::units::de::duration")]
    pub delay: Duration,
}

/// A delay that differs from packet to packet, added to the propagation.
#[derive(Clone, Copy, Debug, PartialEq, Eq, serde::Deserialize)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
pub struct Jitter {
    /// Uniform between zero and this.
    #[serde(deserialize_with = "crate::units::de::duration")]
    pub up_to: Duration,
    /// A packet waits for the one before it, because a radio link layer delivers in order. If false, packets that are
    /// closer to each other than the jitter overtake.
    #[serde(default = "default_true")]
    pub keep_order: bool,
}

fn default_true() -> bool {
    true
}

impl Default for Delay {
    fn default() -> Self {
        Delay::Constant(Duration::ZERO)
    }
}

impl Delay {
    /// Returns the delay of a packet that leaves the bottleneck at `time` since the start.
    pub fn at(&self, time: Duration) -> Duration {
        match self {
            Delay::Constant(delay) => *delay,
            Delay::Steps(steps) => {
                let next = steps.partition_point(|step| step.at <= time);
                next.checked_sub(1).map_or(Duration::ZERO, |index| steps[index].delay)
            }
        }
    }

    /// Returns the smallest delay of any packet.
    pub(crate) fn least(&self) -> Duration {
        match self {
            Delay::Constant(delay) => *delay,
            Delay::Steps(steps) if steps.first().is_some_and(|step| step.at.is_zero()) => {
                steps.iter().map(|step| step.delay).min().unwrap_or_default()
            }
            Delay::Steps(_) => Duration::ZERO,
        }
    }

    pub(crate) fn check(&self) -> Result<(), ConfigError> {
        match self {
            Delay::Constant(_) => Ok(()),
            Delay::Steps(steps) => check_steps(steps.iter().map(|step| step.at)),
        }
    }
}
