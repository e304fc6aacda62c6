//! Data rates in bytes per second.

use core::fmt;

use crate::time::{Duration, mul_div};

/// A data rate in bytes per second.
#[derive(
    Clone, Copy, Default, PartialEq, Eq, PartialOrd, Ord, Hash, serde::Serialize, serde::Deserialize,
)]
pub struct Rate(u64);

impl Rate {
    /// The rate zero.
    pub const ZERO: Rate = Rate(0);

    /// `bytes` per second.
    pub const fn from_bytes_per_sec(bytes: u64) -> Self {
        Rate(bytes)
    }

    /// `bits` per second, rounded down to whole bytes per second.
    pub const fn from_bits_per_sec(bits: u64) -> Self {
        Rate(bits / 8)
    }

    /// `mbps` megabits (10^6 bits) per second. Negative and non-finite values give zero.
    pub fn from_mbps(mbps: f64) -> Self {
        Rate((mbps * 125_000.0) as u64)
    }

    /// The rate that sends `bytes` in `time`. Zero for an empty time.
    pub const fn from_bytes_in(bytes: u64, time: Duration) -> Self {
        if time.is_zero() { Rate::ZERO } else { Rate(mul_div(bytes, 1_000_000_000, time.as_nanos())) }
    }

    /// Bytes per second.
    pub const fn as_bytes_per_sec(self) -> u64 {
        self.0
    }

    /// Megabits per second, for output only.
    pub fn as_mbps(self) -> f64 {
        self.0 as f64 / 125_000.0
    }

    /// True if the rate is zero.
    pub const fn is_zero(self) -> bool {
        self.0 == 0
    }

    /// Whole bytes sent in `time`.
    pub const fn bytes_in(self, time: Duration) -> u64 {
        mul_div(self.0, time.as_nanos(), 1_000_000_000)
    }

    /// The time that `bytes` take. `Duration::MAX` at rate zero.
    pub const fn time_for(self, bytes: u64) -> Duration {
        Duration::from_nanos(mul_div(bytes, 1_000_000_000, self.0))
    }

    /// `self * numerator / denominator`.
    pub const fn mul_ratio(self, numerator: u64, denominator: u64) -> Rate {
        Rate(mul_div(self.0, numerator, denominator))
    }
}

impl fmt::Debug for Rate {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:.3}Mbit/s", self.as_mbps())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn time_and_bytes_are_inverse() {
        let rate = Rate::from_mbps(7.2);
        assert_eq!(rate.as_bytes_per_sec(), 900_000);
        assert_eq!(rate.bytes_in(Duration::from_millis(100)), 90_000);
        assert_eq!(rate.time_for(90_000), Duration::from_millis(100));
        assert_eq!(Rate::from_bytes_in(90_000, Duration::from_millis(100)), rate);
    }

    #[test]
    fn nothing_moves_at_rate_zero() {
        assert_eq!(Rate::ZERO.time_for(1), Duration::MAX);
        assert_eq!(Rate::from_bytes_in(1, Duration::ZERO), Rate::ZERO);
    }
}
