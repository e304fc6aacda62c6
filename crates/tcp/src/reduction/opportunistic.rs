//! Opportunistic retransmission (OR, Section IV).

use alloc::boxed::Box;

use super::{AnyReduction, Entry, Holes, RateReduction, ReductionName};
use crate::congestion::{AckSample, Window};

/// Lets new data exceed the advertised window during recovery, by the space that the receiver frees once its holes are
/// filled.
#[derive(Clone, Debug, serde::Serialize, serde::Deserialize)]
pub struct Opportunistic {
    inner: Box<dyn AnyReduction>,
}

impl Opportunistic {
    /// With this rate reduction.
    pub fn new(inner: Box<dyn AnyReduction>) -> Self {
        Opportunistic { inner }
    }
}

impl RateReduction for Opportunistic {
    fn name(&self) -> ReductionName {
        self.inner.name()
    }

    fn on_measurement(&mut self, sample: &AckSample) {
        self.inner.on_measurement(sample);
    }

    fn enter(&mut self, entry: &Entry, window: Window) -> u32 {
        self.inner.enter(entry, window)
    }

    fn on_ack(&mut self, sample: &AckSample, window: &mut Window) -> u32 {
        self.inner.on_ack(sample, window)
    }

    fn on_sent(&mut self, packets: u32) {
        self.inner.on_sent(packets);
    }

    fn exit(&mut self, window: Window) -> u32 {
        self.inner.exit(window)
    }

    fn lowers_ssthresh(&self) -> bool {
        self.inner.lowers_ssthresh()
    }

    /// n1 + n2 packets, in bytes, once every known hole has been retransmitted (Section IV, (a) and (b)).
    fn window_extension(&self, holes: &Holes) -> u64 {
        if holes.waiting { 0 } else { holes.span }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn new_data_may_go_as_far_as_the_holes_will_free() {
        let plain = ReductionName::Qarr.build(false);
        let opportunistic = ReductionName::Qarr.build(true);
        let holes = Holes { span: 14_480, waiting: false };
        assert_eq!((plain.window_extension(&holes), opportunistic.window_extension(&holes)), (0, 14_480));
        assert_eq!(opportunistic.window_extension(&Holes { waiting: true, ..holes }), 0);
    }
}
