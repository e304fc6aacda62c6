//! The router of ABC (Goyal et al., "ABC: A Simple Explicit Congestion Controller for Wireless Networks", NSDI 2020).
//! Each packet tells its sender to accelerate or to brake. One RTT later, packets arrive at the rate that the router
//! wants.
//!
//! The mark "accelerate" is ECT(1), and "brake" is ECT(0). There is one queue. The paper's second queue, for flows
//! without ABC, is not implemented.

use alloc::collections::VecDeque;

use paceline_wire::{Duration, Instant};

use super::{AqmContext, QueueDiscipline, check_time};
use crate::error::ConfigError;
use crate::queue::{DropTail, Waiting};
use crate::queue_limit::QueueLimit;
use crate::random::Probability;

/// Parameters of ABC's router.
#[derive(Clone, Copy, Debug, PartialEq, Eq, serde::Deserialize)]
#[serde(rename_all = "kebab-case", deny_unknown_fields, default)]
pub struct AbcConfig {
    /// Eta: the target utilization of the link.
    pub eta: Probability,
    /// Delta: the time in which a queue must drain. Stable above two thirds of the longest RTT (Theorem 3.1).
    #[serde(deserialize_with = "crate::units::de::duration")]
    pub delta: Duration,
    /// d_t: the tolerated wait.
    #[serde(deserialize_with = "crate::units::de::duration")]
    pub threshold: Duration,
    /// T: the window over which the link's capacity and the dequeue rate are measured.
    #[serde(deserialize_with = "crate::units::de::duration")]
    pub window: Duration,
}

impl Default for AbcConfig {
    /// Eta and delta as in the evaluation for an RTT of 100 ms. Our choice: a threshold of 20 ms and a window of 50 ms.
    /// The opportunities of an LTE link come in bunches of some milliseconds, and measurements of half an RTT are
    /// fresh.
    fn default() -> Self {
        AbcConfig {
            eta: Probability::from_ppm(980_000),
            delta: Duration::from_millis(133),
            threshold: Duration::from_millis(20),
            window: Duration::from_millis(50),
        }
    }
}

impl AbcConfig {
    pub(super) fn check(self) -> Result<(), ConfigError> {
        check_time(self.delta)?;
        check_time(self.window)
    }
}

/// One first-in, first-out queue.
#[derive(Clone, Debug)]
pub(super) struct Abc {
    config: AbcConfig,
    fifo: DropTail,
    /// Tokens, in units of [`ONE`].
    token: u64,
    /// Time and size of the packets dequeued within the window.
    dequeued: VecDeque<(Instant, u32)>,
    dequeued_bytes: u64,
}

const ONE: u64 = 1 << 16;
/// Our choice for the limit of Algorithm 1: five packets. More would let a burst of "accelerate" marks pass after a
/// fade.
const TOKEN_LIMIT: u64 = 5 * ONE;

impl Abc {
    pub(super) fn new(config: AbcConfig, limit: QueueLimit) -> Self {
        let fifo = DropTail::new(limit);
        Abc { config, fifo, token: 0, dequeued: VecDeque::new(), dequeued_bytes: 0 }
    }

    /// Eq. (2): f = tr / (2 cr), at most 1, in units of [`ONE`]. On a link without a limit all packets accelerate.
    fn accelerating(&self, now: Instant, wait: Duration, ctx: &AqmContext<'_>) -> u64 {
        let from = Instant::from_nanos(now.as_nanos().saturating_sub(self.config.window.as_nanos()));
        let Some(capacity) = ctx.capacity_bytes(from.max(ctx.start), now) else { return ONE };
        let target = u128::from(self.target(capacity, wait));
        let current = u128::from(self.dequeued_bytes.max(1));
        (target * u128::from(ONE) / (2 * current)).min(u128::from(ONE)) as u64
    }

    /// Eq. (1): tr = eta mu - mu / delta * max(x - d_t, 0), in bytes per window. x is the wait of the packet that
    /// leaves.
    fn target(&self, capacity: u64, wait: Duration) -> u64 {
        let capacity = u128::from(capacity);
        let share = capacity * u128::from(self.config.eta.as_ppb()) / 1_000_000_000;
        let excess = wait.saturating_sub(self.config.threshold);
        let drain = capacity * u128::from(excess.as_nanos()) / u128::from(self.config.delta.as_nanos());
        u64::try_from(share.saturating_sub(drain)).unwrap_or(u64::MAX)
    }

    fn count(&mut self, now: Instant, bytes: u32) {
        self.dequeued.push_back((now, bytes));
        self.dequeued_bytes += u64::from(bytes);
        while let Some(&(at, bytes)) = self.dequeued.front()
            && now.saturating_since(at) >= self.config.window
        {
            self.dequeued.pop_front();
            self.dequeued_bytes -= u64::from(bytes);
        }
    }
}

impl QueueDiscipline for Abc {
    fn enqueue(&mut self, waiting: Waiting, ctx: &mut AqmContext<'_>) {
        ctx.admit(&mut self.fifo, waiting);
    }

    /// Algorithm 1: a packet keeps its mark "accelerate" only if there is a token.
    fn dequeue(&mut self, now: Instant, ctx: &mut AqmContext<'_>) -> Option<Waiting> {
        let waiting = self.fifo.pop()?;
        self.count(now, waiting.handle.bytes);
        let fraction = self.accelerating(now, now.saturating_since(waiting.arrival), ctx);
        self.token = (self.token + fraction).min(TOKEN_LIMIT);
        if ctx.accelerates(&waiting.handle) {
            if self.token >= ONE {
                self.token -= ONE;
            } else {
                ctx.brake(&waiting.handle);
            }
        }
        Some(waiting)
    }

    fn backlog(&self) -> (usize, u64) {
        self.fifo.backlog()
    }
}

#[cfg(test)]
mod tests {
    use super::super::tests::{Bench, ms};
    use super::*;

    fn abc() -> Abc {
        Abc::new(AbcConfig::default(), QueueLimit::Unlimited)
    }

    /// Returns the share of packets that brake. The link carries 1 MB/s. Every 10 ms this number of packets of 1,040
    /// bytes arrives, and they leave after `wait_ms`.
    fn share_braking(packets_per_10_ms: u64, wait_ms: u64) -> f64 {
        let mut bench = Bench::new();
        bench.accelerate = true;
        let mut abc = abc();
        for step in 0..200 {
            bench.send(&mut abc, ms(step * 10), packets_per_10_ms as u32);
            for _ in 0..packets_per_10_ms {
                bench.take(&mut abc, ms(step * 10 + wait_ms));
            }
        }
        bench.counters.marked.packets as f64 / (200 * packets_per_10_ms) as f64
    }

    /// A full link without a queue must stay full: eta / 2 of the packets accelerate.
    #[test]
    fn a_full_link_brakes_half() {
        // Packets leave in bursts of 9, so that the window of 50 ms has 37 to 45 packets of 1,040 bytes. Then
        // f = 0.98 * 50,000 / (2 * 41 * 1,040).
        let share = share_braking(9, 0);
        assert!((0.41..=0.45).contains(&share), "{share}");
    }

    #[test]
    fn a_link_half_used_brakes_nobody() {
        assert!(share_braking(4, 0) < 0.02, "{}", share_braking(4, 0));
    }

    /// The wait is 20 + 66.5 ms: tr = 0.98 - 0.5 of the link.
    #[test]
    fn a_queue_brakes_more() {
        let share = share_braking(9, 86);
        assert!((0.70..=0.80).contains(&share), "{share}");
        // If the wait exceeds d_t + eta delta, the target is zero.
        assert!(share_braking(9, 160) > 0.99, "{}", share_braking(9, 160));
    }

    /// The router only changes "accelerate" into "brake".
    #[test]
    fn what_does_not_know_abc_passes() {
        for ect in [false, true] {
            let mut bench = Bench::new();
            bench.ect = ect;
            let mut abc = abc();
            bench.send(&mut abc, ms(0), 100);
            for _ in 0..100 {
                bench.take(&mut abc, ms(500));
            }
            assert_eq!((bench.counters.marked.packets, bench.counters.dropped().packets), (0, 0));
        }
    }

    #[test]
    fn the_limit_holds() {
        let mut bench = Bench::new();
        let mut abc = Abc::new(AbcConfig::default(), QueueLimit::Packets(10));
        bench.send(&mut abc, ms(0), 15);
        assert_eq!((abc.backlog().0, bench.counters.dropped_by_queue.packets), (10, 5));
    }
}
