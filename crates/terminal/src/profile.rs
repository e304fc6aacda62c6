//! The gateway named by a command or a scenario: none, ours with a named set of parts, or a kernel proxy.

use clap::ValueEnum;
use clap::builder::PossibleValue;
use paceline_gateway::GatewayConfig;
use paceline_gateway::config::FlowMode;
pub use paceline_gateway::config::Profile as Named;
use paceline_gateway::split::SenderConfig;
use paceline_tcp::{CongestionName, ReductionName, SendBufferName};
use serde::de::Error as _;
use serde::{Deserialize, Deserializer};

/// The gateway before the radio link.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Profile {
    /// No gateway: the kernel forwards.
    #[default]
    Off,
    /// A gateway with these parts.
    Gateway(Named),
    /// A proxy of kernel sockets, for comparison with our gateway. The simulator imitates it.
    KernelSplit,
}

const COUNT: usize = Named::ALL.len() + 2;

const ALL: [Profile; COUNT] = {
    let mut all = [Profile::Off; COUNT];
    let mut at = 0;
    while at < Named::ALL.len() {
        all[at + 1] = Profile::Gateway(Named::ALL[at]);
        at += 1;
    }
    all[COUNT - 1] = Profile::KernelSplit;
    all
};

const NAMES: [&str; COUNT] = {
    let mut names = [""; COUNT];
    let mut at = 0;
    while at < COUNT {
        names[at] = ALL[at].name();
        at += 1;
    }
    names
};

impl Profile {
    /// Returns the name in files and commands.
    pub const fn name(self) -> &'static str {
        match self {
            Profile::Off => "off",
            Profile::Gateway(parts) => parts.name(),
            Profile::KernelSplit => "kernel-split",
        }
    }

    /// Returns the configuration of the gateway; `None` for `off`.
    pub fn config(self) -> Option<GatewayConfig> {
        match self {
            Profile::Off => None,
            Profile::Gateway(parts) => Some(parts.config()),
            Profile::KernelSplit => Some(kernel_split()),
        }
    }
}

impl ValueEnum for Profile {
    fn value_variants<'a>() -> &'a [Self] {
        // Only scenarios can name the last profile, the kernel proxy.
        let all: &'static [Profile; COUNT] = &ALL;
        &all[..COUNT - 1]
    }

    fn to_possible_value(&self) -> Option<PossibleValue> {
        let about = match self {
            Profile::Off => "No gateway: the kernel forwards",
            Profile::Gateway(parts) => parts.about(),
            Profile::KernelSplit => return None,
        };
        Some(PossibleValue::new(self.name()).help(about))
    }
}

impl<'de> Deserialize<'de> for Profile {
    fn deserialize<D: Deserializer<'de>>(from: D) -> Result<Self, D::Error> {
        let name = String::deserialize(from)?;
        let named = ALL.into_iter().find(|profile| profile.name() == name);
        named.ok_or_else(|| D::Error::unknown_variant(&name, &NAMES))
    }
}

/// Returns the simulator's imitation of a proxy of kernel sockets: a split flow with Linux's sender and buffers.
/// No bound limits the data that waits there. Unlike the proxy, it connects to the server before it answers the client.
fn kernel_split() -> GatewayConfig {
    let mut config = GatewayConfig { mode: FlowMode::Split, ..GatewayConfig::all_off() };
    // Longer than the delay of any buffer.
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

#[cfg(test)]
mod tests {
    use serde::de::IntoDeserializer;
    use serde::de::value::{Error, StringDeserializer};

    use super::*;

    fn read(name: &str) -> Result<Profile, Error> {
        let from: StringDeserializer<Error> = name.to_string().into_deserializer();
        Profile::deserialize(from)
    }

    #[test]
    fn every_profile_is_found_by_its_name() {
        assert!(ALL.into_iter().all(|profile| read(profile.name()) == Ok(profile)));
        assert_eq!(Profile::from_str("full", false), Ok(Profile::Gateway(Named::Full)));
        assert!(Profile::from_str("kernel-split", false).is_err());
        assert!(read("fulll").unwrap_err().to_string().contains("expected one of `off`, `null`, `window`"));
    }
}
