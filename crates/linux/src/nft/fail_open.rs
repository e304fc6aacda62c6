//! The table that keeps the gateway's packets from the bridge.

use std::io;

use paceline_wire::{Duration, Instant};

use super::batch::{Attributes, Batch, Kind, NLM_F_APPEND, NLM_F_CREATE};
use super::expression::{
    Expression, Header, Meta, drop_packet, equals, in_set, load_header, load_meta, value_of,
};
use crate::clock;
use crate::netlink::{Connection, Netlink};
use crate::system_error::{Context, SystemError};

/// What to keep from the bridge, and where.
#[derive(Clone, Debug)]
pub struct FailOpenConfig {
    /// Distinguishes gateways on one machine; the table is called `paceline-<name>`.
    pub name: String,
    /// The bridge ports between which the gateway stands.
    pub ports: Vec<String>,
    /// Hardware addresses of the host itself (see [`Netlink::host_addresses`]): what is sent to them is never dropped. The
    /// packet sockets' filter must have the same.
    pub except_destinations: Vec<[u8; 6]>,
    /// The rule lapses this long after the last refresh.
    pub timeout: Duration,
}

impl FailOpenConfig {
    /// Lapses after a second; our choice, so that three of four refreshes, 250 ms apart, may be missed.
    pub fn new(name: &str, ports: &[&str], except_destinations: Vec<[u8; 6]>) -> Self {
        let ports = ports.iter().map(|&port| port.to_owned()).collect();
        FailOpenConfig { name: name.to_owned(), ports, except_destinations, timeout: Duration::from_secs(1) }
    }
}

/// What a refresh found.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Refreshed {
    /// The rule was in force all the time.
    InTime,
    /// The bridge may have forwarded what arrived before this; such packets are to be discarded.
    AfterLapse(Instant),
}

/// The installed rule: TCP over IPv4, and over IPv6 without extension headers, is dropped at the ports' ingress, unless it is
/// sent to the host itself, for [`FailOpenConfig::timeout`] after each refresh.
///
/// The table belongs to this value's netlink socket: the kernel removes it when the process is gone, even before the timeout,
/// and a reload of the machine's own firewall leaves it alone.
#[derive(Debug)]
pub struct FailOpen {
    connection: Connection,
    table: String,
    ports: Vec<u32>,
    timeout: Duration,
    fresh_until: Instant,
}

impl FailOpen {
    /// Installs the rule in the calling thread's network namespace, in force at once. Packets that arrived before the
    /// returned time were also forwarded by the bridge.
    pub fn install(config: &FailOpenConfig) -> Result<(FailOpen, Instant), SystemError> {
        let netlink = Netlink::open()?;
        let mut ports = Vec::new();
        for name in &config.ports {
            ports.push(netlink.link(name)?.index);
        }
        let mut fail_open = FailOpen {
            connection: Connection::open(netlink_sys::protocols::NETLINK_NETFILTER)?,
            table: format!("paceline-{}", config.name),
            ports,
            timeout: config.timeout,
            fresh_until: Instant::ZERO,
        };
        let asked = clock::now();
        fail_open.create_table(config).map_err(|error| fail_open.explain(error))?;
        fail_open.fresh_until = asked + config.timeout;
        Ok((fail_open, clock::now()))
    }

    /// Renews the rule; to be called four times within the timeout. Takes some tens of microseconds.
    pub fn refresh(&mut self) -> Result<Refreshed, SystemError> {
        let asked = clock::now();
        let mut batch = Batch::new();
        // All elements go and come in one step. Linux before 6.12 does not renew the time of an element that exists, and
        // deleting one that has expired would be an error.
        batch.add(Kind::DeleteElements, 0, &self.set_of(FRESH));
        self.add_fresh(&mut batch);
        batch.send(&self.connection).context(|| format!("refresh table {}", self.table))?;
        let done = clock::now();
        // Judged at its completion: the old element served until then.
        let lapsed = done + LAPSE_MARGIN >= self.fresh_until;
        self.fresh_until = asked + self.timeout;
        Ok(if lapsed { Refreshed::AfterLapse(done) } else { Refreshed::InTime })
    }

    /// Removes the rule: from here on the bridge forwards everything.
    pub fn remove(self) -> Result<(), SystemError> {
        let mut batch = Batch::new();
        batch.add(Kind::DeleteTable, 0, &Attributes::new().text(1, &self.table));
        batch.send(&self.connection).context(|| format!("remove table {}", self.table))
    }

    fn create_table(&self, config: &FailOpenConfig) -> io::Result<()> {
        let mut batch = Batch::new();
        let owned = Attributes::new().text(1, &self.table).u32(2, NFT_TABLE_F_OWNER);
        batch.add(Kind::NewTable, NLM_F_CREATE, &owned);
        self.add_set(&mut batch, HOST, 6, TYPE_ETHER_ADDRESS, None);
        self.add_set(&mut batch, FRESH, 4, TYPE_INTERFACE, Some(config.timeout));
        let hosts = config.except_destinations.iter().map(|address| element(address));
        batch.add(Kind::NewElements, NLM_F_CREATE, &self.set_of(HOST).list(3, LIST_ELEMENT, hosts));
        self.add_fresh(&mut batch);
        self.add_chain(&mut batch, &config.ports);
        self.add_rule(&mut batch, &ETHERTYPE_IPV4, IPV4_PROTOCOL_OFFSET);
        self.add_rule(&mut batch, &ETHERTYPE_IPV6, IPV6_NEXT_HEADER_OFFSET);
        batch.send(&self.connection)
    }

    fn add_set(&self, batch: &mut Batch, name: &str, key_len: u32, key_type: u32, timeout: Option<Duration>) {
        let flags = if timeout.is_some() { NFT_SET_TIMEOUT } else { 0 };
        let mut set = self.set_of(name).u32(3, flags).u32(4, key_type).u32(5, key_len);
        // A number for references within the batch, which are by name here.
        set = set.u32(10, key_len);
        if let Some(timeout) = timeout {
            set = set.u64(11, timeout.as_millis());
        }
        batch.add(Kind::NewSet, NLM_F_CREATE, &set);
    }

    fn add_fresh(&self, batch: &mut Batch) {
        let ports = self.ports.iter().map(|port| element(&port.to_ne_bytes()));
        batch.add(Kind::NewElements, NLM_F_CREATE, &self.set_of(FRESH).list(3, LIST_ELEMENT, ports));
    }

    fn add_chain(&self, batch: &mut Batch, ports: &[String]) {
        let devices = ports.iter().fold(Attributes::new(), |list, port| list.text(1, port));
        let hook = Attributes::new().u32(1, NF_NETDEV_INGRESS).u32(2, PRIORITY).nested(4, &devices);
        let chain = Attributes::new().text(1, &self.table).text(3, CHAIN).nested(4, &hook).text(7, "filter");
        batch.add(Kind::NewChain, NLM_F_CREATE, &chain);
    }

    /// The packet filter of the sockets (`Filter::Tcp`) decides the same from the same bytes.
    fn add_rule(&self, batch: &mut Batch, ethertype: &[u8; 2], protocol_offset: u32) {
        let expressions = [
            load_meta(Meta::Protocol),
            equals(ethertype),
            load_header(Header::Network, protocol_offset, 1),
            equals(&[PROTOCOL_TCP]),
            load_header(Header::Link, 0, 6),
            in_set(HOST, false),
            load_meta(Meta::InputInterface),
            in_set(FRESH, true),
            drop_packet(),
        ];
        let rule = Attributes::new().text(1, &self.table).text(2, CHAIN);
        let rule = rule.list(4, LIST_ELEMENT, expressions.map(Expression::into_attributes));
        batch.add(Kind::NewRule, NLM_F_CREATE | NLM_F_APPEND, &rule);
    }

    fn set_of(&self, name: &str) -> Attributes {
        Attributes::new().text(1, &self.table).text(2, name)
    }

    fn explain(&self, error: io::Error) -> SystemError {
        let action = format!("install table {}", self.table);
        // A table with an owner refuses everybody else.
        if error.raw_os_error() == Some(libc::EPERM) && nix::unistd::geteuid().is_root() {
            let reason =
                io::Error::other("it belongs to a gateway that is running, or CAP_NET_ADMIN is missing");
            return SystemError::new(action, reason);
        }
        SystemError::new(action, error)
    }
}

impl Netlink {
    /// The hardware addresses of all Ethernet interfaces here, each once: what is sent to them is for the host itself.
    pub fn host_addresses(&self) -> Result<Vec<[u8; 6]>, SystemError> {
        let links = self.links()?;
        let mut addresses: Vec<[u8; 6]> =
            links.iter().filter_map(|link| link.mac.as_slice().try_into().ok()).collect();
        addresses.retain(|address| *address != [0; 6]);
        addresses.sort_unstable();
        addresses.dedup();
        Ok(addresses)
    }
}

fn element(key: &[u8]) -> Attributes {
    Attributes::new().nested(1, &value_of(key))
}

const FRESH: &str = "fresh";
const HOST: &str = "host";
const CHAIN: &str = "ingress";
const ETHERTYPE_IPV4: [u8; 2] = [0x08, 0x00];
const ETHERTYPE_IPV6: [u8; 2] = [0x86, 0xdd];
const IPV4_PROTOCOL_OFFSET: u32 = 9;
const IPV6_NEXT_HEADER_OFFSET: u32 = 6;
const PROTOCOL_TCP: u8 = 6;
const LIST_ELEMENT: u16 = 1;
const NFT_TABLE_F_OWNER: u32 = 2;
const NFT_SET_TIMEOUT: u32 = 0x10;
const NF_NETDEV_INGRESS: u32 = 0;
/// As the `filter` chains of other families.
const PRIORITY: u32 = 0;
/// The type numbers by which the `nft` program prints keys.
const TYPE_ETHER_ADDRESS: u32 = 9;
const TYPE_INTERFACE: u32 = 20;
/// The kernel's timers count in steps of up to 10 ms.
const LAPSE_MARGIN: Duration = Duration::from_millis(20);
