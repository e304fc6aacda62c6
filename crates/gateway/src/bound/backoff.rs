//! Giving way when a shared queue overflows.
//!
//! The bound follows the rate at once, and CUBIC beside it (RFC 9438) gives up three tenths at every overflow and takes
//! seconds to return: in the end all would be ours. So what is outstanding follows the same curve after an overflow, until
//! it meets the bound again. Our choice of what an overflow is: a loss while round trips are nearer to the longest than to the
//! shortest, and half as long again as without a queue; other losses are the radio's.

use paceline_wire::{Duration, Instant};

/// The packet in which RFC 9438 counts, in bytes.
const SEGMENT: u64 = 1_500;
/// The longest round trip is forgotten after that.
const LONGEST_WINDOW: Duration = Duration::from_secs(30);

/// The curve after an overflow.
#[derive(Clone, Copy, Debug)]
struct Curve {
    /// W_max, in bytes.
    w_max: u64,
    /// K.
    k: Duration,
    /// The overflow.
    since: Instant,
}

/// What overflows leave of the bound.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Backoff {
    curve: Option<Curve>,
    longest: Duration,
    longest_at: Instant,
}

impl Backoff {
    /// A round trip was measured.
    pub(super) fn on_rtt(&mut self, now: Instant, rtt: Duration) {
        if rtt >= self.longest || now.saturating_since(self.longest_at) > LONGEST_WINDOW {
            (self.longest, self.longest_at) = (rtt, now);
        }
    }

    /// Something was lost while round trips took `rtt` and `outstanding` bytes were on their way.
    pub(super) fn on_loss(&mut self, now: Instant, rtt: Duration, rtt_min: Duration, outstanding: u64) {
        let full = rtt >= (rtt_min + self.longest) / 2 && rtt >= rtt_min + rtt_min / 2;
        let same = self.curve.is_some_and(|curve| now.saturating_since(curve.since) < rtt + rtt / 4);
        if full && !same {
            // RFC 9438, Section 4.2: K = cbrt(W_max (1 - beta) / C) with beta = 0.7 and C = 0.4 segments per cubed second.
            let segments = outstanding / 10 * 3 / SEGMENT;
            let k = Duration::from_millis(super::cube_root(segments.saturating_mul(2_500_000_000)));
            self.curve = Some(Curve { w_max: outstanding, k, since: now });
        }
    }

    /// What may be outstanding where the bound says `limit`.
    pub(super) fn apply(&mut self, now: Instant, limit: u64) -> u64 {
        let Some(Curve { w_max, k, since }) = self.curve else { return limit };
        let d = now.saturating_since(since).as_millis() as i128 - k.as_millis() as i128;
        let cubic = i128::from(w_max) + d.pow(3) * 4 * i128::from(SEGMENT) / 10_000_000_000;
        let cubic = u64::try_from(cubic).unwrap_or(0);
        if cubic >= limit {
            self.curve = None;
        }
        cubic.min(limit)
    }
}
