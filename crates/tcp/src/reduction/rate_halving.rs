//! Rate halving as Linux had it before 3.2 (tcp_cwnd_down; Mathis and Mahdavi).

use super::{Entry, RateReduction, ReductionName};
use crate::congestion::{AckSample, Window};

/// One packet less for every two ACKs until ssthresh, and never more than pipe + 1.
#[derive(Clone, Copy, Debug, Default, serde::Serialize, serde::Deserialize)]
pub struct RateHalving;

impl RateReduction for RateHalving {
    fn name(&self) -> ReductionName {
        ReductionName::Rh
    }

    fn enter(&mut self, entry: &Entry, window: Window) -> u32 {
        window.cwnd.min(entry.in_flight + 1)
    }

    fn on_ack(&mut self, sample: &AckSample, window: &mut Window) -> u32 {
        let decrement = window.cwnd_cnt + 1;
        window.cwnd_cnt = decrement & 1;
        let mut cwnd = window.cwnd;
        if decrement >> 1 > 0 && cwnd > window.ssthresh {
            cwnd -= decrement >> 1;
        }
        cwnd.min(sample.in_flight + 1)
    }

    /// Lowers cwnd to ssthresh if rate halving did not get there. A lower cwnd stays.
    fn exit(&mut self, window: Window) -> u32 {
        window.cwnd.min(window.ssthresh)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_second_ack_takes_one_packet_off() {
        let mut window = Window { ssthresh: 70, ..Window::new(100, u32::MAX) };
        let mut sent = 0;
        let mut in_flight = 99;
        for _ in 0..40 {
            in_flight -= 1;
            let sample = AckSample { delivered: 1, in_flight, ..AckSample::default() };
            window.cwnd = RateHalving.on_ack(&sample, &mut window);
            let may_send = window.cwnd.saturating_sub(in_flight);
            sent += may_send;
            in_flight += may_send;
        }
        assert!((19..=21).contains(&sent), "{sent}");
    }
}
