//! Properties that must hold for any state of another process, even a damaged one.
#![allow(clippy::unwrap_used, reason = "a check that fails ends the test")]

use std::net::{Ipv4Addr, SocketAddr};
use std::sync::OnceLock;

use paceline_gateway::config::FlowMode;
use paceline_gateway::{GatewayConfig, RADIO, WAN};
use paceline_wire::{Flags, FlowKey, Node, Payload, Seq, TcpRepr};

use super::*;

/// `data`: choices, then either an offer, or changes of a state that a gateway wrote. A change has two bytes of
/// position and one of value. A changed state is refused. A state without its digest is read without harm.
pub fn state(data: &[u8]) {
    let Some((&choices, changes)) = data.split_first() else { return };
    if choices & 2 == 2 {
        return offer(changes);
    }
    let whole = written(choices & 1 == 1);
    let mut changed = whole.to_vec();
    for change in changes.chunks_exact(3) {
        let at = usize::from(u16::from_be_bytes([change[0], change[1]])) % changed.len();
        changed[at] = change[2];
    }
    let len = whole.len() - DIGEST;
    match digest::checked(&changed) {
        Ok(state) if state == &whole[..len] => {}
        // Without the mark, the state counts as an older program's.
        Ok(state) => assert!(state == changed && changed[len..] != whole[len..]),
        Err(_) => assert_ne!(changed, whole),
    }
    let Ok(memory) = read::from_slice::<IncomingState>(&changed[..len]) else {
        assert_ne!(changed[..len], whole[..len], "what was written can be read");
        return;
    };
    assert!(memory.waiting.len() <= changed.len() && memory.split.0.len() <= 2);
}

fn offer(data: &[u8]) {
    let Ok(offer) = serde_json::from_slice::<Offer>(data) else { return };
    let written = serde_json::to_string(&offer).unwrap();
    let again: Offer = serde_json::from_str(&written).unwrap();
    assert_eq!(serde_json::to_string(&again).unwrap(), written);
}

/// Returns the state of a gateway with two flows that have data in flight.
fn written(split: bool) -> &'static [u8] {
    static WRITTEN: [OnceLock<Vec<u8>>; 2] = [OnceLock::new(), OnceLock::new()];
    WRITTEN[usize::from(split)].get_or_init(|| {
        let mode = if split { FlowMode::Split } else { FlowMode::Transparent };
        let node = busy(mode);
        let now = Instant::from_nanos(1_000_000_000);
        let written = OutgoingState {
            started: now,
            time: now,
            totals: Totals::default(),
            ports: Vec::new(),
            waiting: Vec::new(),
            gateway: node.state(),
            split: super::split::OutgoingSplitFlows(&node),
        };
        let mut bytes = Vec::new();
        digest::write(&mut bytes, |out| {
            rmp_serde::encode::write_named(out, &written).map_err(io::Error::other)
        })
        .unwrap();
        bytes
    })
}

fn busy(mode: FlowMode) -> Gateway {
    let mut gateway = Gateway::new(GatewayConfig { mode, ..GatewayConfig::default() });
    let now = Instant::from_nanos(1_000_000_000);
    for port in 0..2 {
        let end = |net: u8, port: u16| SocketAddr::from((Ipv4Addr::new(10, net, 0, 1), port));
        let key = FlowKey::new(end(1, 40_000 + port), end(2, 443));
        let segment = |key: FlowKey, seq: u32, ack: u32, flags: Flags, len: usize| {
            let repr = TcpRepr { seq: Seq(seq), ack: Seq(ack), flags, window: 60_000, ..TcpRepr::default() };
            Packet::build_tcp(key, &repr, Payload::from(vec![7; len]))
        };
        let back = key.reversed();
        for (port, packet) in [
            (RADIO, segment(key, 0, 0, Flags::SYN, 0)),
            (WAN, segment(back, 0, 1, Flags::SYN | Flags::ACK, 0)),
            (RADIO, segment(key, 1, 1, Flags::ACK, 20)),
            (WAN, segment(back, 1, 21, Flags::ACK, 300)),
            (WAN, segment(back, 601, 21, Flags::ACK, 300)),
        ] {
            gateway.handle_packet(now, port, packet);
            while gateway.poll_transmit(now).is_some() {}
        }
    }
    gateway
}

/// Length of mark and digest.
const DIGEST: usize = 16;
