//! Real TCP connections through the live emulator, with all offloads of the virtual interfaces on.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, reason = "a test fails by panicking")]

#[path = "../../linux/tests/common/mod.rs"]
mod common;

use std::net::{IpAddr, UdpSocket};
use std::thread;

use common::{Driven, permitted, transfer};
use paceline_lab::emulator::{DuplexConfig, Emulator, EmulatorConfig};
use paceline_lab::netns::Netns;
use paceline_lab::{Lab, LabConfig};
use paceline_linux::{Filter, Quantiles, clock};
use paceline_path::{Delay, LinkConfig, QueueLimit, RateProcess};
use paceline_wire::{Duration, PortId, Rate};

#[test]
fn tcp_passes_through_emulated_links() {
    if !permitted() {
        return;
    }
    let lab = Lab::build(LabConfig::default()).unwrap();
    lab.gateway.netlink().unwrap().set_up("br0", true).unwrap();
    let radio = LinkConfig {
        rate: RateProcess::Constant(Rate::from_mbps(50.0)),
        queue: QueueLimit::Bytes(400_000),
        ..delayed(5)
    };
    let emulated = start(&lab, radio, delayed(5));
    for ipv6 in [false, true] {
        let server = (&lab.server, lab.server_address(ipv6));
        let client = (&lab.client, lab.client_address(ipv6, 0));
        transfer(server, client, 3_000_000);
        transfer(client, server, 3_000_000);
    }
    let (emulator, ports) = emulated.finish();
    let report = emulator.report(clock::now());
    assert!(ports.iter().all(|port| port.malformed + port.kernel_drops + port.out.dropped_refused == 0));
    let down = &report.directions[2];
    assert_eq!(down.name, "radio_down");
    assert!(down.delivered_bytes > 6_000_000 && down.utilization().is_some());
    assert!(down.sent_bytes / down.sent_packets <= 1500, "super-packets are split before the link");
    let path = report.path_delay.as_ref().unwrap();
    assert!(path.delays.count() > 4_000 && path.unmatched == 0, "{path:?}");
    let delivered: u64 = report.flows.iter().map(|flow| flow.bytes).sum();
    assert!(delivered >= 12_000_000 && report.flows.len() == 4, "{delivered} {}", report.flows.len());
}

/// Prints the round-trip times. Asserts only what does not depend on the machine.
#[test]
fn round_trips_take_at_least_the_emulated_time() {
    if !permitted() {
        return;
    }
    let lab = Lab::build(LabConfig::default()).unwrap();
    let emulated = start(&lab, delayed(50), delayed(50));
    let (server, client) = (lab.server_address(false), lab.client_address(false, 0));
    let trips = round_trips((&lab.server, server), (&lab.client, client), 30);
    emulated.finish();
    let [p50, p99] = [0.5, 0.99].map(|fraction| trips.quantile(fraction));
    println!("round trips over 100 ms: p50 {p50:?}, p99 {p99:?}, max {:?}", trips.max());
    assert!(trips.quantile(0.0) >= Duration::from_millis(100) - Duration::from_micros(100));
}

fn delayed(ms: u64) -> LinkConfig<RateProcess> {
    LinkConfig { delay: Delay::Constant(Duration::from_millis(ms)), ..LinkConfig::default() }
}

fn start(lab: &Lab, downlink: LinkConfig<RateProcess>, uplink: LinkConfig<RateProcess>) -> Driven<Emulator> {
    let link = |name: &str, ports: [u8; 2], downlink, uplink, split| DuplexConfig {
        name: name.to_owned(),
        ports: ports.map(PortId),
        downlink,
        uplink,
        seeds: [1, 2],
        split,
        spare_neighbour_discovery: true,
    };
    let wire = LinkConfig::default();
    let links =
        vec![link("wired", [0, 1], wire.clone(), wire, false), link("radio", [2, 3], downlink, uplink, true)];
    let config = EmulatorConfig { links, path: Some((0, 1)), delivery: 1 };
    let emulator = Emulator::new(config, clock::now()).unwrap();
    Driven::start(&lab.net, &["n0", "n1", "n2", "n3"], &Filter::All, emulator)
}

fn round_trips(server: (&Netns, IpAddr), client: (&Netns, IpAddr), count: u32) -> Quantiles {
    let echo = server.0.run(|| UdpSocket::bind((server.1, 7))).unwrap().unwrap();
    let socket = client.0.run(|| UdpSocket::bind((client.1, 0))).unwrap().unwrap();
    thread::spawn(move || {
        let mut byte = [0];
        while let Ok((_, from)) = echo.recv_from(&mut byte) {
            echo.send_to(&byte, from).unwrap();
        }
    });
    let mut trips = Quantiles::new();
    for _ in 0..count {
        let sent = clock::now();
        socket.send_to(&[1], (server.1, 7)).unwrap();
        socket.recv(&mut [0]).unwrap();
        trips.record(clock::now().saturating_since(sent));
    }
    trips
}
