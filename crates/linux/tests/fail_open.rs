//! The rule of a bridged gateway in real namespaces: what it drops, what it lets through, when it lapses.

#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

mod common;

use std::mem::MaybeUninit;
use std::net::{IpAddr, Ipv4Addr, SocketAddr, TcpListener, TcpStream, UdpSocket};
use std::time::Duration;

use common::{Driven, joined_lab};
use paceline_lab::endpoint::{
    Amount, Control, Direction, ReadPattern, SocketOptions, Traffic, Transfer, run,
};
use paceline_lab::{GatewayKind, Lab, netns};
use paceline_linux::netlink::Prefix;
use paceline_linux::nft::{FailOpen, FailOpenConfig, Refreshed};
use paceline_linux::{Filter, NullForwarder, clock};
use paceline_wire::Rate;
use socket2::{Domain, Protocol, Socket, Type};

const HOST: IpAddr = IpAddr::V4(Ipv4Addr::new(10, 77, 9, 1));

/// Returns a bridged lab with plain links, whose bridge has an address.
fn lab() -> Option<Lab> {
    let lab = joined_lab(GatewayKind::Bridged)?;
    lab.gateway.netlink().unwrap().add_address("br0", Prefix::new(HOST, 16)).unwrap();
    Some(lab)
}

fn config(lab: &Lab) -> FailOpenConfig {
    let hosts = lab.gateway.netlink().unwrap().host_addresses().unwrap();
    // Longer than the default, so that the rule does not lapse during a check on a busy machine.
    let timeout = paceline_wire::Duration::from_secs(2);
    FailOpenConfig { timeout, ..FailOpenConfig::new("test", &["g0", "g1"], hosts) }
}

fn install(lab: &Lab) -> FailOpen {
    lab.gateway.run(|| FailOpen::install(&config(lab))).unwrap().unwrap().0
}

/// True if the client can connect to an address within 300 ms. The listener is in `namespace`.
fn connects(lab: &Lab, namespace: &netns::Netns, address: IpAddr) -> bool {
    let listener = namespace.run(|| TcpListener::bind((address, 0))).unwrap().unwrap();
    let to = listener.local_addr().unwrap();
    lab.client.run(|| TcpStream::connect_timeout(&to, Duration::from_millis(300))).unwrap().is_ok()
}

fn client_reaches_server(lab: &Lab) -> bool {
    connects(lab, &lab.server, lab.server_address(false))
}

/// True if a datagram and its answer arrive. The client's address has not been resolved before.
fn datagrams_pass(lab: &Lab, from: IpAddr) -> bool {
    let to = SocketAddr::new(lab.server_address(false), 7000);
    let server = lab.server.run(|| UdpSocket::bind(to)).unwrap().unwrap();
    let client = lab.client.run(|| UdpSocket::bind((from, 0))).unwrap().unwrap();
    for socket in [&server, &client] {
        socket.set_read_timeout(Some(Duration::from_secs(2))).unwrap();
    }
    client.send_to(b"question", to).unwrap();
    let mut buffer = [0; 16];
    let Ok((length, back)) = server.recv_from(&mut buffer) else { return false };
    server.send_to(&buffer[..length], back).unwrap();
    client.recv(&mut buffer).is_ok_and(|length| &buffer[..length] == b"question")
}

/// True if an echo request is answered.
fn echo_passes(lab: &Lab) -> bool {
    let icmp = || Socket::new(Domain::IPV4, Type::RAW, Some(Protocol::ICMPV4));
    let socket = lab.client.run(icmp).unwrap().unwrap();
    socket.set_read_timeout(Some(Duration::from_secs(2))).unwrap();
    // Type 8, identifier 1, sequence number 1. The checksum is the complement of their sum.
    let request = [8, 0, 0xf7, 0xfd, 0, 1, 0, 1];
    socket.send_to(&request, &SocketAddr::new(lab.server_address(false), 0).into()).unwrap();
    let mut buffer = [MaybeUninit::new(0); 128];
    socket.recv(&mut buffer).is_ok_and(|length| length >= 28)
}

#[test]
fn only_the_gateways_packets_are_dropped_and_only_while_it_refreshes() {
    let Some(lab) = lab() else { return };
    assert!(client_reaches_server(&lab));
    let mut rule = install(&lab);
    assert!(!client_reaches_server(&lab), "TCP is the gateway's");
    assert_eq!(rule.refresh().unwrap(), Refreshed::InTime);
    let ipv6 = connects(&lab, &lab.server, lab.server_address(true));
    assert!(!ipv6, "TCP over IPv6 is the gateway's");
    assert_eq!(rule.refresh().unwrap(), Refreshed::InTime);
    assert!(connects(&lab, &lab.gateway, HOST), "the host's own traffic");
    let unresolved = IpAddr::from([10, 77, 2, 99]);
    lab.client.netlink().unwrap().add_address("c0", Prefix::new(unresolved, 16)).unwrap();
    assert!(datagrams_pass(&lab, unresolved), "ARP and UDP");
    assert!(echo_passes(&lab), "ICMP");

    std::thread::sleep(Duration::from_millis(2200));
    assert!(client_reaches_server(&lab), "the bridge has taken over");
    assert!(matches!(rule.refresh().unwrap(), Refreshed::AfterLapse(_)));
    assert!(!client_reaches_server(&lab), "the gateway is back");
    rule.remove().unwrap();
    assert!(client_reaches_server(&lab), "the gateway has gone in order");
}

#[test]
fn a_rule_that_is_held_outlasts_its_timeout_until_it_is_refreshed() {
    let Some(lab) = lab() else { return };
    let timeout = paceline_wire::Duration::from_millis(200);
    let config = FailOpenConfig { timeout, ..config(&lab) };
    let (mut rule, _) = lab.gateway.run(|| FailOpen::install(&config)).unwrap().unwrap();
    rule.hold(paceline_wire::Duration::from_secs(60)).unwrap();
    std::thread::sleep(Duration::from_millis(500));
    assert!(!client_reaches_server(&lab), "the rule is held");
    assert_eq!(rule.refresh().unwrap(), Refreshed::InTime);
    std::thread::sleep(Duration::from_millis(500));
    assert!(client_reaches_server(&lab), "it lapses as usual");
}

#[test]
fn the_rule_goes_with_its_process_and_has_one_owner() {
    let Some(lab) = lab() else { return };
    let rule = install(&lab);
    let second = lab.gateway.run(|| FailOpen::install(&config(&lab))).unwrap();
    let error = second.err().unwrap().to_string();
    assert!(error.contains("a running gateway owns it"), "{error}");
    assert!(!client_reaches_server(&lab));
    // The kernel does the same with the sockets of a killed process.
    drop(rule);
    let again = install(&lab);
    drop(again);
    assert!(client_reaches_server(&lab));
}

#[test]
fn an_unknown_port_is_named() {
    let Some(lab) = lab() else { return };
    let config = FailOpenConfig { ports: vec!["nosuch0".to_owned()], ..config(&lab) };
    let error = lab.gateway.run(|| FailOpen::install(&config)).unwrap().err().unwrap();
    assert!(error.to_string().contains("nosuch0"), "{error}");
}

/// Transfers both ways, so slow that the gateway can come and go meanwhile.
fn transfers(lab: &Lab) -> Traffic {
    let mut traffic = Traffic::new(paceline_wire::Duration::from_secs(60));
    for (number, direction) in [Direction::Down, Direction::Up].into_iter().enumerate() {
        let server = SocketAddr::new(lab.server_address(number == 1), 5001 + number as u16);
        let client = lab.client_address(number == 1, 0);
        let read = ReadPattern { rate: Some(Rate::from_mbps(24.0)), pauses: vec![] };
        let transfer = Transfer::new(format!("{number}"), server, client, Amount::Bytes(6_000_000));
        // Without it, the receiving kernel takes all data before the application reads.
        let small = SocketOptions { window_bytes: Some(60_000), ..SocketOptions::default() };
        let (server_socket, client_socket) = (small.clone(), small);
        traffic.transfers.push(Transfer { direction, read, server_socket, client_socket, ..transfer });
    }
    traffic
}

#[test]
fn transfers_survive_a_gateway_that_comes_and_stands_still() {
    let Some(lab) = lab() else { return };
    let traffic = transfers(&lab);
    let except_destinations = config(&lab).except_destinations;
    let (report, counters) = std::thread::scope(|scope| {
        let hosts =
            scope.spawn(|| run(&traffic, &lab.server, &lab.client, clock::now(), &Control::new()).unwrap());
        std::thread::sleep(Duration::from_millis(300));
        let filter = Filter::Tcp { except_destinations, datagrams: false, slice: None };
        let gateway = Driven::start(&lab.gateway, &["g0", "g1"], &filter, NullForwarder::new());
        let mut rule = install(&lab);
        for _ in 0..4 {
            std::thread::sleep(Duration::from_millis(100));
            rule.refresh().unwrap();
        }
        // The gateway stops forwarding but keeps its sockets open. Only the timeout helps.
        let (_, counters) = gateway.finish();
        let report = hosts.join().unwrap();
        drop(rule);
        (report, counters)
    });
    for transfer in &report.transfers {
        assert_eq!(transfer.sha256_ok, Some(true), "{}: {:?}", transfer.name, transfer.failure);
    }
    assert!(counters.iter().all(|port| port.received_packets > 0), "{counters:?}");
}
