//! The bound on the bottleneck queue: what a subscriber may have outstanding between gateway and client.

use paceline_wire::{Duration, Instant, Rate};

use crate::rtt_min::RttMin;

/// Slots of the ring that the delivery rate is measured with.
const SLOTS: usize = 16;

/// Parameters of [`QueueBound`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct QueueBoundConfig {
    /// The queueing delay to aim for.
    pub target: Duration,
    /// The time over which the delivery rate is measured.
    pub rate_window: Duration,
    /// The time over which the smallest round-trip time is kept.
    pub rtt_min_window: Duration,
    /// The bound is never below this many bytes.
    pub floor: u64,
}

impl Default for QueueBoundConfig {
    fn default() -> Self {
        QueueBoundConfig {
            target: Duration::from_millis(50),
            rate_window: Duration::from_millis(100),
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
    slots: [u64; SLOTS],
    slot: u64,
    first_slot: Option<u64>,
    rate: Rate,
    limit: Option<u64>,
}

impl QueueBound {
    /// A bound that knows nothing yet.
    pub fn new(config: QueueBoundConfig) -> Self {
        QueueBound {
            config,
            rtt_min: RttMin::new(config.rtt_min_window),
            slots: [0; SLOTS],
            slot: 0,
            first_slot: None,
            rate: Rate::ZERO,
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
            self.rtt_min.update(sample.now, rtt);
        }
        let slot = sample.now.as_nanos() / (self.config.rate_window.as_nanos() / SLOTS as u64).max(1);
        let first = *self.first_slot.get_or_insert(slot);
        let passed = slot.saturating_sub(self.slot).min(SLOTS as u64);
        for i in 0..passed {
            self.slots[((slot - i) % SLOTS as u64) as usize] = 0;
        }
        self.slot = slot;
        self.slots[(slot % SLOTS as u64) as usize] += sample.delivered;
        if slot - first < SLOTS as u64 {
            return;
        }
        let measured = Rate::from_bytes_in(self.slots.iter().sum(), self.config.rate_window);
        self.rate = if sample.limited { measured } else { self.rate.max(measured) };
        if let Some(rtt_min) = self.rtt_min.get() {
            self.limit = Some(self.rate.bytes_in(rtt_min + self.config.target).max(self.config.floor));
        }
    }

    /// Bytes that may be outstanding at `now`; `None` before the first estimate: forward on arrival.
    pub fn limit(&self, _now: Instant) -> Option<u64> {
        self.limit
    }

    /// The estimated rate of the link.
    pub fn rate(&self) -> Rate {
        self.rate
    }

    /// The smallest recent round-trip time.
    pub fn rtt_min(&self) -> Option<Duration> {
        self.rtt_min.get()
    }
}
