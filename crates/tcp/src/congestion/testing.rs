//! A made-up path for tests of congestion controls without a connection: every packet is acknowledged one RTT later.

use paceline_wire::{Duration, Instant};

use super::*;

/// Feeds rounds of ACKs to an algorithm. Positions advance by `mss` per packet.
pub(crate) struct Rounds {
    pub(crate) sample: AckSample,
    pub(crate) window: Window,
}

impl Rounds {
    pub(crate) fn new(cwnd: u32) -> Self {
        let sample = AckSample {
            now: Instant::ZERO + Duration::from_secs(10),
            una: 1 << 32,
            nxt: (1 << 32) + u64::from(cwnd) * 1_000,
            una_advanced: true,
            cwnd_limited: true,
            mss: 1_000,
            ..AckSample::default()
        };
        Rounds { sample, window: Window::new(cwnd, u32::MAX) }
    }

    /// One round trip: a window of ACKs of `per_ack` packets each, spread over the round.
    pub(crate) fn round(&mut self, control: &mut dyn CongestionControl, rtt: Duration, per_ack: u32) {
        let packets = self.window.cwnd;
        let end = self.sample.now + rtt;
        let acks = (packets / per_ack).max(1);
        for _ in 0..acks {
            self.sample.now += rtt / u64::from(acks);
            self.ack(control, rtt, per_ack);
        }
        self.sample.now = end;
    }

    /// One ACK.
    pub(crate) fn ack(&mut self, control: &mut dyn CongestionControl, rtt: Duration, packets: u32) {
        let sample = &mut self.sample;
        sample.delivered = packets;
        sample.una += u64::from(packets) * 1_000;
        sample.nxt = sample.una + u64::from(self.window.cwnd) * 1_000;
        sample.rtt = Some(rtt);
        sample.srtt = rtt;
        sample.min_rtt = rtt;
        sample.in_flight = self.window.cwnd;
        sample.delivered_total += u64::from(packets);
        self.window = control.on_measurement(sample, self.window);
        self.window = control.on_ack(sample, self.window);
    }

    /// A loss that is repaired within a round: window and threshold as after fast recovery.
    pub(crate) fn lose(&mut self, control: &mut dyn CongestionControl) {
        self.sample.prior_cwnd = self.window.cwnd;
        self.window.cwnd_cnt = 0;
        self.window.ssthresh = control.ssthresh(self.window);
        self.window = control.on_state(CaState::Recovery, &self.sample, self.window);
        self.window.cwnd = self.window.ssthresh;
        self.window = control.on_event(CongestionEvent::ReductionComplete, &self.sample, self.window);
        self.window = control.on_state(CaState::Open, &self.sample, self.window);
    }
}
