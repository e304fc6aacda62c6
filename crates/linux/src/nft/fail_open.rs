//! The table that keeps the gateway's packets from the bridge, or marks them for its TUN device.

use std::io;
use std::os::fd::OwnedFd;

use paceline_wire::{Duration, Instant};

use super::batch::Batch;
use super::expression::{
    Expression, Header, Meta, Verdict, end, equals, in_set, load_header, load_meta, mask, set_mark,
};
use super::table::{Key, Set, TYPE_MARK, Table, element, element_for};
use crate::clock;
use crate::netlink::{Connection, Netlink};
use crate::slice::{Side, Slice};
use crate::system_error::{Context, SystemError};

/// Which packets belong to the gateway.
#[derive(Clone, Debug)]
pub struct FailOpenConfig {
    /// Distinguishes gateways on one machine. The table's name is `paceline-<name>`.
    pub name: String,
    /// The interfaces between which the gateway stands.
    pub ports: Vec<String>,
    /// Hardware addresses of the host itself (see [`Netlink::host_addresses`]). Frames to them are never dropped. The
    /// packet sockets' filter must have the same addresses.
    pub except_destinations: Vec<[u8; 6]>,
    /// Bits to set in the packets' marks, for the routing rules of a TUN device. With `None` the rule drops the
    /// packets instead, which keeps them from the bridge.
    pub mark: Option<u32>,
    /// Only packets of these subscribers. Then the first port must be the one towards the servers, and the second the
    /// one towards the subscribers. The packet sockets' filters must have the same slice.
    pub slice: Option<Slice>,
    /// Also UDP, unless it is sent to a group.
    pub datagrams: bool,
    /// The rule lapses this long after the last refresh.
    pub timeout: Duration,
}

impl FailOpenConfig {
    /// Drops packets, and lapses after half a second. Our choice: a sender then times out once, not twice. Three of
    /// four refreshes, 125 ms apart, may be missed.
    pub fn new(name: &str, ports: &[&str], except_destinations: Vec<[u8; 6]>) -> Self {
        let ports = ports.iter().map(|&port| port.to_owned()).collect();
        let timeout = Duration::from_millis(500);
        FailOpenConfig {
            name: name.to_owned(),
            ports,
            except_destinations,
            mark: None,
            slice: None,
            datagrams: false,
            timeout,
        }
    }

    /// Marks packets that a router forwards and those from its TUN, which must be among the ports. Lapses after half
    /// a second.
    pub fn marking(name: &str, ports: &[&str], mark: u32) -> Self {
        FailOpenConfig { mark: Some(mark), ..Self::new(name, ports, Vec::new()) }
    }
}

/// Result of a refresh.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Refreshed {
    /// The rule was in force without a break.
    InTime,
    /// The bridge may have forwarded packets that arrived before this time. The gateway must discard them.
    AfterLapse(Instant),
}

/// The installed rule. It drops packets at the ports' ingress for [`FailOpenConfig::timeout`] after each refresh,
/// unless they are sent to the host itself. It drops TCP over IPv4, TCP over IPv6 without extension headers, and ICMP
/// messages about a smaller path MTU. With a mark configured, it marks all TCP instead.
///
/// The table belongs to this value's netlink socket. The kernel removes it when the process ends, even before the
/// timeout. A reload of the machine's own firewall does not touch it.
#[derive(Debug)]
pub struct FailOpen {
    connection: Connection,
    table: Table,
    ports: Vec<u32>,
    timeout: Duration,
    fresh_until: Instant,
}

impl FailOpen {
    /// Installs the rule in the calling thread's network namespace. It is in force at once. The bridge also forwarded
    /// the packets that arrived before the returned time.
    pub fn install(config: &FailOpenConfig) -> Result<(FailOpen, Instant), SystemError> {
        let connection = Connection::open(netlink_sys::protocols::NETLINK_NETFILTER)?;
        let mut fail_open = FailOpen::over(connection, config)?;
        let asked = clock::now();
        fail_open.create_table(config).map_err(|error| fail_open.explain(error))?;
        fail_open.fresh_until = asked + config.timeout;
        Ok((fail_open, clock::now()))
    }

    /// Takes over the rule of another process. `descriptor` is its netlink socket. Without a refresh the rule is in
    /// force until `fresh_until`.
    pub fn adopt(
        config: &FailOpenConfig,
        descriptor: OwnedFd,
        fresh_until: Instant,
    ) -> Result<FailOpen, SystemError> {
        let fail_open = FailOpen::over(Connection::adopt(descriptor), config)?;
        Ok(FailOpen { fresh_until, ..fail_open })
    }

    /// Returns another descriptor of the socket that owns the rule, and the time until which the rule is in force.
    /// For [`FailOpen::adopt`].
    pub fn descriptor(&self) -> io::Result<(OwnedFd, Instant)> {
        Ok((self.connection.descriptor()?, self.fresh_until))
    }

    fn over(connection: Connection, config: &FailOpenConfig) -> Result<FailOpen, SystemError> {
        let netlink = Netlink::open()?;
        let mut ports = Vec::new();
        for name in &config.ports {
            ports.push(netlink.link(name)?.index);
        }
        let table = Table { name: format!("paceline-{}", config.name) };
        Ok(FailOpen { connection, table, ports, timeout: config.timeout, fresh_until: Instant::ZERO })
    }

    /// Renews the rule. Callers call it four times within the timeout. It takes some tens of microseconds.
    pub fn refresh(&mut self) -> Result<Refreshed, SystemError> {
        self.hold(self.timeout)
    }

    /// Renews the rule as [`refresh`](Self::refresh) does, but with another timeout.
    pub fn hold(&mut self, timeout: Duration) -> Result<Refreshed, SystemError> {
        let asked = clock::now();
        let mut batch = Batch::new();
        // All elements are deleted and added again in one step. Linux before 6.12 does not renew the time of an
        // existing element, and deleting an expired one by its key is an error.
        self.table.delete_all_elements(&mut batch, FRESH.name);
        self.add_fresh(&mut batch, timeout);
        batch.send(&self.connection).context(|| format!("refresh table {}", self.table.name))?;
        let done = clock::now();
        // Compare the time of completion: the old element was in force until then.
        let lapsed = done + LAPSE_MARGIN >= self.fresh_until;
        self.fresh_until = asked + timeout;
        Ok(if lapsed { Refreshed::AfterLapse(done) } else { Refreshed::InTime })
    }

    /// Removes the rule. From here on the kernel forwards everything.
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
        self.add_fresh(&mut batch, config.timeout);
        self.table.add_ingress(&mut batch, CHAIN, &config.ports, PRIORITY);
        match config.mark {
            Some(mark) => {
                self.add_marking(&mut batch, PROTOCOL_TCP, mark);
                if config.datagrams {
                    self.add_marking(&mut batch, PROTOCOL_UDP, mark);
                }
            }
            None if config.slice.is_some() => {
                config.slice.iter().for_each(|slice| self.add_sliced(&mut batch, slice, config.datagrams));
            }
            None => {
                let ipv4 = |protocol| is_ip(&ETHERTYPE_IPV4, IPV4_PROTOCOL_OFFSET, protocol);
                let ipv6 = |protocol| is_ip(&ETHERTYPE_IPV6, IPV6_NEXT_HEADER_OFFSET, protocol);
                let too_big =
                    |values: &[u8]| [load_header(Header::Transport, 0, values.len() as u32), equals(values)];
                self.add_dropping(&mut batch, ipv4(PROTOCOL_TCP));
                self.add_dropping(&mut batch, ipv6(PROTOCOL_TCP));
                if config.datagrams {
                    // The first bit of an address marks groups.
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

    fn add_fresh(&self, batch: &mut Batch, timeout: Duration) {
        let ports = self.ports.iter().map(|port| element_for(&port.to_ne_bytes(), timeout));
        self.table.add_elements(batch, FRESH.name, ports);
    }

    /// Drops the same packets as the sockets' packet filter (`Filter::Tcp`) takes, by the same bytes.
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

    /// Adds the dropping rules for some subscribers only.
    fn add_sliced(&self, batch: &mut Batch, slice: &Slice, datagrams: bool) {
        for (number, set, ipv6) in [(3, OWN_IPV4, false), (4, OWN_IPV6, true)] {
            self.table.add_set(batch, number, &set);
            self.table.add_elements(batch, set.name, slice.words(ipv6).map(|word| element(&word)));
        }
        for (side, port) in [Side::Destination, Side::Source].into_iter().zip(&self.ports) {
            let subscriber = |ipv6: bool, header: Header, address: u32| {
                let (set, offset) = if ipv6 { (OWN_IPV6, address) } else { (OWN_IPV4, address) };
                [
                    load_header(header, offset + slice.place(ipv6).offset, 4),
                    mask(&slice.mask(ipv6), &[0; 4]),
                    in_set(set.name, true),
                ]
            };
            let by_port = [load_meta(Meta::InputInterface), equals(&port.to_ne_bytes())];
            for ipv6 in [false, true] {
                let own = |protocol_of: [u8; 2]| match ipv6 {
                    false => is_ip(&ETHERTYPE_IPV4, IPV4_PROTOCOL_OFFSET, protocol_of[0]),
                    true => is_ip(&ETHERTYPE_IPV6, IPV6_NEXT_HEADER_OFFSET, protocol_of[1]),
                };
                let (source, destination) = if ipv6 { (8, 24) } else { (12, 16) };
                let outer = if side == Side::Source { source } else { destination };
                let packet = subscriber(ipv6, Header::Network, outer);
                let tcp = own([PROTOCOL_TCP, PROTOCOL_TCP]).into_iter().chain(by_port.clone());
                self.add_dropping(batch, tcp.chain(packet.clone()));
                if datagrams {
                    let to_one = [load_header(Header::Link, 0, 1), mask(&[1], &[0]), equals(&[0])];
                    let udp = own([PROTOCOL_UDP, PROTOCOL_UDP]).into_iter().chain(to_one);
                    self.add_dropping(batch, udp.chain(by_port.clone()).chain(packet.clone()));
                }
                let about = match side {
                    Side::Destination => packet,
                    Side::Source => subscriber(ipv6, Header::Transport, 8 + destination),
                };
                let values: &[u8] = if ipv6 { &ICMPV6_TOO_BIG } else { &ICMP_TOO_BIG };
                let too_big = [load_header(Header::Transport, 0, values.len() as u32), equals(values)];
                let icmp = own([PROTOCOL_ICMP, PROTOCOL_ICMPV6]).into_iter().chain(too_big);
                self.add_dropping(batch, icmp.chain(by_port.clone()).chain(about));
            }
        }
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
        // A table with an owner refuses changes by others.
        if error.raw_os_error() == Some(libc::EPERM) && nix::unistd::geteuid().is_root() {
            let reason = io::Error::other("a running gateway owns it, or CAP_NET_ADMIN is missing");
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
    /// Returns the hardware addresses of all Ethernet interfaces here, each once. Frames to them are for the host
    /// itself.
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

/// The key types are those that the `nft` program prints: interface index, Ethernet address.
const FRESH: Set = Set::new("fresh", Key { length: 4, kind: 20 });
const HOST: Set = Set::new("host", Key { length: 6, kind: 9 });
const OWN_IPV4: Set = Set::new("own-ipv4", Key { length: 4, kind: TYPE_MARK });
const OWN_IPV6: Set = Set::new("own-ipv6", Key { length: 4, kind: TYPE_MARK });
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
/// Same priority as the `filter` chains of other families.
const PRIORITY: u32 = 0;
/// The kernel's timers have a granularity of up to 10 ms.
const LAPSE_MARGIN: Duration = Duration::from_millis(20);
