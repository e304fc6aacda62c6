//! The standard: the window is ssthresh at once (RFC 6675, Section 5, step 4.2).

use super::{Entry, RateReduction, ReductionName};
use crate::congestion::{AckSample, Window};

/// Waits until pipe has fallen to ssthresh, then sends one packet for each that leaves the network.
#[derive(Clone, Copy, Debug, Default, serde::Serialize, serde::Deserialize)]
pub struct Halving;

impl RateReduction for Halving {
    fn name(&self) -> ReductionName {
        ReductionName::Rfc6675
    }

    fn enter(&mut self, _entry: &Entry, window: Window) -> u32 {
        window.ssthresh
    }

    fn on_ack(&mut self, _sample: &AckSample, window: &mut Window) -> u32 {
        window.ssthresh
    }

    fn exit(&mut self, window: Window) -> u32 {
        window.ssthresh
    }
}
