//! A download as a scenario.

use paceline_gateway::GatewayConfig;
use paceline_gateway::config::{VirtualWindowConfig, VirtualWindowMode};
use paceline_path::random::Probability;
use paceline_path::{Delay, DelayStep, GilbertElliott, LinkConfig, Loss, RateProcess, RateStep};
use paceline_tcp::{
    Config, CongestionName, DetectionName, HystartName, ReceiveBuffer, ReceiveWindowName, ReductionName,
    ValidationName,
};
use paceline_wire::{Duration, Rate};

use super::network::{Network, half};
use crate::scenario::{Flow, GatewayAt, Load, PathLink, Scenario, TcpFlow, Transport};
use crate::workload::SizeRange;

/// One run of the text: a phone downloads from a server.
#[derive(Clone, Debug, PartialEq)]
pub struct Experiment {
    /// The network of the phone.
    pub network: Network,
    /// The rate of its downlink.
    pub signal: Signal,
    /// Round trip without queues.
    pub rtt_ms: u64,
    /// The window that the phone advertises.
    pub window: Window,
    /// The sender.
    pub server: Server,
    /// Losses between the server and the network.
    pub middlebox: Option<Middlebox>,
    /// Web objects beside the download.
    pub objects: Option<Objects>,
    /// If true, there is a download.
    pub download: bool,
    /// Size of the download; `None` for one without end.
    pub bytes: Option<u64>,
    /// Duration of flows without end.
    pub duration: Duration,
    /// If true, a gateway before the radio lowers the window on behalf of the phone.
    pub gateway: bool,
}

/// The receive window that the phone advertises.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Window {
    /// The algorithm.
    pub name: ReceiveWindowName,
    /// `tcp_rmem_max`, for algorithms that have it.
    pub rmem_max: u32,
    /// Lambda of DRWA.
    pub lambda_percent: u32,
}

/// The sender.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Server {
    /// CUBIC, as in all of the text but Fig. 6.
    Cubic,
    /// Fig. 6.
    Vegas,
}

/// The rate of the downlink.
#[derive(Clone, Debug, PartialEq)]
pub enum Signal {
    /// Section 5.1: -75 to -87 dBm.
    Good,
    /// Fig. 16: -95 to -105 dBm.
    Weak,
    /// A constant rate, in Mbit/s.
    Rate(f64),
    /// Fig. 9: the signal fades from good to weak within 40 s and comes back within 40 s.
    Fading,
    /// Good, but after 40 s the round trip is multiplied by this factor.
    LongerAfter40s(u64),
    /// A recorded or generated rate.
    Process(RateProcess),
}

/// Losses in front of the network, and the middlebox behind them.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Middlebox {
    /// Share of packets lost, in bursts.
    pub loss_percent: f64,
    /// Mean length of a burst of losses, in packets.
    pub burst_packets: u32,
    /// If true, the middlebox holds packets that are out of order.
    pub holds: bool,
}

/// Figs. 4 and 11.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Objects {
    /// Size of each object.
    pub bytes: u64,
    /// Number of objects, one after the other.
    pub count: u32,
}

/// Our choice: a weak signal has a fifth of the rate. Its round trip is longer by half, because the radio retransmits
/// more.
const WEAK_SHARE: f64 = 0.2;
const WEAK_RTT_PERCENT: u64 = 150;
/// Linux 2.6.35 (Section 5.1) starts with three segments (RFC 3390).
const INITIAL_CWND: u32 = 3;
/// A phone's first window: Linux's smallest one without a need for more (second value of `tcp_rmem`).
const INITIAL_BYTES: u32 = 65_536;
/// DRWA has no `tcp_rmem_max`. Only memory limits its window. Our choice: 8 MB.
const BUFFER_BYTES: u32 = 8 << 20;
/// The largest window with a shift of 9. With too large a shift, the unit exceeds a segment. Then a window that shrinks
/// segment by segment is always rounded up to its old value (RFC 7323, Section 2.4).
const LARGE_BUFFER_BYTES: u32 = 65_535 << 9;
/// Our choice: this part of the round trip lies between the server and the gateway.
const GATEWAY_RTT_MS: u64 = 20;
const FADE: Duration = Duration::from_secs(40);
const FADE_STEPS: u64 = 80;

impl Window {
    /// The window of an unmodified phone: Algorithm 2.
    pub fn clamped(rmem_max: u32) -> Window {
        Window { name: ReceiveWindowName::DrsClamped, rmem_max, lambda_percent: 300 }
    }

    /// DRWA with the lambda of the text.
    pub fn drwa() -> Window {
        Window { name: ReceiveWindowName::Drwa, rmem_max: BUFFER_BYTES, lambda_percent: 300 }
    }

    /// DRWA with another lambda.
    pub fn lambda(percent: u32) -> Window {
        Window { lambda_percent: percent, ..Window::drwa() }
    }

    /// A window so large that its limit does not matter (Fig. 7).
    pub fn unlimited() -> Window {
        Window::clamped(LARGE_BUFFER_BYTES)
    }

    fn config(&self) -> Config {
        let initial = INITIAL_BYTES.min(self.rmem_max);
        Config {
            receive_buffer: ReceiveBuffer::Auto { initial, max: self.rmem_max },
            receive_window: self.name,
            drwa_lambda_percent: self.lambda_percent,
            // Since 4.18 Linux sends fewer duplicate ACKs.
            sack_compression: false,
            ..Config::default()
        }
    }
}

impl Server {
    /// Linux 2.6.35: FACK, rate halving, no tail loss probes.
    fn config(self) -> Config {
        Config {
            congestion: match self {
                Server::Cubic => CongestionName::Cubic,
                Server::Vegas => CongestionName::Vegas,
            },
            detection: DetectionName::Fack,
            reduction: ReductionName::Rh,
            hystart: HystartName::Linux310,
            validation: ValidationName::Linux310,
            initial_cwnd: INITIAL_CWND,
            ..Config::default()
        }
    }
}

impl Experiment {
    /// A download from a server nearby, for three minutes (Section 5.3).
    pub fn near(network: Network, window: Window) -> Experiment {
        Experiment {
            network,
            signal: Signal::Good,
            rtt_ms: network.near_rtt_ms(),
            window,
            server: Server::Cubic,
            middlebox: None,
            objects: None,
            download: true,
            bytes: None,
            duration: Duration::from_secs(180),
            gateway: false,
        }
    }

    /// A download over a link that varies. Its buffer is enough for any rate. Our choice: LTE's uplink, 100 ms.
    pub fn over(rate: RateProcess, duration: Duration, window: Window) -> Experiment {
        let window = Window { rmem_max: LARGE_BUFFER_BYTES, ..window };
        let near = Experiment::near(Network::VerizonLte, window);
        Experiment { signal: Signal::Process(rate), rtt_ms: 100, duration, ..near }
    }

    /// True if a run depends on its seed.
    pub fn is_random(&self) -> bool {
        self.middlebox.is_some()
    }

    /// Mean rate of the downlink.
    pub fn mbps(&self) -> f64 {
        match &self.signal {
            Signal::Weak => self.network.mbps() * WEAK_SHARE,
            Signal::Rate(mbps) => *mbps,
            Signal::Process(rate) => {
                rate.mean_rate(Duration::ZERO, self.duration).map_or(f64::NAN, |rate| rate.as_mbps())
            }
            _ => self.network.mbps(),
        }
    }

    /// Round trip without queues, at the start.
    pub fn base_rtt_ms(&self) -> u64 {
        match self.signal {
            Signal::Weak => self.rtt_ms * WEAK_RTT_PERCENT / 100,
            _ => self.rtt_ms,
        }
    }

    /// The experiment as a scenario.
    pub fn scenario(&self, seed: u64) -> Scenario {
        let mut path: Vec<PathLink> = self.middlebox.iter().map(Middlebox::link).collect();
        let good = if matches!(self.signal, Signal::Process(_)) { self.mbps() } else { self.network.mbps() };
        let gateway = self.gateway.then(|| GatewayAt { links_before: path.len() + 1, config: lowering() });
        let (mut delay, wired) = (self.delay(), Delay::Constant(half(GATEWAY_RTT_MS)));
        if let (true, Delay::Constant(all)) = (self.gateway, &mut delay) {
            *all = all.saturating_sub(half(GATEWAY_RTT_MS));
            let link = LinkConfig { delay: wired, ..LinkConfig::default() };
            path.push(PathLink { name: "wired".into(), down: link.clone(), up: link });
        }
        path.push(self.network.link(self.rate(), good, delay));
        let tcp = |load| TcpFlow {
            server: self.server.config(),
            client: self.window.config(),
            load,
            ..TcpFlow::default()
        };
        let load = self.bytes.map_or(Load::Bulk, |bytes| Load::Size(SizeRange::exactly(bytes)));
        let download = Flow { transport: Transport::Tcp(Box::new(tcp(load))), ..Flow::default() };
        let mut flows: Vec<Flow> = self.download.then_some(download).into_iter().collect();
        flows.extend(self.objects.map(|objects| Flow {
            name: "object".into(),
            transport: Transport::Tcp(Box::new(tcp(Load::Size(SizeRange::exactly(objects.bytes))))),
            start: OBJECTS_AFTER,
            count: objects.count,
            sequential: true,
            interval: OBJECTS_INTERVAL,
            ..Flow::default()
        }));
        Scenario { duration: self.duration, seed, path, gateway, flows, ..Scenario::default() }
    }

    fn rate(&self) -> RateProcess {
        let constant = |mbps| RateProcess::Constant(Rate::from_mbps(mbps));
        match &self.signal {
            Signal::Process(rate) => rate.clone(),
            Signal::Fading => RateProcess::Steps((0..=2 * FADE_STEPS).map(|n| self.faded(n)).collect()),
            _ => constant(self.mbps()),
        }
    }

    /// Step `n` of the fading signal. The signal falls by the same number of decibels with every step. So the rate
    /// falls by the same factor.
    fn faded(&self, n: u64) -> RateStep {
        let towards = n.min(2 * FADE_STEPS - n) as f64 / FADE_STEPS as f64;
        let rate = Rate::from_mbps(self.network.mbps() * WEAK_SHARE.powf(towards));
        RateStep { at: FADE.mul_ratio(n, FADE_STEPS), rate }
    }

    fn delay(&self) -> Delay {
        let delay = half(self.base_rtt_ms());
        match self.signal {
            Signal::LongerAfter40s(times) => Delay::Steps(vec![
                DelayStep { at: Duration::ZERO, delay },
                DelayStep { at: FADE, delay: delay * times },
            ]),
            _ => Delay::Constant(delay),
        }
    }
}

/// A gateway that only lowers the window: DRWA on behalf of the client.
fn lowering() -> GatewayConfig {
    let off = GatewayConfig::all_off();
    let virtual_window = VirtualWindowConfig { mode: VirtualWindowMode::Drwa, ..off.virtual_window };
    GatewayConfig { virtual_window, ..off }
}

impl Middlebox {
    fn link(&self) -> PathLink {
        let loss = Probability::from_fraction(self.loss_percent / 100.0);
        let down = LinkConfig {
            loss: Loss::GilbertElliott(GilbertElliott::bursts(loss, self.burst_packets)),
            hold_out_of_order: self.holds,
            ..LinkConfig::default()
        };
        PathLink { name: "wired".into(), down, up: LinkConfig::default() }
    }
}

/// Our choice: by then, the download has long run at its usual rate.
const OBJECTS_AFTER: Duration = Duration::from_secs(20);
/// Our choice.
const OBJECTS_INTERVAL: Duration = Duration::from_millis(500);
