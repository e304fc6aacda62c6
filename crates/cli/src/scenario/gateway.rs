//! The gateway of a scenario: a profile, single parts changed, and what befalls it.

use paceline_gateway::GatewayConfig;
use paceline_gateway::config::{self, FlowMode};
use paceline_gateway::split::{SenderConfig, SplitConfig};
use paceline_tcp::{CongestionName, ReductionName, SendBufferName};
use serde::{Deserialize, Serialize};

use crate::units::Time;

#[derive(Clone, Debug, Default, Deserialize)]
#[serde(rename_all = "kebab-case", deny_unknown_fields, default)]
pub(crate) struct Gateway {
    pub(crate) profile: Profile,
    pub(crate) io: Io,
    /// Keys of the gateway's configuration that differ from the profile's.
    pub(crate) config: toml::Table,
    pub(crate) events: Vec<GatewayEvent>,
    /// It has seen the same flows once before. Only in the simulator.
    pub(crate) seen_before: bool,
}

/// A named set of parts. Each from `window` to `thesis` adds one part to the one before it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize, clap::ValueEnum)]
#[serde(rename_all = "kebab-case")]
pub(crate) enum Profile {
    /// No gateway: the kernel forwards.
    #[default]
    Off,
    /// A gateway with every part off: packets pass as they come.
    Null,
    /// The window towards the server is a constant 10 MB.
    Window,
    /// And packets leave as the reception rate allows.
    Schedule,
    /// And the holes that the client reports are repaired.
    Local,
    /// And what the client must have discarded is sent again at once.
    Proactive,
    /// And RTT modulation as printed: everything in the text, and nothing else.
    Thesis,
    /// Paceline's own default: sized window, bounded queue.
    Full,
    /// Nothing but the client's window, lowered to what it would advertise with dynamic receive window adjustment.
    Drwa,
    /// Every flow is split; the gateway sends to its client.
    Split,
    /// Mode and sender as the gateway finds best by what it measures.
    Auto,
    /// No gateway of ours: a proxy of kernel sockets, to be compared with. In the simulator something like it.
    #[value(skip)]
    KernelSplit,
}

/// How packets reach the gateway.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize, clap::ValueEnum)]
#[serde(rename_all = "kebab-case")]
pub(crate) enum Io {
    /// Between two ports of a bridge; addresses and TTL untouched.
    #[default]
    AfPacket,
    /// Routed through a TUN device.
    Tun,
}

/// Something that happens to the gateway's process.
#[derive(Clone, Copy, Debug, Deserialize)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
pub(crate) struct GatewayEvent {
    pub(crate) at: Time,
    pub(crate) action: EventAction,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize, Serialize)]
#[serde(rename_all = "kebab-case")]
pub(crate) enum EventAction {
    /// SIGKILL.
    Kill,
    /// SIGTERM: it ends in order.
    Terminate,
    /// SIGSTOP.
    Stop,
    /// SIGCONT.
    Continue,
    /// A new process.
    Start,
}

impl Gateway {
    /// The profile with this scenario's changes; `None` without a gateway.
    ///
    /// # Errors
    /// A key or value that the gateway does not know.
    pub(crate) fn resolve(&self) -> Result<Option<GatewayConfig>, String> {
        let Some(base) = self.profile.config() else {
            return Ok(None);
        };
        let mut table = toml::Table::try_from(&base).map_err(|e| e.to_string())?;
        merge(&mut table, &self.config);
        let config: GatewayConfig = table.try_into().map_err(|e: toml::de::Error| e.message().to_string())?;
        config.check()?;
        if self.profile == Profile::KernelSplit {
            let sender = SenderConfig {
                congestion_control: config.split.sender.congestion_control,
                ..base.split.sender
            };
            let split = SplitConfig { sender, ..base.split.clone() };
            if config != (GatewayConfig { split, ..base }) {
                return Err("of kernel-split only split.sender.congestion-control can be chosen: the rest is the kernel's".into());
            }
        }
        Ok(Some(config))
    }

    /// Whether the lab's hosts are in two networks.
    pub(crate) fn is_routed(&self) -> bool {
        self.io == Io::Tun || self.profile == Profile::KernelSplit
    }
}

/// In the simulator, what a proxy of kernel sockets comes to: a split flow with Linux's sender and buffers, and no bound on what
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

impl Profile {
    /// `None` for `off`.
    pub(crate) fn config(self) -> Option<GatewayConfig> {
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

/// Puts every leaf of `changes` into `table`.
pub(crate) fn merge(table: &mut toml::Table, changes: &toml::Table) {
    for (key, value) in changes {
        match (table.get_mut(key), value) {
            (Some(toml::Value::Table(inner)), toml::Value::Table(changes)) => merge(inner, changes),
            _ => {
                table.insert(key.clone(), value.clone());
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use paceline_gateway::config::{QueueBoundMode, RttModulationMode};

    use super::*;

    #[test]
    fn of_a_kernels_proxy_only_the_congestion_control_is_chosen() {
        let parse = |text: &str| toml::from_str::<Gateway>(text).unwrap().resolve();
        let cubic = "profile = \"kernel-split\"\nconfig.split.sender.congestion-control = \"cubic\"\n";
        let config = parse(cubic).unwrap().unwrap();
        assert_eq!((config.mode, config.queue_bound.mode), (FlowMode::Split, QueueBoundMode::None));
        assert_eq!(config.split.sender.congestion(), CongestionName::Cubic);
        let bad = parse("profile = \"kernel-split\"\nconfig.split.sender.hack1 = true\n");
        assert!(bad.unwrap_err().contains("kernel-split"));
    }

    #[test]
    fn single_keys_change_a_profile() {
        let text = "profile = \"full\"\n[config.rtt-modulation]\nmode = \"none\"\n";
        let gateway: Gateway = toml::from_str(text).unwrap();
        let config = gateway.resolve().unwrap().unwrap();
        assert_eq!(config.rtt_modulation.mode, RttModulationMode::None);
        assert_eq!(config.queue_bound.mode, QueueBoundMode::Adaptive);
        let bad: Gateway = toml::from_str("profile = \"full\"\n[config.rtt-modulation]\nbeta = 4\n").unwrap();
        assert!(bad.resolve().unwrap_err().contains("beta"));
    }
}
