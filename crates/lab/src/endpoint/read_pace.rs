//! When a receiving application reads, and how many bytes.

use paceline_wire::{Duration, Instant, Rate};

use super::traffic::ReadPattern;

/// What the application may do at present.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Reading {
    /// Read up to this number of bytes.
    UpTo(usize),
    /// Read nothing before this time.
    NotBefore(Instant),
}

/// The reading of one application: steps of [`STEP`] at a rate, interrupted by pauses.
#[derive(Debug)]
pub(super) struct ReadPace {
    rate: Option<Rate>,
    pauses: Vec<(Instant, Instant)>,
    credit: u64,
    filled: Instant,
}

impl ReadPace {
    pub(super) fn new(pattern: &ReadPattern, run_start: Instant) -> Self {
        let pauses = pattern.pauses.iter().map(|(from, to)| (run_start + *from, run_start + *to)).collect();
        let rate = pattern.rate.filter(|rate| !rate.is_zero());
        ReadPace { rate, pauses, credit: 0, filled: run_start }
    }

    pub(super) fn reading(&mut self, now: Instant) -> Reading {
        if let Some((_, end)) = self.pauses.iter().find(|(from, to)| *from <= now && now < *to) {
            return Reading::NotBefore(*end);
        }
        let Some(rate) = self.rate else { return Reading::UpTo(usize::MAX) };
        let step_bytes = rate.bytes_in(STEP).max(1);
        let earned = rate.bytes_in(now.saturating_since(self.filled));
        if earned > 0 {
            // Missed reads are not made up for: a slow application does not hurry.
            self.credit = (self.credit + earned).min(2 * step_bytes);
            self.filled = now;
        }
        if self.credit >= step_bytes {
            Reading::UpTo(usize::try_from(self.credit).unwrap_or(usize::MAX))
        } else {
            Reading::NotBefore(now + rate.time_for(step_bytes - self.credit).max(Duration::from_millis(1)))
        }
    }

    pub(super) fn read(&mut self, bytes: usize) {
        self.credit = self.credit.saturating_sub(bytes as u64);
    }
}

/// Our choice: 20 ms, so that 2 Mbit/s is read in pieces of about three segments.
const STEP: Duration = Duration::from_millis(20);

#[cfg(test)]
mod tests {
    use super::*;

    fn ms(ms: u64) -> Duration {
        Duration::from_millis(ms)
    }

    #[test]
    fn the_average_is_the_rate() {
        let pattern = ReadPattern { rate: Some(Rate::from_mbps(2.0)), pauses: vec![] };
        let mut pace = ReadPace::new(&pattern, Instant::ZERO);
        let (mut now, mut total) = (Instant::ZERO, 0u64);
        while now < Instant::ZERO + ms(10_000) {
            match pace.reading(now) {
                Reading::UpTo(bytes) => {
                    pace.read(bytes);
                    total += bytes as u64;
                }
                Reading::NotBefore(at) => now = at,
            }
        }
        assert!(total.abs_diff(2_500_000) <= 5_000, "{total}");
    }

    #[test]
    fn nothing_is_read_in_a_pause() {
        let pattern = ReadPattern { rate: None, pauses: vec![(ms(10), ms(20))] };
        let mut pace = ReadPace::new(&pattern, Instant::ZERO);
        assert_eq!(pace.reading(Instant::ZERO + ms(5)), Reading::UpTo(usize::MAX));
        assert_eq!(pace.reading(Instant::ZERO + ms(15)), Reading::NotBefore(Instant::ZERO + ms(20)));
        assert_eq!(pace.reading(Instant::ZERO + ms(20)), Reading::UpTo(usize::MAX));
    }
}
