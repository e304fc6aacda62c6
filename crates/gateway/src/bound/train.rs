//! Measures the link's rate from a train: packets in a row that wait before the link, however few.
//!
//! Where servers send little, arrivals in a round trip show the servers' rate. But a burst leaves at once and arrives
//! at the link's rate, because the link spaces packets that met a queue. Sources: Keshav, A Control-Theoretic Approach
//! to Flow Control, SIGCOMM 1991; Dovrolis et al., What Do Packet Dispersion Techniques Measure?, INFOCOM 2001. Clumped
//! ACKs make the rate too high, and its pace then limits too little, as if nothing were known. Only servers' packets
//! count. The gateway's own senders send all that they may, so what arrives already shows the link's rate. With their
//! trains 15 in place of 12 of 300 drawn split paths had storms.

use paceline_wire::{Duration, Instant, Rate};

use super::cubic::SEGMENT;

/// Our choice: two ACKs of two segments each (RFC 9293, Section 3.8.6.3). With half of that, drops were a tenth more.
const LEAST: u64 = 4 * SEGMENT;
/// Length of a span. The best rate of this span and the previous one counts, as for BBR's rates (`loss_test`).
const SPAN: Duration = Duration::from_secs(10);

/// The current train, and the rates of earlier ones.
#[derive(Clone, Copy, Debug, Default, serde::Serialize, serde::Deserialize)]
pub(super) struct PacketTrain {
    delivered: u64,
    took: Duration,
    reported: Instant,
    /// The best rates of this span and the previous one.
    best: [Rate; 2],
    span_start: Instant,
}

impl PacketTrain {
    /// Returns the best recent rate; zero before the first train.
    pub(super) fn rate(&self) -> Rate {
        self.best[0].max(self.best[1])
    }

    /// Handles a report of bytes that queued for `queued`. If that is at least the time since the last report, they
    /// continue the train. Otherwise a train begins.
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
