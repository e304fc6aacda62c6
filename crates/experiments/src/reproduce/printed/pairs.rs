//! DRWA, RTT modulation and TCP-NCL's response to congestion, in both forms.

use paceline_gateway::GatewayConfig;
use paceline_gateway::config::{FlowMode, RttModulationMode};
use paceline_gateway::split::SenderConfig;
use paceline_path::random::Probability;
use paceline_path::{Delay, LinkConfig, Loss, QueueLimit, RateProcess, ScriptedLoss};
use paceline_sim::Scenario;
use paceline_sim::reproduce::drwa::{Experiment, Network, Signal, Window};
use paceline_sim::scenario::{Flow, GatewayAt, PathLink, TcpFlow, Transport};
use paceline_tcp::{Config, CongestionName, DetectionName, ReceiveBuffer, ReceiveWindowName, ReductionName};
use paceline_wire::{Duration, Rate};

use super::{Case, GOODPUT, Measured, PAIR_COLUMNS};
use crate::reproduce::report::{Bound, Section};

/// One algorithm on one path, in both forms.
pub(super) struct Pair {
    pub(super) name: String,
    pub(super) printed: Case,
    pub(super) improved: Case,
}

pub(super) fn all() -> Vec<Pair> {
    let mut all = Vec::new();
    for network in Network::ALL {
        all.push(drwa(&format!("{}, near", network.name()), move |window| Experiment::near(network, window)));
    }
    let longer = |window| Experiment {
        signal: Signal::LongerAfter40s(4),
        ..Experiment::near(Network::VerizonLte, window)
    };
    all.push(drwa("Verizon LTE, four times the round trip after 40 s", longer));
    let fading = |window| Experiment { signal: Signal::Fading, ..Experiment::near(Network::AttHspa, window) };
    all.push(drwa("AT&T HSPA+, a signal that fades and comes back", fading));
    all.push(modulation("every 5,000th packet and its first repair lost", repairs_lost()));
    for percent in [0.1, 0.6, 1.0] {
        all.push(modulation(&format!("loss {percent} %"), independent(percent)));
    }
    for (mbps, rtt_ms, percent) in [(20.0, 50, 0.01), (20.0, 200, 1.0), (100.0, 100, 0.1), (100.0, 200, 0.01)]
    {
        all.push(ncl(mbps, rtt_ms, percent));
    }
    all
}

fn drwa(path: &str, on: impl Fn(Window) -> Experiment + Copy + Send + Sync + 'static) -> Pair {
    let name = format!("DRWA, {path}");
    let form = |receive_window: ReceiveWindowName| Case {
        is_fixed: true,
        ..Case::new(format!("{name}, {receive_window}"), 10.0, move |seed| {
            on(Window { name: receive_window, ..Window::drwa() }).scenario(seed)
        })
    };
    let (printed, improved) = (form(ReceiveWindowName::DrwaText), form(ReceiveWindowName::Drwa));
    Pair { name, printed, improved }
}

/// The thesis's path and gateway, except for the compared form of RTT modulation. The server's `rto_min` is only 20 ms.
fn modulation(losses: &str, loss: Loss) -> Pair {
    let name = format!("RTT modulation, {losses}");
    let is_fixed = matches!(loss, Loss::Scripted(_));
    let form = |mode: RttModulationMode, label: &str| {
        let loss = loss.clone();
        Case {
            is_fixed,
            ..Case::new(format!("{name}, {label}"), 7.2, move |seed| {
                let mut config = GatewayConfig::default();
                config.rtt_modulation.mode = mode;
                let server = Config {
                    rto_min: Duration::from_millis(20),
                    detection: DetectionName::Fack,
                    ..Config::default()
                };
                let client = Config {
                    receive_buffer: ReceiveBuffer::Fixed(17_520),
                    window_scaling: false,
                    timestamps: false,
                    ..Config::default()
                };
                let path =
                    Path { mbps: 7.2, rtt_ms: 100, queue: QueueLimit::Packets(1_000), loss: loss.clone() };
                path.scenario(seed, config, TcpFlow { server, client, ..TcpFlow::default() })
            })
        }
    };
    let (printed, improved) =
        (form(RttModulationMode::Text, "as printed"), form(RttModulationMode::Modulated, "ours"));
    Pair { name, printed, improved }
}

/// TCP-NCL in split mode: half of cwnd and Reno's growth, compared with CUBIC's response.
fn ncl(mbps: f64, rtt_ms: u64, percent: f64) -> Pair {
    let name = format!("TCP-NCL in split mode, {mbps} Mbit/s, {rtt_ms} ms, loss {percent} %");
    let form = |congestion_control: Option<CongestionName>, label: &str| {
        Case::new(format!("{name}, {label}"), mbps, move |seed| {
            let mut config = GatewayConfig { mode: FlowMode::Split, ..GatewayConfig::default() };
            config.split.sender = SenderConfig {
                congestion_control,
                loss_detection: DetectionName::Ncl,
                rate_reduction: ReductionName::Prr,
                opportunistic_retransmission: false,
                ..SenderConfig::default()
            };
            let bdp_bytes = mbps * 1e6 / 8.0 * (rtt_ms + WIRED_RTT_MS) as f64 / 1e3;
            let client = Config {
                receive_buffer: ReceiveBuffer::Fixed((WINDOW_BDPS * bdp_bytes) as u32),
                ..Config::default()
            };
            let queue = QueueLimit::Bytes(bdp_bytes as u64);
            let path = Path { mbps, rtt_ms, queue, loss: independent(percent) };
            path.scenario(seed, config, TcpFlow { client, ..TcpFlow::default() })
        })
    };
    let (printed, improved) = (form(None, "half of cwnd, Reno"), form(Some(CongestionName::Cubic), "CUBIC"));
    Pair { name, printed, improved }
}

/// A path with a gateway 10 ms from the server, before a radio link.
struct Path {
    mbps: f64,
    rtt_ms: u64,
    queue: QueueLimit,
    loss: Loss,
}

const WIRED_RTT_MS: u64 = 10;
/// Our choice: the window never limits.
const WINDOW_BDPS: f64 = 3.0;
const DURATION: Duration = Duration::from_secs(120);

impl Path {
    fn scenario(self, seed: u64, config: GatewayConfig, tcp: TcpFlow) -> Scenario {
        let half = |rtt_ms: u64| Delay::Constant(Duration::from_micros(rtt_ms * 500));
        let wired = LinkConfig { delay: half(WIRED_RTT_MS), ..LinkConfig::default() };
        let down = LinkConfig {
            rate: RateProcess::Constant(Rate::from_mbps(self.mbps)),
            queue: self.queue,
            delay: half(self.rtt_ms),
            loss: self.loss,
            ..LinkConfig::default()
        };
        let up = LinkConfig { delay: half(self.rtt_ms), ..LinkConfig::default() };
        Scenario {
            duration: DURATION,
            seed,
            path: vec![
                PathLink { name: "wired".into(), down: wired.clone(), up: wired },
                PathLink { name: "radio".into(), down, up },
            ],
            gateway: Some(GatewayAt { links_before: 1, config }),
            flows: vec![Flow { transport: Transport::Tcp(Box::new(tcp)), ..Flow::default() }],
            ..Scenario::default()
        }
    }
}

fn independent(percent: f64) -> Loss {
    Loss::Independent(Probability::from_fraction(percent / 100.0))
}

/// Losses as in scenarios/accelerator/rtt-modulation.toml. The repair leaves about 67 packets after the loss.
fn repairs_lost() -> Loss {
    let pair = |n: u64| {
        let packet = 3_000 + 5_000 * n;
        [ScriptedLoss { packet, count: 1 }, ScriptedLoss { packet: packet + 60, count: 15 }]
    };
    Loss::Scripted((0..12).flat_map(pair).collect())
}

pub(super) fn report(pairs: &[Pair], measured: &Measured<'_>) -> (Section, Vec<Bound>) {
    let row = |pair: &Pair| {
        let mut row = vec![pair.name.clone().into()];
        row.extend(measured.pair(&pair.printed, &pair.improved));
        row
    };
    let mut columns = vec!["algorithm and path"];
    columns.extend(PAIR_COLUMNS);
    let section =
        Section { columns, rows: pairs.iter().map(row).collect(), ..Section::of("printed", "printed-pairs") };
    let least = |algorithm: &str| {
        let own = pairs.iter().filter(|pair| pair.name.starts_with(algorithm));
        let ratio = |pair: &Pair| {
            measured.sample(&pair.improved, GOODPUT).mean() / measured.sample(&pair.printed, GOODPUT).mean()
        };
        own.map(ratio).reduce(f64::min)
    };
    let bound = |algorithm: &str| {
        let name = format!("{algorithm}: ours over as printed, Mbit/s, least");
        Some(Bound::at_least(name, 0.97, least(algorithm)?).with_note("our choice of a bound"))
    };
    let bounds = ["DRWA", "RTT modulation"].into_iter().filter_map(bound).collect();
    (section, bounds)
}
