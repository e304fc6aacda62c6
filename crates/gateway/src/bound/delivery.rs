//! The link's rate as measured from arrivals, its forecast for one round trip, and the forecast's error.

use paceline_wire::{Duration, Instant, Rate};

/// Number of checkpoints kept: sixteen for each window, so two windows.
const CHECKPOINTS: usize = 32;

#[derive(Clone, Copy, Debug, Default, serde::Serialize, serde::Deserialize)]
struct Checkpoint {
    at: Instant,
    delivered: u64,
    idle: Duration,
    forecast: Rate,
}

/// Time constants of `Delivery`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
pub struct DeliveryConfig {
    /// The window of the fast average; a round trip if that is longer.
    pub window: Duration,
    /// Time constant of the slow average.
    pub slow: Duration,
    /// Share of the slow average in the forecast, in percent.
    pub slow_percent: u64,
    /// Time constant of the forecast's mean error. As long as less time was measured, the mean covers that.
    pub error: Duration,
}

/// Start of the newest stretch. The link carries at least what arrived in the stretch.
#[derive(Clone, Copy, Debug, Default, serde::Serialize, serde::Deserialize)]
struct Stretch {
    at: Instant,
    /// Departure time of the newest packet that had arrived by then.
    sent: Instant,
    delivered: u64,
    /// During part of it the bound held packets of a pacing sender.
    #[serde(default)]
    held: bool,
}

/// The measured rate and its forecast.
#[derive(Clone, Debug, serde::Serialize, serde::Deserialize)]
pub(super) struct Delivery {
    config: DeliveryConfig,
    window: Duration,
    ring: [Checkpoint; CHECKPOINTS],
    head: usize,
    filled: usize,
    last: Instant,
    delivered: u64,
    idle: Duration,
    fast: Rate,
    slow: Rate,
    forecast: Rate,
    error: Rate,
    /// Time that the error covers, at most its time constant.
    #[serde(default)]
    judged: Duration,
    stretch: Stretch,
}

impl Delivery {
    pub(super) fn new(config: DeliveryConfig) -> Self {
        Delivery {
            config,
            window: config.window,
            ring: [Checkpoint::default(); CHECKPOINTS],
            head: 0,
            filled: 0,
            last: Instant::ZERO,
            delivered: 0,
            idle: Duration::ZERO,
            fast: Rate::ZERO,
            slow: Rate::ZERO,
            forecast: Rate::ZERO,
            error: Rate::ZERO,
            judged: Duration::ZERO,
            stretch: Stretch::default(),
        }
    }

    /// Returns the expected rate of the link in the next round trip; zero before the first estimate.
    pub(super) fn forecast(&self) -> Rate {
        self.forecast
    }

    /// Mean absolute error of that forecast.
    pub(super) fn error(&self) -> Rate {
        self.error
    }

    /// Raises the forecast to `rate` if that is more. On a path longer than assumed, the limit determined what arrived,
    /// not the link. The link carries at least `rate`, as before.
    pub(super) fn resume(&mut self, rate: Rate) {
        if rate > self.forecast {
            (self.fast, self.slow, self.forecast) = (rate, rate, rate);
        }
    }

    /// Lowers the slow average: a whole round trip was longer than the forecast explains.
    pub(super) fn too_high(&mut self) {
        if self.slow > self.fast {
            self.slow =
                Rate::from_bytes_per_sec((self.slow.as_bytes_per_sec() + self.fast.as_bytes_per_sec()) / 2);
        }
    }

    /// Raises the forecast at once if more arrived in a stretch of a round trip. The link can carry what arrived, even
    /// if a server was the limit. Without this rule the forecast never follows BBR, which sends faster for single round
    /// trips to see whether it gets more. As in the delivery rate of draft-ietf-ccwg-bbr, Section 4.1.1, samples of a
    /// limiting sender count if they are higher. A stretch is as long as its packets took to leave or to be
    /// acknowledged, whichever is longer, so late ACKs make no rate. Our choice: an eighth more, half of BBR's gain;
    /// less is the chance of single ACKs. If the bound held packets during part of the stretch, a sixteenth is enough.
    /// On a path of 64 ms or more the bound leaves no room for an eighth. BBR, held in turns by the bound and its own
    /// pacer, would otherwise probe there forever. Neither limit would last long enough to be measured.
    pub(super) fn carried(&mut self, now: Instant, sent: Instant, rtt_min: Duration) {
        let (passed, round) = (now.saturating_since(self.stretch.at), rtt_min.max(self.config.window / 2));
        if passed < round {
            return;
        }
        let elapsed = passed.max(sent.saturating_since(self.stretch.sent));
        let carried = Rate::from_bytes_in(self.delivered.saturating_sub(self.stretch.delivered), elapsed);
        let least =
            if self.stretch.held { self.forecast.mul_ratio(17, 16) } else { self.forecast.mul_ratio(9, 8) };
        self.stretch = Stretch { at: now, sent, delivered: self.delivered, held: false };
        let more = carried > least;
        if !self.forecast.is_zero() && more && passed < round * 2 {
            self.resume(carried);
        }
    }

    /// Records whether the bound held packets of a pacing sender.
    pub(super) fn held(&mut self, held: bool) {
        self.stretch.held |= held;
    }

    /// Measures anew from `now`.
    pub(super) fn restart(&mut self, now: Instant, delivered: u64) {
        self.delivered += delivered;
        self.last = now;
        self.filled = 0;
        self.mark(now);
    }

    /// Handles a report of `delivered` bytes at `now`. The last packet among them was sent `age` ago; without a queue
    /// its report takes `rtt_min`. `stalls`: a single flow lost a packet recently, so the link may be idle until the
    /// repair.
    pub(super) fn update(
        &mut self,
        now: Instant,
        delivered: u64,
        age: Option<Duration>,
        rtt_min: Duration,
        stalls: bool,
    ) {
        if let Some(age) = age {
            self.window = self.config.window.max(age);
        }
        if self.filled == 0 {
            self.restart(now, delivered);
            return;
        }
        self.delivered += delivered;
        if let Some(age) = age {
            // Without a queue the report comes `rtt_min` after departure. The link was idle from the previous report
            // until then, less the packet's own transmission. That counts with half of the time that the forecast
            // predicts, which leaves room for a link that became twice as fast.
            let unqueued = now - age + rtt_min;
            let own = match self.forecast {
                Rate::ZERO => Duration::ZERO,
                forecast => (forecast.time_for(delivered) / 2).min(rtt_min),
            };
            self.idle += unqueued.saturating_since(self.last).saturating_sub(own);
        }
        let gap = now.saturating_since(self.last);
        self.last = now;
        self.average(now, gap, rtt_min, stalls);
        let spacing = self.window / 16;
        if now.saturating_since(self.ring[self.head].at) >= spacing {
            self.judge(now, rtt_min);
            self.mark(now);
        }
    }

    fn average(&mut self, now: Instant, gap: Duration, rtt_min: Duration, stalls: bool) {
        let Some(start) = self.before(self.window) else { return };
        let elapsed = now.saturating_since(start.at);
        if elapsed < rtt_min.max(self.config.window / 2) {
            return;
        }
        let idle = self.idle - start.idle;
        if (self.forecast.is_zero() || stalls) && idle > elapsed / 2 {
            // A link that was idle for most of the time has not shown its rate. A burst of slow start queues on any
            // link. If twice the burst's rate is the limit, a server takes the wait for a full link. It then leaves
            // slow start (RFC 9406) at a fraction of the rate. While a lost burst is repaired, hardly any packet
            // leaves: a steady link of 80 Mbit/s then seemed to have half of that. Our choice: only in these two cases.
            // When the rule held without losses, the rate stayed too high on a path that became longer. Packets then
            // waited for 109 ms in place of 80. When it held for several flows, mixed traffic had .4 % less.
            return;
        }
        // At most twice the delivered bytes: the rate may double in a window, as in slow start.
        let busy = elapsed.saturating_sub(idle).max(elapsed / 2);
        self.fast = Rate::from_bytes_in(self.delivered.saturating_sub(start.delivered), busy);
        self.slow =
            if self.slow.is_zero() { self.fast } else { ewma(self.slow, self.fast, gap, self.config.slow) };
        let percent = self.config.slow_percent.min(100);
        let parts = |rate: Rate, percent| rate.as_bytes_per_sec().saturating_mul(percent);
        let sum = parts(self.fast, 100 - percent).saturating_add(parts(self.slow, percent));
        self.forecast = Rate::from_bytes_per_sec(sum / 100);
    }

    /// Compares the rate of the last round trip with its forecast.
    fn judge(&mut self, now: Instant, rtt_min: Duration) {
        let Some(then) = self.before(rtt_min) else { return };
        let elapsed = now.saturating_since(then.at);
        if then.forecast.is_zero() || elapsed < rtt_min {
            return;
        }
        // An idle link could have carried data, so idle time does not count.
        let busy = elapsed.saturating_sub(self.idle - then.idle).max(elapsed / 2);
        let carried = Rate::from_bytes_in(self.delivered.saturating_sub(then.delivered), busy);
        let off = carried.as_bytes_per_sec().abs_diff(then.forecast.as_bytes_per_sec());
        let gap = now.saturating_since(self.ring[self.head].at);
        self.judged = (self.judged + gap).min(self.config.error);
        self.error = ewma(self.error, Rate::from_bytes_per_sec(off), gap, self.judged);
    }

    fn mark(&mut self, now: Instant) {
        self.head = (self.head + 1) % CHECKPOINTS;
        self.filled = (self.filled + 1).min(CHECKPOINTS);
        self.ring[self.head] =
            Checkpoint { at: now, delivered: self.delivered, idle: self.idle, forecast: self.forecast };
    }

    /// The newest checkpoint that is at least `age` old, else the oldest.
    fn before(&self, age: Duration) -> Option<&Checkpoint> {
        let mut found = None;
        for back in 0..self.filled {
            let checkpoint = &self.ring[(self.head + CHECKPOINTS - back) % CHECKPOINTS];
            found = Some(checkpoint);
            if self.last.saturating_since(checkpoint.at) >= age {
                break;
            }
        }
        found
    }
}

/// First-order low-pass filter for uneven gaps.
fn ewma(old: Rate, new: Rate, gap: Duration, constant: Duration) -> Rate {
    let (old, new) = (old.as_bytes_per_sec(), new.as_bytes_per_sec());
    let total = (gap + constant).as_nanos();
    let step = Duration::from_nanos(old.abs_diff(new)).mul_ratio(gap.as_nanos(), total).as_nanos();
    Rate::from_bytes_per_sec(if new > old { old + step } else { old - step })
}

#[cfg(test)]
mod tests {
    use super::*;

    const PACKET: u64 = 1_500;
    const RTT: Duration = Duration::from_millis(100);

    /// Packets arrive at the pace of 20 Mbit/s in the first `busy_ms` of each round trip, after a queueing delay of
    /// `queue`.
    fn send(delivery: &mut Delivery, from_ms: u64, to_ms: u64, busy_ms: u64, queue: Duration) {
        let interval = Rate::from_mbps(20.0).time_for(PACKET);
        let mut now = Instant::ZERO + Duration::from_millis(from_ms);
        while now < Instant::ZERO + Duration::from_millis(to_ms) {
            let in_round = now.saturating_since(Instant::ZERO).as_millis() % RTT.as_millis();
            if in_round < busy_ms {
                delivery.update(now, PACKET, Some(RTT + queue), RTT, true);
            }
            now += interval;
        }
    }

    #[test]
    fn what_a_link_carries_that_is_mostly_idle_after_losses_is_not_its_rate() {
        let config = crate::bound::QueueBoundConfig::default().delivery;
        let mut delivery = Delivery::new(config);
        send(&mut delivery, 0, 2_000, 100, RTT / 5);
        let known = delivery.forecast();
        assert!(known > Rate::from_mbps(19.0) && known < Rate::from_mbps(21.0), "{known:?}");
        send(&mut delivery, 2_000, 4_000, 20, Duration::ZERO);
        assert!(delivery.forecast() > known.mul_ratio(9, 10), "{:?}", delivery.forecast());
    }
}
