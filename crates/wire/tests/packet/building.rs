//! Every header that can be built must parse to the same fields. Shared by the fuzz target `headers` and by the replay
//! of its corpus.

use std::net::{Ipv4Addr, Ipv6Addr, SocketAddr};

use paceline_wire::{BufferPool, Checksum, Flags, FlowKey, Packet, Payload, Seq, TcpOptionsRepr, TcpRepr};

/// `data` has addresses, fixed fields and options of a TCP header, then the payload.
pub(crate) fn exercise(data: &[u8]) {
    let Some((fixed, rest)) = data.split_first_chunk::<18>() else { return };
    let (options, payload) = read_options(fixed[0], rest);
    let word = |at: usize| u32::from_be_bytes([fixed[at], fixed[at + 1], fixed[at + 2], fixed[at + 3]]);
    let half = |at: usize| u16::from_be_bytes([fixed[at], fixed[at + 1]]);
    let repr = TcpRepr {
        seq: Seq(word(1)),
        ack: Seq(word(5)),
        flags: Flags::from_bits_truncate(half(9)),
        window: half(11),
        urgent_pointer: half(13),
        options,
    };
    let key = key(fixed[0] & 1 == 1, fixed[15], half(16));
    let mut packet = Packet::build_tcp(key, &repr, Payload::from(payload.to_vec()));
    assert_eq!(packet.checksum(), Checksum::Partial);
    packet.complete_checksum();
    let bytes = packet.to_vec();
    let again = Packet::parse(&[], &bytes, &mut BufferPool::new(1 << 20)).unwrap();
    assert_eq!((again.flow_key(), again.payload().bytes()), (Some(key), Some(payload)));
    assert!(again.verify_checksum());
    let tcp = again.tcp().unwrap();
    assert_eq!((tcp.seq(), tcp.ack(), tcp.window()), (repr.seq, repr.ack, repr.window));
    assert_eq!(tcp.flags(), repr.flags);
    assert_eq!(tcp.timestamps(), options.timestamps);
    // These count only in a SYN. RFC 7323, Section 2.3: a shift above 14 counts as 14.
    let is_syn = repr.flags.contains(Flags::SYN);
    assert_eq!(tcp.mss(), options.mss.filter(|_| is_syn));
    assert_eq!(tcp.sack_permitted(), options.sack_permitted && is_syn);
    assert_eq!(tcp.window_scale(), options.window_scale.filter(|_| is_syn).map(|shift| shift.min(14)));
    // Blocks that do not fit are left out, the last ones first.
    let blocks: Vec<_> = tcp.sack_blocks().collect();
    assert_eq!(blocks, options.sack_blocks.as_slice()[..blocks.len()]);
    let is_alone = options.mss.is_none() && options.window_scale.is_none() && options.timestamps.is_none();
    assert!(blocks.len() == options.sack_blocks.as_slice().len() || !is_alone, "a block had room");
}

/// Reads each option that `choices` selects from the following bytes.
fn read_options(choices: u8, mut bytes: &[u8]) -> (TcpOptionsRepr, &[u8]) {
    let mut take = |wanted: bool| {
        let Some((word, rest)) = bytes.split_first_chunk::<4>().filter(|_| wanted) else { return 0 };
        bytes = rest;
        u32::from_be_bytes(*word)
    };
    let has = |bit: u8| choices & bit != 0;
    let mss = has(2).then_some(take(has(2)) as u16);
    let window_scale = has(4).then_some(take(has(4)) as u8);
    let timestamps = has(16).then_some((take(has(16)), take(has(16))));
    let sack_blocks =
        (0..choices >> 5).map(|_| (Seq(take(true)), Seq(take(true)))).collect::<Vec<_>>()[..].into();
    let options = TcpOptionsRepr {
        mss,
        window_scale,
        sack_permitted: has(8),
        timestamps,
        sack_blocks,
        ..TcpOptionsRepr::default()
    };
    (options, bytes)
}

fn key(is_v6: bool, host: u8, port: u16) -> FlowKey {
    let end = |host: u8, port: u16| match is_v6 {
        true => SocketAddr::from((Ipv6Addr::new(0x2001, 0xdb8, 0, 0, 0, 0, 0, host.into()), port)),
        false => SocketAddr::from((Ipv4Addr::new(192, 0, 2, host), port)),
    };
    FlowKey::new(end(host, port), end(!host, 80))
}
