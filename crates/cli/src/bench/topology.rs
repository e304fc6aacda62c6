//! Server, gateway and client in three namespaces, with nothing between them that limits:
//!
//! ```text
//! server s0 -- g0 gateway (bridge br0) g1 -- c0 client
//! ```

use std::net::{IpAddr, Ipv4Addr};

use paceline_linux::SystemError;
use paceline_linux::netlink::Prefix;
use paceline_linux::netns::{self, Netns};
use paceline_linux::offload::Offload;
use paceline_linux::sysctl::allow_congestion_controls;

/// The namespaces; they go away with this value.
#[derive(Debug)]
pub(super) struct Topology {
    pub(super) server: Netns,
    /// Interfaces g0 towards the server and g1 towards the client, ports of br0.
    pub(super) gateway: Netns,
    pub(super) client: Netns,
}

/// Packets and bytes that came into the gateway's namespace, super-packets as one.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Traffic {
    pub(super) from_server: Count,
    pub(super) to_client: Count,
    pub(super) from_client: Count,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Count {
    pub(super) packets: u64,
    pub(super) bytes: u64,
}

impl Topology {
    /// `clients` addresses; with `wire_size`, the hosts send segment by segment, as what a network card without offloads
    /// receives.
    pub(super) fn build(mtu: u32, clients: u8, wire_size: bool) -> Result<Topology, SystemError> {
        netns::sweep();
        allow_congestion_controls(&[CONGESTION_CONTROL])?;
        let [server, gateway, client] = ["server", "gateway", "client"].map(Netns::create);
        let topology = Topology { server: server?, gateway: gateway?, client: client? };
        topology.connect(mtu)?;
        topology.address(clients)?;
        if wire_size {
            topology.server.set_offloads("s0", &Offload::SEGMENTATION, false)?;
            topology.client.set_offloads("c0", &Offload::SEGMENTATION, false)?;
        }
        Ok(topology)
    }

    pub(super) fn server_address() -> IpAddr {
        Ipv4Addr::new(10, 78, 1, 1).into()
    }

    /// The address of client `number`, from 0.
    pub(super) fn client_address(number: u8) -> IpAddr {
        Ipv4Addr::new(10, 78, 2, number.saturating_add(1)).into()
    }

    /// What has passed the interfaces of the gateway's namespace so far.
    pub(super) fn traffic(&self) -> Result<Traffic, SystemError> {
        let text = self.gateway.run(|| std::fs::read_to_string("/proc/thread-self/net/dev"))?;
        Ok(parse_traffic(&text.unwrap_or_default()))
    }

    /// Segments that the server's kernel sent again.
    pub(super) fn retransmitted(&self) -> Result<u64, SystemError> {
        let text = self.server.run(|| std::fs::read_to_string("/proc/thread-self/net/snmp"))?;
        Ok(parse_retransmitted(&text.unwrap_or_default()).unwrap_or(0))
    }

    fn connect(&self, mtu: u32) -> Result<(), SystemError> {
        let bridge = self.gateway.netlink()?;
        // The bridge itself sends nothing.
        self.gateway.set_sysctls(&[("net.ipv6.conf.default.disable_ipv6", "1")])?;
        bridge.add_veth("g0", "s0", &self.server)?;
        bridge.add_veth("g1", "c0", &self.client)?;
        bridge.add_bridge("br0")?;
        for port in ["g0", "g1"] {
            bridge.set_master(port, Some("br0"))?;
        }
        let (server, client) = (self.server.netlink()?, self.client.netlink()?);
        let interfaces =
            [(&bridge, "g0"), (&bridge, "g1"), (&bridge, "br0"), (&server, "s0"), (&client, "c0")];
        for (netlink, name) in interfaces {
            netlink.set_mtu(name, mtu)?;
            netlink.set_up(name, true)?;
        }
        interfaces.iter().try_for_each(|(netlink, name)| netlink.wait_until_ready(&[name]))
    }

    fn address(&self, clients: u8) -> Result<(), SystemError> {
        for host in [&self.server, &self.client] {
            host.set_sysctls(&[
                // A run must not inherit what the one before it learnt about the path.
                ("net.ipv4.tcp_no_metrics_save", "1"),
                ("net.ipv4.tcp_rmem", "4096 131072 6291456"),
                ("net.ipv4.tcp_wmem", "4096 65536 4194304"),
            ])?;
        }
        let (server, client) = (self.server.netlink()?, self.client.netlink()?);
        let (server_mac, client_mac) = (server.link("s0")?.mac, client.link("c0")?.mac);
        server.add_address("s0", Prefix::new(Self::server_address(), PREFIX))?;
        for number in 0..clients {
            client.add_address("c0", Prefix::new(Self::client_address(number), PREFIX))?;
            server.add_neighbour("s0", Self::client_address(number), &client_mac)?;
        }
        client.add_neighbour("c0", Self::server_address(), &server_mac)
    }
}

impl Traffic {
    pub(super) fn since(self, earlier: Traffic) -> Traffic {
        let since = |now: Count, then: Count| Count {
            packets: now.packets.saturating_sub(then.packets),
            bytes: now.bytes.saturating_sub(then.bytes),
        };
        Traffic {
            from_server: since(self.from_server, earlier.from_server),
            to_client: since(self.to_client, earlier.to_client),
            from_client: since(self.from_client, earlier.from_client),
        }
    }

    /// Packets that were to be forwarded.
    pub(super) fn packets(self) -> u64 {
        self.from_server.packets + self.from_client.packets
    }
}

impl Count {
    /// Bytes of a packet on average, link header included.
    pub(super) fn mean(self) -> Option<f64> {
        (self.packets > 0).then(|| self.bytes as f64 / self.packets as f64)
    }
}

/// Of `/proc/net/dev`: bytes and packets received are the first two of eight numbers, then come those sent.
fn parse_traffic(text: &str) -> Traffic {
    let mut traffic = Traffic::default();
    for line in text.lines() {
        let Some((name, numbers)) = line.trim().split_once(':') else { continue };
        let numbers: Vec<u64> = numbers.split_whitespace().filter_map(|number| number.parse().ok()).collect();
        let count = |at: usize| match numbers.get(at..at + 2) {
            Some(&[bytes, packets]) => Count { packets, bytes },
            _ => Count::default(),
        };
        match name {
            "g0" => traffic.from_server = count(0),
            "g1" => (traffic.from_client, traffic.to_client) = (count(0), count(8)),
            _ => {}
        }
    }
    traffic
}

/// The line of names, then the line of values.
fn parse_retransmitted(snmp: &str) -> Option<u64> {
    let mut lines = snmp.lines().filter_map(|line| line.strip_prefix("Tcp: "));
    let place = lines.next()?.split_whitespace().position(|name| name == "RetransSegs")?;
    lines.next()?.split_whitespace().nth(place)?.parse().ok()
}

/// Of all sockets, whatever the machine's default is.
pub(super) const CONGESTION_CONTROL: &str = "cubic";
const PREFIX: u8 = 16;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_kernels_files_are_read() {
        let text = " face |bytes packets errs drop fifo frame compressed multicast|bytes packets errs\n\
                    g0: 1000 10 0 0 0 0 0 0 66 1 0 0 0 0 0 0\n   g1: 70 2 0 0 0 0 0 0 999 9 0 0 0 0 0 0\n";
        let traffic = parse_traffic(text);
        assert_eq!(traffic.from_server, Count { packets: 10, bytes: 1000 });
        assert_eq!(traffic.to_client, Count { packets: 9, bytes: 999 });
        assert_eq!((traffic.packets(), traffic.from_server.mean()), (12, Some(100.0)));
        let snmp = "Ip: A B\nIp: 1 2\nTcp: InSegs RetransSegs\nTcp: 5 7\n";
        assert_eq!(parse_retransmitted(snmp), Some(7));
    }
}
