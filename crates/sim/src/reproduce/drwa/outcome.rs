//! Results of a run of an experiment.

use std::cell::Cell;
use std::collections::BTreeMap;
use std::rc::Rc;

use paceline_path::Delivered;
use paceline_tcp::Status;
use paceline_wire::{Duration, Instant};

use super::experiment::Experiment;
use crate::network::Tap;
use crate::run::{RunObserver, run_watched};
use crate::scenario::ScenarioError;

/// Means over a run.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Outcome {
    /// Goodput of the download.
    pub goodput_mbps: f64,
    /// The sender's smoothed RTT, mean over time.
    pub rtt_ms: f64,
    /// 95th percentile of the sender's smoothed RTT.
    pub rtt_p95_ms: f64,
    /// Mean of the receiver's RTT estimate.
    pub receiver_rtt_ms: f64,
    /// Wait at the link, mean over packets.
    pub queue_mean_ms: f64,
    /// 95th percentile of the wait at the link.
    pub queue_p95_ms: f64,
    /// Used share of the link.
    pub utilization: f64,
    /// Mean time to fetch an object.
    pub fetch_ms: f64,
    /// Mean of the smoothed RTT of the objects' senders.
    pub fetch_rtt_ms: f64,
    /// Timeouts of the download.
    pub timeouts: f64,
    /// Fast recoveries of the download.
    pub recoveries: f64,
}

/// A run over time.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Trace {
    /// One row for every 100 ms of the download.
    pub rows: Vec<Row>,
    /// Smoothed RTTs of the objects' senders: sum and number.
    object_rtt: (f64, u32),
    bulk: bool,
    end: Instant,
    receivers: BTreeMap<usize, Status>,
}

/// State at one time of a run.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Row {
    /// Time since the start.
    pub at_s: f64,
    /// The sender's smoothed RTT.
    pub rtt_ms: f64,
    /// The receiver's RTTest.
    pub receiver_rtt_ms: f64,
    /// Lambda of DRWA.
    pub lambda: f64,
    /// Advertised window.
    pub window_bytes: f64,
    /// Bytes that the application has read so far.
    pub read_bytes: f64,
    /// Timeouts so far.
    pub timeouts: u64,
}

/// Sum and number of the waits at a link.
#[derive(Clone, Debug, Default)]
struct Waits(Rc<Cell<(Duration, u64)>>);

impl Waits {
    fn mean_ms(&self) -> f64 {
        let (sum, count) = self.0.get();
        sum.as_secs_f64() * 1e3 / count as f64
    }
}

impl Tap for Waits {
    fn delivered(&mut self, delivered: &Delivered) {
        let (sum, count) = self.0.get();
        self.0.set((sum + delivered.queue_delay, count + 1));
    }
}

/// Records a trace beside another watch.
struct Both<'a>(&'a mut Trace, &'a mut dyn RunObserver);

impl RunObserver for Both<'_> {
    fn receiver(&mut self, now: Instant, transfer: usize, status: &Status) {
        self.0.receiver(now, transfer, status);
    }

    fn sender(&mut self, now: Instant, transfer: usize, status: &Status, read_bytes: u64) {
        self.0.sender(now, transfer, status, read_bytes);
    }

    fn goes_on(&mut self, now: Instant) -> bool {
        self.1.goes_on(now)
    }
}

impl RunObserver for Trace {
    fn receiver(&mut self, _now: Instant, transfer: usize, status: &Status) {
        if self.bulk && transfer == 0 {
            self.receivers.insert(transfer, *status);
        }
    }

    fn sender(&mut self, now: Instant, transfer: usize, status: &Status, read_bytes: u64) {
        let rtt_ms = status.pulse.rtt as f64 / 1e3;
        if !self.bulk || transfer > 0 {
            if status.pulse.rtt > 0 && now < self.end {
                self.object_rtt = (self.object_rtt.0 + rtt_ms, self.object_rtt.1 + 1);
            }
            return;
        }
        let receiver = self.receivers.get(&transfer);
        let ms = |of: fn(&Status) -> u64| receiver.map_or(0.0, |status| of(status) as f64 / 1e3);
        self.rows.push(Row {
            at_s: now.as_secs_f64(),
            rtt_ms,
            receiver_rtt_ms: ms(|status| status.receiver.rcv_rtt),
            lambda: receiver.map_or(0.0, |status| f64::from(status.receiver.drwa_lambda_percent) / 100.0),
            window_bytes: receiver.map_or(0.0, |status| {
                status.receiver.rcv_edge.saturating_sub(status.receiver.rcv_nxt) as f64
            }),
            read_bytes: read_bytes as f64,
            timeouts: status.episodes.total_rto,
        });
    }
}

impl Trace {
    /// Rows of one part of the run.
    pub fn between(&self, from_s: f64, to_s: f64) -> impl Iterator<Item = &Row> {
        self.rows.iter().filter(move |row| row.at_s >= from_s && row.at_s < to_s)
    }

    /// Rate at which the application read in one part of the run, Mbit/s.
    pub fn mbps(&self, from_s: f64, to_s: f64) -> f64 {
        let mut rows = self.between(from_s, to_s);
        let (Some(first), Some(last)) = (rows.next(), rows.last()) else { return f64::NAN };
        (last.read_bytes - first.read_bytes) * 8.0 / 1e6 / (last.at_s - first.at_s)
    }
}

impl Experiment {
    /// Executes one run.
    ///
    /// # Errors
    /// Fails if the experiment cannot be simulated, or if `watch` ends the run.
    pub fn run(&self, seed: u64, watch: &mut dyn RunObserver) -> Result<Outcome, ScenarioError> {
        self.record(seed, watch).map(|(outcome, _)| outcome)
    }

    /// Executes one run. Also returns its trace.
    ///
    /// # Errors
    /// Fails if the experiment cannot be simulated, or if `watch` ends the run.
    pub fn record(&self, seed: u64, watch: &mut dyn RunObserver) -> Result<(Outcome, Trace), ScenarioError> {
        let mut trace = Trace { bulk: self.download, end: Instant::ZERO + self.duration, ..Trace::default() };
        let waits = Waits::default();
        let taps: Vec<(&str, Box<dyn Tap>)> = vec![("radio_down", Box::new(waits.clone()))];
        let result = run_watched(&self.scenario(seed), taps, &mut Both(&mut trace, watch))?;
        let download = result.flows.iter().find(|flow| flow.name == "download");
        let objects: Vec<f64> = result
            .flows
            .iter()
            .filter(|flow| flow.name == "object")
            .filter_map(|flow| flow.completion_s.map(|s| (flow.start_s + s, s * 1e3)))
            // Only objects that ended within the scenario's duration.
            .filter(|(end_s, _)| *end_s < self.duration.as_secs_f64())
            .map(|(_, ms)| ms)
            .collect();
        let link = result.links.get("radio_down");
        let known = trace.rows.iter().filter(|row| row.rtt_ms > 0.0);
        let outcome = Outcome {
            goodput_mbps: download.map_or(f64::NAN, |flow| flow.goodput_mbps),
            rtt_ms: mean(known.clone().map(|row| row.rtt_ms)),
            rtt_p95_ms: download.and_then(|flow| flow.rtt_ms.p95).unwrap_or(f64::NAN),
            receiver_rtt_ms: mean(known.map(|row| row.receiver_rtt_ms)),
            queue_mean_ms: waits.mean_ms(),
            queue_p95_ms: link.and_then(|link| link.queue_delay_ms.p95).unwrap_or(f64::NAN),
            utilization: link.and_then(|link| link.utilization).unwrap_or(f64::NAN),
            fetch_ms: mean(objects.into_iter()),
            fetch_rtt_ms: trace.object_rtt.0 / f64::from(trace.object_rtt.1),
            timeouts: download.map_or(f64::NAN, |flow| flow.timeouts as f64),
            recoveries: download.map_or(f64::NAN, |flow| flow.recoveries as f64),
        };
        Ok((outcome, trace))
    }
}

fn mean(values: impl Iterator<Item = f64>) -> f64 {
    let (sum, count) = values.fold((0.0, 0u32), |(sum, count), value| (sum + value, count + 1));
    sum / f64::from(count)
}
