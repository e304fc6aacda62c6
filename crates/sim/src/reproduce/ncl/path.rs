//! The paths of Figs. 6 and 8 as far as they are links in a row. Their numbers are missing from the text: all are ours.

use paceline_path::random::{Probability, Random};
use paceline_path::{Delay, DelayStep, Jitter, LinkConfig, Loss, QueueLimit, RateProcess};
use paceline_wire::{Duration, Rate};

use crate::scenario::PathLink;

/// A wire, and a wireless last hop that loses packets and does not repeat them (Fig. 8a).
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct LastHop {
    /// Rate of the wireless hop, the bottleneck.
    pub mbps: f64,
    /// Round trip without queues.
    pub rtt_ms: u64,
    /// Packets of data lost on the air, after they have taken their time there. Our choice: ACKs are not, because the text has
    /// errors that make a sender believe in congestion, and a lost ACK among cumulative ones does not.
    pub error_percent: f64,
}

/// Our choice: what ns-2's queues hold.
const QUEUE_PACKETS: u32 = 50;
/// Of the wire before the wireless hop; a packet of 1,052 bytes takes 84 us.
const WIRE_MBPS: f64 = 100.0;
/// The base station's part of the round trip.
const HOP_RTT_MS: u64 = 2;

impl LastHop {
    /// Where the figure is drawn. Our choice: the rate of the paper's other wireless interfaces, 2 Mbit/s (Section V-C), and a
    /// round trip of a country's size.
    pub const DRAWN: LastHop = LastHop { mbps: 2.0, rtt_ms: 50, error_percent: 0.0 };

    pub(super) fn links(&self) -> Vec<PathLink> {
        let half = |ms: u64| Delay::Constant(Duration::from_micros(ms * 500));
        let wire_delay = half(self.rtt_ms.saturating_sub(HOP_RTT_MS));
        let wire = link(WIRE_MBPS, wire_delay);
        let down = LinkConfig { loss: error(self.error_percent), ..link(self.mbps, half(HOP_RTT_MS)) };
        let up = link(self.mbps, half(HOP_RTT_MS));
        vec![
            PathLink { name: "wire".into(), down: wire.clone(), up: wire },
            PathLink { name: "radio".into(), down, up },
        ]
    }
}

/// A wired bottleneck whose delay is drawn anew every 20 s (Fig. 8c).
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct DelayedPath {
    /// Rate of the bottleneck.
    pub mbps: f64,
    /// maxDy: the longest delay of one direction; the shortest is 50 ms.
    pub max_delay_ms: u64,
}

const MIN_DELAY_MS: u64 = 50;
const DELAY_STEP: Duration = Duration::from_secs(20);

impl DelayedPath {
    /// Where the figure is drawn. Our choice: as the wireless hop, so that figures can be compared.
    pub const DRAWN: DelayedPath = DelayedPath { mbps: 2.0, max_delay_ms: 100 };

    /// When the delay falls, later packets overtake, as on ns-2's links.
    pub(super) fn links(&self, seed: u64, duration: Duration) -> Vec<PathLink> {
        let mut random = Random::named(seed, "delays");
        let steps = duration.as_nanos() / DELAY_STEP.as_nanos() + 1;
        let span_us = self.max_delay_ms.saturating_sub(MIN_DELAY_MS) * 1_000;
        let step = |number: u64| DelayStep {
            at: DELAY_STEP * number,
            delay: Duration::from_micros(MIN_DELAY_MS * 1_000 + random.below(span_us + 1)),
        };
        let delay = Delay::Steps((0..steps).map(step).collect());
        let jitter = Some(Jitter { up_to: Duration::ZERO, keep_order: false });
        let config = LinkConfig { jitter, ..link(self.mbps, delay) };
        vec![PathLink { name: "bottleneck".into(), down: config.clone(), up: config }]
    }
}

/// Several flows through one wired bottleneck without errors (Fig. 6).
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Dumbbell {
    /// Rate of the bottleneck.
    pub mbps: f64,
    /// Round trip without queues.
    pub rtt_ms: u64,
    /// How many flows.
    pub flows: u32,
}

impl Dumbbell {
    /// Where the figure is drawn: our choice.
    pub const DRAWN: Dumbbell = Dumbbell { mbps: 10.0, rtt_ms: 50, flows: 1 };

    pub(super) fn links(&self) -> Vec<PathLink> {
        let config = link(self.mbps, Delay::Constant(Duration::from_micros(self.rtt_ms * 500)));
        vec![PathLink { name: "bottleneck".into(), down: config.clone(), up: config }]
    }
}

fn link(mbps: f64, delay: Delay) -> LinkConfig {
    LinkConfig {
        rate: RateProcess::Constant(Rate::from_mbps(mbps)),
        queue: QueueLimit::Packets(QUEUE_PACKETS),
        delay,
        ..LinkConfig::default()
    }
}

fn error(percent: f64) -> Loss {
    match percent > 0.0 {
        true => Loss::Independent(Probability::from_fraction(percent / 100.0)),
        false => Loss::None,
    }
}
