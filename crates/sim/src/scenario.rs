//! What is simulated: a path, a gateway, flows. Plain data; scenario files are read elsewhere.

use std::fmt;

use paceline_adhoc::{AdHocConfig, AdHocError};
use paceline_gateway::GatewayConfig;
use paceline_gateway::auto::Memory;
use paceline_gateway::config::ShareConfig;
use paceline_path::{ConfigError, LinkConfig};
use paceline_tcp::Config;
use paceline_wire::{Duration, Rate};

use crate::result::Direction;
use crate::workload::{Reader, SizeRange};

/// An experiment with nothing left to vary.
#[derive(Clone, Debug)]
pub struct Scenario {
    /// From the first flow's start; flows without a size end then.
    pub duration: Duration,
    /// Every random choice follows from it.
    pub seed: u64,
    /// The links between servers and clients, from the servers on.
    pub path: Vec<PathLink>,
    /// Seeds of their directions, down and up, for comparisons with links that run elsewhere; what is left out follows from
    /// `seed` and the link's name.
    pub link_seeds: Vec<[u64; 2]>,
    /// An accelerator between two links of the path.
    pub gateway: Option<GatewayAt>,
    /// What it remembers of earlier flows.
    pub memory: Memory,
    /// An ad-hoc network between two links of the path; behind a gateway that stands at the same place.
    pub ad_hoc: Option<AdHocAt>,
    /// Who transfers what.
    pub flows: Vec<Flow>,
    /// Flows with a size are given up when they have not ended so long after `duration`.
    pub patience: Duration,
    /// The run ends with the last flow that has a size, if that is before `duration`.
    pub ends_early: bool,
    /// When `duration` is over, links lose what they hold and then do nothing wrong any more.
    pub heals: bool,
    /// Watch every packet of every connection, at some cost.
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
    /// How many links of the path lie between it and the servers.
    pub links_before: usize,
    /// What it does.
    pub config: GatewayConfig,
}

/// Where an ad-hoc network stands.
#[derive(Clone, Debug)]
pub struct AdHocAt {
    /// How many links of the path lie between it and the servers.
    pub links_before: usize,
    /// What it is like.
    pub config: AdHocConfig,
}

/// One or several transfers that are alike.
#[derive(Clone, Debug)]
pub struct Flow {
    /// Not unique: results number the transfers of a name.
    pub name: String,
    /// Where the data goes.
    pub direction: Direction,
    /// TCP or datagrams.
    pub transport: Transport,
    /// Of the first transfer, since the start of the run.
    pub start: Duration,
    /// How many transfers.
    pub count: u32,
    /// Each transfer waits for the one before it: the objects of a page.
    pub sequential: bool,
    /// Time between the starts of transfers or, of sequential ones, between the end of one and the start of the next.
    pub interval: Duration,
    /// Which client; clients have one address each.
    pub client: u8,
    /// What it may have at the gateway, beside other flows of the client.
    pub share: ShareConfig,
    /// The gateway forwards it unchanged.
    pub bypass: bool,
    /// IPv6 in place of IPv4.
    pub ipv6: bool,
}

/// How a flow's data is carried.
#[derive(Clone, Debug)]
pub enum Transport {
    /// One connection for each transfer, opened by the client.
    Tcp(Box<TcpFlow>),
    /// Datagrams at a constant rate.
    Udp {
        /// Of IP bytes.
        rate: Rate,
        /// Each datagram's length, IP header included.
        ip_bytes: u32,
    },
}

/// A flow of TCP connections.
#[derive(Clone, Debug)]
pub struct TcpFlow {
    /// How the server's end behaves.
    pub server: Config,
    /// How the client's end behaves.
    pub client: Config,
    /// What is transferred.
    pub load: Load,
    /// How the receiving application reads.
    pub reader: Reader,
}

/// What a transfer consists of.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Load {
    /// Data until the scenario's duration is over.
    #[default]
    Bulk,
    /// So many bytes, drawn for each transfer.
    Size(SizeRange),
    /// Data for a while, nothing for a while, until the scenario's duration is over.
    OnOff {
        /// How long it sends.
        on: Duration,
        /// How long it does not.
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

/// What cannot be simulated.
#[derive(Clone, Debug, PartialEq)]
pub enum ScenarioError {
    /// The path has no link.
    NoPath,
    /// A link that cannot be.
    Link(String, ConfigError),
    /// A published cell names an algorithm that nobody has.
    NoSuchSender(String),
    /// A link that nobody knows was to be watched.
    NoSuchLink(String),
    /// The gateway stands outside the path.
    GatewayOutsidePath,
    /// The ad-hoc network stands outside the path.
    AdHocOutsidePath,
    /// An ad-hoc network that cannot be.
    AdHoc(AdHocError),
    /// A value that the gateway cannot work with.
    Gateway(String),
    /// More connections than a client has ports.
    TooManyConnections,
    /// A node asks for the same time again and again.
    Stuck,
    /// Who looked on wanted no more of it.
    GivenUp,
}

impl Default for Scenario {
    fn default() -> Self {
        Scenario {
            duration: Duration::from_secs(10),
            seed: 1,
            path: Vec::new(),
            link_seeds: Vec::new(),
            gateway: None,
            memory: Memory::default(),
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
            bypass: false,
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
