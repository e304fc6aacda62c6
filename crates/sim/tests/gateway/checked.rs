//! The checker at the gateway sees what it is there to see.

use std::collections::VecDeque;

use paceline_gateway::{RADIO, WAN};
use paceline_wire::{BufferPool, Instant, Node, Packet, PortId, Seq};

use crate::world::{FlowSpec, Path, World, at_ms, xp_client};

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
    let mut pool = BufferPool::new(1 << 20);
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
        let mut world = World::new(Faulty { fault, ..Faulty::default() }, &Path::thesis(), 1);
        world.add_flow(&FlowSpec::download(xp_client()));
        world.run_until(at_ms(3_000));
        let findings = world.checker.findings();
        let found = findings.iter().any(|finding| finding.contains(message));
        assert!(found, "{fault}: {:?}", findings.first());
    }
}
