use paceline_wire::{Flags, FlowKey, Packet, Payload, SackBlocks, Seq, TcpOptionsRepr, TcpRepr};

use crate::oracle::tcp_header_of;

pub(crate) fn with_options(flags: Flags, options: TcpOptionsRepr) -> Packet {
    let key = FlowKey::new("10.0.0.1:80".parse().unwrap(), "10.0.0.2:5000".parse().unwrap());
    Packet::build_tcp(key, &TcpRepr { flags, options, ..TcpRepr::default() }, Payload::default())
}

pub(crate) fn raw(flags: Flags, extra: &'static [u8]) -> Packet {
    with_options(flags, TcpOptionsRepr { extra, ..TcpOptionsRepr::default() })
}

#[test]
fn a_syn_as_linux_sends_it() {
    let options = TcpOptionsRepr {
        mss: Some(1460),
        window_scale: Some(7),
        sack_permitted: true,
        timestamps: Some((1, 2)),
        ..TcpOptionsRepr::default()
    };
    let packet = with_options(Flags::SYN, options);
    let tcp = packet.tcp().unwrap();
    assert_eq!(tcp.options(), [2, 4, 5, 180, 4, 2, 8, 10, 0, 0, 0, 1, 0, 0, 0, 2, 1, 3, 3, 7]);
    assert_eq!((tcp.mss(), tcp.window_scale(), tcp.sack_permitted()), (Some(1460), Some(7), true));
    assert_eq!(tcp.timestamps(), Some((1, 2)));
    assert!(!tcp.covers_headers() && !tcp.mptcp() && !tcp.fast_open());
}

#[test]
fn four_sack_blocks_or_three_beside_timestamps() {
    let blocks: SackBlocks = (0..9).map(|n| (Seq(100 * n), Seq(100 * n + 50))).collect();
    assert_eq!(blocks.as_slice().len(), 4);
    let alone = TcpOptionsRepr { sack_blocks: blocks, ..TcpOptionsRepr::default() };
    let beside = TcpOptionsRepr { timestamps: Some((1, 2)), ..alone };
    for (options, count) in [(alone, 4), (beside, 3)] {
        let packet = with_options(Flags::ACK, options);
        let tcp = packet.tcp().unwrap();
        assert!(tcp.sack_blocks().eq(blocks.as_slice()[..count].iter().copied()));
        // Another parser reads them, too.
        assert_eq!(tcp_header_of(&packet.to_vec()).options_iterator().filter_map(Result::ok).count(), {
            let nops = tcp.options().iter().take_while(|&&byte| byte == 1).count();
            if count == 4 { nops + 1 } else { nops + 1 + 2 + 1 }
        });
    }
}

#[test]
fn options_of_the_handshake_mean_nothing_later() {
    let packet = raw(Flags::ACK, &[2, 4, 5, 180, 3, 3, 7, 4, 2]);
    let tcp = packet.tcp().unwrap();
    assert_eq!((tcp.mss(), tcp.window_scale(), tcp.sack_permitted()), (None, None, false));
}

#[test]
fn a_shift_above_fourteen_is_fourteen() {
    assert_eq!(raw(Flags::SYN, &[3, 3, 255]).tcp().unwrap().window_scale(), Some(14));
}

#[test]
fn options_that_must_not_be_broken_are_seen() {
    let signed = [&[19u8, 18, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0][..], &[29, 4, 0, 0]];
    for options in signed {
        let packet = raw(Flags::ACK, Box::leak(options.into()));
        assert!(packet.tcp().unwrap().covers_headers());
    }
    assert!(raw(Flags::SYN, &[30, 4, 0, 1]).tcp().unwrap().mptcp());
    assert!(raw(Flags::SYN, &[34, 2]).tcp().unwrap().fast_open());
    assert!(raw(Flags::SYN, &[254, 4, 0xf9, 0x89]).tcp().unwrap().fast_open());
    assert!(!raw(Flags::SYN, &[254, 4, 0, 1]).tcp().unwrap().fast_open());
}

#[test]
fn wrong_lengths_end_the_list_or_are_passed_over() {
    // A length below 2 or beyond the header hides the options behind it.
    for bad in [&[99, 0, 3, 3, 7][..], &[99, 1, 3, 3, 7], &[99, 60, 3, 3, 7], &[0, 3, 3, 7]] {
        assert_eq!(raw(Flags::SYN, Box::leak(bad.into())).tcp().unwrap().window_scale(), None);
    }
    // A known option of another length is ignored, but those behind it count.
    let packet = raw(Flags::SYN, &[3, 4, 7, 7, 2, 3, 1, 5, 4, 1, 2, 3, 3, 5]);
    let tcp = packet.tcp().unwrap();
    assert_eq!((tcp.window_scale(), tcp.mss(), tcp.sack_blocks().count()), (Some(5), None, 0));
    let packet = raw(Flags::SYN, &[3, 3, 9, 3, 4, 7, 7]);
    assert_eq!(packet.tcp().unwrap().window_scale(), Some(9));
}

#[test]
fn of_repeated_options_the_last_counts() {
    assert_eq!(raw(Flags::SYN, &[3, 3, 1, 3, 3, 2]).tcp().unwrap().window_scale(), Some(2));
}
