use std::net::SocketAddr;

use paceline_path::random::Probability;
use paceline_path::{Delay, Loss};
use paceline_wire::{Buffer, Checksum, Duration, FlowKey, Payload, Rate, TcpRepr};

use super::*;

/// Returns a TCP segment with `len` bytes. With a `gso_size` it is a super-packet.
fn tcp_packet(len: usize, gso_size: Option<u16>) -> Packet {
    let key = FlowKey::new(SocketAddr::from(([10, 0, 0, 1], 80)), SocketAddr::from(([10, 0, 1, 1], 4000)));
    let mut packet = Packet::build_tcp(key, &TcpRepr::default(), Payload::from(vec![7; len]));
    packet.set_gso_size(gso_size);
    packet
}

const SERVER: PortId = PortId(0);
const CLIENT: PortId = PortId(1);

fn ms(ms: u64) -> Instant {
    Instant::ZERO + Duration::from_millis(ms)
}

fn emulator(downlink: LinkConfig<RateProcess>, split: bool) -> Emulator {
    let link = DuplexConfig {
        name: "radio".to_owned(),
        ports: [SERVER, CLIENT],
        downlink,
        uplink: LinkConfig::default(),
        seeds: [1, 2],
        split,
        spare_neighbour_discovery: true,
    };
    let config = EmulatorConfig { links: vec![link], path: None, delivery: 0 };
    Emulator::new(config, Instant::ZERO).unwrap()
}

fn slow() -> LinkConfig<RateProcess> {
    LinkConfig {
        // One byte per microsecond.
        rate: RateProcess::Constant(Rate::from_mbps(8.0)),
        delay: Delay::Constant(Duration::from_millis(10)),
        ..LinkConfig::default()
    }
}

/// Runs the emulator as the event loop does. Returns the packets that came out, with their times.
fn run(emulator: &mut Emulator) -> Vec<(Instant, PortId, Packet)> {
    let mut out = Vec::new();
    while let Some(due) = emulator.poll_timeout() {
        emulator.handle_timeout(due);
        while let Some((port, packet)) = emulator.poll_transmit(due) {
            out.push((due, port, packet));
        }
    }
    out
}

#[test]
fn super_packets_are_split_and_stay_partial() {
    let mut emulator = emulator(slow(), true);
    emulator.handle_packet(ms(0), SERVER, tcp_packet(3000, Some(1460)));
    let out = run(&mut emulator);
    let lens: Vec<usize> = out.iter().map(|(_, _, packet)| packet.ip_len()).collect();
    assert_eq!(lens, [1500, 1500, 120]);
    assert!(out.iter().all(|(_, port, packet)| *port == CLIENT && packet.checksum() == Checksum::Partial));
    assert_eq!(out[1].0, ms(13), "two packets at a byte per microsecond, then 10 ms");
    let report = emulator.report(ms(20));
    let down = &report.directions[0];
    assert_eq!((down.delivered_packets, down.delivered_bytes, down.drops()), (3, 3120, 0));
    assert!((down.utilization().unwrap() - 0.156).abs() < 1e-3);
    assert_eq!((report.flows.len(), report.flows[0].bytes, report.flows[0].last.as_millis()), (1, 3000, 13));
    assert_eq!(down.queue_delay_max_us.values(), [3000]);
}

#[test]
fn a_wire_may_pass_super_packets_whole() {
    let mut emulator = emulator(LinkConfig::default(), false);
    emulator.handle_packet(ms(0), SERVER, tcp_packet(3000, Some(1460)));
    let out = run(&mut emulator);
    assert_eq!((out.len(), out[0].2.gso_size()), (1, Some(1460)));
}

#[test]
fn neighbour_discovery_is_delayed_but_not_lost() {
    let lossy = LinkConfig { loss: Loss::Independent(Probability::ONE), ..slow() };
    let mut emulator = emulator(lossy, true);
    emulator.handle_packet(ms(5), SERVER, tcp_packet(100, None));
    emulator.handle_packet(ms(5), SERVER, Packet::from(Buffer::from(vec![0, 1, 8, 0])));
    let out = run(&mut emulator);
    assert_eq!(out.len(), 1);
    assert_eq!((out[0].0, out[0].2.is_tcp()), (ms(15), false));
    let down = &emulator.report(ms(20)).directions[0];
    assert_eq!((down.spared, down.dropped_by_loss, down.delivered_packets), (1, 1, 0));
}

#[test]
fn measurements_begin_again_at_a_restart() {
    let mut emulator = emulator(slow(), true);
    emulator.handle_packet(ms(0), SERVER, tcp_packet(1460, None));
    run(&mut emulator);
    emulator.restart_at(ms(100));
    emulator.handle_packet(ms(100), SERVER, tcp_packet(460, None));
    run(&mut emulator);
    let report = emulator.report(ms(200));
    assert_eq!(report.duration, Duration::from_millis(100));
    assert_eq!((report.directions[0].sent_bytes, report.flows[0].bytes), (500, 460));
    assert_eq!(report.directions[0].capacity_bytes, Some(100_000));
}
