//! Rare packets, one by one: whether the gateway believes them, and what leaves.

use paceline_gateway::config::{QueueBoundMode, RetransmissionMode, ScheduleMode};
use paceline_gateway::{GatewayConfig, RADIO, WAN};
use paceline_wire::{BufferPool, Ecn, Flags, FlowKey, Packet, PortId, Seq, TcpOptionsRepr};

use crate::kit::script::{SERVER_ISN, Script, modern, none, unscaled};

fn stamped(value: u32) -> TcpOptionsRepr {
    TcpOptionsRepr { timestamps: Some((value, 1)), ..none() }
}

/// Returns the packets of `out` that left by `port`.
fn sent_by(port: PortId, out: Vec<(PortId, Packet)>) -> Vec<Packet> {
    out.into_iter().filter(|(to, _)| *to == port).map(|(_, packet)| packet).collect()
}

fn parse(bytes: &[u8]) -> Packet {
    Packet::parse(&[], bytes, &mut BufferPool::new(1 << 20)).unwrap()
}

/// A "packet too big" message about `packet`, from a router in front of the client.
fn too_big(packet: &Packet, mtu: u16) -> Packet {
    let quoted = packet.to_vec();
    let mut bytes = if quoted[0] >> 4 == 6 {
        let mut bytes = vec![0x60, 0, 0, 0, 0, 8 + 60, 58, 64];
        bytes.extend([0x20; 16]);
        bytes.extend(&quoted[8..24]);
        bytes.extend([2, 0, 0, 0, 0, 0]);
        bytes
    } else {
        let mut bytes = vec![0x45, 0, 0, 28 + 60, 0, 0, 0, 0, 64, 1, 0, 0, 10, 0, 1, 99];
        bytes.extend(&quoted[12..16]);
        bytes.extend([3, 4, 0, 0, 0, 0]);
        bytes
    };
    bytes.extend(mtu.to_be_bytes());
    bytes.extend(&quoted[..60]);
    parse(&bytes)
}

/// The gateway sends what it keeps in packets that fit, with the headers that the flow has.
#[test]
fn a_smaller_path_mtu_is_one_of_whole_packets() {
    let mut script = Script::new(GatewayConfig::default());
    script.up = FlowKey::new("[2001:db8:1::1]:40000".parse().unwrap(), "[2001:db8::1]:80".parse().unwrap());
    let options = TcpOptionsRepr { timestamps: Some((1, 0)), ..modern() };
    script.handshake(options, options);
    let data = script.from_server(1, 1, Flags::ACK, 500, stamped(1), 1_428);
    assert_eq!(data.ip_len(), 1_500);
    let sent = script.pass(WAN, data);
    script.pass_unchanged(RADIO, too_big(&sent, 1_492));
    assert_eq!(script.gateway.counters().path_mtus_lowered, 1);
    let again = sent_by(RADIO, script.wait(3_000));
    let first = again.iter().find(|packet| !packet.payload().is_empty()).expect("a retransmission");
    assert_eq!((first.ip_len(), first.payload().len()), (1_492, 1_420));
    assert!(again.iter().all(|packet| packet.ip_len() <= 1_492));
    // The server's own smaller segments make no segment of the old size leave.
    let smaller = script.from_server(1, 1, Flags::ACK, 500, stamped(1), 1_420);
    assert_eq!(
        sent_by(RADIO, script.arrive(WAN, smaller)).iter().filter(|sent| sent.ip_len() > 1_492).count(),
        0
    );
    script.wait(200);
    script.pass_unchanged(RADIO, too_big(&sent, 1_492));
    assert_eq!(script.gateway.counters().path_mtus_lowered, 1);
}

#[test]
fn what_fits_a_smaller_path_mtu_leaves_as_it_came() {
    let mut script = Script::new(GatewayConfig::default());
    script.handshake(modern(), modern());
    let sent = script.pass(WAN, script.from_server(1, 1, Flags::ACK, 500, none(), 1_452));
    assert_eq!(sent.ip_len(), 1_492);
    script.pass_unchanged(RADIO, too_big(&sent, 1_492));
    assert_eq!(script.gateway.counters().path_mtus_lowered, 0);
    script.wait(200);
    script.pass_unchanged(RADIO, too_big(&sent, 1_491));
    assert_eq!(script.gateway.counters().path_mtus_lowered, 1);
}

/// RFC 7323, Section 5.3: data below what the client acknowledged does not move its TS.Recent. Data that stays in the
/// gateway does not either.
#[test]
fn a_timestamp_that_the_client_does_not_take_over_is_put_on_nothing() {
    let mut script = Script::new(GatewayConfig::default());
    script.handshake(TcpOptionsRepr { timestamps: Some((1, 0)), ..modern() }, modern());
    for i in 0..20 {
        script.arrive(WAN, script.from_server(1 + i * 1_000, 1, Flags::ACK, 500, stamped(100), 1_000));
    }
    script.arrive(RADIO, script.from_client(1, 10_001, Flags::ACK, 500, stamped(2), 0));
    for (seq, len) in [(1, 1_000), (9_000, 1_000), (9_000, 0)] {
        script.pass(WAN, script.from_server(seq, 1, Flags::ACK, 500, stamped(1 << 30), len));
    }
    let absorbed = script.from_server(10_001, 1, Flags::ACK, 500, stamped(1 << 30), 1_000);
    assert_eq!(script.arrive(WAN, absorbed).len(), 0);
    let repeated = sent_by(RADIO, script.wait(3_000));
    let stamps: Vec<_> = repeated.iter().filter_map(|packet| packet.tcp()?.timestamps()).collect();
    assert!(!stamps.is_empty());
    assert!(stamps.iter().all(|&(value, _)| value == 100), "{stamps:?}");
}

/// Makes a hole at 3,001 that the gateway repairs. Everything before it is acknowledged.
fn in_a_hole(mut script: Script) -> Script {
    for i in 3..5 {
        script.pass(WAN, script.from_server(1 + i * 1_000, 1, Flags::ACK, 500, none(), 1_000));
    }
    script.wait(100);
    script
}

/// A duplicate ACK with these blocks. They count from the server's first number.
fn duplicate(script: &Script, blocks: &[(u32, u32)]) -> Packet {
    selective(script, 3_001, 500, blocks)
}

/// An ACK with SACK blocks.
fn selective(script: &Script, ack: u32, window: u16, blocks: &[(u32, u32)]) -> Packet {
    let mut option = vec![1, 1, 5, 2 + 8 * blocks.len() as u8];
    for (start, end) in blocks {
        option.extend(Seq(SERVER_ISN).add(*start).0.to_be_bytes());
        option.extend(Seq(SERVER_ISN).add(*end).0.to_be_bytes());
    }
    let options = TcpOptionsRepr { extra: option.leak(), ..none() };
    script.from_client(1, ack, Flags::ACK, window, options, 0)
}

/// RFC 2883: the server learns that its own retransmission was needless, and hears of no other.
#[test]
fn the_server_hears_that_it_repeated_needlessly() {
    let mut script = in_a_hole(Script::established());
    script.pass(WAN, script.from_server(1, 1, Flags::ACK, 500, none(), 1_000));
    let needless = [(1, 1_001), (4_001, 5_001)];
    let answer = duplicate(&script, &needless);
    let told = sent_by(WAN, script.arrive(RADIO, answer));
    let blocks: Vec<_> = told.iter().flat_map(|packet| packet.tcp().unwrap().sack_blocks()).collect();
    assert_eq!(blocks, [(Seq(SERVER_ISN).add(1), Seq(SERVER_ISN).add(1_001))]);
    let another = duplicate(&script, &needless);
    assert_eq!(sent_by(WAN, script.arrive(RADIO, another)).len(), 0);
}

/// RFC 2883 and RFC 3708: the wired side reorders by more than a round trip. The server's repair comes first, and then
/// the packet that it repairs. The client must get both. The server must hear that its repair was needless, even if
/// another answer comes before that.
#[test]
fn what_a_repair_of_the_servers_overtook_reaches_the_client() {
    let mut config = GatewayConfig::default();
    config.retransmission.mode = RetransmissionMode::Local;
    let mut script = Script::new(config);
    script.handshake(TcpOptionsRepr { timestamps: Some((1, 0)), ..modern() }, modern());
    let segment = |script: &Script, n: u32, value| {
        script.from_server(1 + n * 1_000, 1, Flags::ACK, 500, stamped(value), 1_000)
    };
    for n in 1..5 {
        let data = segment(&script, n, 100 + n);
        script.arrive(WAN, data);
    }
    let repair = segment(&script, 0, 140);
    assert_eq!(sent_by(RADIO, script.arrive(WAN, repair)).len(), 1);
    let repeated = segment(&script, 1, 141);
    assert_eq!(sent_by(RADIO, script.arrive(WAN, repeated)).len(), 0, "nothing was overtaken");
    let overtaken = segment(&script, 0, 100);
    assert_eq!(sent_by(RADIO, script.arrive(WAN, overtaken)).len(), 1);
    let blocks = |packets: Vec<Packet>| -> Vec<_> {
        packets.iter().flat_map(|packet| packet.tcp().unwrap().sack_blocks().collect::<Vec<_>>()).collect()
    };
    script.wait(30);
    let before = selective(&script, 1, 500, &[(1_001, 5_001)]);
    script.arrive(RADIO, before);
    let answer = selective(&script, 5_001, 500, &[(1, 1_001)]);
    let told = blocks(sent_by(WAN, script.arrive(RADIO, answer)));
    assert_eq!(told, [(Seq(SERVER_ISN).add(1), Seq(SERVER_ISN).add(1_001))]);
}

/// Each answer to a probe counts as one, whatever else the flow does then. None is left over for a later hole.
#[test]
fn answered_keep_alives_let_no_later_duplicate_through() {
    let mut script = Script::established();
    for _ in 0..3 {
        script.pass(WAN, script.from_server(3_000, 1, Flags::ACK, 500, none(), 0));
        script.arrive(RADIO, script.from_client(1, 3_001, Flags::ACK, 500, none(), 0));
        script.wait(500);
    }
    let mut script = in_a_hole(script);
    let first = duplicate(&script, &[(4_001, 5_001)]);
    // It may pass because it updates the window.
    script.arrive(RADIO, first);
    let second = duplicate(&script, &[(4_001, 5_001)]);
    assert_eq!(sent_by(WAN, script.arrive(RADIO, second)).len(), 0);
}

/// A server without SACK sends a segment again for each partial ACK (RFC 6582). The client has it by then. Its answer
/// would be a duplicate ACK for the server.
#[test]
fn what_the_server_will_hear_of_is_not_sent_again_to_a_client_without_sack() {
    for sack in [false, true] {
        let mut script = Script::new(GatewayConfig::default());
        let options = TcpOptionsRepr { sack_permitted: sack, ..modern() };
        script.handshake_over([50, 10], options, options);
        let data = script.from_server(1, 1, Flags::ACK, 500, none(), 1_000);
        script.pass(WAN, data.clone());
        script.wait(10);
        script.pass(RADIO, script.from_client(1, 1_001, Flags::ACK, 500, none(), 0));
        script.wait(40);
        assert_eq!(sent_by(RADIO, script.arrive(WAN, data.clone())).len(), usize::from(sack));
        // The acknowledgement was lost.
        script.wait(20);
        script.pass(WAN, data);
    }
}

/// The packet as it comes from a link that damaged it.
fn damaged(packet: &Packet) -> Packet {
    let mut bytes = packet.to_vec();
    // The urgent pointer.
    bytes[38] ^= 0x10;
    parse(&bytes)
}

/// Nobody believes a packet that no receiver would take. Its window is converted to the client's unit, and it stays
/// damaged.
#[test]
fn a_damaged_packet_ends_nothing() {
    let mut script = Script::new(GatewayConfig::default());
    script.handshake(unscaled(), modern());
    script.wrong_checksums_allowed = true;
    let reset = script.from_server(1, 1, Flags::RST | Flags::ACK, 100, none(), 0);
    let passed = script.pass(WAN, damaged(&reset));
    assert!(!passed.verify_checksum());
    assert_eq!(passed.tcp().unwrap().window(), 100 << 7);
    let reset = script.from_client(1, 1, Flags::RST | Flags::ACK, 100, none(), 0);
    assert!(!script.pass(RADIO, damaged(&reset)).verify_checksum());
    assert_eq!(script.gateway.counters().passed_bad_checksum, 2);
    script.wait(61_000);
    assert_eq!(script.gateway.flows(), 1);
}

#[test]
fn a_damaged_acknowledgement_lets_go_of_nothing() {
    let mut script = Script::new(GatewayConfig::default());
    script.handshake(modern(), modern());
    script.pass(WAN, script.from_server(1, 1, Flags::ACK, 500, none(), 1_000));
    script.wrong_checksums_allowed = true;
    let ack = script.from_client(1, 1_001, Flags::ACK, 500, none(), 0);
    script.pass(RADIO, damaged(&ack));
    assert!(script.gateway.buffered_bytes() >= 1_000);
    script.pass(RADIO, ack);
    assert_eq!(script.gateway.buffered_bytes(), 0);
}

#[test]
fn a_damaged_syn_begins_no_flow_and_its_copy_does() {
    let mut script = Script::new(GatewayConfig::default());
    let syn = script.from_client(0, 0, Flags::SYN, 17_520, modern(), 0);
    script.wrong_checksums_allowed = true;
    script.pass(RADIO, damaged(&syn));
    assert_eq!(script.gateway.flows(), 0);
    script.wait(1_000);
    script.pass(RADIO, syn);
    assert_eq!(script.gateway.flows(), 1);
}

/// No shift can show a whole gibibyte (RFC 7323, Section 2.3). The largest shift comes nearest.
#[test]
fn the_largest_virtual_window_still_gets_a_scale() {
    for max_bytes in [65_535 << 14, (65_535 << 14) + 1, 1 << 30] {
        let mut config = GatewayConfig::default();
        config.virtual_window.max_bytes = max_bytes;
        assert_eq!(config.check(), Ok(()));
        let mut script = Script::new(config);
        let [syn, ..] = script.handshake(unscaled(), modern());
        assert_eq!(syn.tcp().unwrap().window_scale(), Some(14));
    }
}

/// Of two window scales, a server may read the last, as Linux does, or the first. Either agrees with the gateway.
#[test]
fn all_window_scales_of_a_syn_are_raised() {
    for options in [&[3, 3, 2, 3, 3, 1, 1, 1], &[3, 2, 1, 3, 3, 1, 1, 1]] {
        let mut script = Script::new(GatewayConfig::default());
        let [syn, ..] = script.handshake(TcpOptionsRepr { extra: options, ..unscaled() }, modern());
        let tcp = syn.tcp().unwrap();
        assert_eq!(tcp.window_scale(), Some(7));
        assert!(!tcp.options().windows(3).any(|option| option[..2] == [3, 3] && option[2] != 7));
    }
}

/// RFC 3168, Section 6.1.5: what leaves again is not ECN-capable. A mark that it came with stays.
#[test]
fn what_leaves_again_cannot_be_marked() {
    for (ecn, again) in [(Ecn::Ect0, Ecn::NotEct), (Ecn::Ect1, Ecn::NotEct), (Ecn::Ce, Ecn::Ce)] {
        let mut script = Script::established();
        let mut data = script.from_server(3_001, 1, Flags::ACK, 500, none(), 1_000);
        data.set_ecn(ecn);
        script.pass_unchanged(WAN, data);
        let repeated = sent_by(RADIO, script.wait(3_000));
        let last = repeated.iter().rfind(|packet| !packet.payload().is_empty()).expect("a retransmission");
        assert_eq!(last.ecn(), Some(again));
    }
}

/// The path to the client becomes seven times as long as the gateway's timer expects. Each segment is repeated before
/// it is acknowledged, so no ACK tells the RTT. This ends when the timer has backed off far enough.
#[test]
fn a_path_that_becomes_longer_than_the_timer_is_measured_again() {
    let mut config = GatewayConfig::default();
    config.retransmission.mode = RetransmissionMode::Local;
    let mut script = Script::new(config);
    script.handshake(TcpOptionsRepr { sack_permitted: false, ..modern() }, modern());
    let mut copies = Vec::new();
    for n in 0..20u32 {
        let data = script.from_server(1 + n * 1_000, 1, Flags::ACK, 500, none(), 1_000);
        let mut left = script.arrive(WAN, data);
        left.extend(script.wait(if n < 5 { 100 } else { 700 }));
        copies.push(sent_by(RADIO, left).iter().filter(|packet| !packet.payload().is_empty()).count());
        script.arrive(RADIO, script.from_client(1, 1 + (n + 1) * 1_000, Flags::ACK, 17_520, none(), 0));
    }
    assert_eq!(copies[..5], [1; 5], "{copies:?}");
    assert!(copies[5] > 1, "{copies:?}");
    assert_eq!(copies[10..], [1; 10], "{copies:?}");
}

/// The radio loses some thirty packets in a row, and so each copy of the last segment. All copies leave at the distance
/// of the first. With doubled distances the sixth would leave after seven seconds. The client would then wait for the
/// rest of a minute.
#[test]
fn copies_into_a_long_burst_of_losses_leave_at_equal_distances() {
    let mut config = GatewayConfig::default();
    config.retransmission.mode = RetransmissionMode::Local;
    let mut script = Script::new(config);
    script.handshake(modern(), modern());
    for n in 0..5u32 {
        script.arrive(WAN, script.from_server(1 + n * 1_000, 1, Flags::ACK, 500, none(), 1_000));
        script.wait(100);
        script.arrive(RADIO, script.from_client(1, 1 + (n + 1) * 1_000, Flags::ACK, 17_520, none(), 0));
    }
    script.arrive(WAN, script.from_server(5_001, 1, Flags::ACK, 500, none(), 1_000));
    let copies: Vec<usize> = (0..6).map(|_| sent_by(RADIO, script.wait(1_000)).len()).collect();
    assert!(copies.iter().all(|&in_a_second| (4..=10).contains(&in_a_second)), "{copies:?}");
    assert_eq!(script.gateway.counters().passed_gave_up, 0);
}

/// The answers come ever later, and then a segment is lost. By the RTT that the gateway measured, its copy is not due
/// for half a minute. The server knows better, and its second copy leaves.
#[test]
fn a_server_that_insists_is_believed() {
    let mut config = GatewayConfig::default();
    config.retransmission.mode = RetransmissionMode::Local;
    let mut script = Script::new(config);
    script.handshake(modern(), modern());
    let mut ms = 50;
    for n in 0..22u32 {
        script.arrive(WAN, script.from_server(1 + n * 1_000, 1, Flags::ACK, 500, none(), 1_000));
        script.wait(ms);
        ms = ms * 13 / 10;
        script.arrive(RADIO, script.from_client(1, 1 + (n + 1) * 1_000, Flags::ACK, 17_520, none(), 0));
    }
    let lost = script.from_server(22_001, 1, Flags::ACK, 500, none(), 1_000);
    script.arrive(WAN, lost.clone());
    script.arrive(WAN, script.from_server(23_001, 1, Flags::ACK, 500, none(), 1_000));
    let mut copies = Vec::new();
    for _ in 0..3 {
        let mut out = script.wait(1_000);
        out.extend(script.arrive(WAN, lost.clone()));
        copies.push(sent_by(RADIO, out).len());
    }
    assert_eq!(copies, [0, 1, 0], "the second after each departure");
}

/// Five segments come while the memory is full: they pass and are lost. The memory has room for those behind them, but
/// the client has no room for the last of these. Only the server's own repair can help. So the gateway does not send
/// what the client discards again and again.
#[test]
fn what_the_client_discards_behind_a_hole_of_the_servers_is_not_sent_for_ever() {
    let mut config = GatewayConfig::default();
    config.retransmission.mode = RetransmissionMode::Local;
    config.schedule.mode = ScheduleMode::OnArrival;
    config.queue_bound.mode = QueueBoundMode::None;
    config.limits.max_flow_buffer_bytes = 60_000;
    let mut script = Script::new(config);
    script.handshake(unscaled(), unscaled());
    let segment =
        |script: &Script, n: u32| script.from_server(1 + n * 1_000, 1, Flags::ACK, 500, none(), 1_000);
    let passed = |script: &Script| script.gateway.counters().passed_buffer_full;
    let mut next = 0;
    while passed(&script) < 5 {
        let data = segment(&script, next);
        script.pass(WAN, data);
        next += 1;
    }
    script.wait(100);
    let first = 1 + (next - 5) * 1_000;
    script.arrive(RADIO, script.from_client(1, first, Flags::ACK, 17_520, none(), 0));
    // 12 segments for which there is room, and 8 more.
    let left: Vec<Packet> = (next..next + 20)
        .flat_map(|n| {
            let data = segment(&script, n);
            sent_by(RADIO, script.arrive(WAN, data))
        })
        .collect();
    assert_eq!((left.len(), passed(&script)), (20, 5));
    let told = [(first + 5_000, first + 17_000)];
    let mut answers = left.len();
    let mut copies = 0;
    for _ in 0..200 {
        script.wait(100);
        let mut out = Vec::new();
        for _ in 0..answers {
            let ack = selective(&script, first, 17_520, &told);
            out.extend(script.arrive(RADIO, ack));
        }
        out.extend(script.wait(1));
        answers = sent_by(RADIO, out).iter().filter(|packet| !packet.payload().is_empty()).count();
        copies += answers;
    }
    assert!(copies <= 8, "{copies} copies of 8 segments");
    // The server repairs, and the client has room again.
    for n in next - 5..next {
        let data = segment(&script, n);
        script.arrive(WAN, data);
    }
    let mut out = script.arrive(RADIO, script.from_client(1, first + 17_000, Flags::ACK, 17_520, none(), 0));
    out.extend(script.wait(5_000));
    let ends: Vec<u32> = sent_by(RADIO, out)
        .iter()
        .filter_map(|packet| packet.tcp())
        .map(|tcp| tcp.end_seq().0 - SERVER_ISN)
        .collect();
    assert!(ends.contains(&(first + 18_000)), "{ends:?}");
}
