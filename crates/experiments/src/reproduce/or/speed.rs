//! Speed of the simulator, in processor time. These results depend on the machine, unlike all others.

use paceline_path::{Delay, LinkConfig, QueueLimit, RateProcess};
use paceline_sim::reproduce::or::{SenderSetup, Setup, SetupLoss};
use paceline_sim::run;
use paceline_sim::scenario::{Flow, PathLink, Scenario};
use paceline_wire::{Duration, Rate};

use crate::cpu_time::CpuTime;
use crate::error::Result;
use crate::reproduce::pool::not_simulated;
use crate::reproduce::report::{Bound, Section, number};

/// Processor times of the simulator.
pub(super) struct Speed {
    /// Seconds for 200 s of one flow with 20 Mbit/s and 100 ms.
    single_flow_s: f64,
    events_per_s: f64,
    /// Nanoseconds per packet that the bottleneck delivers, with one flow and with 1,000.
    one_flow_ns: f64,
    many_flows_ns: f64,
}

/// Time of ns-3.37 for the same flow, on the machine on which the target speed was set.
const NS3_S: f64 = 10.6;
/// The best of this number of runs counts, because other programs use the machine, too.
const REPETITIONS: u32 = 5;
const MANY_FLOWS: u32 = 1_000;

const CACHE: &str = "\
1.19 times the instructions; the rest is waiting for memory, because 11 MB of flows do not fit into the cache (docs/evidence/speed.md). By \
experiment beside other work, 10, 30, 100, 300 and 1,000 flows cost 1.1, 1.4, 1.6, 2.0 and 3.0 times the time";
const TIME_OF_ALL: &str = "\
the sum of the runs' processor times, halved, and for 10 runs a cell. By a sample of runs beside other work the 240 runs of Table 15, of 4,871, \
take 20 s each, 80 minutes of a core. On an idle machine they take 10.8 s each (docs/evidence/speed.md)";

pub(super) fn measure() -> Result<Speed> {
    let setup = Setup { mbps: 20.0, rtt_ms: 100, loss: SetupLoss::Random(0.0) };
    let single = best(&setup.scenario(&SenderSetup::default(), 1))?;
    let [one, many] = [best(&bulk_flows(1))?, best(&bulk_flows(MANY_FLOWS))?];
    Ok(Speed {
        single_flow_s: single.seconds,
        events_per_s: single.events / single.seconds,
        one_flow_ns: one.seconds * 1e9 / one.packets,
        many_flows_ns: many.seconds * 1e9 / many.packets,
    })
}

struct Measured {
    seconds: f64,
    events: f64,
    packets: f64,
}

fn best(scenario: &Scenario) -> Result<Measured> {
    let mut best = Measured { seconds: f64::INFINITY, events: 0.0, packets: 0.0 };
    for _ in 0..REPETITIONS {
        let started = CpuTime::now();
        let result = run(scenario).map_err(|error| not_simulated("", &error))?;
        let seconds = started.elapsed_s();
        if seconds < best.seconds {
            let packets = result.links.get("radio_down").map_or(0, |link| link.delivered_packets);
            best = Measured { seconds, events: result.events as f64, packets: packets as f64 };
        }
    }
    Ok(best)
}

/// Downloads that share a link of 1 Gbit/s and 40 ms for 5 s.
fn bulk_flows(count: u32) -> Scenario {
    let rate = Rate::from_mbps(1_000.0);
    let delay = Delay::Constant(Duration::from_millis(20));
    let down = LinkConfig {
        rate: RateProcess::Constant(rate),
        queue: QueueLimit::Bytes(rate.bytes_in(Duration::from_millis(40))),
        delay: delay.clone(),
        ..LinkConfig::default()
    };
    let up = LinkConfig { delay, ..LinkConfig::default() };
    Scenario {
        duration: Duration::from_secs(5),
        path: vec![PathLink { name: "radio".into(), down, up }],
        flows: vec![Flow { count, interval: Duration::from_micros(500), ..Flow::default() }],
        patience: Duration::ZERO,
        ..Scenario::default()
    }
}

impl Speed {
    /// `all_s` is the processor time of all parts with ten runs per cell.
    pub(super) fn report(&self, all_s: Option<f64>) -> (Section, Vec<Bound>) {
        let ratio = self.many_flows_ns / self.one_flow_ns;
        let mut bounds = vec![
            Bound::at_least("200 s of one flow: times as fast as ns-3.37", 50.0, NS3_S / self.single_flow_s)
                .with_note(format!(
                    "{:.3} s here; ns-3.37 took {NS3_S} s where the bound was set",
                    self.single_flow_s
                )),
            Bound::at_least("million events per second, one flow", 5.0, self.events_per_s / 1e6),
            Bound::at_most("cost of a packet with 1,000 flows over that with one", 1.5, ratio)
                .with_note(CACHE),
        ];
        let mut rows = vec![
            vec!["200 s of one flow, 20 Mbit/s, 100 ms, s".into(), number(self.single_flow_s, 3)],
            vec!["million events per second, that flow".into(), number(self.events_per_s / 1e6, 2)],
            vec!["ns a packet, 1 flow of 1 Gbit/s".into(), number(self.one_flow_ns, 0)],
            vec!["ns a packet, 1,000 flows of 1 Gbit/s together".into(), number(self.many_flows_ns, 0)],
        ];
        if let Some(all_s) = all_s {
            let minutes = all_s / 60.0 / 2.0;
            rows.push(vec![
                "all of this reproduction with 10 runs a cell, minutes on 2 cores".into(),
                number(minutes, 1),
            ]);
            bounds.push(
                Bound::at_most("all of reproduce or, minutes on 2 cores", 25.0, minutes)
                    .with_note(TIME_OF_ALL),
            );
        }
        let section = Section { rows, ..Section::of("or", "speed") };
        (section, bounds)
    }
}
