//! Proportional rate reduction (RFC 9937), and its version in RFC 6937. Counts are in packets.

use super::{Entry, RateReduction, ReductionName};
use crate::congestion::{AckSample, Window};

/// State of RFC 9937, Section 6, under its names.
#[derive(Clone, Copy, Debug, Default, serde::Serialize, serde::Deserialize)]
pub struct Prr {
    /// PRR-SSRB of RFC 6937, Section 3.1: below ssthresh every ACK is a safe one. Linux used it from 3.2 to 4.3
    /// (tcp_cwnd_reduction).
    slow_start_reduction_bound: bool,
    prr_delivered: u64,
    prr_out: u64,
    recover_fs: u64,
}

impl Prr {
    /// PRR-SSRB of RFC 6937.
    pub fn ssrb() -> Self {
        Prr { slow_start_reduction_bound: true, ..Prr::default() }
    }
}

impl RateReduction for Prr {
    fn name(&self) -> ReductionName {
        if self.slow_start_reduction_bound { ReductionName::PrrSsrb } else { ReductionName::Prr }
    }

    fn enter(&mut self, entry: &Entry, _window: Window) -> u32 {
        *self = Prr { prr_delivered: 0, prr_out: 0, recover_fs: u64::from(entry.recover_fs).max(1), ..*self };
        // Only the fast retransmit may leave until the ACK that began recovery has been counted.
        entry.in_flight + 1
    }

    fn on_ack(&mut self, sample: &AckSample, window: &mut Window) -> u32 {
        let delivered = u64::from(sample.delivered);
        let (pipe, ssthresh) = (u64::from(sample.in_flight), u64::from(window.ssthresh));
        if delivered == 0 {
            return window.cwnd;
        }
        self.prr_delivered += delivered;
        let mut sndcnt = if pipe > ssthresh {
            (self.prr_delivered * ssthresh).div_ceil(self.recover_fs).saturating_sub(self.prr_out)
        } else {
            // SafeACK: SND.UNA advanced and nothing was found lost.
            let safe =
                u64::from(self.slow_start_reduction_bound || (sample.una_advanced && sample.lost == 0));
            let reduction = self.prr_delivered.saturating_sub(self.prr_out).max(delivered) + safe;
            reduction.min(ssthresh - pipe)
        };
        // The fast retransmit goes out in any case.
        if self.prr_out == 0 {
            sndcnt = sndcnt.max(1);
        }
        u32::try_from(pipe + sndcnt).unwrap_or(u32::MAX)
    }

    fn on_sent(&mut self, packets: u32) {
        self.prr_out += u64::from(packets);
    }

    fn exit(&mut self, window: Window) -> u32 {
        window.ssthresh
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn recover(prr: &mut Prr, window: &mut Window, mut pipe: u32, acks: u32) -> u32 {
        let mut sent = 0;
        for _ in 0..acks {
            pipe -= 1;
            let sample = AckSample { delivered: 1, in_flight: pipe, ..AckSample::default() };
            window.cwnd = prr.on_ack(&sample, window);
            let may_send = window.cwnd.saturating_sub(pipe);
            prr.on_sent(may_send);
            pipe += may_send;
            sent += may_send;
        }
        sent
    }

    fn entry(packets: u32) -> Entry {
        Entry {
            now: paceline_wire::Instant::ZERO,
            recover_fs: packets,
            in_flight: packets - 4,
            srtt: paceline_wire::Duration::ZERO,
        }
    }

    /// RFC 9937, Section 9: with one loss, sending is spread evenly over the round trip.
    #[test]
    fn one_loss_is_answered_in_proportion() {
        let (mut prr, mut window) = (Prr::default(), Window { ssthresh: 70, ..Window::new(100, u32::MAX) });
        prr.enter(&entry(100), window);
        assert_eq!(recover(&mut prr, &mut window, 96, 10), 7);
    }

    #[test]
    fn a_pipe_below_the_threshold_grows_as_in_slow_start_only_on_safe_acks() {
        let (mut prr, window) = (Prr::default(), Window { ssthresh: 70, ..Window::new(100, u32::MAX) });
        prr.enter(&entry(100), window);
        prr.on_sent(1);
        let ack = AckSample { delivered: 1, in_flight: 40, ..AckSample::default() };
        assert_eq!(prr.on_ack(&ack, &mut window.clone()), 41);
        prr.on_sent(1);
        let mut ssrb = Prr { prr_out: 1, prr_delivered: 1, ..Prr::ssrb() };
        assert_eq!(ssrb.on_ack(&ack, &mut window.clone()), 42);
        let safe = AckSample { una_advanced: true, ..ack };
        assert_eq!(prr.on_ack(&safe, &mut window.clone()), 42);
        let lossy = AckSample { lost: 1, ..safe };
        prr.on_sent(2);
        assert_eq!(prr.on_ack(&lossy, &mut window.clone()), 41);
    }
}
