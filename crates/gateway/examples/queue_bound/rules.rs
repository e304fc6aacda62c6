//! The rules that are compared.

use paceline_gateway::bound::{BoundSample, QueueBound, QueueBoundConfig};
use paceline_wire::{Duration, Instant, Rate};

use crate::model::{PACKET, View};

/// A rule that limits outstanding bytes.
pub(crate) trait Rule {
    fn on_loss(&mut self, _now: Instant) {}
    fn on_ack(&mut self, _sample: &BoundSample) {}
    fn limit(&self, now: Instant, view: &View<'_>) -> Option<u64>;
    /// Interval at which the limit is asked for without an event.
    fn poll(&self) -> Option<Duration> {
        None
    }
}

/// A constant limit.
pub(crate) struct Fixed(pub(crate) u64);

impl Rule for Fixed {
    fn limit(&self, _now: Instant, _view: &View<'_>) -> Option<u64> {
        Some(self.0)
    }
}

/// Our rule.
pub(crate) struct Ours(pub(crate) QueueBound);

impl Ours {
    pub(crate) fn new(config: QueueBoundConfig) -> Self {
        Ours(QueueBound::new(config))
    }
}

impl Rule for Ours {
    fn on_loss(&mut self, now: Instant) {
        self.0.on_loss(now, 1_500, None);
    }
    fn on_ack(&mut self, sample: &BoundSample) {
        self.0.on_ack(sample);
    }
    fn limit(&self, _now: Instant, _view: &View<'_>) -> Option<u64> {
        self.0.limit()
    }
}

/// Sum of deliveries in an exact sliding window.
#[derive(Default)]
struct Deliveries {
    log: std::collections::VecDeque<(Instant, u64)>,
    sum: u64,
}

impl Deliveries {
    fn add(&mut self, now: Instant, bytes: u64, window: Duration) -> u64 {
        self.log.push_back((now, bytes));
        self.sum += bytes;
        while let Some(&(at, bytes)) = self.log.front() {
            if now.saturating_since(at) < window {
                break;
            }
            self.sum -= bytes;
            self.log.pop_front();
        }
        self.sum
    }
}

/// (ACK rate over a window) x (rtt_min + target).
pub(crate) struct Reference {
    pub(crate) window: Duration,
    pub(crate) target: Duration,
    rtt_min: Duration,
    deliveries: Deliveries,
    limit: Option<u64>,
}

impl Reference {
    pub(crate) fn new(window: Duration, target: Duration) -> Self {
        Reference { window, target, rtt_min: Duration::MAX, deliveries: Deliveries::default(), limit: None }
    }
}

impl Rule for Reference {
    fn on_ack(&mut self, sample: &BoundSample) {
        self.rtt_min = self.rtt_min.min(sample.rtt.unwrap_or(Duration::MAX));
        let sum = self.deliveries.add(sample.now, sample.delivered, self.window);
        let rate = Rate::from_bytes_in(sum, self.window);
        self.limit = Some(rate.bytes_in(self.rtt_min + self.target).max(4 * PACKET));
    }
    fn limit(&self, _now: Instant, _view: &View<'_>) -> Option<u64> {
        Some(self.limit.unwrap_or(10 * PACKET))
    }
}

/// Twice the product of the largest 100 ms rate of the last ten round trips and the smallest round trip.
pub(crate) struct BbrLike {
    rtt_min: Duration,
    deliveries: Deliveries,
    best: std::collections::VecDeque<(Instant, u64)>,
    limit: Option<u64>,
}

impl BbrLike {
    pub(crate) fn new() -> Self {
        BbrLike {
            rtt_min: Duration::MAX,
            deliveries: Deliveries::default(),
            best: Default::default(),
            limit: None,
        }
    }
}

impl Rule for BbrLike {
    fn on_ack(&mut self, sample: &BoundSample) {
        let rtt = sample.rtt.unwrap_or(Duration::from_millis(100));
        self.rtt_min = self.rtt_min.min(rtt);
        let window = Duration::from_millis(100);
        let sum = self.deliveries.add(sample.now, sample.delivered, window);
        while self.best.back().is_some_and(|b| b.1 <= sum) {
            self.best.pop_back();
        }
        self.best.push_back((sample.now, sum));
        while self.best.front().is_some_and(|b| sample.now.saturating_since(b.0) > rtt * 10) {
            self.best.pop_front();
        }
        let rate = Rate::from_bytes_in(self.best[0].1, window);
        self.limit = Some((2 * rate.bytes_in(self.rtt_min)).max(4 * PACKET));
    }
    fn limit(&self, _now: Instant, _view: &View<'_>) -> Option<u64> {
        Some(self.limit.unwrap_or(10 * PACKET))
    }
}

/// Knows the future. It keeps in the queue only what the link carries in the next millisecond.
pub(crate) struct Oracle;

impl Rule for Oracle {
    fn limit(&self, now: Instant, view: &View<'_>) -> Option<u64> {
        let ahead = view.link.drain_time(now, view.queue / PACKET);
        Some(if ahead <= Duration::from_millis(1) { u64::MAX } else { 0 })
    }
    fn poll(&self) -> Option<Duration> {
        Some(Duration::from_millis(1))
    }
}
