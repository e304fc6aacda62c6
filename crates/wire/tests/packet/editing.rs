use paceline_wire::{Checksum, Ecn, Flags, NoRoom, Packet, SackBlocks, Seq, TcpOptionsRepr};
use proptest::collection::vec;
use proptest::prelude::*;

use crate::options::{raw, with_options};
use crate::oracle::{damage_of, ip_header_is_right, pseudo_sum, sample, tcp_header_of, to_partial};

#[derive(Clone, Debug)]
enum Edit {
    Seq(u32),
    Ack(u32),
    Window(u16),
    Urgent(u16),
    Flags(u16),
    Timestamps(u32, u32),
    AddWindowScale(u8),
    RemoveWindowScale,
    RetainSack(u8),
    Ecn(Ecn),
}

fn edit() -> impl Strategy<Value = Edit> {
    let ecn = prop_oneof![Just(Ecn::NotEct), Just(Ecn::Ect0), Just(Ecn::Ect1), Just(Ecn::Ce)];
    prop_oneof![
        any::<u32>().prop_map(Edit::Seq),
        any::<u32>().prop_map(Edit::Ack),
        any::<u16>().prop_map(Edit::Window),
        any::<u16>().prop_map(Edit::Urgent),
        (0u16..0x200).prop_map(Edit::Flags),
        any::<(u32, u32)>().prop_map(|(value, echo)| Edit::Timestamps(value, echo)),
        (0u8..=14).prop_map(Edit::AddWindowScale),
        Just(Edit::RemoveWindowScale),
        any::<u8>().prop_map(Edit::RetainSack),
        ecn.prop_map(Edit::Ecn),
    ]
}

/// Applies `edit` and checks its effect.
fn apply(packet: &mut Packet, edit: &Edit) {
    let before = packet.clone();
    let was = before.tcp().unwrap();
    if let Edit::Ecn(ecn) = edit {
        packet.set_ecn(*ecn);
        assert_eq!(packet.tcp().unwrap().ecn(), *ecn);
        return;
    }
    let mut tcp = packet.tcp_mut().unwrap();
    match *edit {
        Edit::Seq(seq) => tcp.set_seq(Seq(seq)),
        Edit::Ack(ack) => tcp.set_ack(Seq(ack)),
        Edit::Window(window) => tcp.set_window(window),
        Edit::Urgent(pointer) => tcp.set_urgent_pointer(pointer),
        Edit::Flags(bits) => tcp.set_flags(Flags::from_bits_truncate(bits)),
        Edit::Timestamps(value, echo) => {
            assert_eq!(tcp.set_timestamps(value, echo), was.timestamps().is_some());
            assert_eq!(tcp.as_tcp().timestamps(), was.timestamps().map(|_| (value, echo)));
        }
        Edit::AddWindowScale(shift) => match tcp.add_syn_option_window_scale(shift) {
            Ok(()) => assert_eq!(tcp.as_tcp().window_scale(), Some(shift)),
            Err(NoRoom) => assert_eq!(packet.to_vec(), before.to_vec()),
        },
        Edit::RemoveWindowScale => {
            tcp.remove_window_scale();
            assert_eq!(tcp.as_tcp().window_scale(), None);
        }
        Edit::RetainSack(mask) => {
            let mut n = 0;
            let mut keep = |_, _| {
                n += 1;
                mask >> (n - 1) & 1 == 1
            };
            let expected: Vec<_> = was.sack_blocks().filter(|&(a, b)| keep(a, b)).collect();
            n = 0;
            let mut keep = |_, _| {
                n += 1;
                mask >> (n - 1) & 1 == 1
            };
            assert_eq!(tcp.retain_sack_blocks(&mut keep), expected.len());
            assert!(tcp.as_tcp().sack_blocks().eq(expected));
        }
        Edit::Ecn(_) => {}
    }
    let now = packet.tcp().unwrap();
    assert_eq!(
        now.mss().filter(|_| was.mss().is_some()),
        was.mss().filter(|_| now.flags().contains(Flags::SYN))
    );
    assert_eq!(packet.payload(), before.payload());
    assert_eq!(packet.flow_key(), before.flow_key());
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(512))]

    /// An edit leaves a right checksum right, and a wrong one wrong by the same amount. No damaged packet is repaired.
    #[test]
    fn full_checksums_stay_as_right_as_they_were(sample in sample(), edits in vec(edit(), 1..8), verified: bool) {
        let mut packet = sample.packet();
        if verified {
            packet.set_checksum(Checksum::Verified);
        }
        for edit in &edits {
            apply(&mut packet, edit);
            let bytes = packet.to_vec();
            prop_assert_eq!(damage_of(&bytes), sample.damage);
            prop_assert!(ip_header_is_right(&bytes));
            prop_assert_eq!(packet.verify_checksum(), verified || sample.damage == 0);
        }
    }

    #[test]
    fn partial_checksums_follow_the_pseudo_header(sample in sample(), edits in vec(edit(), 1..8)) {
        let mut packet = to_partial(&sample.packet());
        for edit in &edits {
            apply(&mut packet, edit);
            let bytes = packet.to_vec();
            prop_assert_eq!(packet.tcp().unwrap().checksum_field() % 0xffff, pseudo_sum(&bytes) % 0xffff);
            prop_assert!(ip_header_is_right(&bytes));
        }
        packet.complete_checksum();
        prop_assert_eq!(packet.checksum(), Checksum::Full);
        prop_assert_eq!(damage_of(&packet.to_vec()), 0);
    }
}

#[test]
fn the_oracle_sees_what_was_set() {
    let mut packet =
        with_options(Flags::SYN | Flags::ACK, TcpOptionsRepr { mss: Some(1400), ..Default::default() });
    let mut tcp = packet.tcp_mut().unwrap();
    tcp.set_seq(Seq(1));
    tcp.set_ack(Seq(2));
    tcp.set_window(3);
    tcp.set_flags(Flags::SYN | Flags::ECE | Flags::AE);
    tcp.add_syn_option_window_scale(9).unwrap();
    let header = tcp_header_of(&packet.to_vec());
    assert_eq!((header.sequence_number, header.acknowledgment_number, header.window_size), (1, 2, 3));
    assert!(header.syn && header.ece && header.ns && !header.ack && !header.cwr);
    assert_eq!(header.options.as_slice(), [2, 4, 5, 120, 1, 3, 3, 9]);
}

#[test]
fn window_scale_uses_padding_or_grows_by_a_word() {
    let added = |extra: &'static [u8]| {
        let mut packet = raw(Flags::SYN, extra);
        packet.tcp_mut().unwrap().add_syn_option_window_scale(7).unwrap();
        packet.tcp().unwrap().options().to_vec()
    };
    assert_eq!(added(&[]), [1, 3, 3, 7]);
    assert_eq!(added(&[4, 2, 1, 1]), [4, 2, 1, 1, 1, 3, 3, 7]);
    assert_eq!(added(&[4, 2]), [4, 2, 3, 3, 7, 0, 0, 0]);
    assert_eq!(added(&[99, 5, 1, 2, 3]), [99, 5, 1, 2, 3, 3, 3, 7]);
    assert_eq!(added(&[3, 3, 1, 3, 3, 2]), [3, 3, 7, 3, 3, 7, 0, 0]);
}

#[test]
fn no_room_leaves_the_syn_alone() {
    let full: &'static [u8] = &[
        4, 2, 1, 1, 99, 36, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0,
        0, 0, 0, 0, 0, 0, 0,
    ];
    for mut packet in [raw(Flags::SYN, full), raw(Flags::ACK, &[]), raw(Flags::SYN, &[99, 77, 1, 1])] {
        let before = packet.to_vec();
        assert_eq!(packet.tcp_mut().unwrap().add_syn_option_window_scale(7), Err(NoRoom));
        assert_eq!(packet.to_vec(), before);
    }
}

#[test]
fn removed_options_leave_no_operations() {
    let mut packet = raw(Flags::SYN, &[2, 4, 5, 180, 3, 3, 7, 3, 3, 8, 4, 2]);
    packet.tcp_mut().unwrap().remove_window_scale();
    assert_eq!(packet.tcp().unwrap().options(), [2, 4, 5, 180, 1, 1, 1, 1, 1, 1, 4, 2]);

    let blocks: SackBlocks = [(Seq(1), Seq(2)), (Seq(3), Seq(4)), (Seq(5), Seq(6))].into_iter().collect();
    let options = TcpOptionsRepr { timestamps: Some((1, 2)), sack_blocks: blocks, ..Default::default() };
    let mut packet = with_options(Flags::ACK, options);
    let len = packet.header().len();
    assert_eq!(packet.tcp_mut().unwrap().retain_sack_blocks(|start, _| start != Seq(3)), 2);
    assert!(packet.tcp().unwrap().sack_blocks().eq([(Seq(1), Seq(2)), (Seq(5), Seq(6))]));
    assert_eq!(packet.tcp_mut().unwrap().retain_sack_blocks(|_, _| false), 0);
    assert_eq!(packet.tcp().unwrap().sack_blocks().count(), 0);
    assert_eq!(packet.tcp().unwrap().options()[12..], [1; 28]);
    assert_eq!(packet.tcp().unwrap().timestamps(), Some((1, 2)));
    assert_eq!(packet.header().len(), len);
}

#[test]
fn reserved_bits_survive_an_edit_of_the_flags() {
    let mut bytes = raw(Flags::ACK, &[]).to_vec();
    bytes[32] |= 0x0e;
    let mut packet = Packet::parse(&[], &bytes, &mut crate::oracle::pool()).unwrap();
    packet.tcp_mut().unwrap().set_flags(Flags::FIN);
    assert_eq!(packet.header()[32..34], [0x5e, 0x01]);
}
