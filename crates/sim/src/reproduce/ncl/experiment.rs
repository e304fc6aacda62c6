//! One run of long flows. Only the second half of the time counts (Section V).

use paceline_tcp::{Config, NclConfig, ReceiveWindowName};
use paceline_wire::Duration;

use super::scheme::Scheme;
use crate::run::RunObserver;
use crate::scenario::ScenarioError;
use crate::wireless::{Measurement, WirelessPath, measure_watched};

/// Sender, path and duration of a run.
#[derive(Clone, Debug, PartialEq)]
pub struct NclExperiment {
    /// The sender.
    pub scheme: Scheme,
    /// MRRL, beta and tau_CD, if the sender is TCP-NCL.
    pub ncl: NclConfig,
    /// The shortest retransmission timeout: RFC 6298 says 1 s, Linux has 200 ms.
    pub rto_min: Duration,
    /// Largest window, in packets.
    pub window_max: u32,
    /// The path.
    pub path: WirelessPath,
    /// Duration of both halves together.
    pub seconds: u64,
}

/// Results of the second half of a run.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct NclRun {
    /// Goodput of each flow, Mbit/s.
    pub goodput_mbps: Vec<f64>,
    /// Share of the segments sent that were retransmissions.
    pub retransmitted_share: f64,
    /// Share of the retransmissions that the receiver had already.
    pub needless_share: f64,
    /// Retransmission timeouts of all flows.
    pub timeouts: u64,
    /// Number of recoveries, the other answers to congestion.
    pub answers: u64,
    /// Mean of the first flow's smoothed RTT.
    pub srtt_ms: f64,
    /// Mean of the first flow's window.
    pub cwnd: f64,
    /// Share of packets that arrived after a later one.
    pub reordered_share: f64,
}

/// Payload of a full-sized packet, and the packet with its headers.
const PAYLOAD_BYTES: f64 = 1_448.0;
const PACKET_BYTES: f64 = 1_500.0;

impl NclExperiment {
    /// The highest payload rate of a link with this rate.
    pub fn payload_mbps(mbps: f64) -> f64 {
        mbps * PAYLOAD_BYTES / PACKET_BYTES
    }

    /// Runs the experiment.
    ///
    /// # Errors
    /// Fails if the experiment cannot be simulated, or if `watch` ends the run.
    pub fn run(&self, seed: u64, watch: &mut dyn RunObserver) -> Result<NclRun, ScenarioError> {
        let duration = Duration::from_secs(self.seconds);
        let times = Measurement { seed, warm_up: duration / 2, duration };
        // As in ns-2, the receiver answers every packet, and its window is constant.
        let receiver = Config {
            delayed_ack: false,
            sack_compression: false,
            receive_window: ReceiveWindowName::Fixed,
            ..Config::default()
        };
        let sender =
            Config { rto_min: self.rto_min, cwnd_clamp: self.window_max, ..self.scheme.config(self.ncl) };
        let flows = measure_watched(&self.path, &sender, &receiver, times, watch)?;
        let sum = |of: &dyn Fn(&crate::wireless::FlowMeasure) -> u64| flows.iter().map(of).sum::<u64>();
        let share = |part: u64, whole: u64| part as f64 / whole.max(1) as f64;
        let resent = sum(&|flow| flow.retransmitted);
        let first = flows.first().copied().unwrap_or_default();
        Ok(NclRun {
            goodput_mbps: flows.iter().map(|flow| flow.goodput_mbps).collect(),
            retransmitted_share: share(resent, sum(&|flow| flow.segments)),
            needless_share: share(sum(&|flow| flow.needless), resent),
            timeouts: sum(&|flow| flow.timeouts),
            answers: sum(&|flow| flow.recoveries),
            srtt_ms: first.srtt_ms,
            cwnd: first.cwnd,
            reordered_share: first.reordering.share(),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn share(scheme: Scheme, error: f64) -> f64 {
        let Some(path) = WirelessPath::named("last-hop", error) else { return f64::NAN };
        let limit = NclExperiment::payload_mbps(path.mbps()) * (1.0 - error);
        let rto_min = Duration::from_millis(200);
        let experiment = NclExperiment {
            scheme,
            ncl: NclConfig::default(),
            rto_min,
            window_max: u32::MAX,
            path,
            seconds: 100,
        };
        experiment.run(1, &mut ()).unwrap().goodput_mbps[0] / limit
    }

    /// The claim of the paper: with 5 % of errors, TCP-NCL keeps the goodput that a loss-based sender loses.
    #[test]
    fn errors_are_not_congestion() {
        let [ncl, reno] = [Scheme::Ncl, Scheme::Reno].map(|scheme| share(scheme, 0.05));
        assert!(ncl > 1.5 * reno, "{ncl} {reno}");
    }

    #[test]
    fn without_errors_the_link_is_full() {
        for scheme in Scheme::ALL {
            let share = share(scheme, 0.0);
            assert!((0.97..1.001).contains(&share), "{scheme:?}: {share}");
        }
    }
}
