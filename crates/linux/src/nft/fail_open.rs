//! The table that keeps the gateway's packets from the bridge, or marks them for its TUN device.

use std::io;

use paceline_wire::{Duration, Instant};

use super::batch::Batch;
use super::expression::{
    Expression, Header, Meta, Verdict, end, equals, in_set, load_header, load_meta, mask, set_mark,
};
use super::table::{Key, Set, Table, element};
use crate::clock;
use crate::netlink::{Connection, Netlink};
use crate::system_error::{Context, SystemError};

/// Which packets are the gateway's, and what makes them so.
#[derive(Clone, Debug)]
pub struct FailOpenConfig {
    /// Distinguishes gateways on one machine; the table is called `paceline-<name>`.
    pub name: String,
    /// The interfaces between which the gateway stands.
    pub ports: Vec<String>,
    /// Hardware addresses of the host itself (see [`Netlink::host_addresses`]): what is sent to them is never dropped. The
    /// packet sockets' filter must have the same.
    pub except_destinations: Vec<[u8; 6]>,
    /// Bits that are set in the packets' marks, for the routing rules of a TUN device. `None` drops the packets instead, which
    /// keeps them from the bridge.
    pub mark: Option<u32>,
    /// UDP too, unless it is sent to a group.
    pub datagrams: bool,
    /// The rule lapses this long after the last refresh.
    pub timeout: Duration,
}

impl FailOpenConfig {
    /// Drops packets, and lapses after half a second; our choice: a sender then times out once, not twice, and three of
    /// four refreshes, 125 ms apart, may be missed.
    pub fn new(name: &str, ports: &[&str], except_destinations: Vec<[u8; 6]>) -> Self {
        let ports = ports.iter().map(|&port| port.to_owned()).collect();
        let timeout = Duration::from_millis(500);
        FailOpenConfig {
            name: name.to_owned(),
            ports,
            except_destinations,
            mark: None,
            datagrams: false,
            timeout,
        }
    }

    /// Marks packets that a router forwards and those from its TUN, which must be among the ports; to lapse after half a second.
    pub fn marking(name: &str, ports: &[&str], mark: u32) -> Self {
        FailOpenConfig { mark: Some(mark), ..Self::new(name, ports, Vec::new()) }
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

/// The installed rule: TCP over IPv4, and over IPv6 without extension headers, and ICMP that tells of a smaller path MTU is dropped at the ports' ingress, unless it is
/// sent to the host itself, for [`FailOpenConfig::timeout`] after each refresh; or all TCP is marked.
///
/// The table belongs to this value's netlink socket: the kernel removes it when the process is gone, even before the timeout,
/// and a reload of the machine's own firewall leaves it alone.
#[derive(Debug)]
pub struct FailOpen {
    connection: Connection,
    table: Table,
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
            table: Table { name: format!("paceline-{}", config.name) },
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
        self.table.delete_all_elements(&mut batch, FRESH.name);
        self.add_fresh(&mut batch);
        batch.send(&self.connection).context(|| format!("refresh table {}", self.table.name))?;
        let done = clock::now();
        // Judged at its completion: the old element served until then.
        let lapsed = done + LAPSE_MARGIN >= self.fresh_until;
        self.fresh_until = asked + self.timeout;
        Ok(if lapsed { Refreshed::AfterLapse(done) } else { Refreshed::InTime })
    }

    /// Removes the rule: from here on the kernel forwards everything.
    pub fn remove(self) -> Result<(), SystemError> {
        let mut batch = Batch::new();
        self.table.delete(&mut batch);
        batch.send(&self.connection).context(|| format!("remove table {}", self.table.name))
    }

    fn create_table(&self, config: &FailOpenConfig) -> io::Result<()> {
        let mut batch = Batch::new();
        self.table.create(&mut batch, NFT_TABLE_F_OWNER);
        self.table.add_set(&mut batch, 1, &HOST);
        self.table.add_set(&mut batch, 2, &Set { timeout: Some(config.timeout), ..FRESH });
        let hosts = config.except_destinations.iter().map(|address| element(address));
        self.table.add_elements(&mut batch, HOST.name, hosts);
        self.add_fresh(&mut batch);
        self.table.add_ingress(&mut batch, CHAIN, &config.ports, PRIORITY);
        match config.mark {
            Some(mark) => {
                self.add_marking(&mut batch, PROTOCOL_TCP, mark);
                if config.datagrams {
                    self.add_marking(&mut batch, PROTOCOL_UDP, mark);
                }
            }
            None => {
                let ipv4 = |protocol| is_ip(&ETHERTYPE_IPV4, IPV4_PROTOCOL_OFFSET, protocol);
                let ipv6 = |protocol| is_ip(&ETHERTYPE_IPV6, IPV6_NEXT_HEADER_OFFSET, protocol);
                let too_big =
                    |values: &[u8]| [load_header(Header::Transport, 0, values.len() as u32), equals(values)];
                self.add_dropping(&mut batch, ipv4(PROTOCOL_TCP));
                self.add_dropping(&mut batch, ipv6(PROTOCOL_TCP));
                if config.datagrams {
                    // The first bit of an address is that of groups.
                    let to_one = || [load_header(Header::Link, 0, 1), mask(&[1], &[0]), equals(&[0])];
                    self.add_dropping(&mut batch, ipv4(PROTOCOL_UDP).into_iter().chain(to_one()));
                    self.add_dropping(&mut batch, ipv6(PROTOCOL_UDP).into_iter().chain(to_one()));
                }
                self.add_dropping(&mut batch, ipv4(PROTOCOL_ICMP).into_iter().chain(too_big(&ICMP_TOO_BIG)));
                self.add_dropping(
                    &mut batch,
                    ipv6(PROTOCOL_ICMPV6).into_iter().chain(too_big(&ICMPV6_TOO_BIG)),
                );
            }
        }
        batch.send(&self.connection)
    }

    fn add_fresh(&self, batch: &mut Batch) {
        let ports = self.ports.iter().map(|port| element(&port.to_ne_bytes()));
        self.table.add_elements(batch, FRESH.name, ports);
    }

    /// The packet filter of the sockets (`Filter::Tcp`) decides the same from the same bytes.
    fn add_dropping(&self, batch: &mut Batch, which: impl IntoIterator<Item = Expression>) {
        let ours = [
            load_header(Header::Link, 0, 6),
            in_set(HOST.name, false),
            load_meta(Meta::InputInterface),
            in_set(FRESH.name, true),
            end(Verdict::Drop),
        ];
        self.table.add_rule(batch, CHAIN, which.into_iter().chain(ours));
    }

    fn add_marking(&self, batch: &mut Batch, protocol: u8, mark: u32) {
        let expressions = [
            load_meta(Meta::TransportProtocol),
            equals(&[protocol]),
            load_meta(Meta::InputInterface),
            in_set(FRESH.name, true),
            load_meta(Meta::Mark),
            mask(&(!mark).to_ne_bytes(), &mark.to_ne_bytes()),
            set_mark(),
        ];
        self.table.add_rule(batch, CHAIN, expressions);
    }

    fn explain(&self, error: io::Error) -> SystemError {
        let action = format!("install table {}", self.table.name);
        // A table with an owner refuses everybody else.
        if error.raw_os_error() == Some(libc::EPERM) && nix::unistd::geteuid().is_root() {
            let reason =
                io::Error::other("it belongs to a gateway that is running, or CAP_NET_ADMIN is missing");
            return SystemError::new(action, reason);
        }
        SystemError::new(action, error)
    }
}

fn is_ip(ethertype: &[u8; 2], protocol_offset: u32, protocol: u8) -> [Expression; 4] {
    [
        load_meta(Meta::Protocol),
        equals(ethertype),
        load_header(Header::Network, protocol_offset, 1),
        equals(&[protocol]),
    ]
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

/// Keys are of the types by which the `nft` program prints them: interface index, Ethernet address.
const FRESH: Set = Set::new("fresh", Key { length: 4, kind: 20 });
const HOST: Set = Set::new("host", Key { length: 6, kind: 9 });
const CHAIN: &str = "ingress";
const ETHERTYPE_IPV4: [u8; 2] = [0x08, 0x00];
const ETHERTYPE_IPV6: [u8; 2] = [0x86, 0xdd];
const IPV4_PROTOCOL_OFFSET: u32 = 9;
const IPV6_NEXT_HEADER_OFFSET: u32 = 6;
const PROTOCOL_TCP: u8 = 6;
const PROTOCOL_UDP: u8 = 17;
const PROTOCOL_ICMP: u8 = 1;
const PROTOCOL_ICMPV6: u8 = 58;
/// Type 3, code 4 (RFC 1191); type 2 (RFC 4443).
const ICMP_TOO_BIG: [u8; 2] = [3, 4];
const ICMPV6_TOO_BIG: [u8; 1] = [2];
const NFT_TABLE_F_OWNER: u32 = 2;
/// As the `filter` chains of other families.
const PRIORITY: u32 = 0;
/// The kernel's timers count in steps of up to 10 ms.
const LAPSE_MARGIN: Duration = Duration::from_millis(20);
