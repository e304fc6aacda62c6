//! The best sample of a window of time, from three kept samples (as in Linux; Kathleen Nichols' algorithm).

/// Keeps the best, second best and third best sample, each later than the one before. A sample is a time and a value.
/// The best is the largest with `MAX`, else the smallest.
#[derive(Clone, Copy, Debug, serde::Serialize, serde::Deserialize)]
pub struct WindowedFilter<const MAX: bool> {
    samples: [(u64, u64); 3],
}

/// The largest value of a window.
pub type WindowedMax = WindowedFilter<true>;
/// The smallest value of a window.
pub type WindowedMin = WindowedFilter<false>;

impl<const MAX: bool> WindowedFilter<MAX> {
    /// A filter that starts with one sample: a time and a value.
    pub const fn new(time: u64, value: u64) -> Self {
        WindowedFilter { samples: [(time, value); 3] }
    }

    /// A filter with the [`samples`](Self::samples) of another.
    pub const fn from_samples(samples: [(u64, u64); 3]) -> Self {
        WindowedFilter { samples }
    }

    /// The kept samples.
    pub const fn samples(&self) -> [(u64, u64); 3] {
        self.samples
    }

    /// The best value.
    pub const fn get(&self) -> u64 {
        self.samples[0].1
    }

    /// Forgets everything but this sample.
    pub fn reset(&mut self, time: u64, value: u64) {
        self.samples = [(time, value); 3];
    }

    /// Takes a sample. Samples older than `window` no longer count. Returns the best value.
    pub fn update(&mut self, window: u64, time: u64, value: u64) -> u64 {
        let as_good = |a: u64, b: u64| if MAX { a >= b } else { a <= b };
        let sample = (time, value);
        if as_good(value, self.samples[0].1) || time.saturating_sub(self.samples[2].0) > window {
            self.reset(time, value);
            return value;
        }
        if as_good(value, self.samples[1].1) {
            self.samples[1] = sample;
            self.samples[2] = sample;
        } else if as_good(value, self.samples[2].1) {
            self.samples[2] = sample;
        }
        self.age(window, sample);
        self.samples[0].1
    }

    /// Lets better samples expire and spreads the others over the window (Linux minmax_subwin_update).
    fn age(&mut self, window: u64, sample: (u64, u64)) {
        let age = sample.0.saturating_sub(self.samples[0].0);
        if age > window {
            self.samples = [self.samples[1], self.samples[2], sample];
            if sample.0.saturating_sub(self.samples[0].0) > window {
                self.samples = [self.samples[1], self.samples[2], sample];
            }
        } else if self.samples[1].0 == self.samples[0].0 && age > window / 4 {
            self.samples[1] = sample;
            self.samples[2] = sample;
        } else if self.samples[2].0 == self.samples[1].0 && age > window / 2 {
            self.samples[2] = sample;
        }
    }
}

#[cfg(test)]
mod tests {
    use std::vec::Vec;

    use super::*;

    #[test]
    fn the_best_of_a_window_is_kept_and_then_forgotten() {
        let mut min = WindowedMin::new(0, 50);
        for t in 1..=10 {
            assert_eq!(min.update(10, t, 60 + t), 50);
        }
        assert!(min.update(10, 11, 99) > 50);
        assert_eq!(min.update(10, 12, 20), 20);
        assert_eq!(min.update(10, 30, 99), 99, "a long silence forgets everything");
    }

    #[test]
    fn a_maximum_is_the_other_way_round() {
        let mut max = WindowedMax::new(0, 5);
        assert_eq!(max.update(10, 1, 3), 5);
        assert_eq!(max.update(10, 2, 8), 8);
        assert_eq!(max.update(10, 30, 1), 1);
    }

    /// The result is never better than the best of the window, and never worse than the best of its last quarter.
    #[test]
    fn the_result_is_bounded_by_the_exact_minimum_of_the_window() {
        let (mut filter, mut state, mut samples) = (WindowedMin::new(0, u64::MAX), 1u32, Vec::new());
        for time in (0..6_000).step_by(3) {
            state = state.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
            let value = 20 + u64::from(state >> 26);
            samples.push((time, value));
            let got = filter.update(100, time, value);
            let within = |window| samples.iter().filter(|s| time - s.0 <= window).map(|s| s.1).min().unwrap();
            assert!((within(100)..=within(25)).contains(&got));
        }
    }
}
