//! The bound on the bottleneck queue: what a subscriber may have outstanding between gateway and client.
//!
//! limit = forecast x (rtt_min + target) + error_gain x error x rtt_min. The forecast is the rate that the link is expected
//! to have for the next round trip; its mean error is what a queue has to cover if the link shall stay busy, so that a
//! steady link gets little more than the target and a varying one what it needs. `docs/queue-bound.md` has the reasons and
//! the measurements.

mod delivery;
#[cfg(test)]
mod tests;

use paceline_wire::{Duration, Instant, Rate};

use crate::rtt_min::RttMin;
use delivery::Delivery;
pub use delivery::DeliveryConfig;

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
    rtt_min: RttMin,
    delivery: Delivery,
    limit: Option<u64>,
}

impl QueueBound {
    /// A bound that knows nothing yet.
    pub fn new(config: QueueBoundConfig) -> Self {
        QueueBound {
            config,
            rtt_min: RttMin::new(config.rtt_min_window),
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
        let rtt_min = match sample.rtt {
            Some(rtt) => Some(self.rtt_min.update(sample.now, rtt)),
            None => self.rtt_min.get(),
        };
        let Some(rtt_min) = rtt_min else { return };
        let queued = sample.rtt.map(|rtt| rtt.saturating_sub(rtt_min));
        let link_limited = sample.limited || queued.is_some_and(|queued| queued > self.config.target);
        if link_limited {
            self.delivery.update(sample.now, sample.delivered, sample.rtt, rtt_min);
        } else {
            self.delivery.restart(sample.now, sample.delivered);
        }
        let forecast = self.delivery.forecast();
        if forecast.is_zero() {
            return;
        }
        let error = self.delivery.error().mul_ratio(self.config.error_gain_percent, 100);
        let limit = forecast.bytes_in(rtt_min + self.config.target) + error.bytes_in(rtt_min);
        self.limit = Some(limit.max(self.config.floor));
    }

    /// Bytes that may be outstanding at `now`; `None` before the first estimate: forward on arrival.
    pub fn limit(&self, _now: Instant) -> Option<u64> {
        self.limit
    }

    /// The rate that the link is expected to have for the next round trip.
    pub fn rate(&self) -> Rate {
        self.delivery.forecast()
    }

    #[doc(hidden)]
    pub fn debug(&self) -> alloc::string::String {
        self.delivery.debug()
    }

    /// The smallest recent round-trip time.
    pub fn rtt_min(&self) -> Option<Duration> {
        self.rtt_min.get()
    }
}
