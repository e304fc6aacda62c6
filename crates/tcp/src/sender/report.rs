//! Deliveries that the sender reports to a relay.

use super::accounting::{Accounting, Rtts};
use crate::delivery::Delivery;

/// The report.
#[derive(Debug, Default, serde::Serialize, serde::Deserialize)]
pub(crate) struct Report {
    /// Deliveries since the last request.
    delivery: Delivery,
    /// Number of lost packets already reported since the start.
    lost_reported: u64,
}

impl Report {
    /// Adds the deliveries of an ACK. Duplicate ACKs had already reported `told` bytes (without SACK).
    pub(super) fn on_delivered(&mut self, account: &Accounting, rtts: Rtts, told: u64) {
        self.delivery.delivered += account.delivered_bytes.saturating_sub(told);
        self.delivery.rtt = rtts.latest.or(self.delivery.rtt);
        self.delivery.sent_at = account.newest.map(|newest| newest.sent_at).max(self.delivery.sent_at);
    }

    /// Adds `bytes` bytes that a duplicate ACK reported (without SACK).
    pub(super) fn on_told(&mut self, bytes: u64) {
        self.delivery.delivered += bytes;
    }

    /// Excludes these losses from the report.
    pub(super) fn conceal_losses(&mut self, packets: u64) {
        self.lost_reported += packets;
    }

    /// True if no more losses were reported than the `lost_total` that occurred. For a state that was read from another
    /// process.
    pub(super) fn is_sound(&self, lost_total: u64, most: u64) -> bool {
        self.lost_reported <= lost_total && self.delivery.delivered.max(lost_total) < most
    }

    /// Returns the deliveries since the last call, and the losses not yet reported. `lost_total` counts lost packets of
    /// `segment` bytes.
    pub(crate) fn take_delivery(&mut self, lost_total: u64, segment: u64) -> Delivery {
        let newly = lost_total - core::mem::replace(&mut self.lost_reported, lost_total);
        Delivery { lost: newly * segment, ..core::mem::take(&mut self.delivery) }
    }
}
