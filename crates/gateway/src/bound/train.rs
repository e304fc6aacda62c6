//! The link's rate from a train of packets that wait before the link, however short it is.
//!
//! Where servers send little, what arrives in a round trip is their rate. But a burst leaves at once and arrives at the link's rate: packets
//! that met a queue are as far apart as the link makes them (Keshav, A Control-Theoretic Approach to Flow Control, SIGCOMM 1991; Dovrolis et
//! al., What Do Packet Dispersion Techniques Measure?, INFOCOM 2001). ACKs that come in clumps make a rate too high, and who paces by it
//! paces too little, as if nothing were known. Only servers' packets tell: the gateway's own senders send all that they may, and what arrives of that
//! is the link's rate. With trains of theirs 15 in place of 12 of 300 drawn split paths had storms.

use paceline_wire::{Duration, Instant, Rate};

use super::cubic::SEGMENT;

/// Our choice: two ACKs that each tell of two segments (RFC 9293, Section 3.8.6.3). With half as many drops were a tenth more.
const LEAST: u64 = 4 * SEGMENT;
/// The best of so long a time counts, and of the one before, as for BBR's rates (`loss_test`).
const SPAN: Duration = Duration::from_secs(10);

/// What came of the train under way, and the rates of those before.
#[derive(Clone, Copy, Debug, Default, serde::Serialize, serde::Deserialize)]
pub(super) struct Train {
    delivered: u64,
    took: Duration,
    reported: Instant,
    /// The best rate of this span and of the one before.
    best: [Rate; 2],
    span_start: Instant,
}

impl Train {
    /// The best rate of late; zero while none was seen.
    pub(super) fn rate(&self) -> Rate {
        self.best[0].max(self.best[1])
    }

    /// What is reported waited for `queued`, behind what was reported before, if it waited for as long as has passed since. Otherwise a train begins.
    pub(super) fn on_report(&mut self, now: Instant, delivered: u64, queued: Duration) {
        let gap = now.saturating_since(self.reported);
        self.reported = now;
        if queued < gap {
            (self.delivered, self.took) = (0, Duration::ZERO);
            return;
        }
        self.delivered += delivered;
        self.took += gap;
        if self.delivered < LEAST {
            return;
        }
        if now.saturating_since(self.span_start) > SPAN {
            (self.best, self.span_start) = ([Rate::ZERO, self.best[0]], now);
        }
        let took = self.took.max(Duration::from_micros(1));
        self.best[0] = self.best[0].max(Rate::from_bytes_in(self.delivered, took));
        (self.delivered, self.took) = (0, Duration::ZERO);
    }
}
