//! PIE (RFC 8033): drops at the tail with a probability that follows the delay and its change.

use paceline_wire::{Duration, Instant};

use super::{AqmContext, QueueDiscipline, check_time};
use crate::error::ConfigError;
use crate::queue::{DropTail, Waiting};
use crate::queue_limit::QueueLimit;
use crate::random::Random;

/// Parameters of PIE.
#[derive(Clone, Copy, Debug, PartialEq, Eq, serde::Deserialize)]
#[serde(rename_all = "kebab-case", deny_unknown_fields, default)]
pub struct PieConfig {
    /// The target delay: QDELAY_REF.
    #[serde(deserialize_with = "crate::units::de::duration")]
    pub target: Duration,
    /// Interval between two updates of the probability: T_UPDATE.
    #[serde(deserialize_with = "crate::units::de::duration")]
    pub update: Duration,
    /// The longest burst that passes without drops: MAX_BURST.
    #[serde(deserialize_with = "crate::units::de::duration")]
    pub burst: Duration,
    /// Marks ECN-capable packets in place of dropping them, while the probability is at most 10 %.
    pub ecn: bool,
}

impl Default for PieConfig {
    /// RFC 8033, Sections 4.2 and 4.4.
    fn default() -> Self {
        PieConfig {
            target: Duration::from_millis(15),
            update: Duration::from_millis(15),
            burst: Duration::from_millis(150),
            ecn: false,
        }
    }
}

impl PieConfig {
    pub(super) fn check(self) -> Result<(), ConfigError> {
        check_time(self.target)?;
        if self.update < UPDATE_MIN { Err(ConfigError::PieUpdateTooShort) } else { Ok(()) }
    }
}

/// One queue under PIE, its state named as in RFC 8033, Appendix A.
#[derive(Clone, Debug)]
pub(super) struct Pie {
    config: PieConfig,
    fifo: DropTail,
    random: Random,
    /// In parts of [`ONE`].
    drop_prob: u64,
    accu_prob: u64,
    burst_allowance: Duration,
    qdelay_old: Duration,
    /// The wait of the last packet that left.
    sojourn: Duration,
    /// Time of the next update; `None` before the first packet.
    next_update: Option<Instant>,
}

/// Our choice: missed updates are made up after a silence, so their number must be bounded.
const UPDATE_MIN: Duration = Duration::from_micros(100);
/// The probability of 1.
const ONE: u64 = 1_000_000_000_000_000_000;
/// alpha is 1/8 and beta 5/4 of a probability per second (RFC 8033, Section 4.2); here in eighths.
const ALPHA_EIGHTHS: i128 = 1;
const BETA_EIGHTHS: i128 = 10;
/// Parts of [`ONE`] per nanosecond, for a rate of 1 per second.
const ONE_PER_NS: i128 = 1_000_000_000;
/// A queue of at most two packets has no drops (RFC 8033, Section 4.1; Linux pie_drop_early uses full-sized
/// ones).
const TWO_PACKETS: u64 = 2 * 1_500;

impl Pie {
    pub(super) fn new(config: PieConfig, limit: QueueLimit, random: Random) -> Self {
        Pie {
            config,
            fifo: DropTail::new(limit),
            random,
            drop_prob: 0,
            accu_prob: 0,
            burst_allowance: config.burst,
            qdelay_old: Duration::ZERO,
            sojourn: Duration::ZERO,
            next_update: None,
        }
    }

    /// Performs the updates that are due.
    fn update_until(&mut self, now: Instant) {
        let Some(mut at) = self.next_update else {
            self.next_update = Some(now + self.config.update);
            return;
        };
        while at <= now {
            if self.is_at_rest() {
                // Nothing changes until a packet arrives.
                let periods = now.saturating_since(at).as_nanos() / self.config.update.as_nanos();
                at += self.config.update * periods;
            }
            self.update(at);
            at += self.config.update;
        }
        self.next_update = Some(at);
    }

    fn is_at_rest(&self) -> bool {
        self.drop_prob == 0
            && self.qdelay_old.is_zero()
            && self.fifo.len() == 0
            && self.burst_allowance == self.config.burst
    }

    /// RFC 8033, Section 4.2; the change is capped as in Section 5.5.
    fn update(&mut self, now: Instant) {
        let qdelay = self.qdelay(now);
        let ns = |duration: Duration| i128::from(duration.as_nanos());
        let (target, old) = (ns(self.config.target), ns(self.qdelay_old));
        let eighths = ALPHA_EIGHTHS * (ns(qdelay) - target) + BETA_EIGHTHS * (ns(qdelay) - old);
        let mut p = eighths * ONE_PER_NS / (8 * self.damping());
        if self.drop_prob >= ONE / 10 {
            p = p.min(i128::from(ONE / 50));
        }
        let drop_prob = (i128::from(self.drop_prob) + p).clamp(0, ONE.into());
        self.drop_prob = drop_prob as u64;
        if qdelay.is_zero() && self.qdelay_old.is_zero() {
            self.drop_prob -= self.drop_prob.div_ceil(50);
        }
        self.burst_allowance = self.burst_allowance.saturating_sub(self.config.update);
        let half = self.config.target / 2;
        if self.drop_prob == 0 && qdelay < half && self.qdelay_old < half {
            self.burst_allowance = self.config.burst;
        }
        self.qdelay_old = qdelay;
    }

    /// Divisor of a change, which makes small probabilities move in small steps (RFC 8033, Section 4.2).
    fn damping(&self) -> i128 {
        match self.drop_prob {
            p if p < ONE / 1_000_000 => 2_048,
            p if p < ONE / 100_000 => 512,
            p if p < ONE / 10_000 => 128,
            p if p < ONE / 1_000 => 32,
            p if p < ONE / 100 => 8,
            p if p < ONE / 10 => 2,
            _ => 1,
        }
    }

    /// The delay by timestamps (RFC 8033, Section 4.3; Linux since 5.6): the wait of the last packet that
    /// left. Our choice: the wait of the head if that is longer, because nothing leaves during an outage.
    fn qdelay(&self, now: Instant) -> Duration {
        self.fifo.front().map_or(Duration::ZERO, |head| self.sojourn.max(now.saturating_since(head.arrival)))
    }

    /// RFC 8033, Sections 4.1 and 4.4. Drops are spaced as in Section 5.4.
    fn drop_early(&mut self) -> bool {
        let half = self.config.target / 2;
        if !self.burst_allowance.is_zero()
            || self.qdelay_old < half && self.drop_prob < ONE / 5
            || self.fifo.bytes() <= TWO_PACKETS
        {
            return false;
        }
        if self.drop_prob == 0 {
            self.accu_prob = 0;
        }
        self.accu_prob = self.accu_prob.saturating_add(self.drop_prob);
        let drops = match self.accu_prob {
            accu if accu < ONE / 100 * 85 => false,
            accu if accu >= ONE / 10 * 85 => true,
            _ => self.random.below(ONE) < self.drop_prob,
        };
        if drops {
            self.accu_prob = 0;
        }
        drops
    }
}

impl QueueDiscipline for Pie {
    fn enqueue(&mut self, waiting: Waiting, ctx: &mut AqmContext<'_>) {
        self.update_until(waiting.arrival);
        if !ctx.has_room(&self.fifo, waiting.handle.bytes) {
            self.accu_prob = 0;
            return ctx.drop_for_room(waiting);
        }
        // RFC 8033, Section 5.1: mark_ecnth is 10 %.
        let may_mark = self.config.ecn && self.drop_prob <= ONE / 10;
        if !self.drop_early() || may_mark && ctx.mark(&waiting.handle) {
            self.fifo.push(waiting);
        } else {
            ctx.drop_early(waiting);
        }
    }

    fn dequeue(&mut self, now: Instant, _ctx: &mut AqmContext<'_>) -> Option<Waiting> {
        self.update_until(now);
        let waiting = self.fifo.pop()?;
        self.sojourn = now.saturating_since(waiting.arrival);
        Some(waiting)
    }

    fn backlog(&self) -> (usize, u64) {
        self.fifo.backlog()
    }
}

#[cfg(test)]
mod tests {
    use super::super::tests::{Bench, IntoInstant as _, ms};
    use super::*;

    fn pie(ecn: bool) -> Pie {
        Pie::new(PieConfig { ecn, ..PieConfig::default() }, QueueLimit::Unlimited, Random::named(1, "aqm"))
    }

    /// The equation of Section 4.2 at a constant 40 ms: 25 ms above the target give 1/320, and the first change gives
    /// 5/100. Both are divided by 2048.
    #[test]
    fn the_probability_moves_as_the_equation_says() {
        let mut bench = Bench::new();
        let mut pie = pie(false);
        bench.send(&mut pie, ms(0), 10);
        pie.sojourn = ms(40);
        pie.update(ms(15).into_instant());
        assert_eq!(pie.drop_prob, (ONE / 320 + ONE / 20) / 2_048);
        let before = pie.drop_prob;
        pie.update(ms(30).into_instant());
        assert_eq!(pie.drop_prob - before, ONE / 320 / 128, "25 parts in a million");
        assert_eq!((pie.burst_allowance, pie.qdelay_old), (ms(120), ms(40)));
    }

    #[test]
    fn a_burst_is_let_through_and_what_is_idle_forgets() {
        let mut bench = Bench::new();
        let mut pie = pie(false);
        for step in 0..120 {
            bench.send(&mut pie, ms(step), 2);
            bench.take(&mut pie, ms(step));
        }
        assert_eq!(bench.counters.dropped().packets, 0);
        while bench.take(&mut pie, ms(200)).is_some() {}
        pie.update_until(ms(3_600_000).into_instant());
        assert!(pie.is_at_rest(), "{pie:?}");
    }

    /// 11 packets come for every 10 that leave. The wait stays near the target.
    #[test]
    fn the_delay_is_held_near_the_target() {
        let mut bench = Bench::new();
        let mut pie = pie(false);
        let mut worst = Duration::ZERO;
        for step in 0..60_000u64 {
            bench.send(&mut pie, ms(step), 1 + u32::from(step % 10 == 0));
            bench.take(&mut pie, ms(step));
            if step > 30_000 {
                worst = worst.max(pie.sojourn);
            }
        }
        assert!((ms(15)..ms(45)).contains(&worst), "{worst:?}");
        let drops = bench.counters.dropped_by_aqm.packets;
        assert!((5_900..6_000).contains(&drops), "{drops}");
    }

    #[test]
    fn marks_stand_in_for_drops_up_to_a_tenth() {
        let mut bench = Bench::new();
        bench.ect = true;
        let mut pie = pie(true);
        for step in 0..5_000u64 {
            bench.send(&mut pie, ms(step), 2);
            bench.take(&mut pie, ms(step));
        }
        let counters = bench.counters;
        assert!(counters.marked.packets > 5, "{counters:?}");
        assert!(counters.dropped_by_aqm.packets > 1_000, "marks alone do not help here: {counters:?}");
    }
}
