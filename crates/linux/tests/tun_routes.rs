//! A routed gateway starts, ends, and is killed while transfers run.

#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

mod common;

use std::net::{SocketAddr, TcpListener, TcpStream, UdpSocket};
use std::thread;
use std::time::Duration as StdDuration;

use paceline_lab::endpoint::{
    Amount, Control, Direction, ReadPattern, SocketOptions, Traffic, Transfer, run,
};
use paceline_lab::{GatewayKind, Lab, LabConfig};
use paceline_linux::netlink::Prefix;
use paceline_linux::nft::{FailOpen, FailOpenConfig};
use paceline_linux::tun_routes::{TunRoutes, TunRoutesConfig};
use paceline_linux::{Device, EventLoop, EventLoopConfig, NullForwarder, Tun, clock};
use paceline_wire::{Duration, PortId, Rate};

use common::{Driven, joined_lab, permitted};

const TUN: &str = "paceline0";

fn clients(lab: &Lab) -> Vec<Prefix> {
    [false, true].map(|ipv6| lab.client_prefix(ipv6)).to_vec()
}

/// Starts a forwarder behind a TUN.
fn start(lab: &Lab) -> Driven<NullForwarder> {
    let tun = lab.gateway.run(|| Tun::open(TUN)).unwrap().unwrap();
    let clients = clients(lab).iter().map(|prefix| prefix.to_string().parse().unwrap()).collect();
    let mut event_loop = EventLoop::new(EventLoopConfig::default()).unwrap();
    event_loop.add(Device::Tun { tun, clients, wan: PortId(0), radio: PortId(1) }).unwrap();
    Driven::run(event_loop, NullForwarder::new())
}

fn install(lab: &Lab, mark: Option<u32>) -> TunRoutes {
    let config = TunRoutesConfig { mark, ..TunRoutesConfig::new(TUN, &["g0"], &["g1"], clients(lab)) };
    lab.gateway.run(|| TunRoutes::install(&config)).unwrap().unwrap()
}

/// Transfers so slow that the gateway can come and go meanwhile.
fn traffic(lab: &Lab) -> Traffic {
    let mut traffic = Traffic::new(Duration::from_secs(60));
    for (number, (ipv6, direction)) in
        [(false, Direction::Down), (true, Direction::Down), (false, Direction::Up), (true, Direction::Up)]
            .into_iter()
            .enumerate()
    {
        let server = SocketAddr::new(lab.server_address(ipv6), 5001 + number as u16);
        let amount = Amount::Bytes(6_000_000);
        let read = ReadPattern { rate: Some(Rate::from_mbps(24.0)), pauses: vec![] };
        let transfer = Transfer::new(format!("{number}"), server, lab.client_address(ipv6, 0), amount);
        // Without it, the receiving kernel takes all data before the application reads.
        let small = SocketOptions { window_bytes: Some(60_000), ..SocketOptions::default() };
        let (server_socket, client_socket) = (small.clone(), small);
        traffic.transfers.push(Transfer { direction, read, server_socket, client_socket, ..transfer });
    }
    traffic
}

#[test]
fn transfers_survive_a_gateway_that_comes_and_is_killed() {
    let Some(lab) = joined_lab(GatewayKind::Routed) else { return };
    let traffic = traffic(&lab);
    let report = thread::scope(|scope| {
        let hosts =
            scope.spawn(|| run(&traffic, &lab.server, &lab.client, clock::now(), &Control::new()).unwrap());
        thread::sleep(StdDuration::from_millis(400));
        for _ in 0..2 {
            let gateway = start(&lab);
            let routes = install(&lab, None);
            thread::sleep(StdDuration::from_millis(400));
            let (_, counters) = gateway.finish();
            // A killed process leaves its rules.
            std::mem::forget(routes);
            assert!(counters[0].received_packets > 0);
            thread::sleep(StdDuration::from_millis(200));
        }
        hosts.join().unwrap()
    });
    for transfer in &report.transfers {
        assert_eq!(transfer.sha256_ok, Some(true), "{}: {:?}", transfer.name, transfer.failure);
        assert_eq!(transfer.received_bytes, 6_000_000);
    }
}

#[test]
fn only_marked_packets_pass_the_device() {
    const MARK: u32 = 0x0800_0000;
    let Some(lab) = joined_lab(GatewayKind::Routed) else { return };
    // The strictest setting.
    lab.gateway.set_sysctls(&[("net.ipv4.conf.all.rp_filter", "1")]).unwrap();
    let gateway = start(&lab);
    let routes = install(&lab, Some(MARK));
    let connects = |ipv6| {
        let listener = lab.server.run(|| TcpListener::bind((lab.server_address(ipv6), 0))).unwrap().unwrap();
        let to = listener.local_addr().unwrap();
        lab.client.run(|| TcpStream::connect_timeout(&to, StdDuration::from_millis(500))).unwrap().is_ok()
    };
    assert!(connects(false) && connects(true), "the main table forwards");
    let config = FailOpenConfig::marking("test", &["g0", "g1", TUN], MARK);
    let mark = || lab.gateway.run(|| FailOpen::install(&config)).unwrap().unwrap().0;
    let rule = mark();
    assert!(connects(false) && connects(true), "the gateway forwards");
    let (_, counters) = gateway.finish();
    assert!(counters[0].received_packets >= 6, "{counters:?}");
    drop((rule, routes));

    // A process that stands still: nobody reads and nobody refreshes.
    let _tun = lab.gateway.run(|| Tun::open(TUN)).unwrap().unwrap();
    let _routes = install(&lab, Some(MARK));
    let _rule = mark();
    assert!(!connects(false));
    thread::sleep(StdDuration::from_millis(1200));
    assert!(connects(false) && connects(true), "it has lapsed");
}

#[test]
fn datagrams_pass_the_device_if_asked_for() {
    let Some(lab) = joined_lab(GatewayKind::Routed) else { return };
    for datagrams in [false, true] {
        let gateway = start(&lab);
        let config =
            TunRoutesConfig { datagrams, ..TunRoutesConfig::new(TUN, &["g0"], &["g1"], clients(&lab)) };
        let routes = lab.gateway.run(|| TunRoutes::install(&config)).unwrap().unwrap();
        for ipv6 in [false, true] {
            let bind = || UdpSocket::bind((lab.server_address(ipv6), 0));
            let server = lab.server.run(bind).unwrap().unwrap();
            server.set_read_timeout(Some(StdDuration::from_secs(5))).unwrap();
            let bind = || UdpSocket::bind((lab.client_address(ipv6, 0), 0));
            let client = lab.client.run(bind).unwrap().unwrap();
            for _ in 0..20 {
                client.send_to(b"ping", server.local_addr().unwrap()).unwrap();
                let mut buffer = [0; 16];
                assert_eq!(server.recv_from(&mut buffer).unwrap(), (4, client.local_addr().unwrap()));
            }
        }
        drop(routes);
        let (_, counters) = gateway.finish();
        // The kernel itself sends one or two packets by a new device, such as router solicitations.
        assert_eq!(counters[0].received_packets >= 40, datagrams, "{counters:?}");
    }
}

#[test]
fn gateways_of_one_machine_leave_each_other_alone() {
    let Some(lab) = joined_lab(GatewayKind::Routed) else { return };
    let gateway = start(&lab);
    let _routes = install(&lab, None);
    let _other_tun = lab.gateway.run(|| Tun::open("paceline1")).unwrap().unwrap();
    let other = TunRoutesConfig::new("paceline1", &["x0"], &["x1"], clients(&lab));
    drop(lab.gateway.run(|| TunRoutes::install(&other)).unwrap().unwrap());
    let listener = lab.server.run(|| TcpListener::bind((lab.server_address(false), 0))).unwrap().unwrap();
    let to = listener.local_addr().unwrap();
    lab.client.run(|| TcpStream::connect_timeout(&to, StdDuration::from_secs(5))).unwrap().unwrap();
    let (_, counters) = gateway.finish();
    assert!(counters[0].received_packets >= 3, "{counters:?}");
}

#[test]
fn a_machine_that_does_not_forward_is_told_so() {
    if !permitted() {
        return;
    }
    let lab = Lab::build(LabConfig::default()).unwrap();
    let config = TunRoutesConfig::new(TUN, &["g0"], &["g1"], clients(&lab));
    let error = lab.gateway.run(|| TunRoutes::install(&config)).unwrap().unwrap_err();
    assert!(error.to_string().contains("net.ipv4.ip_forward=1"), "{error}");
}
