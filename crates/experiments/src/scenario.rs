//! The description of an experiment: hosts, gateway, links, flows, variations and repetitions.
//! docs/reference/scenario.md documents every key. This module does not know where the experiment runs.

mod check;
mod flow;
mod gateway;
mod load;
mod path;
mod tcp;
mod topology;
mod vary;

#[cfg(test)]
mod doc_tests;

use serde::Deserialize;

use crate::units::{Rate, Size, Time};

pub(crate) use flow::{Direction, Flow, IpVersion, Protocol, SizeSpec};
pub(crate) use gateway::{EventAction, Gateway, GatewayEvent, Io};
#[cfg(test)]
pub(crate) use load::parse_text;
pub(crate) use load::{ScenarioFile, load_file, load_varied, parse, parse_varied};
pub(crate) use paceline_judge::{Bound, Statistic, is_named as name_matches};
pub(crate) use path::Path;
pub(crate) use tcp::Tcp;
pub(crate) use topology::Topology;
pub(crate) use vary::{Case, Variant, Vary};

/// One cell of an experiment, with nothing left to vary.
#[derive(Clone, Debug, Deserialize)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
pub(crate) struct Scenario {
    pub(crate) name: String,
    #[serde(default)]
    pub(crate) title: String,
    /// Duration of one run, from its first flow's start.
    pub(crate) duration: Time,
    #[serde(default = "one")]
    pub(crate) runs: u32,
    #[serde(default = "one_u64")]
    pub(crate) seed: u64,
    #[serde(default)]
    pub(crate) server: Server,
    #[serde(default)]
    pub(crate) client: Client,
    #[serde(default)]
    pub(crate) gateway: Gateway,
    /// Replaces `wired` and `radio`.
    pub(crate) topology: Option<Topology>,
    #[serde(default)]
    pub(crate) wired: Path,
    #[serde(default)]
    pub(crate) radio: Path,
    pub(crate) flows: Vec<Flow>,
    #[serde(default)]
    pub(crate) vary: Vec<vary::Vary>,
    #[serde(default)]
    pub(crate) bounds: Vec<Bound>,
}

/// The hosts on the wired side.
#[derive(Clone, Debug, Deserialize)]
#[serde(rename_all = "kebab-case", deny_unknown_fields, default)]
pub(crate) struct Server {
    pub(crate) congestion_control: String,
    /// The kernel's default (200 ms) if absent.
    pub(crate) rto_min: Option<Time>,
    pub(crate) tail_loss_probe: bool,
    /// Upper end of the send buffer's autotuning.
    pub(crate) send_buffer: Size,
    /// Algorithms of the simulator's endpoint.
    pub(crate) tcp: Tcp,
}

impl Default for Server {
    fn default() -> Self {
        // 16 MB never limits on any link of the scenarios, so results show the window and not the buffer.
        Server {
            congestion_control: "cubic".into(),
            rto_min: None,
            tail_loss_probe: true,
            send_buffer: Size::from_bytes(16_000_000),
            tcp: Tcp::default(),
        }
    }
}

/// The hosts on the radio side.
#[derive(Clone, Debug, Deserialize)]
#[serde(rename_all = "kebab-case", deny_unknown_fields, default)]
pub(crate) struct Client {
    pub(crate) congestion_control: String,
    /// Size of a fixed window; autotuned if absent.
    pub(crate) receive_buffer: Option<Size>,
    /// Upper end of the autotuning.
    pub(crate) receive_buffer_max: Size,
    pub(crate) window_scaling: bool,
    pub(crate) sack: bool,
    pub(crate) timestamps: bool,
    /// Rate at which the application reads; unlimited if absent.
    pub(crate) read_rate: Option<Rate>,
    /// Time in which the application does not read.
    pub(crate) read_pause: Option<Span>,
    /// Algorithms of the simulator's endpoint.
    pub(crate) tcp: Tcp,
}

impl Default for Client {
    fn default() -> Self {
        Client {
            congestion_control: "cubic".into(),
            receive_buffer: None,
            receive_buffer_max: Size::from_bytes(6_000_000),
            window_scaling: true,
            sack: true,
            timestamps: true,
            read_rate: None,
            read_pause: None,
            tcp: Tcp::default(),
        }
    }
}

/// A part of a run.
#[derive(Clone, Copy, Debug, Deserialize)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
pub(crate) struct Span {
    pub(crate) at: Time,
    #[serde(rename = "for")]
    pub(crate) length: Time,
}

impl Scenario {
    /// Time until the last flow counts as hung. Any transfer that makes progress ends sooner.
    pub(crate) fn patience(&self) -> Time {
        Time::from_millis((self.duration.seconds() * 3000.0) as u64 + 30_000)
    }
}

fn one() -> u32 {
    1
}

fn one_u64() -> u64 {
    1
}
