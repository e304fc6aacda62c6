//! What the sender tells a relay of: deliveries.

use super::accounting::{Accounting, Rtts};
use crate::delivery::Delivery;

/// What is told.
#[derive(Debug, Default, serde::Serialize, serde::Deserialize)]
pub(crate) struct Report {
    /// Reported since it was last asked for.
    delivery: Delivery,
    /// Of the packets lost since the start, those that were told.
    lost_reported: u64,
}

impl Report {
    /// An ACK was accounted for. Duplicate ACKs had told of `told` bytes (without SACK).
    pub(super) fn on_delivered(&mut self, account: &Accounting, rtts: Rtts, told: u64) {
        self.delivery.delivered += account.delivered_bytes.saturating_sub(told);
        self.delivery.rtt = rtts.latest.or(self.delivery.rtt);
        self.delivery.sent_at = account.newest.map(|newest| newest.sent_at).max(self.delivery.sent_at);
    }

    /// A duplicate ACK told of so many bytes (without SACK).
    pub(super) fn on_told(&mut self, bytes: u64) {
        self.delivery.delivered += bytes;
    }

    /// Nobody is told of these losses.
    pub(super) fn conceal_losses(&mut self, packets: u64) {
        self.lost_reported += packets;
    }

    /// Whether no more losses were told than the `lost_total` that there were: of one that was read.
    pub(super) fn is_sound(&self, lost_total: u64, most: u64) -> bool {
        self.lost_reported <= lost_total && self.delivery.delivered.max(lost_total) < most
    }

    /// What was delivered since the last call; of `lost_total` packets of `segment` bytes those that were not told yet.
    pub(crate) fn take_delivery(&mut self, lost_total: u64, segment: u64) -> Delivery {
        let newly = lost_total - core::mem::replace(&mut self.lost_reported, lost_total);
        Delivery { lost: newly * segment, ..core::mem::take(&mut self.delivery) }
    }
}
