//! Transfers between kernel sockets through the lab's four namespaces, joined by kernel bridges.

#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

use std::net::SocketAddr;

use paceline_lab::endpoint::{
    Amount, Control, Direction, ReadPattern, Start, Traffic, TrafficReport, Transfer, UdpStream, run,
};
use paceline_lab::netns;
use paceline_lab::{GatewayKind, Lab, LabConfig};
use paceline_linux::clock;
use paceline_wire::{Duration, Rate};

/// Returns a lab with plain links. `None` if namespaces are not permitted, with a line on standard error.
fn lab(gateway: GatewayKind) -> Option<Lab> {
    if let Err(error) = netns::check_permitted() {
        eprintln!("skipped: {error}");
        return None;
    }
    let lab = Lab::build(LabConfig { gateway, ..LabConfig::default() }).unwrap();
    lab.join_links().unwrap();
    Some(lab)
}

fn transfer(lab: &Lab, ipv6: bool, port: u16, direction: Direction, amount: Amount) -> Transfer {
    let server = SocketAddr::new(lab.server_address(ipv6), port);
    Transfer { direction, ..Transfer::new(format!("{port}"), server, lab.client_address(ipv6, 0), amount) }
}

fn run_now(lab: &Lab, traffic: &Traffic) -> TrafficReport {
    run(traffic, &lab.server, &lab.client, clock::now(), &Control::new()).unwrap()
}

fn traffic(transfers: Vec<Transfer>) -> Traffic {
    Traffic { transfers, ..Traffic::new(Duration::from_secs(20)) }
}

#[test]
fn both_directions_and_families_arrive_unchanged() {
    for gateway in [GatewayKind::Bridged, GatewayKind::Routed] {
        let Some(lab) = lab(gateway) else { return };
        let mut transfers = Vec::new();
        for (index, bytes) in [1, 1_448, 100_000, 3_000_001].into_iter().enumerate() {
            for (family, ipv6) in [false, true].into_iter().enumerate() {
                for (way, direction) in [Direction::Down, Direction::Up].into_iter().enumerate() {
                    let port = 5001 + (index * 4 + family * 2 + way) as u16;
                    transfers.push(transfer(&lab, ipv6, port, direction, Amount::Bytes(bytes)));
                }
            }
        }
        let report = run_now(&lab, &traffic(transfers.clone()));
        for (transfer, result) in transfers.iter().zip(&report.transfers) {
            assert!(result.completed, "{transfer:?}: {:?}", result.failure);
            assert_eq!(result.sha256_ok, Some(true));
            assert_eq!(Amount::Bytes(result.received_bytes), transfer.amount);
            assert!(result.completion().unwrap() > Duration::ZERO);
        }
    }
}

#[test]
fn transfers_follow_one_another() {
    let Some(lab) = lab(GatewayKind::Bridged) else { return };
    let first = transfer(&lab, false, 5001, Direction::Down, Amount::Bytes(10_000));
    let pause = Duration::from_millis(5);
    let second = Transfer {
        start: Start::After(0, pause),
        ..transfer(&lab, false, 5002, Direction::Up, Amount::Bytes(10_000))
    };
    let report = run_now(&lab, &traffic(vec![first, second]));
    let [first, second] = &report.transfers[..] else { unreachable!() };
    assert!(first.completed && second.completed);
    assert!(second.began.unwrap() >= first.last_byte.unwrap() + pause);
    assert_eq!(second.tail_loss_probes, Some(0), "alone, so the namespace's counters are its own");
}

#[test]
fn a_bulk_transfer_ends_when_told_and_samples_are_kept() {
    let Some(lab) = lab(GatewayKind::Bridged) else { return };
    let mut bulk = transfer(&lab, false, 5001, Direction::Down, Amount::Until(Duration::from_millis(600)));
    bulk.server_socket.congestion_control = Some("reno".to_owned());
    // A slow reader, so that the amount stays small.
    bulk.read = ReadPattern { rate: Some(Rate::from_mbps(80.0)), pauses: vec![] };
    bulk.client_socket.window_bytes = Some(60_000);
    bulk.server_socket.unsent_bytes_max = Some(65_536);
    let report = run_now(&lab, &traffic(vec![bulk]));
    let bulk = &report.transfers[0];
    assert!(bulk.completed && bulk.sha256_ok == Some(true), "{:?}", bulk.failure);
    assert!(bulk.samples.len() >= 3, "{}", bulk.samples.len());
    assert!(bulk.rtt.count() >= 1);
    assert_eq!(bulk.received_bins.iter().sum::<u64>(), bulk.received_bytes);
    let widest = bulk.samples.iter().map(|sample| sample.peer_window_bytes).max().unwrap();
    assert!(widest <= 60_000, "{widest}");
    assert!(report.server_mib.len() >= 3);
}

#[test]
fn a_window_without_scaling_is_kept() {
    const BYTES: u64 = 2_000_000;
    let Some(lab) = lab(GatewayKind::Bridged) else { return };
    lab.client.set_sysctls(&[("net.ipv4.tcp_window_scaling", "0")]).unwrap();
    let mut small = transfer(&lab, false, 5001, Direction::Down, Amount::Bytes(BYTES));
    small.client_socket.window_bytes = Some(17 * 1024);
    let report =
        run_now(&lab, &Traffic { sample_interval: Duration::from_millis(1), ..traffic(vec![small]) });
    let small = &report.transfers[0];
    assert_eq!(small.sha256_ok, Some(true), "{:?}", small.failure);
    let widest = small.samples.iter().map(|sample| sample.peer_window_bytes).max().unwrap();
    assert!(widest >= 15_000, "{widest}");
    // Newer kernels forget the limit for a moment while they learn the segment size. By half of the bytes, which is
    // sixty windows, they have learnt it.
    let late = small.samples.iter().filter(|sample| sample.acknowledged_bytes >= BYTES / 2);
    let windows: Vec<u32> = late.map(|sample| sample.peer_window_bytes).collect();
    assert!(windows.iter().all(|window| *window <= 17 * 1024), "{windows:?}");
}

#[test]
fn refusal_impatience_and_cancelling_end_a_run() {
    let Some(lab) = lab(GatewayKind::Bridged) else { return };
    let paused = |port| {
        let mut transfer = transfer(&lab, false, port, Direction::Down, Amount::Bytes(50_000_000));
        transfer.read.pauses = vec![(Duration::ZERO, Duration::from_secs(1000))];
        transfer
    };
    let impatient = Traffic { patience: Duration::from_millis(200), ..traffic(vec![paused(5001)]) };
    let report = run_now(&lab, &impatient);
    assert!(!report.transfers[0].completed);
    assert_eq!(report.transfers[0].sha256_ok, Some(false));
    assert!(report.transfers[0].failure.as_deref().unwrap().contains("in time"));

    let control = Control::new();
    control.cancel();
    let report = run(&traffic(vec![paused(5002)]), &lab.server, &lab.client, clock::now(), &control).unwrap();
    assert_eq!(report.transfers[0].failure.as_deref(), Some("cancelled"));

    let mut unknown = transfer(&lab, false, 5003, Direction::Down, Amount::Bytes(1));
    unknown.server_socket.congestion_control = Some("nosuch".to_owned());
    let error =
        run(&traffic(vec![unknown]), &lab.server, &lab.client, clock::now(), &Control::new()).unwrap_err();
    assert!(error.to_string().contains("nosuch"), "{error}");
}

#[test]
fn datagrams_arrive_at_their_rate() {
    let Some(lab) = lab(GatewayKind::Bridged) else { return };
    let mut traffic = traffic(vec![]);
    traffic.streams.push(UdpStream {
        name: "udp".to_owned(),
        direction: Direction::Down,
        server: SocketAddr::new(lab.server_address(false), 6001),
        client: SocketAddr::new(lab.client_address(false, 0), 6001),
        rate: Rate::from_bytes_per_sec(122_800),
        datagram_bytes: 1200,
        start: Duration::ZERO,
        stop: Duration::from_millis(500),
    });
    let report = run_now(&lab, &traffic);
    let stream = &report.streams[0];
    assert_eq!(stream.failure, None);
    assert_eq!(stream.sent_datagrams, 50);
    assert_eq!(stream.received_datagrams, 50);
    assert_eq!(stream.throughput, Rate::from_bytes_per_sec(122_800));
}

#[test]
fn a_short_minimum_timeout_is_heeded() {
    for gateway in [GatewayKind::Bridged, GatewayKind::Routed] {
        let Some(lab) = lab(gateway) else { return };
        lab.set_server_rto_min(20).unwrap();
        let down = |ipv6, port| transfer(&lab, ipv6, port, Direction::Down, Amount::Bytes(1_000_000));
        let report = run_now(&lab, &traffic(vec![down(false, 5001), down(true, 5002)]));
        for transfer in &report.transfers {
            let last = transfer.samples.last().unwrap();
            // Linux's own minimum is 200 ms.
            assert!(last.rto_us < 200_000, "{gateway:?}: {last:?}");
        }
    }
}
