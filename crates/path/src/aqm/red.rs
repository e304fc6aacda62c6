//! RED (Floyd and Jacobson, "Random Early Detection Gateways for Congestion Avoidance", 1993). It drops at the tail
//! with a probability that grows with the average queue.
//!
//! The thresholds are those of Linux's tc: a quarter of the limit, and a third of that. The other
//! values are those of ns-3's RedQueueDisc (LInterm, QW, Gentle). They are the largest probability of 2 %, the weight
//! of 1/512 and the gentle slope above the upper threshold.

use paceline_wire::Instant;

use super::{AqmContext, QueueDiscipline};
use crate::error::ConfigError;
use crate::queue::{DropTail, Waiting};
use crate::queue_limit::QueueLimit;
use crate::random::{Probability, Random};

/// Parameters of RED.
#[derive(Clone, Copy, Debug, PartialEq, Eq, serde::Deserialize)]
#[serde(rename_all = "kebab-case", deny_unknown_fields, default)]
pub struct RedConfig {
    /// The lower threshold, as a share of the queue's limit.
    pub min: Probability,
    /// The upper threshold, as a share of the queue's limit.
    pub max: Probability,
    /// The drop probability when the average reaches the upper threshold.
    pub max_p: Probability,
    /// Above the upper threshold, the probability rises to 1 at twice that threshold (Floyd, "Recommendation on using
    /// the gentle variant of RED", 2000). If false, everything is dropped above the upper threshold.
    pub gentle: bool,
    /// Marks ECN-capable packets in place of dropping them by chance.
    pub ecn: bool,
}

impl Default for RedConfig {
    fn default() -> Self {
        RedConfig {
            min: Probability::from_ppb(1_000_000_000 / 12),
            max: Probability::from_ppm(250_000),
            max_p: Probability::from_ppm(20_000),
            gentle: true,
            ecn: false,
        }
    }
}

impl RedConfig {
    pub(super) fn check(self, limit: QueueLimit) -> Result<(), ConfigError> {
        if limit == QueueLimit::Unlimited {
            return Err(ConfigError::RedWithoutLimit);
        }
        if self.min >= self.max { Err(ConfigError::RedThresholds) } else { Ok(()) }
    }
}

/// One queue under RED.
#[derive(Clone, Debug)]
pub(super) struct Red {
    config: RedConfig,
    fifo: DropTail,
    random: Random,
    /// Thresholds and average are in bytes or packets, like the limit, times 2^[`WEIGHT_SHIFT`].
    min_th: u64,
    max_th: u64,
    avg: u64,
    /// Packets since the last drop; `None` below the lower threshold.
    count: Option<u64>,
    /// Time since which the queue is empty.
    q_time: Option<Instant>,
}

enum Verdict {
    Keep,
    Unforced,
    Forced,
}

/// w_q = 1/512 (ns-3: 0.002; the paper, Section 6: at least 0.001).
const WEIGHT_SHIFT: u32 = 9;
/// Assumed packet size while no packet arrives (ns-3 MeanPktSize is 500, Linux's examples have 1000).
const MEAN_PACKET: u64 = 1_000;
const ONE_PPB: u64 = 1_000_000_000;

impl Red {
    pub(super) fn new(config: RedConfig, limit: QueueLimit, random: Random) -> Self {
        let limit_units = match limit {
            QueueLimit::Bytes(bytes) => bytes,
            QueueLimit::Packets(packets) => packets.into(),
            QueueLimit::Unlimited => u64::MAX >> (WEIGHT_SHIFT + 1),
        };
        let threshold = |share: Probability| {
            let scaled = (u128::from(limit_units) << WEIGHT_SHIFT) * u128::from(share.as_ppb());
            u64::try_from(scaled / u128::from(ONE_PPB)).unwrap_or(u64::MAX / 4)
        };
        Red {
            config,
            fifo: DropTail::new(limit),
            random,
            min_th: threshold(config.min),
            max_th: threshold(config.max).max(threshold(config.min) + 1),
            avg: 0,
            count: None,
            q_time: None,
        }
    }

    /// Updates the average (the paper, Section 3). The queue at a packet's arrival moves it. Time with an empty queue
    /// lets it fall, as if all packets that the link could have sent had found an empty queue.
    fn update_average(&mut self, now: Instant, ctx: &AqmContext<'_>) {
        if let Some(since) = self.q_time.take() {
            let m = ctx.capacity_bytes(since, now).map_or(u64::MAX, |bytes| bytes / MEAN_PACKET);
            self.avg = decayed(self.avg, m);
        }
        let units = match self.fifo.limit() {
            QueueLimit::Packets(_) => self.fifo.len() as u64,
            QueueLimit::Bytes(_) | QueueLimit::Unlimited => self.fifo.bytes(),
        };
        self.avg = self.avg - (self.avg >> WEIGHT_SHIFT) + units;
    }

    /// Decides whether a packet stays.
    fn decide(&mut self) -> Verdict {
        if self.avg < self.min_th {
            self.count = None;
            return Verdict::Keep;
        }
        let Some(p_b) = self.p_b() else {
            self.count = Some(0);
            return Verdict::Forced;
        };
        let count = self.count.map_or(0, |count| count + 1);
        // Equation of Section 4: gaps between drops are uniform, not geometric.
        let p_a = match ONE_PPB.checked_sub(count.saturating_mul(p_b)) {
            None | Some(0) => ONE_PPB,
            Some(rest) => (p_b * ONE_PPB).div_ceil(rest),
        };
        let drops = self.random.chance(Probability::from_ppb(p_a));
        self.count = Some(if drops { 0 } else { count });
        if drops { Verdict::Unforced } else { Verdict::Keep }
    }

    /// The probability in parts per billion; `None` if everything is dropped.
    fn p_b(&self) -> Option<u64> {
        let max_p = u64::from(self.config.max_p.as_ppb());
        let along = |part: u64, whole: u64, rise: u64| {
            (u128::from(rise) * u128::from(part) / u128::from(whole.max(1))) as u64
        };
        if self.avg < self.max_th {
            Some(along(self.avg - self.min_th, self.max_th - self.min_th, max_p))
        } else if self.config.gentle && self.avg < 2 * self.max_th {
            Some(max_p + along(self.avg - self.max_th, self.max_th, ONE_PPB - max_p))
        } else {
            None
        }
    }
}

impl QueueDiscipline for Red {
    fn enqueue(&mut self, waiting: Waiting, ctx: &mut AqmContext<'_>) {
        let now = waiting.arrival;
        self.update_average(now, ctx);
        let verdict = self.decide();
        if !ctx.has_room(&self.fifo, waiting.handle.bytes) {
            self.count = Some(0);
            return ctx.drop_for_room(waiting);
        }
        let keeps = match verdict {
            Verdict::Keep => true,
            Verdict::Unforced => self.config.ecn && ctx.mark(&waiting.handle),
            // Where every packet is dropped, none is marked (ns-3 UseHardDrop).
            Verdict::Forced => false,
        };
        if keeps {
            self.fifo.push(waiting);
        } else {
            ctx.drop_early(waiting);
            if self.fifo.len() == 0 {
                self.q_time = Some(now);
            }
        }
    }

    fn dequeue(&mut self, now: Instant, _ctx: &mut AqmContext<'_>) -> Option<Waiting> {
        let waiting = self.fifo.pop();
        if self.fifo.len() == 0 {
            self.q_time.get_or_insert(now);
        }
        waiting
    }

    fn backlog(&self) -> (usize, u64) {
        self.fifo.backlog()
    }
}

/// Returns `avg` (1 - w_q)^m, by squaring, with 32 fractional bits.
fn decayed(avg: u64, mut m: u64) -> u64 {
    const POINT: u32 = 32;
    let mut factor: u64 = 1 << POINT;
    let mut power: u64 = (1 << POINT) - (1 << (POINT - WEIGHT_SHIFT));
    while m > 0 && factor > 0 {
        if m & 1 == 1 {
            factor = ((u128::from(factor) * u128::from(power)) >> POINT) as u64;
        }
        power = ((u128::from(power) * u128::from(power)) >> POINT) as u64;
        m >>= 1;
    }
    ((u128::from(avg) * u128::from(factor)) >> POINT) as u64
}

#[cfg(test)]
mod tests {
    use super::super::tests::{Bench, ms};
    use super::*;

    fn red(config: RedConfig) -> Red {
        Red::new(config, QueueLimit::Packets(120), Random::named(1, "aqm"))
    }

    #[test]
    fn the_probability_rises_in_two_slopes() {
        let mut red = red(RedConfig::default());
        // Thresholds are 10 and 30 packets.
        let mut p_b = |packets: u64| {
            red.avg = packets << WEIGHT_SHIFT;
            red.p_b().map(|ppb| (ppb + 500_000) / 1_000_000)
        };
        let expected = [Some(0), Some(10), Some(20), Some(510), None];
        assert_eq!([10, 20, 30, 45, 60].map(&mut p_b), expected);
        red.config.gentle = false;
        red.avg = 30 << WEIGHT_SHIFT;
        assert_eq!(red.p_b(), None);
    }

    #[test]
    fn drops_are_spaced_evenly() {
        let mut red = red(RedConfig::default());
        let mut gaps = alloc::vec::Vec::new();
        let mut gap = 0u64;
        for _ in 0..100_000 {
            red.avg = 20 << WEIGHT_SHIFT;
            gap += 1;
            if matches!(red.decide(), Verdict::Unforced) {
                gaps.push(core::mem::take(&mut gap));
            }
        }
        // Uniform up to 1 / p_b = 100.
        let mean = gaps.iter().sum::<u64>() / gaps.len() as u64;
        assert!(gaps.iter().all(|gap| *gap <= 101) && (48..54).contains(&mean), "{mean}");
    }

    #[test]
    fn the_average_follows_slowly_and_falls_when_idle() {
        let mut bench = Bench::new();
        let mut red = red(RedConfig::default());
        bench.send(&mut red, ms(0), 100);
        assert_eq!(bench.counters.dropped().packets, 0, "a burst moves the average by a fifth of it");
        // Mean of 0 to 99 packets over 512.
        assert!((8..10).contains(&(red.avg >> WEIGHT_SHIFT)), "{}", red.avg >> WEIGHT_SHIFT);
        while bench.take(&mut red, ms(1)).is_some() {}
        let before = red.avg;
        // A byte takes a microsecond: 512 packets in 512 ms, which is a factor of 1/e.
        bench.send(&mut red, ms(513), 1);
        assert!((360..=372).contains(&(red.avg * 1_000 / before)), "{}", red.avg * 1_000 / before);
    }

    #[test]
    fn decay_is_that_of_a_power() {
        assert_eq!(decayed(1 << 40, 0), 1 << 40);
        assert_eq!(decayed(1 << 40, 1), (1 << 40) - (1 << 31));
        assert_eq!(decayed(1 << 40, u64::MAX), 0);
    }

    #[test]
    fn marks_stand_in_for_drops_by_chance() {
        let mut bench = Bench::new();
        bench.ect = true;
        let mut red = red(RedConfig { ecn: true, ..RedConfig::default() });
        for step in 0..2_000u64 {
            bench.send(&mut red, ms(step), 1 + u32::from(step < 25));
            bench.take(&mut red, ms(step));
        }
        let counters = bench.counters;
        assert!(counters.marked.packets > 10 && counters.dropped().packets == 0, "{counters:?}");
    }
}
