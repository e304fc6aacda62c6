//! Tests of the kit itself. The model TCP must do what Linux and the published clients do on the same paths without a
//! gateway. The checker must see the faults that it is there to see.

use std::collections::VecDeque;

use crate::kit::connection::{EndpointConfig, Workload};
use crate::kit::receiver::{Reading, ReceiverConfig};
use crate::kit::scenario::{
    Flow, FlowSpec, Path, Report, XP_WINDOW, at_ms, lossy, modern_client, world, xp_client,
};
use crate::kit::sender::SenderConfig;
use crate::kit::sim::{Direct, RADIO, Sim, WAN};
use crate::kit::stream::Content;
use paceline_path::QueueLimit;
use paceline_wire::{Duration, Instant, Node, Packet, PortId, Rate, Seq};

fn run(path: &Path, spec: &FlowSpec, seconds: u64, seed: u64) -> (Sim<Direct>, Flow) {
    let mut sim = world(Direct::default(), path, seed);
    let flow = sim.add_flow(spec);
    sim.run_until(at_ms(seconds * 1_000));
    sim.checker.assert_clean();
    (sim, flow)
}

fn download(path: &Path, spec: &FlowSpec, seconds: u64, seed: u64) -> Report {
    let (sim, flow) = run(path, spec, seconds, seed);
    sim.download(flow)
}

#[test]
fn a_small_window_limits_as_published() {
    let report = download(&Path::thesis(), &FlowSpec::download(xp_client(XP_WINDOW)), 20, 1);
    assert!((1.3..1.45).contains(&report.goodput_mbps), "{report:?}");
    assert_eq!(report.retransmitted_segments, 0);
}

#[test]
fn cubic_fills_a_link_with_a_queue_of_one_bdp() {
    let path = Path { queue: QueueLimit::Bytes(90_000), ..Path::thesis() };
    let report = download(&path, &FlowSpec::download(modern_client(6 << 20)), 30, 1);
    assert!(report.goodput_mbps > 0.95 * 7.2 * 1448.0 / 1500.0, "{report:?}");
    assert_eq!(report.timeouts, 0, "{report:?}");
}

/// Linux 6.1 on this path: 16.3 Mbit/s at 0.01 %, 5.1 Mbit/s at 0.1 % (docs: reference measurements, 200 s, 3 runs).
#[test]
fn random_loss_costs_about_what_it_costs_linux() {
    for (p, range) in [(0.0001, 14.0..18.0), (0.001, 4.4..6.6)] {
        let path = Path { loss: lossy(p), queue: QueueLimit::Bytes(4_500_000), ..Path::new(20.0, 0, 100) };
        let mean = (1..=3)
            .map(|seed| download(&path, &FlowSpec::download(modern_client(260_640)), 60, seed).goodput_mbps)
            .sum::<f64>()
            / 3.0;
        assert!(range.contains(&mean), "p = {p}: {mean} Mbit/s");
    }
}

#[test]
fn losses_are_repaired_with_and_without_sack_and_every_byte_is_right() {
    for sack in [true, false] {
        let path = Path { loss: lossy(0.01), ..Path::thesis() };
        let ends = EndpointConfig { sack, content: Content::Bytes, ..modern_client(200_000) };
        let mut spec = FlowSpec::download(ends.clone()).bytes(1_000_000);
        spec.server = ends;
        let (sim, flow) = run(&path, &spec, 60, 3);
        let report = sim.download(flow);
        assert!(report.completion.is_some_and(|t| t < Duration::from_secs(20)), "sack {sack}: {report:?}");
        assert_eq!(report.received_bytes, 1_000_000);
        assert!(sim.clients[0].host.connections[0].is_over() && sim.servers[0].host.connections[0].is_over());
    }
}

#[test]
fn super_packets_change_little() {
    let mut spec = FlowSpec::download(xp_client(65_535)).bytes(4_000_000);
    let single = download(&Path::thesis(), &spec, 20, 1);
    spec.server.sender = SenderConfig { gso_segments: 20, ..SenderConfig::default() };
    let grouped = download(&Path::thesis(), &spec, 20, 1);
    let (single, grouped) = (single.completion.unwrap(), grouped.completion.unwrap());
    assert!(single.abs_diff(grouped) < Duration::from_millis(400), "{single:?} {grouped:?}");
}

#[test]
fn a_slow_reader_is_never_overrun() {
    let reading = Reading { rate: Some(Rate::from_mbps(2.0)), pauses: Vec::new() };
    let mut client = modern_client(200_000);
    client.receiver.reading = reading;
    let report = download(&Path::thesis(), &FlowSpec::download(client), 20, 1);
    assert_eq!(report.beyond_window_bytes, 0, "{report:?}");
    assert!((1.9..2.1).contains(&report.goodput_mbps), "{report:?}");
}

#[test]
fn a_paused_reader_is_probed_and_served_again() {
    let reading = Reading { rate: None, pauses: vec![(at_ms(2_000), at_ms(32_000))] };
    let client = EndpointConfig {
        receiver: ReceiverConfig { buffer: 65_535, reading, ..ReceiverConfig::default() },
        ..modern_client(0)
    };
    let (sim, flow) = run(&Path::thesis(), &FlowSpec::download(client), 36, 1);
    let report = sim.download(flow);
    assert!(!report.aborted && report.beyond_window_bytes == 0, "{report:?}");
    assert!(sim.servers[0].host.connections[0].sender.as_ref().unwrap().stats.window_probes > 2);
    assert!(sim.goodput_between(flow, at_ms(33_000), at_ms(36_000)) > 4.0);
}

#[test]
fn uploads_work_like_downloads() {
    let mut spec = FlowSpec::download(modern_client(200_000)).bytes(0);
    spec.client_sends = Workload::Bytes(2_000_000);
    spec.server_sends = Workload::Silent;
    let (sim, flow) = run(&Path::thesis(), &spec, 20, 1);
    let report = sim.upload(flow);
    assert_eq!(report.received_bytes, 2_000_000);
    assert!(report.completion.is_some_and(|t| t < Duration::from_secs(3)), "{report:?}");
}

#[test]
fn a_seed_fixes_a_run() {
    let path = Path { loss: lossy(0.01), ..Path::thesis() };
    let run = |seed| {
        let report = download(&path, &FlowSpec::download(modern_client(200_000)), 10, seed);
        (report.received_bytes, report.retransmitted_segments)
    };
    assert_eq!(run(7), run(7));
    assert_ne!(run(7), run(8));
}

/// A gateway with one fault.
#[derive(Debug, Default)]
struct Faulty {
    fault: &'static str,
    count: u64,
    queue: VecDeque<(PortId, Packet)>,
}

impl Node for Faulty {
    fn handle_packet(&mut self, _arrival: Instant, port: PortId, mut packet: Packet) {
        self.count += 1;
        let hit = self.count > 50 && self.count.is_multiple_of(10);
        let ack = packet.tcp().map(|tcp| (tcp.ack(), tcp.window(), tcp.seq()));
        if let (true, true, Some((ack, window, _))) = (hit, port == RADIO, ack) {
            match self.fault {
                "acknowledges" => packet.tcp_mut().unwrap().set_ack(ack.add(1_460)),
                "shrinks" => packet.tcp_mut().unwrap().set_window(window / 2),
                "corrupts" => packet.tcp_mut().unwrap().set_seq(Seq(5)),
                _ => {}
            }
            if self.fault == "corrupts" {
                // Edits keep the checksum right. To make it wrong, the edit is undone in the bytes only.
                packet = broken_checksum(&packet);
            }
        }
        if hit && port == WAN && self.fault == "invents" {
            let mut copy = packet.clone();
            if let Some((_, _, seq)) = ack {
                copy.tcp_mut().unwrap().set_seq(seq.add(1_000_000));
            }
            self.queue.push_back((RADIO, copy));
        }
        let behind = self.fault == "overtakes" && hit && port == WAN;
        self.queue.push_back((PortId(1 - port.0), packet));
        if behind && self.queue.len() > 1 {
            let last = self.queue.len() - 1;
            self.queue.swap(last, last - 1);
        }
    }

    fn handle_timeout(&mut self, _now: Instant) {}

    fn poll_transmit(&mut self, _now: Instant) -> Option<(PortId, Packet)> {
        // "overtakes" keeps one packet back, so that there is something to overtake.
        (self.fault != "overtakes" || self.queue.len() > 1).then(|| self.queue.pop_front())?
    }

    fn poll_timeout(&self) -> Option<Instant> {
        None
    }
}

fn broken_checksum(packet: &Packet) -> Packet {
    let mut bytes = packet.to_vec();
    let last = bytes.len() - 1;
    bytes[last] ^= 0x5a;
    let mut pool = paceline_wire::BufferPool::new(1 << 20);
    Packet::parse(&[], &bytes, &mut pool).unwrap()
}

#[test]
fn the_checker_sees_every_fault_it_is_there_for() {
    for (fault, message) in [
        ("acknowledges", "nobody sent"),
        ("shrinks", "moves back"),
        ("corrupts", "wrong checksum"),
        ("invents", "never came"),
        ("overtakes", "overtook"),
    ] {
        let mut sim = world(Faulty { fault, ..Faulty::default() }, &Path::thesis(), 1);
        sim.add_flow(&FlowSpec::download(xp_client(XP_WINDOW)));
        sim.run_until(at_ms(3_000));
        let found = sim.checker.findings.iter().any(|finding| finding.contains(message));
        assert!(found, "{fault}: {:?}", sim.checker.findings.first());
    }
}
