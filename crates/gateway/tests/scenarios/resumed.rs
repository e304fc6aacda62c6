//! A flow that was open before the gateway started, and the packets that tell where its streams are.

use paceline_gateway::{GatewayConfig, RADIO, Shifts, WAN};
use paceline_wire::Flags;

use crate::kit::script::{Script, none};

fn resumed() -> Script {
    let mut script = Script::new(GatewayConfig::default());
    let shifts = Shifts { client: 7, shown: 7, server: 7, added: false };
    let up = script.up;
    script.gateway.resume(script.now, up, shifts);
    script
}

#[test]
fn both_ends_have_to_say_the_same() {
    let mut script = resumed();
    script.pass_unchanged(WAN, script.from_server(10_001, 1, Flags::ACK, 500, none(), 1_000));
    script.pass(RADIO, script.from_client(1, 10_001, Flags::ACK, 500, none(), 0));
    assert_eq!(script.gateway.buffered_bytes(), 0, "the first packet passed");
    script.pass(WAN, script.from_server(11_001, 1, Flags::ACK, 500, none(), 1_000));
    assert!(script.gateway.buffered_bytes() > 0);
    // What passed before is also acknowledged.
    script.pass(RADIO, script.from_client(1, 12_001, Flags::ACK, 500, none(), 0));
    assert_eq!((script.gateway.buffered_bytes(), script.gateway.counters().passed_unacceptable), (0, 0));
}

/// The first packet comes from somebody who does not see the flow. If it counted, its number would be that of the
/// stream.
#[test]
fn a_packet_of_anybody_tells_nothing() {
    let mut script = resumed();
    script.pass_unchanged(WAN, script.from_server(1 << 30, 1 << 29, Flags::ACK, 500, none(), 1_000));
    script.pass(RADIO, script.from_client(1, 10_001, Flags::ACK, 500, none(), 0));
    script.pass_unchanged(WAN, script.from_server(1 << 30, 1 << 29, Flags::ACK, 500, none(), 1_000));
    assert_eq!(script.gateway.buffered_bytes(), 0);
    script.pass(WAN, script.from_server(10_001, 1, Flags::ACK, 500, none(), 1_000));
    assert!(script.gateway.buffered_bytes() > 0, "the server's");
}

/// A reset without an acknowledgement, then numbers from all over the sequence space.
#[test]
fn a_reset_before_anything_is_known_harms_nothing() {
    let mut script = resumed();
    script.pass(RADIO, script.from_client(1, 0, Flags::RST, 0, none(), 0));
    for number in [0, 1 << 30, 1 << 31, u32::MAX] {
        script.arrive(RADIO, script.from_client(1, number, Flags::ACK, 500, none(), 0));
        script.arrive(WAN, script.from_server(number, 1 << 31, Flags::ACK, 500, none(), 1_000));
        script.arrive(WAN, script.from_server(number, 1, Flags::ACK, 500, none(), 1_000));
    }
    assert_eq!(script.gateway.flows(), 1);
}

/// A flow is forgotten although nobody sends a packet.
#[test]
fn a_flow_whose_ends_are_gone_is_forgotten() {
    let mut script = resumed();
    assert_eq!(script.gateway.flows(), 1);
    let idle_ms = GatewayConfig::default().limits.idle_timeout_s * 1_000;
    script.wait(idle_ms + 1_000);
    assert_eq!(script.gateway.flows(), 0);
}
