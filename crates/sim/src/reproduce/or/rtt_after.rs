//! RTT after recovery: Figs. 4 and 5, a download of 50 MB with five single drops.

use std::cell::RefCell;
use std::rc::Rc;

use paceline_path::{Delivered, LinkConfig, Loss, ScriptedLoss};
use paceline_wire::{Duration, Instant, Packet};

use super::cells::{Setup, SetupLoss};
use super::experiment::SenderSetup;
use super::sender_trace::SenderTrace;
use crate::network::Tap;
use crate::run::run_watched;
use crate::scenario::{Load, PathLink, Scenario, ScenarioError, Transport};
use crate::workload::SizeRange;

/// The longest round trips before and after a drop.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct RttAfter {
    /// Mean over the five drops of the longest round trip in the half second before.
    pub before_ms: f64,
    /// Mean over the five drops of the longest round trip in the two seconds after.
    pub after_ms: f64,
}

/// A download with its five drops, for plots.
#[derive(Clone, Debug, PartialEq)]
pub struct RttTrace {
    /// The round trips around the drops.
    pub after: RttAfter,
    /// Time in seconds, and the longest round trip of the 50 ms before it, in milliseconds.
    pub rtt_ms: Vec<(f64, f64)>,
    /// Times of the drops, in seconds.
    pub drops_s: Vec<f64>,
    /// The sender over time.
    pub sender: SenderTrace,
}

const DOWNLOAD_BYTES: u64 = 50_000_000;
const SEGMENT_BYTES: u64 = 1_448;
const DROPS: u64 = 5;
const BEFORE: Duration = Duration::from_millis(500);
const AFTER: Duration = Duration::from_secs(2);
/// Our choice: half a round trip shows every spike.
const PLOT_STEP_S: f64 = 0.05;

/// Times at which packets were handed to the bottleneck, and their waits there.
#[derive(Clone, Debug, Default)]
struct Waits(Rc<RefCell<Vec<(Instant, Duration)>>>);

/// Times at which packets reach a link, by number.
#[derive(Clone, Debug, Default)]
struct Passed(Rc<RefCell<Vec<Instant>>>);

impl Tap for Waits {
    fn delivered(&mut self, delivered: &Delivered) {
        self.0.borrow_mut().push((delivered.sent, delivered.queue_delay));
    }
}

impl Tap for Passed {
    fn sent(&mut self, now: Instant, _packet: &Packet) {
        self.0.borrow_mut().push(now);
    }
}

impl RttAfter {
    /// The growth of the round trip, as a share of the one before.
    pub fn growth(&self) -> f64 {
        self.after_ms / self.before_ms - 1.0
    }
}

impl RttTrace {
    /// Runs the download.
    ///
    /// # Errors
    /// Fails if the download cannot be simulated.
    pub fn record(sender: &SenderSetup) -> Result<RttTrace, ScenarioError> {
        let setup = Setup { mbps: 20.0, rtt_ms: 100, loss: SetupLoss::Random(0.0) };
        let packets = DOWNLOAD_BYTES / SEGMENT_BYTES;
        let drops: Vec<u64> = (1..=DROPS).map(|number| number * packets / (DROPS + 1)).collect();
        let (waits, passed, mut trace) = (Waits::default(), Passed::default(), SenderTrace::default());
        run_watched(
            &download(&setup, sender, &drops),
            vec![("radio_down", Box::new(waits.clone())), ("drops_down", Box::new(passed.clone()))],
            &mut trace,
        )?;
        let (waits, passed) = (waits.0.borrow(), passed.0.borrow());
        let dropped: Vec<Instant> =
            drops.iter().filter_map(|packet| passed.get(*packet as usize - 1).copied()).collect();
        let rtt_ms = |wait: Duration| setup.rtt_ms as f64 + wait.as_secs_f64() * 1e3;
        let longest = |from: Instant, to: Instant| {
            let within = waits.iter().filter(|(at, _)| *at >= from && *at < to).map(|(_, wait)| *wait);
            rtt_ms(within.max().unwrap_or_default())
        };
        let mean = |of: &dyn Fn(Instant) -> f64| {
            dropped.iter().map(|at| of(*at)).sum::<f64>() / dropped.len() as f64
        };
        let after = RttAfter {
            before_ms: mean(&|at| longest(at - BEFORE, at)),
            after_ms: mean(&|at| longest(at, at + AFTER)),
        };
        let mut steps: Vec<(f64, f64)> = Vec::new();
        for (at, wait) in waits.iter() {
            let step_s = ((at.as_secs_f64() / PLOT_STEP_S).floor() + 1.0) * PLOT_STEP_S;
            match steps.last_mut().filter(|(last_s, _)| *last_s == step_s) {
                Some((_, longest)) => *longest = longest.max(rtt_ms(*wait)),
                None => steps.push((step_s, rtt_ms(*wait))),
            }
        }
        let drops_s = dropped.iter().map(|at| at.as_secs_f64()).collect();
        Ok(RttTrace { after, rtt_ms: steps, drops_s, sender: trace })
    }
}

/// A download of 50 MB. The packets with the numbers `drops` are dropped once.
fn download(setup: &Setup, sender: &SenderSetup, drops: &[u64]) -> Scenario {
    let mut scenario = setup.scenario(sender, 1);
    for flow in &mut scenario.flows {
        if let Transport::Tcp(tcp) = &mut flow.transport {
            tcp.load = Load::Size(SizeRange::exactly(DOWNLOAD_BYTES));
        }
    }
    let scripted = drops.iter().map(|packet| ScriptedLoss { packet: *packet, count: 1 }).collect();
    let down = LinkConfig { loss: Loss::Scripted(scripted), ..LinkConfig::default() };
    scenario.path.insert(0, PathLink { name: "drops".into(), down, up: LinkConfig::default() });
    scenario
}

#[cfg(test)]
mod tests {
    use paceline_tcp::{DetectionName, ReductionName};

    use super::super::cells::Variant;
    use super::*;

    /// The published bounds: 40 % for PRR and 70 % for QARR as found, 5 % optimized.
    #[test]
    fn bursts_after_recovery_are_there_and_go() {
        let growth = |reduction, variant| {
            let sender =
                SenderSetup { reduction, variant, detection: DetectionName::Fack, ..SenderSetup::default() };
            RttTrace::record(&sender).unwrap().after.growth()
        };
        let [prr, qarr] = [ReductionName::Prr, ReductionName::Qarr].map(|r| growth(r, Variant::Original));
        assert!(prr >= 0.4 && qarr >= 0.7, "PRR {prr}, QARR {qarr} as found");
        let [prr, qarr] = [ReductionName::Prr, ReductionName::Qarr].map(|r| growth(r, Variant::Optimized));
        assert!(prr <= 0.05 && qarr <= 0.05, "PRR {prr}, QARR {qarr} optimized");
    }
}
