//! The rate of a link as a function of time.

use alloc::vec::Vec;

use paceline_wire::{Duration, Rate};

use crate::error::ConfigError;
use crate::outage::Outages;
use crate::trace::{OPPORTUNITY_BYTES, Trace};

/// The rate of a link as a function of the time since its start. It counts IP bytes and the link's framing.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub enum RateProcess {
    /// No limit: every packet leaves when it arrives.
    #[default]
    Unlimited,
    /// A constant rate.
    Constant(Rate),
    /// Consecutive rates, the first from time zero on. If the rate changes while a packet is being sent, the rest of
    /// the packet is sent at the new rate. At rate zero packets wait.
    Steps(Vec<RateStep>),
    /// Delivery opportunities, repeated without end.
    Opportunities(Trace),
}

/// A rate that holds from a time on.
#[derive(Clone, Copy, Debug, PartialEq, Eq, serde::Deserialize)]
#[serde(deny_unknown_fields)]
pub struct RateStep {
    /// Time since the start of the link.
    #[serde(deserialize_with = "crate::units::de::duration")]
    pub at: Duration,
    /// The rate from then on.
    #[serde(deserialize_with = "crate::units::de::rate")]
    pub rate: Rate,
}

impl RateProcess {
    /// Bytes that can leave from `from` (included) to `to` (not included). Excludes outages with
    /// [`OutageEffect::Hold`]. `None` if there is no limit.
    ///
    /// [`OutageEffect::Hold`]: crate::OutageEffect::Hold
    pub fn capacity_bytes(&self, from: Duration, to: Duration, holds: &Outages) -> Option<u64> {
        let mut work = 0u128;
        let mut at = from;
        while at < to {
            if let Some(end) = holds.covering(at) {
                at = end;
                continue;
            }
            let end = holds.next_after(at).map_or(to, |begin| begin.min(to));
            work += self.work(at, end)?;
            at = end;
        }
        Some(u64::try_from(work / NANOS_PER_S).unwrap_or(u64::MAX))
    }

    /// Mean rate between two times.
    pub fn mean_rate(&self, from: Duration, to: Duration) -> Option<Rate> {
        let bytes = self.capacity_bytes(from, to, &Outages::default())?;
        Some(Rate::from_bytes_in(bytes, to - from))
    }

    /// Work that fits between two times, in bytes * nanoseconds per second.
    fn work(&self, from: Duration, to: Duration) -> Option<u128> {
        if let RateProcess::Opportunities(trace) = self {
            let count = trace.opportunities_before(to) - trace.opportunities_before(from);
            return Some(u128::from(count) * u128::from(OPPORTUNITY_BYTES) * NANOS_PER_S);
        }
        let mut work = 0;
        let mut at = from;
        while at < to {
            let (rate, until) = self.rate_at(at)?;
            let end = until.map_or(to, |until| until.min(to));
            work += u128::from(rate.as_bytes_per_sec()) * u128::from((end - at).as_nanos());
            at = end;
        }
        Some(work)
    }

    /// Returns the rate at `time` and the time until which it holds, if it ends. `None` for processes without a rate.
    pub(crate) fn rate_at(&self, time: Duration) -> Option<(Rate, Option<Duration>)> {
        match self {
            RateProcess::Unlimited | RateProcess::Opportunities(_) => None,
            RateProcess::Constant(rate) => Some((*rate, None)),
            RateProcess::Steps(steps) => {
                let next = steps.partition_point(|step| step.at <= time);
                let rate = next.checked_sub(1).map_or(Rate::ZERO, |index| steps[index].rate);
                Some((rate, steps.get(next).map(|step| step.at)))
            }
        }
    }

    pub(crate) fn check(&self) -> Result<(), ConfigError> {
        match self {
            RateProcess::Steps(steps) => check_steps(steps.iter().map(|step| step.at)),
            _ => Ok(()),
        }
    }
}

pub(crate) const NANOS_PER_S: u128 = 1_000_000_000;

/// Checks that the first step is at zero, and that times rise.
pub(crate) fn check_steps(mut times: impl Iterator<Item = Duration>) -> Result<(), ConfigError> {
    let first = times.next().filter(|first| first.is_zero()).ok_or(ConfigError::NoFirstStep)?;
    if [first].into_iter().chain(times).is_sorted_by(|a, b| a < b) {
        Ok(())
    } else {
        Err(ConfigError::StepsUnordered)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::outage::{OutageEffect, PeriodicOutage};

    const fn ms(ms: u64) -> Duration {
        Duration::from_millis(ms)
    }

    fn steps(steps: &[(u64, f64)]) -> RateProcess {
        RateProcess::Steps(
            steps.iter().map(|(at, mbps)| RateStep { at: ms(*at), rate: Rate::from_mbps(*mbps) }).collect(),
        )
    }

    #[test]
    fn capacity_adds_up_over_steps_and_outages() {
        let process = steps(&[(0, 20.0), (1_000, 5.0), (3_000, 0.0)]);
        let none = Outages::default();
        assert_eq!(process.capacity_bytes(ms(500), ms(2_000), &none), Some(1_250_000 + 625_000));
        assert_eq!(process.capacity_bytes(ms(2_000), ms(9_000), &none), Some(625_000));
        assert_eq!(process.mean_rate(ms(0), ms(2_000)), Some(Rate::from_mbps(12.5)));
        let periodic = Some(PeriodicOutage { first: ms(900), every: ms(1_000), length: ms(200) });
        let holds = Outages { periodic, effect: OutageEffect::Hold, ..Outages::default() };
        // 900 ms at 20 Mbit/s, and 800 ms + 100 ms at 5 Mbit/s.
        assert_eq!(process.capacity_bytes(ms(0), ms(2_200), &holds), Some(2_250_000 + 562_500));
        assert_eq!(RateProcess::Unlimited.capacity_bytes(ms(0), ms(1), &none), None);
    }

    #[test]
    fn capacity_of_a_trace_counts_opportunities() {
        let trace = Trace::from_opportunities([1, 2, 2, 10]).unwrap();
        let process = RateProcess::Opportunities(trace);
        let none = Outages::default();
        assert_eq!(process.capacity_bytes(ms(2), ms(11), &none), Some(3 * 1_500));
        assert_eq!(process.capacity_bytes(ms(0), ms(1_000_001), &none), Some(400_000 * 1_500));
    }

    #[test]
    fn steps_begin_at_zero_and_rise() {
        assert_eq!(steps(&[(0, 1.0), (5, 2.0)]).check(), Ok(()));
        assert_eq!(steps(&[]).check(), Err(ConfigError::NoFirstStep));
        assert_eq!(steps(&[(1, 1.0)]).check(), Err(ConfigError::NoFirstStep));
        assert_eq!(steps(&[(0, 1.0), (5, 2.0), (5, 3.0)]).check(), Err(ConfigError::StepsUnordered));
    }
}
