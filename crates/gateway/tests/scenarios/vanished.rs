//! A client's connection that is gone, and its effect on the client's other flows.

use paceline_gateway::FlowStage;
use paceline_gateway::config::RetransmissionMode;
use paceline_gateway::{Gateway, GatewayConfig, RADIO, WAN};
use paceline_wire::{Flags, FlowKey, Instant, Node, Packet, Payload, Seq, TcpOptionsRepr, TcpRepr};

use crate::kit::script::Script;

/// If its peer has sent a FIN, Linux also accepts a RST with the number of that FIN (`tcp_reset_check`). A client that
/// has closed may get data that left the server before the FIN came. It answers with the number that the data
/// acknowledges.
#[test]
fn a_reset_with_the_number_of_the_fin_ends_the_flow() {
    let key = FlowKey::new(([10, 0, 0, 2], 1_000).into(), ([192, 0, 2, 1], 80).into());
    let mut gateway = Gateway::new(GatewayConfig::default());
    let mut give = |port, seq, ack, flags, bytes| {
        let key = if port == WAN { key.reversed() } else { key };
        let repr = TcpRepr { seq: Seq(seq), ack: Seq(ack), flags, window: 60_000, ..TcpRepr::default() };
        gateway.handle_packet(Instant::ZERO, port, Packet::build_tcp(key, &repr, Payload::Length(bytes)));
        while gateway.poll_transmit(Instant::ZERO).is_some() {}
        gateway.flow_statuses(0, 10).items.first().map(|flow| flow.stage)
    };
    give(RADIO, 0, 0, Flags::SYN, 0);
    give(WAN, 0, 1, Flags::SYN | Flags::ACK, 0);
    give(RADIO, 1, 1, Flags::ACK, 25);
    give(WAN, 1, 26, Flags::ACK, 1_448);
    assert_eq!(
        give(RADIO, 25, 0, Flags::RST, 0),
        Some(FlowStage::Open),
        "before any FIN it is another's guess"
    );
    give(RADIO, 26, 1, Flags::FIN | Flags::ACK, 0);
    give(WAN, 1_449, 27, Flags::ACK, 0);
    assert_eq!(give(RADIO, 25, 0, Flags::RST, 0), Some(FlowStage::Open), "one less");
    assert_eq!(give(RADIO, 26, 0, Flags::RST, 0), Some(FlowStage::Reset));
}

/// What was no longer counted counts again as soon as the client is heard.
#[test]
fn what_is_answered_late_counts_again() {
    let mut config = GatewayConfig::default();
    config.retransmission.mode = RetransmissionMode::None;
    let mut script = Script::new(config);
    script.handshake(unscaled(), unscaled());
    let none = TcpOptionsRepr::default();
    for i in 0..3 {
        script.pass(WAN, script.from_server(1 + i * 1_000, 1, Flags::ACK, 60_000, none, 1_000));
    }
    assert_eq!(outstanding(&script), 3_000);
    script.wait(900);
    assert_eq!(outstanding(&script), 3_000, "sooner than the least timeout of RFC 6298");
    script.wait(1_100);
    assert_eq!(outstanding(&script), 0);
    script.pass(WAN, script.from_server(3_001, 1, Flags::ACK, 60_000, none, 1_000));
    assert_eq!(outstanding(&script), 1_000, "what leaves now counts");
    script.arrive(RADIO, script.from_client(1, 1_001, Flags::ACK, 17_520, none, 0));
    assert_eq!(outstanding(&script), 3_000, "and all of it when the client is there");
}

fn unscaled() -> TcpOptionsRepr {
    TcpOptionsRepr { mss: Some(1460), sack_permitted: true, ..TcpOptionsRepr::default() }
}

fn outstanding(script: &Script) -> u64 {
    script.gateway.subscriber_statuses(0, 10).items.iter().map(|subscriber| subscriber.outstanding).sum()
}
