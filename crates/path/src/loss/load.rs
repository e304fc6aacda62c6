//! Loss that rises with the offered load, as measured in cellular networks.

use alloc::vec::Vec;

use paceline_wire::{Duration, Rate};

use crate::error::ConfigError;
use crate::random::Probability;

/// Loss as a function of the load offered to the link. It is linear between the rows of a table, and constant beyond
/// its ends.
#[derive(Clone, Debug, PartialEq, Eq, serde::Deserialize)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
pub struct LoadLoss {
    /// The load is the rate at which IP bytes were handed to the link over the last window of this length.
    ///
    /// Our choice: one second. The published tables are of rates held for minutes, and a TCP sender's bursts should not
    /// count as load.
    #[serde(deserialize_with = "crate::units::de::duration", default = "second")]
    pub window: Duration,
    /// Rows in rising order of rate.
    pub table: Vec<LoadPoint>,
}

/// Loss at a load.
#[derive(Clone, Copy, Debug, PartialEq, Eq, serde::Deserialize)]
#[serde(deny_unknown_fields)]
pub struct LoadPoint {
    /// Offered load.
    #[serde(deserialize_with = "crate::units::de::rate")]
    pub rate: Rate,
    /// Share of lost packets.
    pub loss: Probability,
}

const WINDOW: Duration = Duration::from_secs(1);

fn second() -> Duration {
    WINDOW
}

impl LoadLoss {
    /// Table 1 of the accelerator's text: UDP over a production HSPA cell of at most 7.2 Mbit/s. The figures include
    /// drops by the cell's own limit. So a run with this table should not drop these packets again.
    pub fn hspa_cell() -> Self {
        let percent = [(1, 1), (2, 1), (3, 1), (4, 4), (5, 21), (6, 33), (7, 47)];
        let point = |(mbps, percent): (u64, u64)| LoadPoint {
            rate: Rate::from_bits_per_sec(mbps * 1_000_000),
            loss: Probability::from_ppm(percent * 10_000),
        };
        LoadLoss { window: WINDOW, table: percent.into_iter().map(point).collect() }
    }

    /// Returns the loss at a load.
    pub fn at(&self, rate: Rate) -> Probability {
        let above = self.table.partition_point(|point| point.rate <= rate);
        let below = above.checked_sub(1).and_then(|index| self.table.get(index));
        match (below, self.table.get(above)) {
            (Some(low), Some(high)) => low.towards(*high, rate),
            (Some(only), None) | (None, Some(only)) => only.loss,
            (None, None) => Probability::ZERO,
        }
    }

    pub(super) fn check(&self) -> Result<(), ConfigError> {
        if self.window.is_zero() {
            return Err(ConfigError::NoLoadWindow);
        }
        let ordered = self.table.is_sorted_by(|a, b| a.rate < b.rate);
        if ordered && !self.table.is_empty() { Ok(()) } else { Err(ConfigError::LoadTableUnordered) }
    }
}

impl LoadPoint {
    /// Interpolates between this point and `high` at `rate`.
    fn towards(self, high: LoadPoint, rate: Rate) -> Probability {
        let [low, at, end] = [self.rate, rate, high.rate].map(|rate| i128::from(rate.as_bytes_per_sec()));
        let [from, to] = [self.loss, high.loss].map(|loss| i128::from(loss.as_ppb()));
        let ppb = from + (to - from) * (at - low) / (end - low);
        Probability::from_ppb(u64::try_from(ppb).unwrap_or(0))
    }
}

/// Bytes over a sliding window of the last ten complete tenths.
#[derive(Clone, Debug)]
pub(super) struct LoadMeter {
    tenth: Duration,
    /// Bytes by tenth, modulo the number of entries: ten complete ones and the current one.
    bytes: [u64; TENTHS + 1],
    current: u64,
}

const TENTHS: usize = 10;

impl LoadMeter {
    pub(super) fn new(window: Duration) -> Self {
        LoadMeter { tenth: window / TENTHS as u64, bytes: [0; TENTHS + 1], current: 0 }
    }

    /// Counts a packet, and returns the rate over the window before.
    pub(super) fn offered(&mut self, at: Duration, bytes: u64) -> Rate {
        let tenth = at.as_nanos() / self.tenth.as_nanos().max(1);
        for passed in 0..tenth.saturating_sub(self.current).min(self.bytes.len() as u64) {
            self.bytes[Self::entry(tenth - passed)] = 0;
        }
        self.current = self.current.max(tenth);
        self.bytes[Self::entry(self.current)] += bytes;
        let whole = self.bytes.iter().sum::<u64>() - self.bytes[Self::entry(self.current)];
        Rate::from_bytes_in(whole, self.tenth * TENTHS as u64)
    }

    fn entry(tenth: u64) -> usize {
        (tenth % (TENTHS as u64 + 1)) as usize
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn mbit(tenths: u64) -> Rate {
        Rate::from_bits_per_sec(tenths * 100_000)
    }

    #[test]
    fn loss_is_linear_between_the_rows() {
        let table = LoadLoss::hspa_cell();
        let ppm = |rate| table.at(rate).as_ppb() / 1_000;
        assert_eq!([mbit(5), mbit(10), mbit(35), mbit(40)].map(ppm), [10_000, 10_000, 25_000, 40_000]);
        assert_eq!([mbit(45), mbit(70), mbit(90)].map(ppm), [125_000, 470_000, 470_000]);
    }

    #[test]
    fn the_meter_sees_the_last_window() {
        let mut meter = LoadMeter::new(Duration::from_secs(1));
        let mut rate = Rate::ZERO;
        // 1,000 bytes each 10 ms are 100,000 bytes/s.
        for packet in 0..250 {
            rate = meter.offered(Duration::from_millis(10 * packet), 1_000);
        }
        assert_eq!(rate, Rate::from_bytes_per_sec(100_000));
        assert_eq!(meter.offered(Duration::from_millis(3_000), 0), Rate::from_bytes_per_sec(50_000));
        assert_eq!(meter.offered(Duration::from_secs(60), 1_000), Rate::ZERO);
    }
}
