//! The smallest round-trip time of a recent window, in constant space.

use paceline_wire::{Duration, Instant};

/// A queue that did not empty for so long is standing (RFC 8289, Section 3, calls it the bad queue). Its interval of 100 ms is for a router; ours is
/// some round trips of a radio link.
pub(crate) const STANDING: Duration = Duration::from_millis(250);

#[derive(Clone, Copy, Debug)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
struct Sample {
    at: Instant,
    rtt: Duration,
}

/// Windowed minimum that keeps the best, second best and third best sample of successively later parts of the window,
/// as Linux does (`lib/win_minmax.c`, after Kathleen Nichols): O(1), and never a stale minimum for longer than a window.
#[derive(Clone, Copy, Debug)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
pub struct RttMin {
    window: Duration,
    best: Option<[Sample; 3]>,
}

impl RttMin {
    /// An empty filter over `window`.
    pub const fn new(window: Duration) -> Self {
        RttMin { window, best: None }
    }

    /// The smallest round-trip time of the window that ended with the last sample.
    pub fn get(&self) -> Option<Duration> {
        self.best.map(|best| best[0].rtt)
    }

    /// Forgets the past: `rtt` is the minimum from now on.
    pub fn reset(&mut self, now: Instant, rtt: Duration) {
        self.best = Some([Sample { at: now, rtt }; 3]);
    }

    /// Adds a sample and returns the minimum.
    pub fn update(&mut self, now: Instant, rtt: Duration) -> Duration {
        let new = Sample { at: now, rtt };
        let Some(best) = &mut self.best else {
            self.reset(now, rtt);
            return rtt;
        };
        if rtt <= best[0].rtt || now.saturating_since(best[2].at) > self.window {
            *best = [new; 3];
            return rtt;
        }
        if rtt <= best[1].rtt {
            best[1] = new;
            best[2] = new;
        } else if rtt <= best[2].rtt {
            best[2] = new;
        }
        let age = now.saturating_since(best[0].at);
        if age > self.window {
            *best = [best[1], best[2], new];
            if now.saturating_since(best[0].at) > self.window {
                *best = [best[1], new, new];
            }
        } else if best[1].at == best[0].at && age > self.window / 4 {
            best[1] = new;
            best[2] = new;
        } else if best[2].at == best[1].at && age > self.window / 2 {
            best[2] = new;
        }
        best[0].rtt
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn ms(ms: u64) -> Duration {
        Duration::from_millis(ms)
    }

    #[test]
    fn a_smaller_sample_is_taken_at_once() {
        let mut filter = RttMin::new(ms(1_000));
        assert_eq!(filter.get(), None);
        assert_eq!(filter.update(Instant::ZERO, ms(50)), ms(50));
        assert_eq!(filter.update(Instant::ZERO + ms(10), ms(40)), ms(40));
        assert_eq!(filter.update(Instant::ZERO + ms(20), ms(60)), ms(40));
    }

    #[test]
    fn the_minimum_is_forgotten_after_a_window() {
        let mut filter = RttMin::new(ms(1_000));
        let mut now = Instant::ZERO;
        filter.update(now, ms(40));
        while now < Instant::ZERO + ms(990) {
            now += ms(10);
            assert_eq!(filter.update(now, ms(80)), ms(40));
        }
        now += ms(20);
        assert_eq!(filter.update(now, ms(80)), ms(80));
    }

    #[test]
    fn a_long_silence_forgets_everything() {
        let mut filter = RttMin::new(ms(1_000));
        filter.update(Instant::ZERO, ms(40));
        assert_eq!(filter.update(Instant::ZERO + ms(5_000), ms(90)), ms(90));
    }

    #[test]
    fn the_result_is_never_below_the_exact_minimum_of_the_window() {
        let mut filter = RttMin::new(ms(100));
        let mut state = 1u32;
        let mut samples = alloc::vec::Vec::new();
        for i in 0..2_000u64 {
            state = state.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
            let sample = (Instant::ZERO + ms(3 * i), ms(20 + u64::from(state >> 26)));
            samples.push(sample);
            let got = filter.update(sample.0, sample.1);
            let within = |window: Duration| {
                samples
                    .iter()
                    .filter(|s| sample.0.saturating_since(s.0) <= window)
                    .map(|s| s.1)
                    .min()
                    .unwrap()
            };
            assert!(got >= within(ms(100)));
            assert!(got <= within(ms(25)));
        }
    }
}
