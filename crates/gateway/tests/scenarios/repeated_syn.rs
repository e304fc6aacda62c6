//! A SYN that comes again while its flow is open, and its effect on the flow and on its subscriber.

use paceline_gateway::{GatewayConfig, RADIO, WAN};
use paceline_wire::{Flags, TcpOptionsRepr};

use crate::kit::script::{Script, modern, none};

/// A flow with 3,000 bytes on their way down and 100 bytes up. Its client has shown a window of 64,000 bytes.
fn busy() -> Script {
    let mut script = Script::new(GatewayConfig::default());
    script.handshake(modern(), modern());
    script.pass(RADIO, script.from_client(1, 1, Flags::ACK, 500, none(), 100));
    for i in 0..3 {
        script.pass(WAN, script.from_server(1 + i * 1_000, 1, Flags::ACK, 500, none(), 1_000));
    }
    script
}

fn outstanding(script: &Script) -> u64 {
    script.gateway.subscriber_statuses(0, 10).items.iter().map(|subscriber| subscriber.outstanding).sum()
}

#[test]
fn a_repeated_syn_puts_nothing_in_flight() {
    let mut script = busy();
    assert_eq!(outstanding(&script), 3_000);
    script.pass(RADIO, script.from_client(0, 0, Flags::SYN, 17_520, modern(), 0));
    assert_eq!(outstanding(&script), 3_000);
    script.pass(WAN, script.from_server(0, 1, Flags::SYN | Flags::ACK, 60_000, modern(), 0));
    assert_eq!(outstanding(&script), 3_000);
    script.wait(20);
    script.arrive(RADIO, script.from_client(101, 3_001, Flags::ACK, 500, none(), 0));
    assert_eq!(outstanding(&script), 0);
}

#[test]
fn a_late_copy_of_the_syn_takes_nothing_back() {
    let mut script = busy();
    script.pass(RADIO, script.from_client(0, 0, Flags::SYN, 17_520, modern(), 0));
    assert_eq!(script.gateway.flow_statuses(0, 10).items[0].client_window, 500 << 7);
    // The packet that acknowledges the request still belongs to the flow.
    script.pass(WAN, script.from_server(3_001, 101, Flags::ACK, 500, none(), 1_000));
    assert_eq!(script.gateway.counters().passed_unacceptable, 0);
}

/// The radio loses the server's first SYN-ACK. The client echoes the clock of the second.
#[test]
fn a_repeated_syn_ack_is_echoed() {
    let at = |value, echo| TcpOptionsRepr { timestamps: Some((value, echo)), ..modern() };
    let mut script = Script::new(GatewayConfig::default());
    script.pass(RADIO, script.from_client(0, 0, Flags::SYN, 17_520, at(1_000, 0), 0));
    for clock in [9_000, 10_000] {
        script.pass(WAN, script.from_server(0, 1, Flags::SYN | Flags::ACK, 60_000, at(clock, 1_000), 0));
    }
    let stamps = TcpOptionsRepr { timestamps: Some((2_000, 10_000)), ..none() };
    script.pass(RADIO, script.from_client(1, 1, Flags::ACK, 500, stamps, 0));
    assert_eq!(script.gateway.counters().passed_unacceptable, 0);
}
