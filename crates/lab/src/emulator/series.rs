//! A time series with a value for each 10 ms.

use paceline_wire::{Duration, Instant};

/// Values in bins of 10 ms, from the first value on. It has at most one hour: later values are ignored.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Series {
    start: Instant,
    first: usize,
    values: Vec<u32>,
}

impl Series {
    /// The width of a bin.
    pub const BIN: Duration = Duration::from_millis(10);

    /// Returns an empty series. Bins count from `start`.
    pub fn new(start: Instant) -> Self {
        Series { start, first: 0, values: Vec::new() }
    }

    /// Index of the first value's bin, which covers `first() * BIN` to `(first() + 1) * BIN` after the start.
    pub fn first(&self) -> usize {
        self.first
    }

    /// Returns the values from the first bin on.
    pub fn values(&self) -> &[u32] {
        &self.values
    }

    /// Adds to the bin of `at`. Returns the number of new bins.
    pub fn add(&mut self, at: Instant, value: u32) -> usize {
        let before = self.values.len();
        if let Some(bin) = self.bin(at) {
            *bin = bin.saturating_add(value);
        }
        self.values.len() - before
    }

    /// Raises the bin of `at` to at least `value`.
    pub fn raise(&mut self, at: Instant, value: u32) {
        if let Some(bin) = self.bin(at) {
            *bin = value.max(*bin);
        }
    }

    /// Returns the bin of `at`. `None` if it is before the first bin, or more than an hour after it.
    fn bin(&mut self, at: Instant) -> Option<&mut u32> {
        let index = (at.saturating_since(self.start).as_nanos() / Self::BIN.as_nanos()) as usize;
        if self.values.is_empty() {
            self.first = index;
        }
        let place = index.checked_sub(self.first).filter(|place| *place < BINS_MAX)?;
        if place >= self.values.len() {
            self.values.resize(place + 1, 0);
        }
        self.values.get_mut(place)
    }
}

/// One hour.
const BINS_MAX: usize = 360_000;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn values_fall_into_their_bins() {
        let start = Instant::from_nanos(5_000_000);
        let at = |ms| start + Duration::from_millis(ms);
        let mut series = Series::new(start);
        assert_eq!(
            [(25, 3), (29, 4), (30, 5), (51, 6)].map(|(ms, value)| series.add(at(ms), value)),
            [1, 0, 1, 2]
        );
        series.raise(at(51), 2);
        assert_eq!((series.first(), series.values()), (2, &[7, 5, 0, 6][..]));
        assert_eq!(series.add(at(3_700_000), 1), 0, "beyond an hour");
    }
}
