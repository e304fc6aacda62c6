//! What the sender tells of: events to an observer, deliveries to a relay.

use alloc::boxed::Box;

use paceline_wire::Instant;

use super::accounting::{Accounting, Rtts};
use crate::congestion::{AckSample, Window};
use crate::delivery::Delivery;
use crate::event::{Event, Observer};

/// What is told.
#[derive(Debug, Default, serde::Serialize, serde::Deserialize)]
pub(crate) struct Report {
    #[serde(skip)]
    pub(crate) observer: Option<Box<dyn Observer>>,
    /// Reported since it was last asked for.
    delivery: Delivery,
    /// Of the packets lost since the start, those that were told.
    lost_reported: u64,
}

impl Report {
    /// Tells the observer.
    #[inline]
    pub(crate) fn emit(&mut self, now: Instant, event: Event) {
        if let Some(observer) = &mut self.observer {
            observer.on_event(now, event);
        }
    }

    /// An ACK was accounted for.
    pub(super) fn on_delivered(&mut self, account: &Accounting, rtts: Rtts) {
        self.delivery.delivered += account.delivered_bytes;
        self.delivery.rtt = rtts.latest.or(self.delivery.rtt);
        self.delivery.sent_at = account.newest.map(|newest| newest.sent_at).max(self.delivery.sent_at);
    }

    /// Nobody is told of these losses.
    pub(super) fn conceal_losses(&mut self, packets: u64) {
        self.lost_reported += packets;
    }

    /// What was delivered since the last call; of `lost_total` packets of `segment` bytes those that were not told yet.
    pub(crate) fn take_delivery(&mut self, lost_total: u64, segment: u64) -> Delivery {
        let newly = lost_total - core::mem::replace(&mut self.lost_reported, lost_total);
        Delivery { lost: newly * segment, ..core::mem::take(&mut self.delivery) }
    }

    /// An ACK was answered, which `moved` the window if it did.
    #[inline]
    pub(super) fn on_ack(&mut self, sample: &AckSample, moved: Option<Window>) {
        if self.observer.is_some() {
            self.tell(sample, moved);
        }
    }

    #[inline(never)]
    fn tell(&mut self, sample: &AckSample, moved: Option<Window>) {
        if sample.delivered > 0 {
            let (una, packets, rtt) = (sample.una, sample.delivered, sample.rtt);
            self.emit(sample.now, Event::Delivered { una, packets, rtt });
        }
        if sample.lost > 0 {
            self.emit(sample.now, Event::Lost { packets: sample.lost });
        }
        if let Some(Window { cwnd, ssthresh, .. }) = moved {
            self.emit(sample.now, Event::Window { cwnd, ssthresh, in_flight: sample.in_flight });
        }
    }
}
