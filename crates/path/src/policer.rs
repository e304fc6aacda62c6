//! A policer: a token bucket without a queue (RFC 2697 with one colour; Linux tc-police). Packets above the rate are
//! dropped when they are handed over. No packet is delayed.

use paceline_wire::{Duration, Rate};

use crate::error::ConfigError;

/// A rate that packets must not exceed, and a burst that may.
#[derive(Clone, Copy, Debug, PartialEq, Eq, serde::Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Policer {
    /// Rate of IP bytes and the link's framing.
    #[serde(deserialize_with = "crate::units::de::rate")]
    pub rate: Rate,
    /// Bytes that may pass at once after a pause: the size of the bucket.
    #[serde(rename = "burst", deserialize_with = "crate::units::de::bytes")]
    pub burst_bytes: u64,
}

impl Policer {
    pub(crate) fn check(self) -> Result<(), ConfigError> {
        if self.rate.is_zero() || self.burst_bytes == 0 {
            return Err(ConfigError::ZeroPolicer);
        }
        Ok(())
    }
}

/// The bucket, full at the start.
#[derive(Clone, Debug)]
pub(crate) struct TokenBucket {
    policer: Policer,
    framing_bytes: u64,
    /// In billionths of a byte, so that rounding loses nothing.
    tokens: u128,
    at: Duration,
}

/// One byte in units of `tokens`.
const BYTE: u128 = 1_000_000_000;

impl TokenBucket {
    pub(crate) fn new(policer: Policer, framing_bytes: u64) -> Self {
        let tokens = u128::from(policer.burst_bytes) * BYTE;
        TokenBucket { policer, framing_bytes, tokens, at: Duration::ZERO }
    }

    /// Returns true if a packet exceeds the tokens in the bucket; otherwise takes its tokens. `at` never goes back,
    /// except when the schedule restarts.
    pub(crate) fn exceeds(&mut self, at: Duration, bytes: u64) -> bool {
        let elapsed = u128::from(at.saturating_sub(self.at).as_nanos());
        self.at = at;
        let most = u128::from(self.policer.burst_bytes) * BYTE;
        self.tokens = most.min(self.tokens + elapsed * u128::from(self.policer.rate.as_bytes_per_sec()));
        let wanted = u128::from(bytes + self.framing_bytes) * BYTE;
        let exceeds = wanted > self.tokens;
        if !exceeds {
            self.tokens -= wanted;
        }
        exceeds
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_burst_passes_and_then_the_rate() {
        let policer = Policer { rate: Rate::from_bytes_per_sec(1_000_000), burst_bytes: 5_000 };
        let mut bucket = TokenBucket::new(policer, 0);
        let passed = |bucket: &mut TokenBucket, at, packets: u32| {
            (0..packets).filter(|_| !bucket.exceeds(Duration::from_micros(at), 1_000)).count()
        };
        assert_eq!(passed(&mut bucket, 0, 8), 5);
        assert_eq!(passed(&mut bucket, 999, 1), 0);
        assert_eq!(passed(&mut bucket, 1_000, 2), 1);
        assert_eq!(passed(&mut bucket, 1_000_000, 8), 5, "no more than the bucket holds");
        let steady: usize = (0..1_000).map(|n| passed(&mut bucket, 2_000_000 + 300 * n, 1)).sum();
        assert_eq!(steady, 5 + 299);
    }

    #[test]
    fn framing_is_charged() {
        let policer = Policer { rate: Rate::from_bytes_per_sec(1), burst_bytes: 1_050 };
        assert!(TokenBucket::new(policer, 51).exceeds(Duration::ZERO, 1_000));
        assert!(!TokenBucket::new(policer, 50).exceeds(Duration::ZERO, 1_000));
    }
}
