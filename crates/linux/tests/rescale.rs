//! Windows that the kernel rescales when the gateway does not. Raw sockets read the arriving segments.

#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

mod common;

use std::io::{ErrorKind, Read, Write};
use std::net::{IpAddr, SocketAddr, TcpListener, TcpStream};
use std::thread;
use std::time::Duration;

use paceline_gateway::Shifts;
use paceline_lab::netns::Netns;
use paceline_lab::{GatewayKind, Lab};
use paceline_linux::Fallback;
use paceline_linux::nft::{FailOpen, FailOpenConfig, FlowChange, RescaleConfig, RescaleTable};
use paceline_wire::{BufferPool, Flags, FlowKey, Packet, Payload, Seq, TcpRepr};
use socket2::{Domain, Protocol, Socket, Type};

use common::joined_lab;

const ADDED: Shifts = Shifts { client: 0, shown: 7, server: 7, added: true };

/// Returns a lab with plain links, and the table.
fn lab(gateway: GatewayKind, mark: Option<u32>) -> Option<(Lab, RescaleTable)> {
    let lab = joined_lab(gateway)?;
    let config = RescaleConfig::new("test", &["g0", "g1"], mark);
    let table = lab.gateway.run(|| RescaleTable::open(config)).unwrap().unwrap();
    Some((lab, table))
}

/// Returns a flow from client to server. No socket has these ports.
fn flow(lab: &Lab, ipv6: bool, client_port: u16) -> FlowKey {
    let client = SocketAddr::new(lab.client_address(ipv6, 0), client_port);
    FlowKey { src: client, dst: SocketAddr::new(lab.server_address(ipv6), 80) }
}

fn raw_socket(namespace: &Netns, address: IpAddr) -> Socket {
    let domain = if address.is_ipv4() { Domain::IPV4 } else { Domain::IPV6 };
    let open = || Socket::new(domain, Type::RAW, Some(Protocol::TCP));
    let socket = namespace.run(open).unwrap().unwrap();
    socket.set_read_timeout(Some(Duration::from_secs(3))).unwrap();
    socket
}

/// Sends a segment and returns the window with which it arrives. Its checksum must be right, and nothing else may
/// change.
fn arrives(lab: &Lab, flow: FlowKey, flags: Flags, window: u16) -> u16 {
    let from_client = flow.dst.port() == 80;
    let (from, to) = if from_client { (&lab.client, &lab.server) } else { (&lab.server, &lab.client) };
    let (sender, mut receiver) = (raw_socket(from, flow.src.ip()), raw_socket(to, flow.dst.ip()));
    let repr = TcpRepr { seq: Seq(u32::from(window) + 1), flags, window, ..TcpRepr::default() };
    let mut packet = Packet::build_tcp(flow, &repr, Payload::from(vec![7; 33]));
    packet.complete_checksum();
    let mut bytes = [0; 256];
    let length = packet.write_ip(&mut bytes).unwrap();
    let ip_header = if flow.src.is_ipv4() { 20 } else { 40 };
    let segment = &bytes[ip_header..length];
    sender.send_to(segment, &SocketAddr::new(flow.dst.ip(), 0).into()).unwrap();
    loop {
        let mut buffer = [0; 256];
        let length = receiver.read(&mut buffer).unwrap();
        let received = &buffer[..length];
        let tcp = if flow.src.is_ipv4() { &received[20..] } else { received };
        // Other packets are resets for earlier segments, which belong to no connection.
        if tcp.len() != segment.len() || tcp[..8] != segment[..8] {
            continue;
        }
        let whole = [&bytes[..ip_header], tcp].concat();
        let arrived = Packet::parse(&[], &whole, &mut BufferPool::new(1 << 20)).unwrap();
        assert!(arrived.verify_checksum(), "{flow:?} {window}");
        assert_eq!((&tcp[8..14], &tcp[18..]), (&segment[8..14], &segment[18..]));
        return arrived.tcp().unwrap().window();
    }
}

fn both_ways(lab: &Lab, flow: FlowKey, window: u16) -> (u16, u16) {
    (arrives(lab, flow, Flags::ACK, window), arrives(lab, flow.reversed(), Flags::ACK, window))
}

#[test]
fn windows_of_known_flows_are_shifted_and_of_no_others() {
    let Some((lab, table)) = lab(GatewayKind::Bridged, None) else { return };
    for ipv6 in [false, true] {
        let [known, unknown] = [4000, 4001].map(|port| flow(&lab, ipv6, port));
        table.replace([(known, ADDED.into())]).unwrap();
        assert_eq!(both_ways(&lab, known, 17_520), (136, u16::MAX));
        assert_eq!(both_ways(&lab, known, 502), (3, 64_256));
        assert_eq!(both_ways(&lab, known, 511), (3, 65_408));
        assert_eq!(both_ways(&lab, known, 512), (4, u16::MAX), "it would be 65,536");
        assert_eq!(both_ways(&lab, known, 5), (1, 640), "only zero is zero");
        assert_eq!(both_ways(&lab, known, 0), (0, 0));
        assert_eq!(both_ways(&lab, unknown, 17_520), (17_520, 17_520));
    }
}

#[test]
fn each_shift_has_its_chain() {
    let Some((lab, table)) = lab(GatewayKind::Bridged, None) else { return };
    for bits in 1..=14 {
        let flow = flow(&lab, false, 4000);
        table.replace([(flow, Shifts { client: 0, shown: bits, server: bits, added: true }.into())]).unwrap();
        let shown = u16::try_from(3u32 << bits).unwrap_or(u16::MAX);
        assert_eq!(both_ways(&lab, flow, 3), (1, shown));
        assert_eq!(arrives(&lab, flow, Flags::ACK, 0xffff), 0xffff >> bits);
    }
    let raised = Shifts { client: 3, shown: 7, server: 9, added: false };
    let flow = flow(&lab, false, 4001);
    table.replace([(flow, raised.into())]).unwrap();
    assert_eq!(both_ways(&lab, flow, 17_520), (1095, 17_520));
}

#[test]
fn a_syn_begins_another_flow() {
    let Some((lab, table)) = lab(GatewayKind::Bridged, None) else { return };
    let flow = flow(&lab, true, 4000);
    table.replace([(flow, ADDED.into())]).unwrap();
    assert_eq!(arrives(&lab, flow, Flags::SYN, 17_520), 17_520);
    assert_eq!(arrives(&lab, flow, Flags::ACK, 17_520), 17_520);
    assert_eq!(arrives(&lab, flow.reversed(), Flags::SYN | Flags::ACK, 502), 502);
    assert_eq!(both_ways(&lab, flow, 502), (502, 502));
    assert!(table.change(&[FlowChange::Closed(flow, ADDED.into())]).is_err(), "it is gone");
}

#[test]
fn flows_come_and_go() {
    let Some((lab, table)) = lab(GatewayKind::Bridged, None) else { return };
    assert!(!table.exists().unwrap());
    table.replace([]).unwrap();
    assert!(table.exists().unwrap());
    let flows: Vec<FlowKey> = (0..1000).map(|port| flow(&lab, port % 2 == 1, 4000 + port)).collect();
    let opened: Vec<FlowChange> = flows.iter().map(|flow| FlowChange::Opened(*flow, ADDED.into())).collect();
    table.change(&opened).unwrap();
    for flow in [flows[0], flows[501], flows[999]] {
        assert_eq!(both_ways(&lab, flow, 500), (3, 64_000));
    }
    let (first, other) = (flows[0], Shifts { shown: 2, server: 3, ..ADDED });
    table
        .change(&[FlowChange::Closed(first, ADDED.into()), FlowChange::Opened(first, other.into())])
        .unwrap();
    assert_eq!(both_ways(&lab, first, 500), (125, 4000));
    table.replace(flows[1..].iter().map(|flow| (*flow, ADDED.into()))).unwrap();
    assert_eq!(both_ways(&lab, first, 500), (500, 500));
    assert_eq!(both_ways(&lab, flows[999], 500), (3, 64_000));
    table.remove().unwrap();
    assert_eq!(both_ways(&lab, flows[999], 500), (500, 500));
}

#[test]
fn both_ends_of_a_split_flow_are_told() {
    let Some((lab, table)) = lab(GatewayKind::Bridged, None) else { return };
    for ipv6 in [false, true] {
        let bind = || TcpListener::bind((lab.server_address(ipv6), 80));
        let listener = lab.server.run(bind).unwrap().unwrap();
        let connect = || {
            let other = TcpStream::connect(listener.local_addr().unwrap()).unwrap();
            let split = TcpStream::connect(listener.local_addr().unwrap()).unwrap();
            [other, split]
        };
        let [mut other, mut client] = lab.client.run(connect).unwrap();
        let (mut other_server, mut server) = (listener.accept().unwrap().0, listener.accept().unwrap().0);
        let flow = FlowKey { src: client.local_addr().unwrap(), dst: client.peer_addr().unwrap() };
        table.replace([(flow, Fallback::Reset)]).unwrap();
        for stream in [&mut client, &mut server] {
            stream.set_read_timeout(Some(Duration::from_secs(2))).unwrap();
            stream.write_all(b"any").unwrap();
            assert_eq!(stream.read(&mut [0; 8]).unwrap_err().kind(), ErrorKind::ConnectionReset);
        }
        other.write_all(b"any").unwrap();
        other_server.read_exact(&mut [0; 3]).unwrap();
    }
}

#[test]
fn the_table_outlives_its_process_and_flows_time_out() {
    let Some((lab, table)) = lab(GatewayKind::Bridged, None) else { return };
    let flow = flow(&lab, false, 4000);
    table.replace([(flow, ADDED.into())]).unwrap();
    // The kernel does the same with the sockets of a killed process.
    drop(table);
    assert_eq!(both_ways(&lab, flow, 500), (3, 64_000));
    let timeout = paceline_wire::Duration::from_secs(1);
    let config = RescaleConfig { timeout, ..RescaleConfig::new("test", &["g0", "g1"], None) };
    let next = lab.gateway.run(|| RescaleTable::open(config)).unwrap().unwrap();
    next.replace([(flow, ADDED.into())]).unwrap();
    thread::sleep(Duration::from_millis(1200));
    assert_eq!(both_ways(&lab, flow, 500), (500, 500));
}

#[test]
fn what_goes_to_a_gateway_behind_a_tun_is_left_alone() {
    const MARK: u32 = 0x0800_0000;
    let Some((lab, table)) = lab(GatewayKind::Routed, Some(MARK)) else { return };
    let mut config = FailOpenConfig::marking("test", &["g0", "g1"], MARK);
    // Longer than the default, so that the rule does not lapse during a check on a busy machine.
    config.timeout = paceline_wire::Duration::from_secs(3);
    for ipv6 in [false, true] {
        let flow = flow(&lab, ipv6, 4000);
        table.replace([(flow, ADDED.into())]).unwrap();
        let (rule, _) = lab.gateway.run(|| FailOpen::install(&config)).unwrap().unwrap();
        assert_eq!(both_ways(&lab, flow, 500), (500, 500));
        thread::sleep(Duration::from_millis(3200));
        assert_eq!(both_ways(&lab, flow, 500), (3, 64_000), "it has lapsed");
        drop(rule);
        let (rule, _) = lab.gateway.run(|| FailOpen::install(&config)).unwrap().unwrap();
        assert_eq!(both_ways(&lab, flow, 500), (500, 500));
        drop(rule);
        assert_eq!(both_ways(&lab, flow, 500), (3, 64_000), "its process has gone");
    }
}
