//! The gateway of a scenario: a profile, changes of single parts, and events of its process.

use paceline_gateway::GatewayConfig;
use paceline_gateway::split::{SenderConfig, SplitConfig};
use paceline_service::policy;
use serde::{Deserialize, Serialize};

use crate::profile::Profile;
use crate::units::Time;

#[derive(Clone, Debug, Default, Deserialize)]
#[serde(rename_all = "kebab-case", deny_unknown_fields, default)]
pub(crate) struct Gateway {
    pub(crate) profile: Profile,
    pub(crate) io: Io,
    /// The gateway's file: rules, and keys that differ from the profile's.
    pub(crate) config: toml::Table,
    pub(crate) events: Vec<GatewayEvent>,
    /// True if the gateway has seen the same flows once before. Only in the simulator.
    pub(crate) seen_before: bool,
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
    /// SIGTERM. The process ends in order.
    Terminate,
    /// SIGSTOP.
    Stop,
    /// SIGCONT.
    Continue,
    /// Starts a new process.
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
        let text = toml::to_string(&self.config).map_err(|error| error.to_string())?;
        let config = policy::read(&text, &base, &[]).map_err(|(_, why)| why)?;
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

    /// True if the lab's hosts are in two networks.
    pub(crate) fn is_routed(&self) -> bool {
        self.io == Io::Tun || self.profile == Profile::KernelSplit
    }
}

#[cfg(test)]
mod tests {
    use paceline_gateway::config::{FlowMode, QueueBoundMode, RttModulationMode};
    use paceline_tcp::CongestionName;

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
        let rules =
            "profile = \"full\"\n[[config.rule]]\nvirtual-window = \"1mb\"\n[[config.rule]]\nport = 80\n";
        let bad: Gateway = toml::from_str(rules).unwrap();
        assert!(bad.resolve().unwrap_err().starts_with("rule 2 is never reached"));
        let bad: Gateway = toml::from_str("profile = \"full\"\n[config.rtt-modulation]\nbeta = 4\n").unwrap();
        assert!(bad.resolve().unwrap_err().contains("beta"));
    }
}
