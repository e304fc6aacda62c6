//! Totals of all flows: sums and histograms, fed by the gateway's events.

use paceline_gateway::config::FlowMode;
use paceline_gateway::{Event, FlowStage};
use paceline_wire::Duration;
use serde::{Deserialize, Serialize};

/// Times in buckets with fixed bounds, as Prometheus expects them.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
pub(super) struct Histogram {
    /// The number of times in each bucket: at most its bound, and above the bound before. The last bucket has the
    /// times above all bounds.
    pub(super) counts: [u64; BOUNDS_S.len() + 1],
    pub(super) sum_s: f64,
}

/// Totals since the gateway started.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
pub(super) struct Totals {
    /// Payload new to clients, each byte once.
    pub(super) downlink_bytes: u64,
    pub(super) retransmitted_bytes: u64,
    pub(super) lost_bytes: u64,
    /// Retransmitted packets of split flows, counted when a flow ends.
    pub(super) split_retransmissions: u64,
    /// Round trips to clients.
    pub(super) radio_rtt: Histogram,
    /// Round trips to clients minus the shortest one.
    pub(super) radio_queueing: Histogram,
    /// Time between arrival and departure of new data.
    pub(super) gateway_queueing: Histogram,
    /// Round trip to the server of each flow, recorded when the flow ends.
    pub(super) server_rtt: Histogram,
    pub(super) finished: u64,
    pub(super) reset: u64,
    pub(super) idle: u64,
    pub(super) replaced: u64,
}

/// Our choice: from the queueing delay of one packet up to more than a link should need. Two to three bounds a decade
/// in the range of radio links.
pub(super) const BOUNDS_S: [f64; 18] = [
    0.0001, 0.0005, 0.001, 0.002, 0.005, 0.01, 0.02, 0.03, 0.05, 0.075, 0.1, 0.15, 0.2, 0.3, 0.5, 1.0, 2.0,
    5.0,
];

impl Histogram {
    pub(super) fn record(&mut self, time: Duration) {
        let seconds = time.as_secs_f64();
        let bucket = BOUNDS_S.partition_point(|bound| *bound < seconds);
        self.counts[bucket] += 1;
        self.sum_s += seconds;
    }

    pub(super) fn count(&self) -> u64 {
        self.counts.iter().sum()
    }
}

impl Totals {
    pub(super) fn note(&mut self, event: &Event) {
        match event {
            Event::NewData { bytes } => self.downlink_bytes += bytes,
            Event::Sent { sojourn, retransmission: false, .. } => self.gateway_queueing.record(*sojourn),
            Event::Sent { bytes, retransmission: true, .. } => self.retransmitted_bytes += bytes,
            Event::Measured { rtt, rtt_min } => {
                self.radio_rtt.record(*rtt);
                if let Some(least) = rtt_min {
                    self.radio_queueing.record(rtt.saturating_sub(*least));
                }
            }
            Event::Lost { bytes } => self.lost_bytes += bytes,
            Event::Ended(status) => {
                if status.mode == FlowMode::Split {
                    self.split_retransmissions += status.totals.retransmissions;
                }
                if status.server_rtt > Duration::ZERO {
                    self.server_rtt.record(status.server_rtt);
                }
                match status.stage {
                    FlowStage::Reset => self.reset += 1,
                    FlowStage::Idle => self.idle += 1,
                    FlowStage::Replaced => self.replaced += 1,
                    FlowStage::Finished | FlowStage::Open | FlowStage::Opening => self.finished += 1,
                }
            }
            _ => {}
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_time_is_counted_below_its_bound() {
        let mut histogram = Histogram::default();
        for ms in [0, 10, 11, 60_000] {
            histogram.record(Duration::from_millis(ms));
        }
        assert_eq!(histogram.counts[0], 1);
        assert_eq!((histogram.counts[5], histogram.counts[6]), (1, 1));
        assert_eq!(histogram.counts[BOUNDS_S.len()], 1);
        assert_eq!(histogram.count(), 4);
        assert!((histogram.sum_s - 60.021).abs() < 1e-9);
    }

    #[test]
    fn events_are_summed_up() {
        let mut totals = Totals::default();
        let sojourn = Duration::from_millis(3);
        totals.note(&Event::Sent { bytes: 1000, sojourn, retransmission: false });
        totals.note(&Event::NewData { bytes: 1000 });
        totals.note(&Event::Sent { bytes: 500, sojourn, retransmission: true });
        let rtt = Duration::from_millis(120);
        totals.note(&Event::Measured { rtt, rtt_min: Some(Duration::from_millis(100)) });
        assert_eq!((totals.downlink_bytes, totals.retransmitted_bytes), (1000, 500));
        assert_eq!(totals.gateway_queueing.count(), 1);
        assert_eq!(totals.radio_queueing.counts[6], 1);
    }
}
