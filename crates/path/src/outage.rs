//! Times at which the link does not work.

use alloc::vec::Vec;

use paceline_wire::Duration;

use crate::error::ConfigError;

/// Outages, in time since the start of the link.
#[derive(Clone, Debug, Default, PartialEq, Eq, serde::Deserialize)]
#[serde(rename_all = "kebab-case", deny_unknown_fields, default)]
pub struct Outages {
    /// Single outages, in rising order of time.
    pub windows: Vec<OutageWindow>,
    /// Outages at equal intervals.
    pub periodic: Option<PeriodicOutage>,
    /// The effect on packets.
    pub effect: OutageEffect,
}

/// One outage: `start` included, `end` not.
#[derive(Clone, Copy, Debug, PartialEq, Eq, serde::Deserialize)]
#[serde(deny_unknown_fields)]
pub struct OutageWindow {
    /// Time at which the link stops.
    #[serde(deserialize_with = "crate::units::de::duration")]
    pub start: Duration,
    /// Time at which it works again.
    #[serde(deserialize_with = "crate::units::de::duration")]
    pub end: Duration,
}

/// Outages of equal length at equal intervals, without end.
#[derive(Clone, Copy, Debug, PartialEq, Eq, serde::Deserialize)]
#[serde(deny_unknown_fields)]
pub struct PeriodicOutage {
    /// Begin of the first outage.
    #[serde(deserialize_with = "crate::units::de::duration")]
    pub first: Duration,
    /// Time from one begin to the next.
    #[serde(deserialize_with = "crate::units::de::duration")]
    pub every: Duration,
    /// Length of each outage.
    #[serde(deserialize_with = "crate::units::de::duration")]
    pub length: Duration,
}

/// The effect of an outage on packets.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, serde::Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum OutageEffect {
    /// Packets wait. A packet that is half sent continues afterwards, as on a radio link layer that retries until it
    /// succeeds.
    #[default]
    Hold,
    /// The link continues to send, and packets that leave it during the outage are lost.
    Drop,
}

impl Outages {
    /// True if there is no outage.
    pub fn is_empty(&self) -> bool {
        self.windows.is_empty() && self.periodic.is_none()
    }

    /// Returns the end of the outage that covers `time`; `None` if the link works then.
    #[inline]
    pub fn covering(&self, time: Duration) -> Option<Duration> {
        if self.is_empty() { None } else { self.find_covering(time) }
    }

    fn find_covering(&self, time: Duration) -> Option<Duration> {
        let index = self.windows.partition_point(|window| window.end <= time);
        let single = self.windows.get(index).filter(|window| window.start <= time).map(|window| window.end);
        let periodic = self.periodic.and_then(|periodic| {
            let begin = periodic.beginning_at_or_before(time)?;
            (time < begin + periodic.length).then_some(begin + periodic.length)
        });
        single.max(periodic)
    }

    /// Returns the begin of the next outage after `time`.
    pub fn next_after(&self, time: Duration) -> Option<Duration> {
        let index = self.windows.partition_point(|window| window.start <= time);
        let single = self.windows.get(index).map(|window| window.start);
        let periodic = self.periodic.map(|periodic| {
            periodic.beginning_at_or_before(time).map_or(periodic.first, |begin| begin + periodic.every)
        });
        single.into_iter().chain(periodic).min()
    }

    pub(crate) fn check(&self) -> Result<(), ConfigError> {
        let proper = self.windows.iter().all(|window| window.start < window.end);
        if !proper || !self.windows.is_sorted_by(|a, b| a.end <= b.start) {
            return Err(ConfigError::OutagesUnordered);
        }
        match self.periodic {
            Some(periodic) if periodic.length >= periodic.every => Err(ConfigError::PermanentOutage),
            _ => Ok(()),
        }
    }
}

impl PeriodicOutage {
    fn beginning_at_or_before(&self, time: Duration) -> Option<Duration> {
        let since = time.as_nanos().checked_sub(self.first.as_nanos())?;
        Some(self.first + self.every * (since / self.every.as_nanos()))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const fn ms(ms: u64) -> Duration {
        Duration::from_millis(ms)
    }

    #[test]
    fn windows_and_periods_are_found() {
        let outages = Outages {
            windows: alloc::vec![
                OutageWindow { start: ms(10), end: ms(20) },
                OutageWindow { start: ms(20), end: ms(25) },
            ],
            periodic: Some(PeriodicOutage { first: ms(100), every: ms(50), length: ms(5) }),
            effect: OutageEffect::Hold,
        };
        assert_eq!(outages.check(), Ok(()));
        let covering = [9, 10, 19, 20, 25, 99, 100, 104, 105, 150, 155].map(|at| outages.covering(ms(at)));
        let expected =
            [None, Some(20), Some(20), Some(25), None, None, Some(105), Some(105), None, Some(155), None];
        assert_eq!(covering, expected.map(|end| end.map(ms)));
        let next = [0, 10, 20, 99, 100, 149, 150].map(|at| outages.next_after(ms(at)));
        assert_eq!(next, [10, 20, 100, 100, 150, 150, 200].map(|at| Some(ms(at))));
        assert_eq!(Outages::default().next_after(ms(0)), None);
    }

    #[test]
    fn impossible_outages_are_refused() {
        let windows = |pairs: &[(u64, u64)]| Outages {
            windows: pairs
                .iter()
                .map(|(start, end)| OutageWindow { start: ms(*start), end: ms(*end) })
                .collect(),
            ..Outages::default()
        };
        assert_eq!(windows(&[(5, 5)]).check(), Err(ConfigError::OutagesUnordered));
        assert_eq!(windows(&[(5, 9), (8, 10)]).check(), Err(ConfigError::OutagesUnordered));
        let periodic = Some(PeriodicOutage { first: ms(0), every: ms(5), length: ms(5) });
        assert_eq!(Outages { periodic, ..Outages::default() }.check(), Err(ConfigError::PermanentOutage));
    }
}
