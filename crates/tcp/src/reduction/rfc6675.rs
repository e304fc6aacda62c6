//! The standard: the window is ssthresh at once (RFC 6675, Section 5, step 4.2).

use super::{Entry, RateReduction, ReductionName};
use crate::congestion::{AckSample, Window};

/// Waits until pipe has fallen to ssthresh, then sends a packet for each that leaves.
#[derive(Clone, Copy, Debug, Default)]
pub struct Halving;

impl RateReduction for Halving {
    fn name(&self) -> ReductionName {
        ReductionName::Rfc6675
    }

    fn enter(&mut self, entry: &Entry, window: Window) -> u32 {
        // Step 4.3 sends the first retransmission whatever pipe is.
        window.ssthresh.max(entry.in_flight + 1).min(window.cwnd.max(entry.in_flight + 1))
    }

    fn on_ack(&mut self, _sample: &AckSample, window: &mut Window) -> u32 {
        window.ssthresh
    }

    fn exit(&mut self, window: Window) -> u32 {
        window.ssthresh
    }
}
