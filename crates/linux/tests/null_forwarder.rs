//! Real TCP connections through packet sockets, with all offloads of the virtual interfaces on.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, reason = "a test fails by panicking")]

mod common;

use common::{Driven, permitted, transfer};
use paceline_lab::{Lab, LabConfig};
use paceline_linux::{Filter, NullForwarder};
use paceline_wire::{Instant, Node, Packet, PortId};

/// Forwards, and remembers the longest payload.
#[derive(Default)]
struct Longest {
    forwarder: NullForwarder,
    payload_len: usize,
}

impl Node for Longest {
    fn handle_packet(&mut self, arrival: Instant, port: PortId, packet: Packet) {
        self.payload_len = self.payload_len.max(packet.payload().len());
        self.forwarder.handle_packet(arrival, port, packet);
    }

    fn handle_timeout(&mut self, now: Instant) {
        self.forwarder.handle_timeout(now);
    }

    fn poll_transmit(&mut self, now: Instant) -> Option<(PortId, Packet)> {
        self.forwarder.poll_transmit(now)
    }

    fn poll_timeout(&self) -> Option<Instant> {
        self.forwarder.poll_timeout()
    }
}

#[test]
fn tcp_passes_over_packet_sockets() {
    if !permitted() {
        return;
    }
    let lab = Lab::build(LabConfig::default()).unwrap();
    let wired = Driven::start(&lab.net, &["n0", "n1"], &Filter::All, Longest::default());
    let only_tcp =
        Filter::Tcp { except_destinations: vec![[2, 0, 0, 0, 0, 1]], datagrams: false, slice: None };
    let radio = Driven::start(&lab.net, &["n2", "n3"], &only_tcp, Longest::default());
    for ipv6 in [false, true] {
        let server = (&lab.server, lab.server_address(ipv6));
        let client = (&lab.client, lab.client_address(ipv6, 0));
        transfer(server, client, 20_000_000);
        transfer(client, server, 20_000_000);
    }
    for (node, ports) in [wired.finish(), radio.finish()] {
        assert!(node.payload_len > 32 << 10, "none was kept where it was received: {}", node.payload_len);
        for port in ports {
            assert_eq!((port.malformed, port.too_long, port.pool_exhausted, port.kernel_drops), (0, 0, 0, 0));
            assert_eq!((port.out.dropped_full, port.out.dropped_refused, port.out.segmented), (0, 0, 0));
            let mean = port.received_ip_bytes / port.received_packets;
            assert!(
                port.received_ip_bytes > 40_000_000 && mean > 1_500,
                "super-packets pass whole: {port:?}"
            );
        }
    }
}
