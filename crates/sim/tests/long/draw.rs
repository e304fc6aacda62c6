//! A seed's profile, sender, receiver and link.

use std::fmt;

use paceline_gateway::config::{Profile, QueueBoundMode, RetransmissionMode, RttModulationMode};
use paceline_path::random::{Probability, Random};
use paceline_path::{Delay, LinkConfig, Loss, QueueLimit, RateProcess};
use paceline_sim::scenario::{Flow, GatewayAt, Load, PathLink, Scenario, TcpFlow, Transport};
use paceline_sim::seed_of;
use paceline_tcp::{Config, CongestionName, DetectionName, HystartName, ReceiveBuffer, ReductionName};
use paceline_wire::{Duration, Rate};

/// The shortest duration.
const SECONDS: u64 = 1_000;

/// The run that a seed draws.
#[derive(Clone)]
pub(crate) struct Drawn {
    pub(crate) profile: Profile,
    pub(crate) scenario: Scenario,
    sender: Config,
    receive_buffer: Option<u32>,
    rate_mbps: f64,
    rtt_ms: u64,
    pub(crate) lossy: bool,
    /// Length of the link's queue, as a multiple of the bytes that the path holds.
    depth: f64,
}

/// All profiles but the one that does nothing.
pub(crate) fn profiles() -> impl Iterator<Item = Profile> {
    Profile::ALL.into_iter().filter(|&profile| profile != Profile::Null)
}

/// True if the gateway repairs the link's losses. If not, the server's timers decide how long the client waits.
pub(crate) fn repairs(profile: Profile) -> bool {
    profile.config().retransmission.mode != RetransmissionMode::None
}

/// True if the gateway bounds the queue.
pub(crate) fn bounds(profile: Profile) -> bool {
    profile.config().queue_bound.mode == QueueBoundMode::Adaptive
}

fn one_of<T: Copy>(random: &mut Random, all: &[T]) -> T {
    all[random.below(all.len() as u64) as usize]
}

fn flip(random: &mut Random) -> bool {
    random.chance(Probability::from_fraction(0.5))
}

fn draw_sender(random: &mut Random) -> Config {
    Config {
        congestion: one_of(random, CongestionName::DRAWN),
        hystart: one_of(random, HystartName::ALL),
        reduction: one_of(random, ReductionName::DRAWN),
        detection: one_of(random, DetectionName::ALL),
        frto: flip(random),
        ..Config::default()
    }
}

/// Draws a buffer: fixed and small as in the thesis, fixed and large, or tuned by Linux. If nothing bounds the queue,
/// it is fixed.
fn draw_receiver(random: &mut Random, profile: Profile) -> (Config, Option<u32>) {
    let buffers = [Some(17_520), Some(65_535), Some(1 << 20), None];
    let buffer = one_of(random, if bounds(profile) { &buffers } else { &buffers[..3] });
    let client = Config {
        receive_buffer: buffer.map_or(Config::default().receive_buffer, ReceiveBuffer::Fixed),
        window_scaling: buffer.is_none_or(|bytes| bytes > 65_535),
        timestamps: flip(random),
        sack: random.below(4) != 0,
        ..Config::default()
    };
    (client, buffer)
}

pub(crate) fn draw(seed: u64) -> Drawn {
    let random = &mut Random::named(seed, "long");
    let profile = one_of(random, &profiles().collect::<Vec<_>>());
    let sender = draw_sender(random);
    let (client, receive_buffer) = draw_receiver(random, profile);
    let rate_mbps = 0.5 * 16f64.powf(random.unit());
    let rtt_ms = 20 + random.below(181);
    let depth = one_of(random, &[1.0, 3.0, 10.0]);
    let lossy = flip(random);
    let held = rate_mbps * 1e6 / 8.0 * rtt_ms as f64 / 1e3;
    // Without a bound, the client's window may wait in the queue (Eq. 10). While a hole is repaired, all data beyond it
    // leaves again at once (Eq. 12). This is another window and the content of the path. The text has a small window
    // before a large queue.
    let unbounded = match receive_buffer.filter(|_| !bounds(profile)) {
        Some(window) => 2.0 * f64::from(window) + held,
        None => 0.0,
    };
    let queue = QueueLimit::Bytes((held * depth).max(30_000.0).max(unbounded) as u64);
    let path = path(rate_mbps, rtt_ms, queue, lossy);
    let tcp = TcpFlow { server: sender, client, load: Load::Bulk, ..TcpFlow::default() };
    let duration = Duration::from_secs(SECONDS + random.below(500));
    let scenario = scenario(profile, path, tcp, duration, seed);
    Drawn { profile, scenario, sender, receive_buffer, rate_mbps, rtt_ms, lossy, depth }
}

/// The path and the client of the scenario `blackout`, for 1,500 s. With `steps`, the sender is that of the scenario
/// `steps`.
pub(crate) fn of_the_text(profile: Profile, steps: bool, lossy: bool) -> Scenario {
    let of_steps = Config {
        detection: DetectionName::Rfc6675,
        reduction: ReductionName::Rh,
        hystart: HystartName::Off,
        ..Config::default()
    };
    let server = if steps { of_steps } else { Config::default() };
    let client = Config {
        receive_buffer: ReceiveBuffer::Fixed(17_520),
        window_scaling: false,
        timestamps: false,
        ..Config::default()
    };
    let tcp = TcpFlow { server, client, ..TcpFlow::default() };
    let path = path(7.2, 100, QueueLimit::Packets(1_000), lossy);
    scenario(profile, path, tcp, Duration::from_secs(1_500), 1)
}

/// A wire of 10 ms, and the link.
fn path(rate_mbps: f64, rtt_ms: u64, queue: QueueLimit, lossy: bool) -> Vec<PathLink> {
    let delayed = |ms: u64| LinkConfig {
        delay: Delay::Constant(Duration::from_micros(ms * 500)),
        ..LinkConfig::default()
    };
    let wired = PathLink { name: "wired".into(), down: delayed(10), up: delayed(10) };
    let loss = match lossy {
        true => Loss::Independent(Probability::from_fraction(0.0001)),
        false => Loss::None,
    };
    let rate = RateProcess::Constant(Rate::from_mbps(rate_mbps));
    let down = LinkConfig { rate, queue, loss, ..delayed(rtt_ms) };
    vec![wired, PathLink { name: "radio".into(), down, up: delayed(rtt_ms) }]
}

fn scenario(profile: Profile, path: Vec<PathLink>, tcp: TcpFlow, duration: Duration, seed: u64) -> Scenario {
    Scenario {
        duration,
        seed: seed_of(seed, "run"),
        path,
        gateway: Some(GatewayAt { links_before: 1, config: profile.config() }),
        flows: vec![Flow { transport: Transport::Tcp(Box::new(tcp)), ..Flow::default() }],
        ..Scenario::default()
    }
}

impl Drawn {
    /// Time that this many bytes take on the link.
    pub(crate) fn ms_for(&self, bytes: f64) -> f64 {
        bytes * 8.0 / 1e3 / self.rate_mbps
    }

    /// True if only one hole is repaired per round trip. A client without SACK reports no more (RFC 6582). Only Eq.
    /// (12) repeats what the client discards behind a hole, and `local` does not have it.
    pub(crate) fn has_a_hole_a_round_trip(&self) -> bool {
        let Transport::Tcp(tcp) = &self.scenario.flows[0].transport else { return false };
        self.profile == Profile::Local && !tcp.client.sack
    }

    /// The same run without RTT modulation.
    pub(crate) fn without_modulation(&self) -> Drawn {
        let mut drawn = self.clone();
        if let Some(gateway) = &mut drawn.scenario.gateway {
            gateway.config.rtt_modulation.mode = RttModulationMode::None;
        }
        drawn
    }

    /// The same run with a queue of ten windows at least, if nothing bounds it. The text has one of 85 windows.
    pub(crate) fn with_a_long_queue(&self) -> Option<Drawn> {
        let window = self.receive_buffer.filter(|_| !bounds(self.profile))?;
        let mut drawn = self.clone();
        if let QueueLimit::Bytes(bytes) = &mut drawn.scenario.path[1].down.queue {
            *bytes = (*bytes).max(10 * u64::from(window));
        }
        Some(drawn)
    }

    /// The same run with RFC 6675's loss detection, if the sender's is one of a paper.
    pub(crate) fn with_standard_detection(&self) -> Option<Drawn> {
        use DetectionName::{Fack, RackTlp, Rfc6675};
        if matches!(self.sender.detection, Fack | RackTlp | Rfc6675) {
            return None;
        }
        let mut drawn = self.clone();
        drawn.sender.detection = Rfc6675;
        if let Transport::Tcp(tcp) = &mut drawn.scenario.flows[0].transport {
            tcp.server = drawn.sender;
        }
        Some(drawn)
    }

    /// A round trip with the longest waits.
    pub(crate) fn longest_rtt_ms(&self, bound_ms: f64) -> f64 {
        let window_ms = self.receive_buffer.map_or(bound_ms, |bytes| self.ms_for(f64::from(bytes)));
        self.rtt_ms as f64 + if bounds(self.profile) { bound_ms.min(window_ms) } else { window_ms }
    }
}

impl fmt::Display for Drawn {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Config { congestion, reduction, detection, hystart, .. } = self.sender;
        let Transport::Tcp(tcp) = &self.scenario.flows[0].transport else { return Ok(()) };
        let Config { sack, timestamps, .. } = tcp.client;
        write!(
            f,
            "{:?}, {congestion}, {reduction}, {detection}, hystart {hystart}, buffer {:?}, sack {sack}, timestamps {timestamps}, {:.2} Mbit/s, {} ms, queue {} x, {}",
            self.profile,
            self.receive_buffer,
            self.rate_mbps,
            self.rtt_ms,
            self.depth,
            if self.lossy { "0.01 %" } else { "0 %" },
        )
    }
}
