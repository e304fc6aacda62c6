//! What an end host expects of a path: everything that is not acceleration passes as it is.

use paceline_gateway::config::RetransmissionMode;
use paceline_gateway::{GatewayConfig, RADIO, WAN};
use paceline_wire::{
    BufferPool, Checksum, Duration, Ecn, Flags, FlowKey, Packet, Payload, PortId, TcpOptionsRepr,
};

use crate::kit::script::{Script, modern, none, unscaled};

fn extra(extra: &'static [u8]) -> TcpOptionsRepr {
    TcpOptionsRepr { mss: Some(1460), extra, ..none() }
}

fn script() -> Script {
    Script::new(GatewayConfig::default())
}

/// Returns what leaves by `to` within half a second.
fn leaves(script: &mut Script, from: PortId, packet: Packet, to: PortId) -> Vec<Packet> {
    let mut out = script.arrive(from, packet);
    out.extend(script.wait(500));
    out.into_iter().filter(|(port, _)| *port == to).map(|(_, packet)| packet).collect()
}

#[test]
fn keep_alives_pass_both_ways() {
    let mut script = Script::established();
    let probe = script.from_server(3_000, 1, Flags::ACK, 500, none(), 0);
    script.pass_unchanged(WAN, probe.clone());
    let old_style = script.from_server(3_000, 1, Flags::ACK, 500, none(), 1);
    assert_eq!(leaves(&mut script, WAN, old_style, RADIO).len(), 1);
    let answer = script.from_client(1, 3_001, Flags::ACK, 500, none(), 0);
    assert_eq!(leaves(&mut script, RADIO, answer, WAN).len(), 1);
    let probe = script.from_client(0, 3_001, Flags::ACK, 500, none(), 0);
    assert_eq!(leaves(&mut script, RADIO, probe, WAN).len(), 1);
    script.pass_unchanged(WAN, script.from_server(3_001, 1, Flags::ACK, 500, none(), 0));
}

/// The server repairs this flow. If the client acknowledges after the server's copy, that is no round trip of three
/// seconds.
#[test]
fn the_answer_to_a_servers_copy_is_not_the_firsts() {
    let mut config = GatewayConfig::default();
    config.retransmission.mode = RetransmissionMode::None;
    let mut script = Script::new(config);
    script.handshake(modern(), modern());
    for wait_ms in [3_000, 100] {
        script.pass(WAN, script.from_server(1, 1, Flags::ACK, 500, none(), 1_000));
        script.wait(wait_ms);
    }
    script.pass(RADIO, script.from_client(1, 1_001, Flags::ACK, 500, none(), 0));
    let flow = script.gateway.flow_statuses(0, 8).items.remove(0);
    assert!(flow.rtt.unwrap() <= Duration::from_millis(100), "{:?}", flow.rtt);
    assert_eq!(flow.in_flight, 0);
}

#[test]
fn a_closed_window_passes_at_once_and_so_does_the_probe() {
    let mut script = Script::established();
    for i in 0..4 {
        script.arrive(WAN, script.from_server(3_001 + i * 1_000, 1, Flags::ACK, 500, none(), 1_000));
    }
    let closed = script.from_client(1, 7_001, Flags::ACK, 0, none(), 0);
    let passed = leaves(&mut script, RADIO, closed, WAN);
    let last = passed.last().and_then(Packet::tcp).expect("the ACK passes");
    assert_eq!(
        (last.window(), last.ack()),
        (0, paceline_wire::Seq(crate::kit::script::SERVER_ISN).add(7_001))
    );
    let probe = script.from_server(7_000, 1, Flags::ACK, 500, none(), 0);
    assert_eq!(leaves(&mut script, WAN, probe, RADIO).len(), 1);
    let open = script.from_client(1, 7_001, Flags::ACK, 500, none(), 0);
    let passed = leaves(&mut script, RADIO, open, WAN);
    assert!(passed.last().and_then(Packet::tcp).is_some_and(|tcp| tcp.window() >= 500));
}

#[test]
fn a_window_smaller_than_what_waits_is_probed_when_its_update_was_lost() {
    let mut script = script();
    script.handshake(unscaled(), modern());
    script.arrive(WAN, script.from_server(1, 1, Flags::ACK, 500, none(), 1_000));
    script.arrive(RADIO, script.from_client(1, 1_001, Flags::ACK, 700, none(), 0));
    script.arrive(WAN, script.from_server(1_001, 1, Flags::ACK, 500, none(), 1_000));
    let probes = script.wait(3_000).into_iter().filter(|(port, _)| *port == RADIO);
    let probe = probes.last().expect("a probe").1;
    let expected = paceline_wire::Seq(crate::kit::script::SERVER_ISN).add(1_000);
    assert_eq!((probe.payload().len(), probe.tcp().map(|tcp| tcp.seq())), (0, Some(expected)));
}

/// The server's retransmissions begin where the gateway's data does, and are absorbed. So the gateway, which holds
/// the data, has to probe.
#[test]
fn a_closed_window_is_probed_where_the_server_repairs() {
    let mut config = GatewayConfig::default();
    config.retransmission.mode = RetransmissionMode::None;
    let mut script = Script::new(config);
    script.handshake(unscaled(), modern());
    script.pass(WAN, script.from_server(1, 1, Flags::ACK, 500, none(), 1_000));
    script.wait(50);
    script.arrive(RADIO, script.from_client(1, 1_001, Flags::ACK, 0, none(), 0));
    let data = script.from_server(1_001, 1, Flags::ACK, 500, none(), 1_000);
    assert_eq!(
        leaves(&mut script, WAN, data.clone(), RADIO).iter().map(|p| p.payload().len()).sum::<usize>(),
        0
    );
    let mut out = script.wait(3_000);
    out.extend(script.arrive(WAN, data));
    let probes: Vec<_> = out.iter().filter(|(port, _)| *port == RADIO).map(|(_, packet)| packet).collect();
    assert!((2..10).contains(&probes.len()), "{probes:?}");
    let expected = paceline_wire::Seq(crate::kit::script::SERVER_ISN).add(1_000);
    assert!(probes.iter().all(|p| p.payload().is_empty() && p.tcp().unwrap().seq() == expected));
    // The answer opens the window, and the held data leaves.
    let open = script.from_client(1, 1_001, Flags::ACK, 17_520, none(), 0);
    let down = leaves(&mut script, RADIO, open, RADIO);
    assert_eq!(down.iter().map(|packet| packet.payload().len()).sum::<usize>(), 1_000);
}

#[test]
fn data_that_waits_is_never_older_than_what_overtook_it() {
    let mut script = script();
    let stamped = |value| TcpOptionsRepr { timestamps: Some((value, 1)), ..none() };
    script.handshake(TcpOptionsRepr { timestamps: Some((1, 0)), ..unscaled() }, modern());
    for i in 0..20 {
        script.arrive(WAN, script.from_server(1 + i * 1_000, 1, Flags::ACK, 500, stamped(100), 1_000));
    }
    script.arrive(RADIO, script.from_client(1, 1_001, Flags::ACK, 17_520, stamped(2), 0));
    // The server has not seen that ACK. So its retransmission passes, and with it a newer timestamp (RFC 7323,
    // TS.Recent).
    script.pass(WAN, script.from_server(1, 1, Flags::ACK, 500, stamped(200), 1_000));
    let mut out = script.arrive(RADIO, script.from_client(1, 10_001, Flags::ACK, 17_520, stamped(3), 0));
    out.extend(script.wait(2_000));
    let stamps: Vec<_> = out
        .iter()
        .filter(|(port, packet)| *port == RADIO && !packet.payload().is_empty())
        .filter_map(|(_, packet)| packet.tcp()?.timestamps())
        .collect();
    assert!(!stamps.is_empty());
    assert!(stamps.iter().all(|&(value, _)| value == 200), "{stamps:?}");
}

#[test]
fn urgent_data_keeps_its_pointer() {
    let mut script = Script::established();
    let mut data = script.from_server(3_001, 1, Flags::ACK | Flags::URG, 500, none(), 1_000);
    data.tcp_mut().unwrap().set_urgent_pointer(10);
    script.pass_unchanged(WAN, data);
    let mut data = script.from_client(1, 3_001, Flags::ACK | Flags::URG, 500, none(), 100);
    data.tcp_mut().unwrap().set_urgent_pointer(99);
    let out = leaves(&mut script, RADIO, data, WAN);
    let tcp = out[0].tcp().unwrap();
    assert!(tcp.flags().contains(Flags::URG) && tcp.urgent_pointer() == 99);
}

#[test]
fn a_reset_ends_the_flow_in_order() {
    // A reset from the server, behind data for which the client has no room yet.
    let mut script = script();
    script.handshake(unscaled(), modern());
    let mut out = Vec::new();
    for i in 0..20 {
        let data = script.from_server(1 + i * 1_000, 1, Flags::ACK, 500, none(), 1_000);
        out.extend(script.arrive(WAN, data));
    }
    let reset = script.from_server(20_001, 1, Flags::RST | Flags::ACK, 0, none(), 0);
    out.extend(script.arrive(WAN, reset));
    out.extend(script.wait(100));
    for acked in [10_001, 15_001, 20_001] {
        out.extend(script.arrive(RADIO, script.from_client(1, acked, Flags::ACK, 17_520, none(), 0)));
        out.extend(script.wait(100));
    }
    let down: Vec<_> = out.iter().filter(|(port, _)| *port == RADIO).map(|(_, p)| p.tcp().unwrap()).collect();
    assert!(down.iter().any(|tcp| tcp.flags().contains(Flags::RST)), "the reset does not leave");
    let at = down.iter().position(|tcp| tcp.flags().contains(Flags::RST)).unwrap();
    let sent: usize = down[..at].iter().map(|tcp| tcp.payload_len()).sum();
    assert!(sent >= 17_000, "the reset leaves after {sent} bytes of data");
    // A reset from the client.
    let mut script = Script::established();
    script.pass_unchanged(RADIO, script.from_client(1, 3_001, Flags::RST, 0, none(), 0));
    assert_eq!(script.gateway.buffered_bytes(), 0);
}

#[test]
fn unknown_options_stay() {
    const UNKNOWN: &[u8] = &[253, 6, 0xab, 0xcd, 1, 2];
    let mut script = script();
    let [syn, syn_ack, _] = script.handshake(
        TcpOptionsRepr { extra: UNKNOWN, ..unscaled() },
        TcpOptionsRepr { extra: UNKNOWN, ..modern() },
    );
    let data = script.from_server(1, 1, Flags::ACK, 500, extra(UNKNOWN), 1_000);
    let data = script.pass(WAN, data);
    for packet in [&syn, &syn_ack, &data] {
        let options = packet.tcp().unwrap().options();
        assert!(options.windows(UNKNOWN.len()).any(|window| window == UNKNOWN), "{options:?}");
    }
    assert!(syn.tcp().unwrap().window_scale().is_some(), "window scale is added beside it");
    assert_eq!(syn_ack.tcp().unwrap().window_scale(), None, "and taken off the answer");
}

#[test]
fn what_covers_the_header_or_the_window_passes_unedited() {
    const MD5: &[u8] = &[19, 18, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15, 16, 1, 1];
    const AO: &[u8] = &[29, 16, 1, 1, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12];
    const MPTCP: &[u8] = &[30, 12, 1, 0x81, 1, 2, 3, 4, 5, 6, 7, 8];
    for option in [MD5, AO, MPTCP] {
        let mut script = script();
        script.pass_unchanged(RADIO, script.from_client(0, 0, Flags::SYN, 17_520, extra(option), 0));
        let syn_ack = script.from_server(0, 1, Flags::SYN | Flags::ACK, 60_000, extra(option), 0);
        script.pass_unchanged(WAN, syn_ack);
        for i in 0..30 {
            // MPTCP's later packets may have no option at all.
            let options = if option == MPTCP { none() } else { extra(option) };
            script.pass_unchanged(WAN, script.from_server(1 + i * 1_000, 1, Flags::ACK, 500, options, 1_000));
            script.pass_unchanged(RADIO, script.from_client(1, 1, Flags::ACK, 17_520, options, 0));
        }
        let counters = script.gateway.counters();
        assert!(counters.passed_authenticated + counters.passed_mptcp > 0);
        assert_eq!(script.gateway.buffered_bytes(), 0);
    }
}

#[test]
fn a_syn_without_room_for_another_option_passes_unedited() {
    const FULL: &[u8] = &[
        254, 36, 1, 2, 3, 4, 5, 6, 7, 8, 9, 0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 0, 1,
        2, 3, 4,
    ];
    let mut script = script();
    script.pass_unchanged(RADIO, script.from_client(0, 0, Flags::SYN, 17_520, extra(FULL), 0));
    let syn_ack = script.from_server(0, 1, Flags::SYN | Flags::ACK, 60_000, modern(), 0);
    let syn_ack = script.pass(WAN, syn_ack);
    assert_eq!(syn_ack.tcp().unwrap().window(), 60_000);
    assert_eq!(script.gateway.counters().passed_no_option_room, 1);
}

#[test]
fn data_in_a_syn_is_data() {
    const COOKIE: &[u8] = &[34, 10, 1, 2, 3, 4, 5, 6, 7, 8];
    let mut script = script();
    let syn = script.from_client(0, 0, Flags::SYN, 60_000, TcpOptionsRepr { extra: COOKIE, ..modern() }, 300);
    script.pass_unchanged(RADIO, syn);
    script.wait(1);
    // The server answers with its own data before the handshake is over.
    script.pass_unchanged(WAN, script.from_server(0, 301, Flags::SYN | Flags::ACK, 60_000, modern(), 0));
    script.pass_unchanged(WAN, script.from_server(1, 301, Flags::ACK, 500, none(), 1_000));
    script.wait(100);
    let ack = script.from_client(301, 1_001, Flags::ACK, 500, none(), 0);
    let acks = leaves(&mut script, RADIO, ack, WAN);
    assert_eq!(acks.len(), 1);
    script.pass_unchanged(WAN, script.from_server(1_001, 301, Flags::ACK, 500, none(), 1_000));
}

#[test]
fn a_repeated_syn_is_edited_in_the_same_way() {
    let mut script = script();
    let syn = script.from_client(0, 0, Flags::SYN, 17_520, unscaled(), 0);
    let first = script.pass(RADIO, syn.clone());
    script.wait(1_000);
    let second = script.pass(RADIO, syn);
    assert_eq!(first.to_vec(), second.to_vec());
    let syn_ack = script.from_server(0, 1, Flags::SYN | Flags::ACK, 60_000, modern(), 0);
    let first = script.pass(WAN, syn_ack.clone());
    script.wait(1_000);
    let second = script.pass(WAN, syn_ack);
    assert_eq!(first.to_vec(), second.to_vec());
}

/// The server may have the SYN that passed unedited. The windows of the flow would then be read with two shifts.
#[test]
fn a_syn_that_passed_a_full_table_passes_again_when_there_is_room() {
    for small in [Some(2), None] {
        let mut config = GatewayConfig::default();
        config.limits.max_flows = 1;
        let mut script = Script::new(config);
        script.handshake(modern(), modern());
        script.pass(WAN, script.from_server(1, 1, Flags::RST, 0, none(), 0));
        // A flow that is over is remembered for a minute.
        script.up.src.set_port(40_001);
        let options = TcpOptionsRepr { window_scale: small, ..unscaled() };
        let syn = script.from_client(0, 0, Flags::SYN, 17_520, options, 0);
        script.pass_unchanged(RADIO, syn.clone());
        script.wait(61_000);
        assert_eq!(script.gateway.flows(), 0);
        script.pass_unchanged(RADIO, syn);
        script.pass_unchanged(WAN, script.from_server(0, 1, Flags::SYN | Flags::ACK, 60_000, modern(), 0));
        assert_eq!(script.gateway.counters().flows_accelerated, 1);
        // Another attempt with another number is served.
        let mut anew = script.from_client(0, 0, Flags::SYN, 17_520, options, 0);
        anew.tcp_mut().unwrap().set_seq(paceline_wire::Seq(9_000));
        let edited = script.pass(RADIO, anew.clone());
        assert_ne!(edited.to_vec(), anew.to_vec());
    }
}

#[test]
fn a_flow_first_seen_in_its_middle_passes_unchanged() {
    let mut script = script();
    for i in 0..30 {
        script.pass_unchanged(WAN, script.from_server(1 + i * 1_000, 1, Flags::ACK, 500, none(), 1_000));
        script.pass_unchanged(RADIO, script.from_client(1, 1 + i * 1_000, Flags::ACK, 5, none(), 0));
    }
    assert_eq!(script.gateway.counters().passed_mid_flow, 60);
    assert_eq!(script.gateway.flows(), 0);
}

#[test]
fn what_is_no_tcp_segment_passes_unchanged() {
    let mut script = script();
    let key = FlowKey::new("10.0.0.1:53".parse().unwrap(), "10.0.1.1:999".parse().unwrap());
    let datagram = Packet::build_udp(key, Payload::from(vec![7; 100]));
    script.pass_unchanged(WAN, datagram);
    let mut pool = BufferPool::new(1 << 20);
    let mut fragment = script.from_server(1, 1, Flags::ACK, 500, none(), 600).to_vec();
    fragment[6] |= 0x20; // "More fragments".
    for bytes in [fragment, vec![0x45; 7], vec![0x60; 60], vec![0; 64]] {
        let packet = Packet::parse(&[], &bytes, &mut pool).unwrap();
        script.pass_unchanged(WAN, packet.clone());
        script.pass_unchanged(RADIO, packet);
    }
}

#[test]
fn a_wrong_checksum_stays_wrong() {
    let mut script = Script::established();
    let mut bytes = script.from_server(3_001, 1, Flags::ACK, 500, none(), 1_000).to_vec();
    bytes[500] ^= 0x10;
    let packet = Packet::parse(&[], &bytes, &mut BufferPool::new(1 << 20)).unwrap();
    assert_eq!(packet.checksum(), Checksum::Full);
    script.wrong_checksums_allowed = true;
    script.pass_unchanged(WAN, packet);
}

#[test]
fn congestion_marks_leave_on_the_packet_that_brought_them() {
    let mut script = Script::established();
    let mut data = script.from_server(3_001, 1, Flags::ACK | Flags::CWR, 500, none(), 1_000);
    data.set_ecn(Ecn::Ce);
    script.pass_unchanged(WAN, data);
    let ack = script.from_client(1, 4_001, Flags::ACK | Flags::ECE | Flags::AE, 500, none(), 0);
    let out = leaves(&mut script, RADIO, ack, WAN);
    assert!(out[0].tcp().unwrap().flags().contains(Flags::ECE | Flags::AE));
}

/// RFC 5961, Section 4: the server decides whether a SYN beside an open flow begins another one.
#[test]
fn a_client_that_has_forgotten_its_flow_begins_anew() {
    let mut script = script();
    script.handshake(none(), none());
    script.pass_unchanged(RADIO, script.from_client(70_000, 0, Flags::SYN, 17_520, none(), 0));
    script.pass(WAN, script.from_server(1, 1, Flags::ACK, 60_000, none(), 0));
    assert_eq!(script.gateway.flows(), 1, "the server knows the flow still");
    // The client comes again when the server has also forgotten the flow.
    script.pass_unchanged(RADIO, script.from_client(70_000, 0, Flags::SYN, 17_520, none(), 0));
    let answer = script.from_server(90_000, 70_001, Flags::SYN | Flags::ACK, 60_000, none(), 0);
    script.pass_unchanged(WAN, answer);
    script.pass_unchanged(RADIO, script.from_client(70_001, 90_001, Flags::ACK, 17_520, none(), 0));
    let stages: Vec<_> = script.gateway.flow_statuses(0, 10).items.iter().map(|flow| flow.stage).collect();
    assert_eq!(stages, [paceline_gateway::FlowStage::Replaced], "both go on with the new one");
}
