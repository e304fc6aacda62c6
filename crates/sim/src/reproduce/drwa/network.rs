//! The networks, as links. The text gives no rates, no buffers and no propagation delays.

use paceline_path::{Delay, LinkConfig, QueueLimit, RateProcess};
use paceline_wire::{Duration, Rate};

use super::published::RmemMax;
use crate::scenario::PathLink;

/// A network of the text.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Network {
    /// AT&T HSPA+.
    AttHspa,
    /// Verizon EVDO.
    VerizonEvdo,
    /// Sprint EVDO.
    SprintEvdo,
    /// Verizon LTE.
    VerizonLte,
}

impl Network {
    /// All networks, in the order of Table 3.
    pub const ALL: [Network; 4] =
        [Network::AttHspa, Network::VerizonEvdo, Network::SprintEvdo, Network::VerizonLte];

    /// The name in Table 3.
    pub fn name(self) -> &'static str {
        match self {
            Network::AttHspa => "AT&T HSPA+",
            Network::VerizonEvdo => "Verizon EVDO",
            Network::SprintEvdo => "Sprint EVDO",
            Network::VerizonLte => "Verizon LTE",
        }
    }

    /// `tcp_rmem_max` of the network's phone in Table 1. EVDO is not named there and has the default.
    pub fn rmem_max(self) -> u32 {
        let (carrier, network) = match self {
            Network::AttHspa => ("AT&T", "HSPA+"),
            Network::VerizonEvdo | Network::SprintEvdo => ("Sprint", "Default"),
            Network::VerizonLte => ("Verizon", "LTE"),
        };
        let found =
            RmemMax::all().into_iter().find(|cell| cell.carrier == carrier && cell.network == network);
        found.map_or(0, |cell| cell.bytes)
    }

    /// Rate of the downlink in IP bytes. Each network has one rate, fitted to Table 3 (`reproduce drwa --part fit`).
    pub fn mbps(self) -> f64 {
        match self {
            Network::AttHspa => 4.85,
            Network::VerizonEvdo => 1.75,
            Network::SprintEvdo => 2.05,
            Network::VerizonLte => 25.4,
        }
    }

    /// Our choice: an uplink that ACKs never fill.
    fn up_mbps(self) -> f64 {
        match self {
            Network::AttHspa => 1.0,
            Network::VerizonEvdo | Network::SprintEvdo => 0.5,
            Network::VerizonLte => 5.0,
        }
    }

    /// Round trip to a server nearby, without queues. Our choice: ordinary values for each generation. The text hints
    /// (Fig. 3) that 110,208 bytes fill HSPA+ and 262,144 bytes fill LTE.
    pub fn near_rtt_ms(self) -> u64 {
        match self {
            Network::AttHspa => 80,
            Network::VerizonEvdo => 90,
            Network::SprintEvdo => 100,
            Network::VerizonLte => 35,
        }
    }

    /// Round trip to a server on another continent, without queues. Our choice: within 400 to 700 ms, which the text
    /// calls easily observable for HSPA+ (Section 5.2). LTE has 200 ms more than to a server nearby.
    pub fn far_rtt_ms(self) -> u64 {
        match self {
            Network::VerizonLte => 235,
            _ => 600,
        }
    }

    /// The buffer before the radio. Our choice: three seconds of the good signal's downlink. The text reports delays of
    /// several seconds.
    const QUEUE_S: f64 = 3.0;

    /// The radio link. `mbps` is its mean rate.
    pub(super) fn link(self, rate: RateProcess, mbps: f64, delay: Delay) -> PathLink {
        let queue_bytes = mbps * 1e6 / 8.0 * Self::QUEUE_S;
        let down = LinkConfig {
            rate,
            queue: QueueLimit::Bytes(queue_bytes as u64),
            delay: delay.clone(),
            ..LinkConfig::default()
        };
        let up = LinkConfig {
            rate: RateProcess::Constant(Rate::from_mbps(self.up_mbps())),
            queue: QueueLimit::Packets(1_000),
            delay,
            ..LinkConfig::default()
        };
        PathLink { name: "radio".into(), down, up }
    }
}

/// Half of a round trip.
pub(super) fn half(rtt_ms: u64) -> Duration {
    Duration::from_micros(rtt_ms * 500)
}
