//! Flows over a path, measured after a warm-up.

use paceline_adhoc::AdHocCounters;
use paceline_tcp::{Config, Status};
use paceline_wire::{Duration, Instant};

use super::path::WirelessPath;
use crate::measure::{Reordering, ReorderingMeter};
use crate::result::mbps;
use crate::run::{RunObserver, run_watched};
use crate::scenario::ScenarioError;

/// Seed and times of a measurement.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Measurement {
    /// Seed of every random choice.
    pub seed: u64,
    /// Time at the start that does not count.
    pub warm_up: Duration,
    /// Length of the whole run.
    pub duration: Duration,
}

/// Measurements of a flow between warm-up and end.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct FlowMeasure {
    /// Payload that the receiving application read.
    pub goodput_mbps: f64,
    /// Retransmission timeouts.
    pub timeouts: u64,
    /// Segments sent, retransmissions included.
    pub segments: u64,
    /// Retransmissions.
    pub retransmitted: u64,
    /// Retransmissions that the receiver had already (D-SACK, RFC 2883).
    pub needless: u64,
    /// Fast recoveries.
    pub recoveries: u64,
    /// Undone reductions of the window.
    pub undos: u64,
    /// The sender's smoothed RTT, the mean of every 100 ms.
    pub srtt_ms: f64,
    /// The congestion window in segments, the mean of every 100 ms.
    pub cwnd: f64,
    /// Reordering on the way to the receiver, over all flows.
    pub reordering: Reordering,
    /// Counters of the ad-hoc network over the whole run, if there is one.
    pub ad_hoc: Option<AdHocCounters>,
}

/// Runs bulk flows of `sender` over a path to receivers of the same configuration.
///
/// # Errors
/// Fails if the path cannot be simulated.
pub fn measure(
    path: &WirelessPath,
    sender: &Config,
    times: Measurement,
) -> Result<Vec<FlowMeasure>, ScenarioError> {
    measure_watched(path, sender, sender, times, &mut ())
}

/// Like [`measure`], with another configuration for the receiver, and a watch.
///
/// # Errors
/// Fails if the path cannot be simulated, or if `watch` ends the run.
pub fn measure_watched(
    path: &WirelessPath,
    sender: &Config,
    receiver: &Config,
    times: Measurement,
    watch: &mut dyn RunObserver,
) -> Result<Vec<FlowMeasure>, ScenarioError> {
    let scenario = path.scenario(sender, receiver, times.seed, times.duration);
    let [first, last] = [scenario.path.first(), scenario.path.last()]
        .map(|link| link.map_or(String::new(), |link| format!("{}_down", link.name)));
    let meter = ReorderingMeter::default();
    let mut looks = FlowSnapshots {
        from: Instant::ZERO + times.warm_up,
        meter: meter.clone(),
        reordering: Reordering::default(),
        flows: vec![FlowSnapshot::default(); scenario.flows.len()],
        watch,
    };
    let result = run_watched(
        &scenario,
        vec![(&first, Box::new(meter.departures())), (&last, Box::new(meter.arrivals()))],
        &mut looks,
    )?;
    let reordering = meter.seen().since(&looks.reordering);
    let span = times.duration.saturating_sub(times.warm_up);
    let flows = looks.flows.iter().map(|look| FlowMeasure {
        reordering,
        ad_hoc: result.ad_hoc,
        ..look.measure(span)
    });
    Ok(flows.collect())
}

/// The states of the flows: the first and the last one after the warm-up.
struct FlowSnapshots<'a> {
    from: Instant,
    meter: ReorderingMeter,
    reordering: Reordering,
    flows: Vec<FlowSnapshot>,
    watch: &'a mut dyn RunObserver,
}

#[derive(Clone, Default)]
struct FlowSnapshot {
    first: Option<(Status, u64)>,
    last: Option<(Status, u64)>,
    looks: u64,
    srtt_us: u64,
    cwnd: u64,
}

impl FlowSnapshot {
    fn measure(&self, span: Duration) -> FlowMeasure {
        let (Some((first, read_first)), Some((last, read_last))) = (&self.first, &self.last) else {
            return FlowMeasure::default();
        };
        let looks = self.looks.max(1) as f64;
        FlowMeasure {
            goodput_mbps: mbps(read_last - read_first, span),
            timeouts: last.episodes.total_rto - first.episodes.total_rto,
            segments: last.sent.data_segs_out - first.sent.data_segs_out,
            retransmitted: last.sent.total_retrans - first.sent.total_retrans,
            needless: last.sent.dsack_dups - first.sent.dsack_dups,
            recoveries: last.episodes.recoveries - first.episodes.recoveries,
            undos: last.episodes.undos - first.episodes.undos,
            srtt_ms: self.srtt_us as f64 / looks / 1e3,
            cwnd: self.cwnd as f64 / looks,
            reordering: Reordering::default(),
            ad_hoc: None,
        }
    }
}

impl RunObserver for FlowSnapshots<'_> {
    fn sender(&mut self, now: Instant, transfer: usize, status: &Status, read_bytes: u64) {
        if let Some(look) = self.flows.get_mut(transfer).filter(|_| now >= self.from) {
            look.first.get_or_insert((*status, read_bytes));
            look.last = Some((*status, read_bytes));
            look.looks += 1;
            look.srtt_us += status.pulse.rtt;
            look.cwnd += u64::from(status.window.snd_cwnd);
        }
        self.watch.sender(now, transfer, status, read_bytes);
    }

    fn goes_on(&mut self, now: Instant) -> bool {
        if now <= self.from {
            self.reordering = self.meter.seen();
        }
        self.watch.goes_on(now)
    }
}

#[cfg(test)]
mod tests;
