use paceline_wire::{Checksum, Flags, Packet, Seq};
use proptest::prelude::*;

use crate::oracle::{sample, to_partial};

fn join_all(segments: impl IntoIterator<Item = Packet>) -> Vec<Packet> {
    segments.into_iter().fold(Vec::new(), |mut joined: Vec<Packet>, segment| {
        if !joined.last_mut().is_some_and(|last| last.join(&segment)) {
            joined.push(segment);
        }
        joined
    })
}

/// A super-packet that a sender may have made, without control bits that must stand alone.
fn super_packet() -> impl Strategy<Value = Packet> {
    (sample(), 40u16..2000).prop_map(|(mut sample, size)| {
        (sample.tcp.syn, sample.tcp.rst, sample.tcp.urg) = (false, false, false);
        let mut packet = to_partial(&sample.packet());
        packet.set_gso_size(Some(size).filter(|&size| packet.payload().len() > usize::from(size)));
        packet
    })
}

proptest! {
    #[test]
    fn to_join_is_to_undo_a_split(whole in super_packet()) {
        let joined = join_all(whole.clone().segments());
        prop_assert_eq!(joined.len(), 1);
        prop_assert_eq!(joined[0].to_vec(), whole.to_vec());
        prop_assert_eq!(joined[0].gso_size(), whole.gso_size());
        prop_assert_eq!(joined[0].checksum(), Checksum::Partial);
    }

    /// For any join of any changed segments, splitting gives the same packets.
    #[test]
    fn to_split_is_to_undo_a_join(whole in super_packet(), at in 0usize..8, change in 0..8) {
        let mut segments: Vec<_> = whole.segments().collect();
        if let Some(segment) = segments.get_mut(at) {
            let mut tcp = segment.tcp_mut().unwrap();
            match change {
                0 => tcp.set_window(1),
                1 => tcp.set_ack(Seq(1)),
                2 => tcp.set_seq(Seq(1)),
                3 => tcp.set_flags(Flags::ACK | Flags::CWR),
                4 => tcp.set_flags(Flags::ACK | Flags::PSH),
                5 => segment.set_ecn(paceline_wire::Ecn::Ce),
                6 => segment.complete_checksum(),
                _ => segment.set_link(&[1; 14]),
            }
        }
        let split: Vec<_> = join_all(segments.clone()).into_iter().flat_map(Packet::segments).collect();
        prop_assert_eq!(split.len(), segments.len());
        for (split, segment) in split.iter().zip(&segments) {
            prop_assert_eq!(split.to_vec(), segment.to_vec());
            prop_assert_eq!(split.link(), segment.link());
        }
    }
}

#[test]
fn strangers_stay_apart() {
    let key = paceline_wire::FlowKey::new("10.0.0.1:80".parse().unwrap(), "10.0.0.2:5000".parse().unwrap());
    let build = |seq, flags, payload: Vec<u8>| {
        let repr = paceline_wire::TcpRepr { seq: Seq(seq), flags, ..Default::default() };
        Packet::build_tcp(key, &repr, payload.into())
    };
    // Segments in order but not in one buffer, and pure ACKs.
    for (a, b) in [(vec![0; 10], vec![0; 10]), (vec![], vec![]), (vec![0; 10], vec![])] {
        let (mut a, b) = (build(0, Flags::ACK, a), build(10, Flags::ACK, b));
        let before = a.to_vec();
        assert!(!a.join(&b));
        assert_eq!(a.to_vec(), before);
    }
}
