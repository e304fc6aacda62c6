//! Named sets of the gateway's parts, and what they are compared with.

use paceline_gateway::GatewayConfig;
use paceline_gateway::config::{self, FlowMode};
use paceline_gateway::split::SenderConfig;
use paceline_tcp::{CongestionName, ReductionName, SendBufferName};
use serde::Deserialize;

/// A named set of parts. Each from `window` to `thesis` adds one part to the one before it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize, clap::ValueEnum)]
#[serde(rename_all = "kebab-case")]
pub enum Profile {
    /// No gateway: the kernel forwards.
    #[default]
    Off,
    /// A gateway with every part off.
    Null,
    /// The window towards the server is a constant 10 MB.
    Window,
    /// `window`, and packets leave as the reception rate allows.
    Schedule,
    /// `schedule`, and the gateway repairs holes that the client reports.
    Local,
    /// `local`, and the gateway repeats at once what the client must have discarded.
    Proactive,
    /// `proactive`, and RTT modulation as printed: everything in the published text, and nothing else.
    Thesis,
    /// A sized window and a bounded queue. Every flow is transparent.
    Full,
    /// Only the client's window, lowered to what it would advertise with dynamic receive window adjustment.
    Drwa,
    /// Every flow is split. The gateway sends to its client.
    Split,
    /// The default of `gateway`: it chooses mode and sender by what it measures.
    Auto,
    /// No gateway of ours: a proxy of kernel sockets, to be compared with. In the simulator something like it.
    #[value(skip)]
    KernelSplit,
}

impl Profile {
    /// `None` for `off`.
    pub fn config(self) -> Option<GatewayConfig> {
        let named = match self {
            Profile::Off => return None,
            Profile::KernelSplit => return Some(kernel_split()),
            Profile::Null => config::Profile::Null,
            Profile::Window => config::Profile::Window,
            Profile::Schedule => config::Profile::Schedule,
            Profile::Local => config::Profile::Local,
            Profile::Proactive => config::Profile::Proactive,
            Profile::Thesis => config::Profile::Thesis,
            Profile::Full => config::Profile::Full,
            Profile::Drwa => config::Profile::Drwa,
            Profile::Split => config::Profile::Split,
            Profile::Auto => config::Profile::Auto,
        };
        Some(named.config())
    }
}

/// In the simulator, what a proxy of kernel sockets comes to: a split flow with Linux's sender and buffers. Nothing bounds what
/// waits in them. What differs: it asks the server before it answers the client.
fn kernel_split() -> GatewayConfig {
    let mut config = GatewayConfig { mode: FlowMode::Split, ..GatewayConfig::all_off() };
    // More than any buffer holds.
    config.virtual_window.target_ms = 1_000_000;
    config.split.receive_window_bytes = KERNEL_WINDOW_BYTES;
    config.split.sender = SenderConfig {
        congestion_control: Some(CongestionName::Bbr),
        rate_reduction: ReductionName::Prr,
        opportunistic_retransmission: false,
        send_buffer_growth: SendBufferName::Linux,
        ..SenderConfig::default()
    };
    config
}

/// Half of the largest receive buffer of the lab's hosts (Linux tcp_rmem, tcp_adv_win_scale = 1).
const KERNEL_WINDOW_BYTES: u32 = 3_145_728;
