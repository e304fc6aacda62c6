//! The bound on the bottleneck queue: what a subscriber may have outstanding between gateway and client.
//!
//! limit = forecast x (rtt_min + target) + error_gain x error x rtt_min. The forecast is the rate that the link is expected
//! to have for the next round trip; its mean error is what a queue has to cover if the link shall stay busy, so that a
//! steady link gets little more than the target and a varying one what it needs. `docs/queue-bound.md` has the reasons and
//! the measurements.

mod baseline;
mod delivery;
#[cfg(test)]
mod tests;

use paceline_wire::{Duration, Instant, Rate};

use baseline::Baseline;
use delivery::Delivery;
pub use delivery::DeliveryConfig;

/// Our choice: the target is at least two full packets, the least that keeps a link busy under delayed ACKs.
const MIN_QUEUE: u64 = 3_000;

/// Parameters of [`QueueBound`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct QueueBoundConfig {
    /// The queueing delay of a steady link.
    pub target: Duration,
    /// Round trips of forecast error that the queue covers, in percent.
    pub error_gain_percent: u64,
    /// How rate and error are measured.
    pub delivery: DeliveryConfig,
    /// The time over which the smallest round-trip time is kept.
    pub rtt_min_window: Duration,
    /// The bound is never below this many bytes.
    pub floor: u64,
}

impl Default for QueueBoundConfig {
    fn default() -> Self {
        QueueBoundConfig {
            target: Duration::from_millis(12),
            error_gain_percent: 200,
            delivery: DeliveryConfig {
                window: Duration::from_millis(100),
                slow: Duration::from_millis(500),
                slow_percent: 40,
                error: Duration::from_millis(300),
            },
            rtt_min_window: Duration::from_secs(10),
            floor: 6_000,
        }
    }
}

/// What one acknowledgement of the subscriber says.
#[derive(Clone, Copy, Debug)]
pub struct BoundSample {
    /// Arrival of the acknowledgement.
    pub now: Instant,
    /// Bytes newly known to have left the link: acknowledged, selectively or not.
    pub delivered: u64,
    /// Round-trip time of the newest transmission among them, if it was the first of its bytes (Karn).
    pub rtt: Option<Duration>,
    /// Bytes outstanding after this acknowledgement.
    pub outstanding: u64,
    /// Packets waited in the gateway because of the bound; otherwise the servers are the limit.
    pub limited: bool,
}

/// The bound of one subscriber.
#[derive(Clone, Debug)]
pub struct QueueBound {
    config: QueueBoundConfig,
    baseline: Baseline,
    delivery: Delivery,
    limit: Option<u64>,
}

impl QueueBound {
    /// A bound that knows nothing yet.
    pub fn new(config: QueueBoundConfig) -> Self {
        QueueBound {
            config,
            baseline: Baseline::new(config.rtt_min_window),
            delivery: Delivery::new(config.delivery),
            limit: None,
        }
    }

    /// `bytes` left the gateway; `outstanding` includes them.
    pub fn on_sent(&mut self, _now: Instant, _bytes: u64, _outstanding: u64) {}

    /// `bytes` were found lost.
    pub fn on_loss(&mut self, _now: Instant, _bytes: u64) {}

    /// An acknowledgement arrived.
    pub fn on_ack(&mut self, sample: &BoundSample) {
        if let Some(rtt) = sample.rtt {
            let held = sample.outstanding <= self.limit.unwrap_or(u64::MAX);
            let forecast = self.delivery.forecast();
            let limit = self.limit.filter(|_| !forecast.is_zero()).map(|limit| forecast.time_for(limit));
            if self.baseline.on_rtt(sample.now, rtt, self.explained(), limit, held) == Some(true) {
                self.delivery.too_high();
            }
        }
        let Some(rtt_min) = self.baseline.rtt_min() else { return };
        let queued = sample.rtt.map(|rtt| rtt.saturating_sub(rtt_min));
        let link_limited = sample.limited || queued.is_some_and(|queued| queued > self.config.target);
        let sent = sample.now - sample.rtt.unwrap_or(rtt_min);
        if link_limited && !self.baseline.in_drain(sent) {
            self.delivery.update(sample.now, sample.delivered, sample.rtt, rtt_min);
        } else {
            self.delivery.restart(sample.now, sample.delivered);
        }
        if let Some(rtt) = sample.rtt {
            let drain_limit = self.drain_limit(rtt_min);
            self.baseline.on_drain(sample.now, rtt, sample.outstanding, drain_limit);
        }
        let rtt_min = self.baseline.rtt_min().unwrap_or(rtt_min);
        let forecast = self.delivery.forecast();
        if forecast.is_zero() {
            return;
        }
        let limit = if self.baseline.draining() {
            self.drain_limit(rtt_min)
        } else {
            let queue = forecast.bytes_in(self.config.target).max(MIN_QUEUE);
            forecast.bytes_in(rtt_min) + queue + self.error_queue(rtt_min)
        };
        self.limit = Some(limit.max(self.config.floor));
    }

    /// Low enough that no queue of ours is left, if the forecast is off by no more than usual.
    fn drain_limit(&self, rtt_min: Duration) -> u64 {
        let product = self.delivery.forecast().bytes_in(rtt_min);
        let margin = self.error_queue(rtt_min).clamp(product / 8, product / 4);
        (product - margin).max(self.config.floor)
    }

    /// The queue that covers the forecast's error.
    fn error_queue(&self, rtt_min: Duration) -> u64 {
        self.delivery.error().mul_ratio(self.config.error_gain_percent, 100).bytes_in(rtt_min)
    }

    /// What the shortest round-trip time should not exceed for long.
    fn explained(&self) -> Option<Duration> {
        let forecast = self.delivery.forecast();
        let target = self.config.target.max(forecast.time_for(MIN_QUEUE));
        if forecast.is_zero() {
            None
        } else {
            self.baseline.rtt_min().map(|rtt_min| rtt_min + rtt_min / 16 + target)
        }
    }

    /// Bytes that may be outstanding at `now`; `None` before the first estimate: forward on arrival.
    pub fn limit(&self, _now: Instant) -> Option<u64> {
        self.limit
    }

    /// The rate that the link is expected to have for the next round trip.
    pub fn rate(&self) -> Rate {
        self.delivery.forecast()
    }

    /// The smallest recent round-trip time.
    pub fn rtt_min(&self) -> Option<Duration> {
        self.baseline.rtt_min()
    }
}
