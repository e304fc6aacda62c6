//! The bound on the bottleneck queue: the bytes that a subscriber may have outstanding between gateway and client.
//!
//! limit = forecast x (rtt_min + target) + margin, margin = error_gain x error x rtt_min. The queue must cover the
//! forecast's mean error to keep the link busy. So a steady link gets little more than the target, a varying link what
//! it needs. Short drains keep `rtt_min` true (`baseline`). After an overflow of a shared queue the limit gives way
//! (`backoff`). Beside a flow that fills the queue, a window competes (`contest`). docs/design/queue-bound.md has
//! reasons and measurements.

mod backoff;
mod contest;
mod cubic;
mod delivery;
mod loss_test;
mod policed;
mod release;
mod short_buffer;
#[cfg(test)]
mod tests;
mod train;

use paceline_wire::{Duration, Instant, Rate};

use crate::baseline::{Baseline, DrainResult, Expected};
use crate::config::Prefer;
use crate::rtt_min::{RttMin, STANDING};
use backoff::Backoff;
use contest::CompetingWindow;
use delivery::Delivery;
pub use delivery::DeliveryConfig;
use loss_test::{LossSample, LossTest};
use policed::PolicerDetector;
use release::{BoundRelease, RoundTrip};
use train::PacketTrain;

/// Our choice: the target is at least two full packets, the least that keeps a link busy under delayed ACKs.
const MIN_QUEUE: u64 = 3_000;

/// A wait that users do not notice: ITU-T G.114 allows 150 ms for the whole path of a conversation.
const UNNOTICED: Duration = Duration::from_millis(50);

/// Our choice: more than clocks and rates round. Without it round trips exactly as long as expected seemed too long.
/// They drained a link of 2 Mbit/s and 60 ms each second: 97.3 % of it was used in place of 99.8 %.
const ROUNDING: Duration = Duration::from_micros(10);

/// Parameters of [`QueueBound`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
pub struct QueueBoundConfig {
    /// Target queueing delay of a steady link.
    pub target: Duration,
    /// Number of round trips of forecast error that the queue covers, in percent.
    pub error_gain_percent: u64,
    /// How rate and error are measured.
    pub delivery: DeliveryConfig,
    /// Window of the minimum round-trip time.
    pub rtt_min_window: Duration,
    /// The bound is never below this many bytes.
    pub floor: u64,
}

impl Default for QueueBoundConfig {
    fn default() -> Self {
        QueueBoundConfig {
            target: Duration::from_millis(8),
            error_gain_percent: Prefer::Balanced.error_gain_percent(),
            delivery: DeliveryConfig {
                window: Duration::from_millis(100),
                slow: Duration::from_millis(500),
                slow_percent: 40,
                error: Duration::from_secs(2),
            },
            rtt_min_window: Duration::from_secs(10),
            floor: 6_000,
        }
    }
}

/// Report of one acknowledgement from the subscriber.
#[derive(Clone, Copy, Debug)]
pub struct BoundSample {
    /// Arrival of the acknowledgement.
    pub now: Instant,
    /// Bytes newly known to have left the link: acknowledged cumulatively or selectively.
    pub delivered: u64,
    /// Round-trip time of the newest transmission among them, unless it was a retransmission (Karn).
    pub rtt: Option<Duration>,
    /// Time since the newest transmission among them was sent, even if it was a retransmission or is only inferred.
    pub age: Option<Duration>,
    /// Round-trip time between the sender and the gateway.
    pub server_rtt: Duration,
    /// Bytes outstanding after this acknowledgement.
    pub outstanding: u64,
    /// Flows that share the bound.
    pub flows: u32,
    /// Packets waited in the gateway because of the bound; otherwise the servers are the limit.
    pub limited: bool,
    /// The gateway itself is the sender.
    pub own: bool,
    /// The sender paces, so its pacer and the bound hold its packets in turns.
    pub paced: bool,
    /// The host is overloaded: packets wait for the gateway to read them, behind those of all other subscribers.
    pub crowded: bool,
}

/// The bound of one subscriber.
#[derive(Clone, Debug, serde::Serialize, serde::Deserialize)]
pub struct QueueBound {
    config: QueueBoundConfig,
    baseline: Baseline,
    delivery: Delivery,
    #[serde(default)]
    release: BoundRelease,
    contest: Option<CompetingWindow>,
    backoff: Backoff,
    #[serde(default)]
    loss_test: LossTest,
    #[serde(default)]
    policed: PolicerDetector,
    #[serde(default)]
    train: PacketTrain,
    /// Bytes found lost since the last acknowledgement, and the earliest known departure time among them.
    #[serde(default)]
    lost: (u64, Option<Instant>),
    /// An overflow or a loss test lowers the limit.
    #[serde(default)]
    gives_way: bool,
    /// A short buffer or a loss test lowers the limit, so it does not show what the link carries.
    #[serde(default)]
    lowered: bool,
    /// The buffer that overflowed last was short.
    #[serde(default)]
    short: bool,
    recent: RttMin,
    last_rtt: Duration,
    outstanding: u64,
    #[serde(default)]
    flows: u32,
    limit: Option<u64>,
    #[serde(default)]
    limited_at: Instant,
}

impl QueueBound {
    /// Creates a bound without measurements.
    pub fn new(config: QueueBoundConfig) -> Self {
        QueueBound {
            config,
            baseline: Baseline::new(config.rtt_min_window),
            delivery: Delivery::new(config.delivery),
            release: BoundRelease::default(),
            contest: None,
            backoff: Backoff::default(),
            loss_test: LossTest::default(),
            policed: PolicerDetector::default(),
            train: PacketTrain::default(),
            lost: (0, None),
            gives_way: false,
            lowered: false,
            short: false,
            recent: RttMin::new(STANDING),
            last_rtt: Duration::ZERO,
            outstanding: 0,
            flows: 0,
            limit: None,
            limited_at: Instant::ZERO,
        }
    }

    /// Records the loss of `bytes` bytes, the first of which was sent at `sent`.
    pub fn on_loss(&mut self, now: Instant, bytes: u64, sent: Option<Instant>) {
        self.lost.0 += bytes;
        self.lost.1 = self.lost.1.into_iter().chain(sent).min();
        let Some(rtt_min) = self.baseline.rtt_min() else { return };
        match &mut self.contest {
            Some(contest) => contest.on_loss(now, rtt_min),
            None => {
                // Bytes in flight before the loss (Little's law): many may be acknowledged by now. A flow that has just
                // begun has no forecast. Without the best recent rate, one loss among few packets held a link of
                // 60 Mbit/s to 6 KB for seconds.
                let queued = self.known_rate().bytes_in(self.last_rtt);
                let unqueued = self.release.longest().unwrap_or(rtt_min);
                self.backoff.on_loss(now, self.last_rtt, unqueued, queued.max(self.outstanding));
            }
        }
    }

    /// Handles an acknowledgement.
    pub fn on_ack(&mut self, sample: &BoundSample) {
        self.outstanding = sample.outstanding;
        self.flows = sample.flows;
        if let Some(rtt) = sample.rtt {
            self.last_rtt = rtt;
            self.backoff.on_rtt(sample.now, rtt);
            self.recent.update(sample.now, rtt);
        }
        if self.contest.is_some() {
            self.compete(sample);
            return;
        }
        let occupied = sample.rtt.is_some_and(|rtt| self.watch(sample, rtt));
        let Some(rtt_min) = self.baseline.rtt_min() else { return };
        // A policer drops packets without a queue. Our choice: up to an eighth is none; a sixteenth and a quarter gave
        // the same. When all losses counted, mixed traffic without a policer lost up to .6 % of its throughput.
        let unqueued = self.last_rtt <= rtt_min + rtt_min / 8;
        self.policed.on_report(sample.now, sample.delivered, if unqueued { self.lost.0 } else { 0 }, rtt_min);
        if !sample.own {
            let queued = sample.age.map_or(Duration::ZERO, |age| age.saturating_sub(rtt_min));
            self.train.on_report(sample.now, sample.delivered, queued);
        }
        self.try_release(sample, rtt_min);
        self.test_losses(sample, rtt_min);
        let unqueued = rtt_min + self.forecast().time_for(MIN_QUEUE);
        if sample.limited && sample.rtt.is_some_and(|rtt| rtt <= unqueued) {
            self.backoff.on_no_queue(sample.now, rtt_min);
        }
        self.measure(sample, rtt_min);
        let drained = sample.rtt.and_then(|rtt| {
            let drain_limit = self.drain_limit(rtt_min);
            self.baseline.on_drain(sample.now, rtt, sample.outstanding, drain_limit)
        });
        if drained == Some(DrainResult::Longer { queued: false }) {
            self.delivery.resume(self.known_rate());
        }
        self.set_limit(sample.now);
        if let Some(rtt) = sample.rtt.filter(|_| occupied || drained == Some(DrainResult::Occupied)) {
            self.contend(sample, rtt);
        }
    }

    /// Bytes that may be outstanding; `None` before the first estimate: packets are then forwarded on arrival.
    pub fn limit(&self) -> Option<u64> {
        self.limit
    }

    /// True if a queue stands: recent round trips all exceed the shortest by more than delayed ACKs or jitter explain.
    pub fn has_standing_queue(&self) -> bool {
        let empty = |rtt_min: Duration| rtt_min + rtt_min / 4 + Duration::from_millis(20);
        self.baseline
            .rtt_min()
            .zip(self.recent.get())
            .is_some_and(|(rtt_min, recent)| recent > empty(rtt_min))
    }

    /// Mean recent error of the forecast.
    pub fn error(&self) -> Rate {
        self.delivery.error()
    }

    /// Expected rate of the link in the next round trip.
    pub fn rate(&self) -> Rate {
        self.forecast()
    }

    /// The smallest recent round-trip time.
    pub fn rtt_min(&self) -> Option<Duration> {
        self.baseline.rtt_min()
    }

    /// Returns the link's rate, or zero before the first forecast.
    pub fn link(&self) -> Rate {
        if self.forecast().is_zero() { Rate::ZERO } else { self.known_rate() }
    }

    /// Returns the expected rate of the link, at most the policer's rate.
    fn forecast(&self) -> Rate {
        self.policed.cap(self.delivery.forecast())
    }

    /// Returns the forecast, or the best recent rate if that is higher: servers may have been the limit since.
    fn known_rate(&self) -> Rate {
        self.policed.cap(self.delivery.forecast().max(self.loss_test.rate()))
    }

    /// Attributes losses to a buffer or the radio. For a buffer the limit gives way, but not below what the path holds.
    fn test_losses(&mut self, sample: &BoundSample, rtt_min: Duration) {
        let sent = sample.now - sample.age.unwrap_or(rtt_min);
        let (lost, lost_sent) = core::mem::take(&mut self.lost);
        let test = LossSample {
            now: sample.now,
            sent,
            delivered: sample.delivered,
            lost,
            untimed: lost > 0 && lost_sent.is_none(),
            // A packet found lost was sent at most a round trip before the packet that has arrived.
            lost_sent: lost_sent.unwrap_or(sent - rtt_min),
            limited: sample.limited,
            lowered: self.gives_way,
            rate_known: !self.forecast().is_zero(),
            outstanding: sample.outstanding,
            flows: sample.flows,
            server_rtt: sample.server_rtt,
            path: self.path(rtt_min),
            rtt: self.last_rtt,
            rtt_min,
        };
        if let Some(outstanding) = self.loss_test.on_report(&test) {
            let path = test.path.max(self.floor());
            self.backoff.overflow(sample.now, self.last_rtt, outstanding, path);
            self.short = self.is_short(rtt_min, path, outstanding);
        }
    }

    /// Returns the queueing delay beyond which the link counts as busy. Where a buffer may be too short for the target,
    /// half of the longest queue counts. While the bound is released, round trips up to the longest are no queue's.
    /// Without that BBR's drain for its shortest round trip (draft-ietf-ccwg-bbr, Section 4.3.4) was taken for a slower
    /// link. 24 ms of jitter then cost it a tenth of its rate.
    fn busy_queue(&self, now: Instant, rtt_min: Duration) -> Duration {
        match (self.release.longest(), self.backoff.half_full(now, rtt_min)) {
            (Some(longest), None) => longest.saturating_sub(rtt_min),
            (_, Some(half)) if self.lowered => half.min(self.config.target),
            _ => self.config.target,
        }
    }

    /// Returns the smallest bound: two segments for each flow. A flow with one segment in flight waits for its client's
    /// delayed ACK each time (RFC 5681, Section 4.2). Our choice: with more than eight flows some wait.
    fn floor(&self) -> u64 {
        self.config.floor.max(u64::from(self.flows.min(8)) * 2 * cubic::SEGMENT)
    }

    /// Returns what the path holds without a queue. Delayed ACKs hide a segment of each flow that has arrived
    /// (RFC 9293, Section 3.8.6.3). While the bound is released, the longer round trip counts: a radio scheduler's
    /// packets are in no queue. With the shortest one a loss test took half of the rate, and the forecast followed
    /// (docs/design/queue-bound.md).
    fn path(&self, rtt_min: Duration) -> u64 {
        let rtt_min = self.release.longest().unwrap_or(rtt_min);
        self.held(rtt_min) + MIN_QUEUE.max(u64::from(self.flows) * cubic::SEGMENT)
    }

    /// Returns what a path of this round trip holds at the best recent rate. Clumped ACKs and loss tests make the
    /// forecast lower than that. A varying link's best rate is far above its usual rate, so the margin is subtracted.
    /// While the bound is released, one forecast error is subtracted instead.
    fn held(&self, rtt: Duration) -> u64 {
        let is_released = self.release.longest().is_some();
        let less = if is_released { self.delivery.error().bytes_in(rtt) } else { self.error_queue(rtt) };
        let best = self.loss_test.rate().bytes_in(rtt).saturating_sub(less);
        best.max(self.forecast().bytes_in(rtt))
    }

    /// Starts a contest: another sender's queue seems to stand on the link.
    fn contend(&mut self, sample: &BoundSample, rtt: Duration) {
        let (rate, floor) = (self.forecast(), self.floor());
        // A few packets on a very slow link look like that too. On an overloaded host the queue is the gateway's own.
        // Then even the smallest bound competes, with a window whose half still shows an effect.
        let window = rate.bytes_in(rtt).max(if sample.crowded { 3 * floor } else { 0 });
        if window > 2 * floor {
            self.contest = Some(CompetingWindow::new(sample.now, window, floor, rate, rtt));
            self.limit = Some(window);
        }
    }

    /// Evaluates a round trip. True if another sender's queue stands on the link.
    fn watch(&mut self, sample: &BoundSample, rtt: Duration) -> bool {
        let held = sample.outstanding <= self.limit.unwrap_or(u64::MAX);
        let (target, expected) = (self.config.target, self.expected());
        let Some(round) = self.baseline.on_rtt(sample.now, rtt, target, expected, held) else { return false };
        if round.unexplained {
            self.delivery.too_high();
        }
        round.occupied
    }

    fn measure(&mut self, sample: &BoundSample, rtt_min: Duration) {
        let queued = sample.age.map(|age| age.saturating_sub(rtt_min));
        let limited = sample.limited && !self.lowered;
        let busy = self.busy_queue(sample.now, rtt_min);
        let link_limited = limited || queued.is_some_and(|queued| queued > busy);
        if link_limited {
            self.limited_at = sample.now;
        }
        let sent = sample.now - sample.age.unwrap_or(rtt_min);
        self.delivery.held(sample.paced && sample.limited);
        let goes_on = link_limited || self.may_idle(sample.now, rtt_min);
        if goes_on && !self.baseline.in_drain(sent) && !self.release.in_check(sent) {
            let stalls = sample.flows < 2 && self.backoff.lost_of_late(sample.now);
            self.delivery.update(sample.now, sample.delivered, sample.age, rtt_min, stalls);
        } else {
            self.delivery.restart(sample.now, sample.delivered);
        }
        if !link_limited {
            self.delivery.carried(sample.now, sent, rtt_min);
        }
    }

    /// True if measuring goes on although the servers are the limit: the link was the limit less than a round trip ago.
    /// Idle time does not count ([`Delivery`]); a new start after each such moment cost varying links 1 %. Not before
    /// the first estimate or after recent losses, where the limit is often not what the link carries.
    fn may_idle(&self, now: Instant, rtt_min: Duration) -> bool {
        !self.forecast().is_zero()
            && !self.backoff.lost_of_late(now)
            && now.saturating_since(self.limited_at) < rtt_min
    }

    fn try_release(&mut self, sample: &BoundSample, rtt_min: Duration) {
        let Some(rtt) = sample.rtt.filter(|_| !self.baseline.draining()) else { return };
        let was_held = self.release.longest().is_none();
        self.release.on_rtt(&RoundTrip {
            now: sample.now,
            sent: sample.now - sample.age.unwrap_or(rtt),
            rtt,
            rtt_min,
            recent: self.recent.get().unwrap_or(rtt),
            // The bound itself allows two full packets on a slow link.
            target: self.config.target.max(self.forecast().time_for(MIN_QUEUE)),
            // A link that has just become slower must first drain its queue.
            limited: sample.limited
                && !self.lowered
                && self.loss_test.rate() <= self.forecast().mul_ratio(2, 1),
            // Our choice: an upload's window includes the wired side. Without this its jitter was never examined.
            held: sample.outstanding <= self.limit.map_or(u64::MAX, |limit| limit + limit / 4),
            forecast: self.forecast(),
        });
        if was_held && self.release.longest().is_some() {
            // The long round trips that indicated an overflow were no queue's.
            self.backoff.forget_queue();
        }
    }

    fn set_limit(&mut self, now: Instant) {
        let forecast = self.forecast();
        let Some(rtt_min) = self.baseline.rtt_min() else { return };
        // The buffer remains short after the curve has ended. Without this rule the bytes in flight had no limit until
        // the first forecast. A split flow before a buffer of three packets then lost two fifths of what it sent.
        let short =
            self.loss_test.is_under_way() || self.backoff.is_of_short_buffer() || self.has_short_buffer(now);
        let policed = self.policed.rate().map(|rate| (rate.bytes_in(rtt_min) + MIN_QUEUE).max(self.floor()));
        if forecast.is_zero() && !short {
            self.limit = policed;
            return;
        }
        let limit = if forecast.is_zero() {
            // The window of slow start in its next round trip (RFC 5681, Section 3.1).
            2 * self.path(rtt_min)
        } else if self.baseline.draining() && self.release.longest().is_none() {
            self.drain_limit(rtt_min)
        } else {
            let queue = forecast.bytes_in(self.config.target).max(MIN_QUEUE);
            let released = self.release.longest().map_or(0, |longest| self.held(longest));
            if self.release.is_checked() {
                (released / 2).max(self.floor())
            } else {
                released.max(forecast.bytes_in(rtt_min) + queue + self.error_queue(rtt_min))
            }
        };
        // While the rate grows, the measured capacity of the path is a round trip old. BBR starts only once
        // (draft-ietf-ccwg-bbr, Section 4.3.1.2). Held to the old capacity, it had .3 to .5 of its rate for 15 s where
        // both sides lose packets. Our choice: twice the capacity, as slow start needs next; four times gave the same.
        let grown = if self.loss_test.lets_grow(self.flows) { 2 } else { 1 };
        let tested = if self.loss_test.is_under_way() { grown * self.path(rtt_min) } else { u64::MAX };
        // The policer's cap comes first: its drops are no buffer's, and the curve ends where it meets the bound.
        let whole = limit.min(policed.unwrap_or(u64::MAX));
        let limit = self.backoff.apply(now, whole).min(tested).max(self.floor());
        self.gives_way = limit < whole;
        self.lowered = self.gives_way && short;
        self.limit = Some(limit);
    }

    fn compete(&mut self, sample: &BoundSample) {
        let rtt_min = self.baseline.rtt_min().unwrap_or_default();
        let (Some(contest), Some(rtt)) = (&mut self.contest, sample.rtt) else { return };
        let empty = rtt_min + rtt_min / 4;
        let alone = contest.on_ack(sample, rtt, empty);
        self.limit = Some(contest.limit());
        self.measure(sample, rtt_min);
        if alone {
            self.contest = None;
            self.baseline.alone();
            self.set_limit(sample.now);
        }
    }

    /// Returns the limit of a drain: no queue of ours is left if the forecast is off by no more than usual.
    fn drain_limit(&self, rtt_min: Duration) -> u64 {
        let product = self.forecast().bytes_in(rtt_min);
        let margin = self.error_queue(rtt_min).clamp(product / 8, product / 4);
        (product - margin).max(self.floor())
    }

    /// The queue that covers the forecast's error.
    fn error_queue(&self, rtt_min: Duration) -> u64 {
        self.delivery.error().mul_ratio(self.config.error_gain_percent, 100).bytes_in(rtt_min)
    }

    /// Returns the longest round trips that our own queue explains.
    fn expected(&self) -> Option<Expected> {
        let forecast = self.forecast();
        let (limit, rtt_min) = (self.limit?, self.baseline.rtt_min()?);
        if forecast.is_zero() || self.release.longest().is_some() {
            return None;
        }
        let target = self.config.target.max(forecast.time_for(MIN_QUEUE));
        // Packets are whole: one more in the queue means nothing.
        let target = (rtt_min + rtt_min / 16 + target).max(forecast.time_for(self.floor()))
            + forecast.time_for(cubic::SEGMENT);
        // Our choice: an eighth is more than a steady link's rate varies.
        let slower = forecast < self.known_rate().mul_ratio(7, 8);
        let drained = self.outstanding <= self.drain_limit(rtt_min).min(limit / 2);
        Some(Expected { target, bound: forecast.time_for(limit) + ROUNDING, slower, drained })
    }
}
