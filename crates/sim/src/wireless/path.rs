//! The paths. The texts do not tell rates, delays and queues. So these are ours: each is stated, and each can be set.

use paceline_adhoc::{AdHocConfig, Movement};
use paceline_path::random::{Probability, Random};
use paceline_path::{
    Delay, DelayStep, Jitter, LinkConfig, LinkRetransmission, Loss, QueueLimit, RateProcess,
};
use paceline_tcp::Config;
use paceline_wire::{Duration, Rate};

use crate::scenario::{AdHocAt, Flow, PathLink, Scenario, TcpFlow, Transport};

/// A path and its parameters.
#[derive(Clone, Debug, PartialEq)]
pub enum WirelessPath {
    /// Wires, then one wireless link that loses packets and does not retransmit them.
    LastHop(LastHop),
    /// Wireless links one after the other. They retransmit lost packets, and so reorder.
    Hops(WirelessHops),
    /// A wired bottleneck whose delay is drawn anew at intervals.
    VaryingDelay(VaryingDelay),
    /// Several flows over one wired bottleneck.
    Dumbbell(Dumbbell),
    /// Stations that move.
    AdHoc(AdHocPath),
}

/// Wires, then a wireless link.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct LastHop {
    /// Rate of the wireless link, both ways.
    pub mbps: f64,
    /// Round trip of the whole path, without queues.
    pub rtt: Duration,
    /// Share of packets that the wireless link loses.
    pub error: f64,
    /// If true, packets are lost both ways, not only towards the receiver.
    pub error_both_ways: bool,
    /// Queue before the wireless link.
    pub queue_packets: u32,
}

/// Wireless links in a row.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct WirelessHops {
    /// Number of links.
    pub hops: u32,
    /// Rate of each link, both ways.
    pub mbps: f64,
    /// Delay of each link, one way.
    pub delay: Duration,
    /// Share of packets lost in each attempt of each link, both ways.
    pub error: f64,
    /// Number of retransmissions by a link.
    pub retries: u8,
    /// Queue before each link.
    pub queue_packets: u32,
}

/// A bottleneck whose delay varies.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct VaryingDelay {
    /// Rate of the bottleneck.
    pub mbps: f64,
    /// The shortest delay of the bottleneck, one way.
    pub delay_min: Duration,
    /// The longest delay of the bottleneck, one way.
    pub delay_max: Duration,
    /// Interval at which the delay is drawn anew.
    pub every: Duration,
    /// If true, the delay on the way back varies, too. Otherwise it is always the shortest one. ns-2 changes one
    /// direction (ns-lib.tcl, `delay`: simplex).
    pub both_ways: bool,
    /// Delay of the rest of the path, there and back.
    pub rest: Duration,
    /// If true, packets overtake others when the delay falls, as in ns-2 (DelayLink, avoidReordering_ false, its
    /// default).
    pub overtake: bool,
    /// Queue before the bottleneck.
    pub queue_packets: u32,
}

/// Flows that share a bottleneck.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Dumbbell {
    /// Number of flows.
    pub flows: u32,
    /// Rate of the bottleneck.
    pub mbps: f64,
    /// Round trip of the whole path, without queues.
    pub rtt: Duration,
    /// Queue before the bottleneck.
    pub queue_packets: u32,
}

/// A path between two stations of an ad-hoc network.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct AdHocPath {
    /// Its stations and their radio.
    pub config: AdHocConfig,
}

/// Our choice for the wireless parts: 2 Mbit/s, the interface rate of the ad-hoc network. The round trip is 100 ms.
/// Queues have 50 packets, ns-2's default.
impl Default for LastHop {
    fn default() -> Self {
        let rtt = Duration::from_millis(100);
        LastHop { mbps: 2.0, rtt, error: 0.0, error_both_ways: true, queue_packets: 50 }
    }
}

/// Our choice: as the last hop, with the round trip in four equal parts.
impl Default for WirelessHops {
    fn default() -> Self {
        let delay = Duration::from_micros(12_500);
        WirelessHops { hops: 4, mbps: 2.0, delay, error: 0.0, retries: 3, queue_packets: 50 }
    }
}

/// Our choice: 2 Mbit/s and a queue of 50 packets.
impl Default for VaryingDelay {
    fn default() -> Self {
        VaryingDelay {
            mbps: 2.0,
            delay_min: Duration::from_millis(50),
            delay_max: Duration::from_millis(300),
            every: Duration::from_secs(20),
            both_ways: false,
            rest: Duration::from_millis(10),
            overtake: true,
            queue_packets: 50,
        }
    }
}

/// Our choice: 10 Mbit/s, so that ten flows have room, and a queue of one round trip.
impl Default for Dumbbell {
    fn default() -> Self {
        Dumbbell { flows: 2, mbps: 10.0, rtt: Duration::from_millis(100), queue_packets: 83 }
    }
}

impl AdHocPath {
    /// A network with this highest speed, in metres per second.
    pub fn with_speed(speed: f64) -> Self {
        let mut path = AdHocPath::default();
        if let Movement::Waypoint { speed_min, speed_max, .. } = &mut path.config.movement {
            *speed_max = speed;
            *speed_min = speed_min.min(speed);
        }
        path
    }
}

/// Rate of the wires beside the bottleneck.
const WIRE_MBPS: f64 = 100.0;
const RETRIES: u32 = 1_000;

impl WirelessPath {
    /// The names that [`named`](Self::named) knows.
    pub const NAMES: [&str; 5] = ["last-hop", "hops", "varying-delay", "dumbbell", "ad-hoc"];

    /// Returns a path by its name. `value` is the one that its experiments vary:
    ///
    /// - `last-hop` and `hops`: the error as a fraction.
    /// - `varying-delay`: the longest delay in seconds.
    /// - `dumbbell`: the number of flows.
    /// - `ad-hoc`: the highest speed in metres per second.
    pub fn named(name: &str, value: f64) -> Option<Self> {
        Some(match name {
            "last-hop" => WirelessPath::LastHop(LastHop { error: value, ..LastHop::default() }),
            "hops" => WirelessPath::Hops(WirelessHops { error: value, ..WirelessHops::default() }),
            "varying-delay" => {
                let delay_max = Duration::from_secs_f64(value);
                WirelessPath::VaryingDelay(VaryingDelay { delay_max, ..VaryingDelay::default() })
            }
            "dumbbell" => WirelessPath::Dumbbell(Dumbbell { flows: value as u32, ..Dumbbell::default() }),
            "ad-hoc" => WirelessPath::AdHoc(AdHocPath::with_speed(value)),
            _ => return None,
        })
    }

    /// Its name.
    pub fn name(&self) -> &'static str {
        match self {
            WirelessPath::LastHop(_) => Self::NAMES[0],
            WirelessPath::Hops(_) => Self::NAMES[1],
            WirelessPath::VaryingDelay(_) => Self::NAMES[2],
            WirelessPath::Dumbbell(_) => Self::NAMES[3],
            WirelessPath::AdHoc(_) => Self::NAMES[4],
        }
    }

    /// Rate of the slowest link, in Mbit/s of IP bytes.
    pub fn mbps(&self) -> f64 {
        match self {
            WirelessPath::LastHop(path) => path.mbps,
            WirelessPath::Hops(path) => path.mbps,
            WirelessPath::VaryingDelay(path) => path.mbps,
            WirelessPath::Dumbbell(path) => path.mbps,
            WirelessPath::AdHoc(path) => path.config.timing.data_rate.as_bytes_per_sec() as f64 * 8.0 / 1e6,
        }
    }

    /// The links. The first one is called `wired`, the last one `radio`. `seed` and `duration` belong to the run.
    pub fn links(&self, seed: u64, duration: Duration) -> Vec<PathLink> {
        match self {
            WirelessPath::LastHop(path) => path.links(),
            WirelessPath::Hops(path) => path.links(),
            WirelessPath::VaryingDelay(path) => path.links(seed, duration),
            WirelessPath::Dumbbell(path) => path.links(),
            WirelessPath::AdHoc(_) => vec![wire("wired", Duration::ZERO), wire("radio", Duration::ZERO)],
        }
    }

    /// The ad-hoc network between the links, if there is one.
    pub fn ad_hoc(&self) -> Option<AdHocAt> {
        match self {
            WirelessPath::AdHoc(path) => Some(AdHocAt { links_before: 1, config: path.config.clone() }),
            _ => None,
        }
    }

    /// Bulk flows over the path: one, or the number of a dumbbell's flows. They begin within the first second.
    pub fn scenario(&self, sender: &Config, receiver: &Config, seed: u64, duration: Duration) -> Scenario {
        let flows = if let WirelessPath::Dumbbell(path) = self { path.flows } else { 1 };
        // As in ns-2, no connection gives up while the network is in two parts.
        let patient = |config: &Config| Config { retries: RETRIES, syn_retries: RETRIES, ..*config };
        let tcp = TcpFlow { server: patient(sender), client: patient(receiver), ..TcpFlow::default() };
        // The seed draws the starts, so that flows do not meet in the same way in every run.
        let mut starts = Random::named(seed, "starts of flows");
        let flow = |number: u32| Flow {
            name: format!("flow{number}"),
            start: if number == 0 { Duration::ZERO } else { starts.duration_up_to(Duration::from_secs(1)) },
            transport: Transport::Tcp(Box::new(tcp.clone())),
            ..Flow::default()
        };
        Scenario {
            duration,
            seed,
            path: self.links(seed, duration),
            ad_hoc: self.ad_hoc(),
            flows: (0..flows).map(flow).collect(),
            patience: Duration::ZERO,
            ..Scenario::default()
        }
    }
}

impl LastHop {
    fn links(&self) -> Vec<PathLink> {
        // A tenth of the delay is wireless.
        let wireless = self.rtt / 20;
        let up_error = if self.error_both_ways { self.error } else { 0.0 };
        let link =
            |error| LinkConfig { loss: lossy(error), ..limited(self.mbps, wireless, self.queue_packets) };
        let hop = PathLink { name: "radio".into(), down: link(self.error), up: link(up_error) };
        vec![wire("wired", self.rtt / 2 - wireless), hop]
    }
}

impl WirelessHops {
    fn links(&self) -> Vec<PathLink> {
        let link = LinkConfig {
            loss: lossy(self.error),
            // The link layer's acknowledgement takes a round trip of the link.
            link_retransmission: Some(LinkRetransmission { limit: self.retries, after: self.delay * 2 }),
            ..limited(self.mbps, self.delay, self.queue_packets)
        };
        let hop = |number| {
            let name = if number == self.hops { "radio".into() } else { format!("hop{number}") };
            PathLink { name, down: link.clone(), up: link.clone() }
        };
        std::iter::once(wire("wired", Duration::ZERO)).chain((1..=self.hops).map(hop)).collect()
    }
}

impl VaryingDelay {
    fn links(&self, seed: u64, duration: Duration) -> Vec<PathLink> {
        let mut random = Random::named(seed, "delays of the bottleneck");
        let count = duration.as_nanos() / self.every.as_nanos().max(1) + 1;
        let steps: Vec<DelayStep> = (0..count)
            .map(|number| {
                let more = random.duration_up_to(self.delay_max.saturating_sub(self.delay_min));
                DelayStep { at: self.every * number, delay: self.delay_min + more }
            })
            .collect();
        // Zero jitter that does not keep the order lets each packet have its own delay.
        let jitter = self.overtake.then_some(Jitter { up_to: Duration::ZERO, keep_order: false });
        let link =
            |delay| LinkConfig { delay, jitter, ..limited(self.mbps, Duration::ZERO, self.queue_packets) };
        let down = link(Delay::Steps(steps));
        let up = if self.both_ways { down.clone() } else { link(Delay::Constant(self.delay_min)) };
        let bottleneck = PathLink { name: "radio".into(), down, up };
        vec![wire("wired", self.rest / 2), bottleneck]
    }
}

impl Dumbbell {
    fn links(&self) -> Vec<PathLink> {
        let bottleneck = self.rtt * 4 / 10;
        let link = limited(self.mbps, bottleneck, self.queue_packets);
        let hop = PathLink { name: "radio".into(), down: link.clone(), up: link };
        vec![wire("wired", self.rtt / 2 - bottleneck), hop]
    }
}

fn limited(mbps: f64, delay: Duration, queue_packets: u32) -> LinkConfig {
    LinkConfig {
        rate: RateProcess::Constant(Rate::from_mbps(mbps)),
        queue: QueueLimit::Packets(queue_packets.max(1)),
        delay: Delay::Constant(delay),
        ..LinkConfig::default()
    }
}

fn lossy(error: f64) -> Loss {
    if error > 0.0 { Loss::Independent(Probability::from_fraction(error)) } else { Loss::None }
}

/// A wire, the same both ways. It never drops.
fn wire(name: &str, delay: Duration) -> PathLink {
    let rate = RateProcess::Constant(Rate::from_mbps(WIRE_MBPS));
    let link = LinkConfig { rate, delay: Delay::Constant(delay), ..LinkConfig::default() };
    PathLink { name: name.into(), down: link.clone(), up: link }
}
