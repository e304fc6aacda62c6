//! Split flows, packet by packet: what each end sees of the other.

use paceline_gateway::config::{FlowMode, VirtualWindowMode};
use paceline_gateway::{GatewayConfig, OVERHEARD, RADIO, WAN};
use paceline_wire::{BufferPool, Ecn, Flags, Node, Packet, PortId, Seq, TcpOptionsRepr};

use crate::kit::script::{CLIENT_ISN, SERVER_ISN, Script, none};

/// Options without scaling, SACK and timestamps.
fn plain(mss: u16) -> TcpOptionsRepr {
    TcpOptionsRepr { mss: Some(mss), ..none() }
}

fn config() -> GatewayConfig {
    GatewayConfig { mode: FlowMode::Split, ..GatewayConfig::all_off() }
}

/// A flow in which both ends have been answered.
fn established_with(config: GatewayConfig) -> Script {
    established_over(config, 50)
}

/// The client answers after `client_rtt_ms` milliseconds.
fn established_over(config: GatewayConfig, client_rtt_ms: u64) -> Script {
    let mut script = Script::new(config);
    script.pass(RADIO, script.from_client(0, 0, Flags::SYN, 60_000, plain(1_400), 0));
    script.wait(10);
    script.pass(WAN, script.from_server(0, 1, Flags::SYN | Flags::ACK, 60_000, plain(1_300), 0));
    script.wait(client_rtt_ms);
    script.pass(RADIO, script.from_client(1, 1, Flags::ACK, 60_000, none(), 0));
    script
}

fn established() -> Script {
    established_with(config())
}

fn flags(packet: &Packet) -> Flags {
    packet.tcp().unwrap().flags()
}

/// Returns the packets of `out` that left by `port`.
fn sent_by(port: PortId, out: Vec<(PortId, Packet)>) -> Vec<Packet> {
    out.into_iter().filter(|(to, _)| *to == port).map(|(_, packet)| packet).collect()
}

#[test]
fn the_server_is_asked_first_and_hears_of_the_client_when_the_client_has_answered() {
    let mut script = Script::new(config());
    let options = TcpOptionsRepr { timestamps: Some((777, 0)), ..plain(1_400) };
    let syn = script.from_client(0, 0, Flags::SYN, 60_000, options, 0);
    let asked = script.pass(RADIO, syn.clone());
    let seen = asked.tcp().unwrap();
    // The client's number and clock, with the gateway's own options.
    assert_eq!((seen.seq(), seen.mss()), (Seq(CLIENT_ISN), Some(1_400)));
    assert_eq!(seen.timestamps(), Some((777, 0)));
    assert!(seen.sack_permitted() && seen.window_scale().is_some());
    assert_eq!(asked.flow_key(), syn.flow_key());
    // Nothing leaves again by itself, because the client may be gone. If the client sends it again, the gateway does,
    // too.
    assert_eq!(script.wait(20_000).len(), 0);
    assert_eq!(sent_by(WAN, script.arrive(RADIO, syn)).len(), 1);
    script.wait(10);
    let answer = script.pass(WAN, script.from_server(0, 1, Flags::SYN | Flags::ACK, 60_000, plain(1_300), 0));
    let seen = answer.tcp().unwrap();
    assert_eq!((seen.seq(), seen.ack()), (Seq(SERVER_ISN), Seq(CLIENT_ISN).add(1)));
    assert_eq!((seen.mss(), seen.sack_permitted()), (Some(1_300), false));
    assert_eq!(seen.timestamps().map(|(_, echo)| echo), Some(777));
    let ack = script.from_client(1, 1, Flags::ACK, 60_000, none(), 0);
    let told = script.pass(RADIO, ack);
    let seen = told.tcp().unwrap();
    assert_eq!((seen.seq(), seen.ack()), (Seq(CLIENT_ISN).add(1), Seq(SERVER_ISN).add(1)));
    assert_eq!((script.gateway.split_flows(), script.gateway.counters().flows_split), (1, 1));
}

/// RFC 3168, Section 6.1.1: the gateway's connections have no ECN, so neither end is offered it. Marks that come are
/// not echoed.
#[test]
fn ecn_is_asked_of_nobody_and_agreed_to_with_nobody() {
    let mut script = Script::new(config());
    let both = Flags::ECE | Flags::CWR;
    let syn = script.from_client(0, 0, Flags::SYN | both, 60_000, plain(1_400), 0);
    assert_eq!(flags(&script.pass(RADIO, syn)), Flags::SYN);
    script.wait(10);
    let syn_ack = script.from_server(0, 1, Flags::SYN | Flags::ACK | Flags::ECE, 60_000, plain(1_300), 0);
    assert_eq!(flags(&script.pass(WAN, syn_ack)), Flags::SYN | Flags::ACK);
    script.pass(RADIO, script.from_client(1, 1, Flags::ACK, 60_000, none(), 0));
    let mut data = script.from_server(1, 1, Flags::ACK, 60_000, none(), 1_000);
    data.set_ecn(Ecn::Ce);
    let out = script.arrive(WAN, data);
    assert!(!out.is_empty());
    for (_, packet) in out {
        assert!(!flags(&packet).intersects(both));
        assert_eq!(packet.ecn(), Some(Ecn::NotEct));
    }
}

#[test]
fn a_refusal_is_the_servers_own() {
    let mut script = Script::new(config());
    script.pass(RADIO, script.from_client(0, 0, Flags::SYN, 60_000, plain(1_460), 0));
    script.pass_unchanged(WAN, script.from_server(0, 1, Flags::RST | Flags::ACK, 0, none(), 0));
    assert_eq!((script.gateway.flows(), script.gateway.counters().split_refused), (0, 1));
}

#[test]
fn a_server_that_does_not_answer_is_silence_to_the_client() {
    let mut script = Script::new(config());
    script.pass(RADIO, script.from_client(0, 0, Flags::SYN, 60_000, plain(1_460), 0));
    let out = script.wait(200_000);
    assert_eq!(
        (sent_by(WAN, out.clone()).len(), sent_by(RADIO, out).len()),
        (0, 0),
        "the client may be gone"
    );
    assert_eq!(script.gateway.flows(), 0);
}

#[test]
fn a_client_that_gives_up_is_not_kept_from_the_server() {
    let mut script = Script::new(config());
    script.pass(RADIO, script.from_client(0, 0, Flags::SYN, 60_000, plain(1_460), 0));
    assert_eq!(script.arrive(RADIO, script.from_client(9, 0, Flags::RST, 0, none(), 0)).len(), 0);
    assert_eq!(script.gateway.flows(), 1);
    script.pass_unchanged(RADIO, script.from_client(1, 0, Flags::RST, 0, none(), 0));
    assert_eq!(script.gateway.flows(), 0);
}

#[test]
fn a_client_that_begins_anew_gets_a_new_flow() {
    let mut script = Script::new(config());
    script.pass(RADIO, script.from_client(0, 0, Flags::SYN, 60_000, plain(1_460), 0));
    let asked = script.pass(RADIO, script.from_client(5_000, 0, Flags::SYN, 60_000, plain(1_460), 0));
    assert_eq!(asked.tcp().unwrap().seq(), Seq(CLIENT_ISN).add(5_000));
    assert_eq!(script.gateway.flows(), 1);
}

#[test]
fn an_unreachable_server_is_told_to_the_client() {
    let mut script = Script::new(config());
    let asked = script.pass(RADIO, script.from_client(0, 0, Flags::SYN, 60_000, plain(1_460), 0));
    // A message about a packet that was never sent (RFC 5927, Section 4.1).
    let mut forged = asked.clone();
    forged.tcp_mut().unwrap().set_seq(Seq(9));
    let message = icmp(&forged, 1, 0);
    assert_eq!(script.arrive(WAN, message).len(), 0);
    assert_eq!(script.gateway.flows(), 1);
    let message = icmp(&asked, 1, 0);
    script.pass_unchanged(WAN, message);
    assert_eq!(script.gateway.flows(), 0);
}

#[test]
fn bytes_are_moved_on_and_acknowledged_here_along_the_way_of_the_others() {
    let mut script = established();
    let data = script.from_server(1, 1, Flags::ACK, 500, none(), 1_000);
    let mut bytes = data.to_vec();
    // DSCP EF and hop limit 9.
    (bytes[1], bytes[8]) = (0xb8, 9);
    bytes[10..12].fill(0);
    let sum = !paceline_wire::checksum::fold(paceline_wire::checksum::sum(&bytes[..20]));
    bytes[10..12].copy_from_slice(&sum.to_be_bytes());
    let marked = Packet::parse(&[5; 14], &bytes, &mut BufferPool::new(1 << 20)).unwrap();
    let mut out = script.arrive(WAN, marked);
    out.extend(script.wait(200));
    let down = sent_by(RADIO, out.clone());
    assert_eq!((down[0].payload(), down[0].tcp().unwrap().seq()), (data.payload(), Seq(SERVER_ISN).add(1)));
    assert_eq!((down[0].header()[1], down[0].header()[8], down[0].link()), (0xb8, 9, &[5; 14][..]));
    let up = sent_by(WAN, out);
    assert_eq!(up[0].tcp().unwrap().ack(), Seq(SERVER_ISN).add(1_001));
    assert_eq!(script.arrive(RADIO, script.from_client(1, 1_001, Flags::ACK, 60_000, none(), 0)).len(), 0);
    assert_eq!(script.gateway.buffered_bytes(), 0);
    let data = script.from_client(1, 1_001, Flags::ACK | Flags::PSH, 60_000, none(), 300);
    let up = sent_by(WAN, script.arrive(RADIO, data));
    assert_eq!(up[0].payload().len(), 300);
}

#[test]
fn a_super_packet_leaves_as_one() {
    let mut script = established();
    // The handshake has agreed on segments of 1,300 bytes.
    let mut data = script.from_server(1, 1, Flags::ACK, 500, none(), 6_500);
    data.set_gso_size(Some(1_300));
    let down = sent_by(RADIO, script.arrive(WAN, data.clone()));
    assert_eq!((down.len(), down[0].payload(), down[0].gso_size()), (1, data.payload(), Some(1_300)));
    let next = script.from_server(6_501, 1, Flags::ACK, 500, none(), 1_000);
    let next = sent_by(RADIO, script.arrive(WAN, next));
    // Each segment has its own identification.
    let id = |packet: &Packet| u16::from_be_bytes([packet.header()[4], packet.header()[5]]);
    assert_eq!((next[0].gso_size(), id(&next[0])), (None, id(&down[0]).wrapping_add(5)));
}

#[test]
fn a_slow_client_closes_the_servers_window() {
    let mut config = config();
    config.limits.max_flow_buffer_bytes = 20_000;
    config.split.receive_window_bytes = 65_535;
    let mut script = established_with(config);
    let (mut sent, mut edge) = (0u32, 60_000u32);
    // The client never acknowledges. The server sends whatever it may.
    for _ in 0..1_000 {
        let len = 1_000.min(edge - sent);
        let data = script.from_server(1 + sent, 1, Flags::ACK, 500, none(), len as usize);
        sent += len;
        let mut out = script.arrive(WAN, data);
        out.extend(script.wait(50));
        for packet in sent_by(WAN, out) {
            let tcp = packet.tcp().unwrap();
            // No scale was agreed on, because the server has none.
            edge = tcp.ack().distance(Seq(SERVER_ISN).add(1)) as u32 + u32::from(tcp.window());
        }
        if edge == sent {
            break;
        }
    }
    assert_eq!(edge, sent, "the window closes");
    assert!(sent <= 20_000 + 65_535 + 2_000, "{sent} bytes were taken");
    let kept = script.gateway.buffered_bytes();
    // A packet of 1,000 bytes occupies 1,024.
    assert!(u64::from(sent).div_ceil(1_000) * 1_024 >= kept, "{sent} {kept}");
}

#[test]
fn a_reset_comes_behind_what_was_sent_before_it() {
    let mut script = established();
    script.arrive(WAN, script.from_server(1, 1, Flags::ACK, 500, none(), 1_000));
    let challenge = sent_by(WAN, script.arrive(WAN, script.from_server(3_000, 1, Flags::RST, 0, none(), 0)));
    assert_eq!(flags(&challenge[0]), Flags::ACK, "RFC 5961: only the exact number resets");
    let reset = script.from_server(1_001, 1, Flags::RST, 0, none(), 0);
    assert_eq!(script.arrive(WAN, reset).len(), 0, "the client has not all of it");
    let ack = script.from_client(1, 1_001, Flags::ACK, 60_000, none(), 0);
    let told = sent_by(RADIO, script.arrive(RADIO, ack)).remove(0);
    assert!(flags(&told).contains(Flags::RST));
    assert_eq!(told.tcp().unwrap().seq(), Seq(SERVER_ISN).add(1_001));
    assert_eq!(script.gateway.flows(), 0);
}

#[test]
fn a_reset_of_the_client_goes_on_at_once() {
    let mut script = established();
    let told = script.pass(RADIO, script.from_client(1, 0, Flags::RST, 0, none(), 0));
    assert!(flags(&told).contains(Flags::RST));
    assert_eq!(told.tcp().unwrap().seq(), Seq(CLIENT_ISN).add(1));
    assert_eq!(script.gateway.flows(), 0);
}

#[test]
fn each_half_closes_by_itself_and_the_flow_is_forgotten_with_the_second() {
    let mut script = established();
    let fin = script.from_client(1, 1, Flags::FIN | Flags::ACK, 60_000, none(), 0);
    let up = sent_by(WAN, script.arrive(RADIO, fin));
    assert!(flags(&up[0]).contains(Flags::FIN));
    script.arrive(WAN, script.from_server(1, 2, Flags::ACK, 60_000, none(), 0));
    // The other half goes on.
    let data = script.from_server(1, 2, Flags::ACK | Flags::FIN, 500, none(), 500);
    let down = sent_by(RADIO, script.arrive(WAN, data));
    assert_eq!(down.iter().map(|packet| packet.payload().len()).sum::<usize>(), 500);
    assert!(flags(down.last().unwrap()).contains(Flags::FIN));
    assert_eq!(script.gateway.flows(), 1);
    script.arrive(RADIO, script.from_client(2, 502, Flags::ACK, 60_000, none(), 0));
    assert_eq!(script.gateway.flows(), 0);
    // What comes again passes between the ends, which use the same numbers.
    script.pass_unchanged(WAN, script.from_server(501, 2, Flags::ACK | Flags::FIN, 500, none(), 0));
}

#[test]
fn a_smaller_path_mtu_makes_smaller_segments() {
    let mut script = established();
    let data = script.from_server(1, 1, Flags::ACK, 500, none(), 1_300);
    let sent = sent_by(RADIO, script.arrive(WAN, data)).remove(0);
    // A message about a packet that is not in flight. Nobody may believe it.
    let mut forged = sent.clone();
    forged.tcp_mut().unwrap().set_seq(Seq(9));
    let message = icmp(&forged, 4, 700);
    assert_eq!(script.arrive(RADIO, message).len(), 0);
    let message = icmp(&sent, 4, 800);
    let out = script.arrive(RADIO, message.clone());
    let sizes = |packet: &Packet| (packet.payload().len(), packet.gso_size());
    assert_eq!((out.len(), out[0].0), (1, RADIO), "the server's segments are not at fault");
    assert_eq!(sizes(&out[0].1), (1_300, Some(760)));
    assert_eq!(script.arrive(RADIO, message).len(), 0, "once is enough");
    script.arrive(RADIO, script.from_client(1, 1_301, Flags::ACK, 60_000, none(), 0));
    let data = script.from_server(1_301, 1, Flags::ACK, 500, none(), 1_300);
    let out = sent_by(RADIO, script.arrive(WAN, data));
    assert_eq!(sizes(&out[0]), (760, None));
}

/// The smallest window is one segment of the server (RFC 9293, Section 3.8.6.2.2). With shorter segments to both ends
/// and a distant client, the gateway once showed less, so the window was never offered.
#[test]
fn a_smaller_path_mtu_on_both_sides_leaves_the_servers_window_open() {
    const SEGMENT: u32 = 1_300;
    let mut config = config();
    config.virtual_window.mode = VirtualWindowMode::Sized;
    let mut script = established_over(config, 900);
    let data = script.from_client(1, 1, Flags::ACK, 700, none(), 1_300);
    let up = sent_by(WAN, script.arrive(RADIO, data)).remove(0);
    script.arrive(WAN, icmp(&up, 4, 552));
    let ack = script.from_server(1, 1_301, Flags::ACK, 500, none(), 0);
    script.arrive(WAN, ack);
    let (mut sent, mut shown) = (0, 0);
    for _ in 0..60 {
        let data = script.from_server(1 + sent, 1_301, Flags::ACK, 500, none(), SEGMENT as usize);
        sent += SEGMENT;
        let mut out = script.arrive(WAN, data);
        if let Some(down) = sent_by(RADIO, out.clone()).first() {
            out.extend(script.arrive(RADIO, icmp(down, 4, 552)));
        }
        for _ in 0..5 {
            out.extend(script.wait(600));
            let data = sent_by(RADIO, out.clone()).into_iter();
            let ends = data.map(|packet| packet.tcp().unwrap().seq().add(packet.payload().len() as u32));
            let heard = ends.map(|end| end.0.wrapping_sub(SERVER_ISN)).max();
            for ack in sent_by(WAN, out) {
                let tcp = ack.tcp().unwrap();
                shown = tcp.ack().0.wrapping_sub(SERVER_ISN) - 1 + u32::from(tcp.window());
            }
            let ack = heard.map(|heard| script.from_client(1_301, heard, Flags::ACK, 700, none(), 0));
            out = ack.map(|ack| script.arrive(RADIO, ack)).unwrap_or_default();
        }
        assert!(shown >= sent + SEGMENT, "{shown} bytes were offered after {sent}");
    }
}

/// A routed gateway hears copies of what the kernel does by itself. The packets of either side may be too big.
#[test]
fn a_smaller_path_mtu_is_overheard() {
    let mut script = established();
    let data = script.from_server(1, 1, Flags::ACK, 60_000, none(), 1_300);
    let down = sent_by(RADIO, script.arrive(WAN, data)).remove(0);
    let data = script.from_client(1, 1, Flags::ACK, 60_000, none(), 1_300);
    let up = sent_by(WAN, script.arrive(RADIO, data)).remove(0);
    let unreachable = icmp(&down, 1, 0);
    assert_eq!(script.arrive(OVERHEARD, unreachable).len(), 0);
    for (port, sent) in [(RADIO, down), (WAN, up)] {
        let message = icmp(&sent, 4, 800);
        let out = script.arrive(OVERHEARD, message);
        assert_eq!(out.len(), 1, "the copy goes nowhere");
        assert_eq!((out[0].0, out[0].1.payload().len(), out[0].1.gso_size()), (port, 1_300, Some(760)));
    }
}

#[test]
fn an_idle_flow_ends_for_both() {
    let mut config = config();
    config.limits.idle_timeout_s = 60;
    let mut script = established_with(config);
    let out = script.wait(61_000);
    for port in [WAN, RADIO] {
        let packets = sent_by(port, out.clone());
        assert!(packets.len() == 1 && flags(&packets[0]).contains(Flags::RST), "{packets:?}");
    }
    assert_eq!((script.gateway.flows(), script.gateway.counters().flows_expired), (0, 1));
}

#[test]
fn after_a_restart_both_ends_are_told_that_it_is_over() {
    let mut script = Script::new(config());
    let flow = script.up;
    script.gateway.end(flow);
    let data = script.from_server(1, 7, Flags::ACK, 500, none(), 1_000);
    let told = script.arrive(WAN, data.clone());
    assert_eq!((told[0].0, flags(&told[0].1)), (WAN, Flags::RST));
    assert_eq!(told[0].1.tcp().unwrap().seq(), Seq(CLIENT_ISN).add(7));
    assert_eq!(script.arrive(RADIO, script.from_client(7, 1, Flags::ACK, 500, none(), 0))[0].0, RADIO);
    // A reset may have been lost.
    assert_eq!(script.arrive(WAN, data)[0].0, WAN);
    script.pass(RADIO, script.from_client(0, 0, Flags::SYN, 60_000, plain(1_460), 0));
    assert_eq!(script.gateway.split_flows(), 1);
}

#[test]
fn ends_that_say_nothing_after_a_restart_are_forgotten() {
    let mut config = config();
    config.limits.idle_timeout_s = 60;
    let mut script = Script::new(config);
    script.gateway.end(script.up);
    assert!(script.wait(59_000).is_empty());
    let data = script.from_server(1, 7, Flags::ACK, 500, none(), 1_000);
    assert_eq!(script.arrive(WAN, data.clone()).len(), 1);
    assert!(script.wait(2_000).is_empty());
    assert_eq!(script.gateway.poll_timeout(), None);
    script.pass_unchanged(WAN, data);
}

/// If it were taken for the request, which then cannot be answered, the server would keep a connection that nobody
/// shares.
#[test]
fn a_syn_that_comes_again_with_a_fin_is_not_taken_for_the_request() {
    let mut script = Script::new(config());
    script.pass(RADIO, script.from_client(0, 0, Flags::SYN, 60_000, plain(1_400), 0));
    script.pass_unchanged(RADIO, script.from_client(0, 0, Flags::SYN | Flags::FIN, 60_000, plain(1_400), 0));
    let answer = script.pass(WAN, script.from_server(0, 1, Flags::SYN | Flags::ACK, 60_000, plain(1_300), 0));
    assert_eq!(flags(&answer), Flags::SYN | Flags::ACK);
}

#[test]
fn when_the_table_is_full_flows_pass() {
    let mut config = config();
    config.limits.max_flows = 1;
    let mut script = established_with(config);
    script.up.src.set_port(40_001);
    script.pass_unchanged(RADIO, script.from_client(0, 0, Flags::SYN, 60_000, plain(1_460), 0));
    assert_eq!(script.gateway.counters().passed_table_full, 1);
}

/// A router's message about `packet`: "destination unreachable" with this code.
fn icmp(packet: &Packet, code: u8, mtu: u16) -> Packet {
    let quoted = packet.to_vec();
    let mut bytes = vec![0x45, 0, 0, 0, 0, 0, 0, 0, 64, 1, 0, 0, 10, 9, 9, 9];
    bytes.extend_from_slice(&quoted[12..16]);
    bytes.extend_from_slice(&[3, code, 0, 0, 0, 0]);
    bytes.extend_from_slice(&mtu.to_be_bytes());
    bytes.extend_from_slice(&quoted[..28]);
    let len = bytes.len() as u16;
    bytes[2..4].copy_from_slice(&len.to_be_bytes());
    Packet::parse(&[], &bytes, &mut BufferPool::new(1 << 16)).unwrap()
}
