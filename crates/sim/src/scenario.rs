//! A scenario: a path, a gateway, flows. It is plain data. Another crate reads scenario files.

use std::fmt;

use paceline_adhoc::{AdHocConfig, AdHocError};
use paceline_gateway::GatewayConfig;
use paceline_gateway::auto::PathHistory;
use paceline_gateway::config::ShareConfig;
use paceline_path::{ConfigError, LinkConfig};
use paceline_tcp::Config;
use paceline_wire::{Duration, Instant, Rate};

use crate::result::Direction;
use crate::workload::{Reader, SizeRange};

/// An experiment without anything left to vary.
#[derive(Clone, Debug)]
pub struct Scenario {
    /// The time at which the run begins. Results do not depend on it.
    pub begins: Instant,
    /// Time from the start of the run to the end of flows without a size.
    pub duration: Duration,
    /// The seed of every random choice.
    pub seed: u64,
    /// The links from the servers to the clients.
    pub path: Vec<PathLink>,
    /// Seeds of the links' directions, down and up, for comparisons with links that run elsewhere. A missing seed
    /// follows from `seed` and the link's name.
    pub link_seeds: Vec<[u64; 2]>,
    /// An accelerator between two links of the path.
    pub gateway: Option<GatewayAt>,
    /// The gateway's memory of earlier flows.
    pub memory: PathHistory,
    /// An ad-hoc network between two links of the path. A gateway at the same place is nearer to the servers.
    pub ad_hoc: Option<AdHocAt>,
    /// The flows.
    pub flows: Vec<Flow>,
    /// Time after `duration` at which flows with a size are given up.
    pub patience: Duration,
    /// If true, the run ends with the last flow that has a size, at the latest after `duration`.
    pub ends_early: bool,
    /// If true, links drop their packets when `duration` is over, and have no faults after that.
    pub heals: bool,
    /// If true, a checker watches every packet of every connection, at some cost.
    pub checked: bool,
}

/// One link of the path, both directions.
#[derive(Clone, Debug)]
pub struct PathLink {
    /// Results name its directions `NAME_down` and `NAME_up`.
    pub name: String,
    /// Towards the client.
    pub down: LinkConfig,
    /// Towards the server.
    pub up: LinkConfig,
}

/// Where an accelerator stands.
#[derive(Clone, Debug)]
pub struct GatewayAt {
    /// Number of links between the servers and the gateway.
    pub links_before: usize,
    /// Its configuration.
    pub config: GatewayConfig,
}

/// Where an ad-hoc network stands.
#[derive(Clone, Debug)]
pub struct AdHocAt {
    /// Number of links between the servers and the network.
    pub links_before: usize,
    /// Its configuration.
    pub config: AdHocConfig,
}

/// One transfer, or several with the same configuration.
#[derive(Clone, Debug)]
pub struct Flow {
    /// Name of the flow. Several flows may share it: results number all transfers of a name.
    pub name: String,
    /// Direction of the data.
    pub direction: Direction,
    /// TCP or datagrams.
    pub transport: Transport,
    /// Start of the first transfer, from the start of the run.
    pub start: Duration,
    /// Number of transfers.
    pub count: u32,
    /// If true, each transfer waits for the one before it, as the objects of a page do.
    pub sequential: bool,
    /// Time between the starts of transfers. Between sequential transfers: from the end of one to the start of the
    /// next.
    pub interval: Duration,
    /// Number of the client. Each client has one address.
    pub client: u8,
    /// Its share at the gateway, beside other flows of the client.
    pub share: ShareConfig,
    /// If true, the gateway forwards it unchanged.
    pub pass: bool,
    /// If true, the flow has IPv6 instead of IPv4.
    pub ipv6: bool,
}

/// How a flow's data is carried.
#[derive(Clone, Debug)]
pub enum Transport {
    /// One connection for each transfer, opened by the client.
    Tcp(Box<TcpFlow>),
    /// Datagrams at a constant rate.
    Udp {
        /// Rate of IP bytes.
        rate: Rate,
        /// Each datagram's length, IP header included.
        ip_bytes: u32,
    },
    /// A request of the client in each `interval` of the flow, which the server answers (RFC 792).
    Ping,
}

/// A flow of TCP connections.
#[derive(Clone, Debug)]
pub struct TcpFlow {
    /// Configuration of the server's end.
    pub server: Config,
    /// Configuration of the client's end.
    pub client: Config,
    /// The data to transfer.
    pub load: Load,
    /// How the receiving application reads.
    pub reader: Reader,
}

/// The data of a transfer.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Load {
    /// Data until the scenario's duration is over.
    #[default]
    Bulk,
    /// A number of bytes, drawn for each transfer.
    Size(SizeRange),
    /// Data for a while, then a pause, in turns until the scenario's duration is over.
    OnOff {
        /// Length of a sending phase.
        on: Duration,
        /// Length of a pause.
        off: Duration,
    },
}

impl Default for TcpFlow {
    fn default() -> Self {
        TcpFlow {
            server: Config::default(),
            client: Config::default(),
            load: Load::Bulk,
            reader: Reader::Eager,
        }
    }
}

/// Reasons why a scenario cannot be simulated.
#[derive(Clone, Debug, PartialEq)]
pub enum ScenarioError {
    /// The path has no link.
    NoPath,
    /// A link with an impossible configuration.
    Link(String, ConfigError),
    /// A published cell names an unknown algorithm.
    NoSuchSender(String),
    /// A tap names an unknown link.
    NoSuchLink(String),
    /// The gateway stands outside the path.
    GatewayOutsidePath,
    /// The ad-hoc network stands outside the path.
    AdHocOutsidePath,
    /// An ad-hoc network with an impossible configuration.
    AdHoc(AdHocError),
    /// A value that the gateway cannot work with.
    Gateway(String),
    /// More connections than a client has ports.
    TooManyConnections,
    /// A node asks for the same time again and again.
    Stuck,
    /// The watch ended the run.
    GivenUp,
}

impl Default for Scenario {
    fn default() -> Self {
        Scenario {
            begins: Instant::ZERO,
            duration: Duration::from_secs(10),
            seed: 1,
            path: Vec::new(),
            link_seeds: Vec::new(),
            gateway: None,
            memory: PathHistory::default(),
            ad_hoc: None,
            flows: Vec::new(),
            patience: Duration::from_secs(600),
            ends_early: false,
            heals: false,
            checked: false,
        }
    }
}

impl Default for Flow {
    fn default() -> Self {
        Flow {
            name: "download".into(),
            direction: Direction::Down,
            transport: Transport::Tcp(Box::default()),
            start: Duration::ZERO,
            count: 1,
            sequential: false,
            interval: Duration::ZERO,
            client: 0,
            share: ShareConfig::default(),
            pass: false,
            ipv6: false,
        }
    }
}

impl fmt::Display for ScenarioError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            ScenarioError::NoPath => f.write_str("the path needs at least one link"),
            ScenarioError::Link(name, error) => write!(f, "{name}: {error}"),
            ScenarioError::NoSuchSender(cell) => write!(f, "unknown algorithm: {cell}"),
            ScenarioError::NoSuchLink(name) => write!(f, "there is no link {name}"),
            ScenarioError::GatewayOutsidePath => f.write_str("the gateway stands outside the path"),
            ScenarioError::AdHocOutsidePath => f.write_str("the ad-hoc network stands outside the path"),
            ScenarioError::AdHoc(error) => write!(f, "{error}"),
            ScenarioError::Gateway(text) => f.write_str(text),
            ScenarioError::TooManyConnections => f.write_str("more than 50,000 connections"),
            ScenarioError::GivenUp => f.write_str("given up"),
            ScenarioError::Stuck => f.write_str("a node asks for the same time again and again"),
        }
    }
}

impl std::error::Error for ScenarioError {}
