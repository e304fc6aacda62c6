use paceline_wire::{Checksum, Flags, FlowKey, Packet, Payload, Seq, TcpRepr};
use proptest::prelude::*;

use crate::oracle::{damage_of, ip_header_is_right, pseudo_sum, sample, tcp_header_of, to_partial};

fn packet(flags: Flags, urgent_pointer: u16, payload: Payload) -> Packet {
    let key = FlowKey::new("10.0.0.1:80".parse().unwrap(), "10.0.0.2:5000".parse().unwrap());
    Packet::build_tcp(key, &TcpRepr { seq: Seq(1000), flags, urgent_pointer, ..TcpRepr::default() }, payload)
}

fn bytes_of(packet: &Packet) -> &[u8] {
    packet.payload().bytes().unwrap()
}

proptest! {
    #[test]
    fn segments_are_the_super_packet(sample in sample(), size in 1u16..2000, state in 0..3) {
        let mut whole = match state {
            0 => sample.packet(),
            _ => to_partial(&sample.packet()),
        };
        if state == 2 {
            whole.complete_checksum();
            whole.set_checksum(Checksum::Verified);
        }
        whole.set_gso_size(Some(size));
        let good = state > 0 || sample.damage == 0;
        let segments: Vec<_> = whole.clone().segments().collect();
        let count = sample.payload.len().div_ceil(usize::from(size)).max(1);
        prop_assert_eq!(segments.len(), count);
        prop_assert_eq!(whole.clone().segments().len(), count);
        prop_assert_eq!(segments.iter().map(bytes_of).collect::<Vec<_>>().concat(), sample.payload.clone());
        let mut seq = sample.tcp.sequence_number;
        for (n, segment) in segments.iter().enumerate() {
            let last = n == count - 1;
            let bytes = segment.to_vec();
            let header = tcp_header_of(&bytes);
            prop_assert!(ip_header_is_right(&bytes));
            prop_assert!(bytes_of(segment).len() <= usize::from(size));
            prop_assert!(count == 1 || segment.gso_size().is_none());
            prop_assert_eq!(header.sequence_number, seq);
            prop_assert_eq!(header.acknowledgment_number, sample.tcp.acknowledgment_number);
            prop_assert_eq!(header.options.as_slice(), sample.tcp.options.as_slice());
            prop_assert_eq!((header.fin, header.psh), (sample.tcp.fin && last, sample.tcp.psh && last));
            prop_assert_eq!((header.syn, header.cwr), (sample.tcp.syn && n == 0, sample.tcp.cwr && n == 0));
            if !sample.v6 {
                prop_assert_eq!(u16::from_be_bytes([bytes[4], bytes[5]]), sample.id.wrapping_add(n as u16));
            }
            seq = seq.wrapping_add(bytes_of(segment).len() as u32 + u32::from(header.syn));
            prop_assert_eq!(segment.verify_checksum(), good);
            if segment.checksum() == Checksum::Partial {
                prop_assert_eq!(segment.tcp().unwrap().checksum_field() % 0xffff, pseudo_sum(&bytes) % 0xffff);
            }
            let mut complete = segment.clone();
            complete.complete_checksum();
            prop_assert_eq!(damage_of(&complete.to_vec()) == 0, good);
        }
        // Start of the next segment of the flow.
        prop_assert_eq!(whole.tcp().unwrap().end_seq(), segments[count - 1].tcp().unwrap().end_seq());
    }

    #[test]
    fn a_slice_carries_its_range(sample in sample(), a in 0usize..3100, b in 0usize..3100, size in 0u16..1500) {
        let mut whole = sample.packet();
        whole.set_gso_size(Some(size));
        let part = whole.slice_payload(a.min(b)..a.max(b));
        let len = sample.payload.len();
        prop_assert_eq!(bytes_of(&part), &sample.payload[a.min(b).min(len)..a.max(b).min(len)]);
        prop_assert!(ip_header_is_right(&part.to_vec()));
        prop_assert_eq!(part.verify_checksum(), sample.damage == 0);
        prop_assert!(part.gso_size().is_none_or(|_| bytes_of(&part).len() > usize::from(size) || bytes_of(&part).len() == len));
        // Two cuts give the same as one.
        let tail = part.slice_payload(1..usize::MAX);
        prop_assert_eq!(bytes_of(&tail), bytes_of(&part).get(1..).unwrap_or(&[]));
        prop_assert_eq!(tail.tcp().unwrap().end_seq(), part.tcp().unwrap().end_seq());
    }
}

#[test]
fn the_end_of_a_fin_segment_is_a_fin() {
    let whole = packet(Flags::ACK | Flags::FIN | Flags::PSH, 0, Payload::Length(500));
    let end = whole.slice_payload(500..500);
    let tcp = end.tcp().unwrap();
    assert_eq!(
        (tcp.seq(), tcp.payload_len(), tcp.flags()),
        (Seq(1500), 0, Flags::ACK | Flags::FIN | Flags::PSH)
    );
    let start = whole.slice_payload(0..500 - 1);
    assert_eq!(start.tcp().unwrap().flags(), Flags::ACK);
}

#[test]
fn the_syn_stays_with_its_sequence_number() {
    let whole = packet(Flags::SYN, 0, Payload::Length(100));
    let rest = whole.slice_payload(10..100);
    assert_eq!((rest.tcp().unwrap().seq(), rest.tcp().unwrap().flags()), (Seq(1011), Flags::empty()));
    assert_eq!(whole.tcp().unwrap().end_seq(), rest.tcp().unwrap().end_seq());
}

#[test]
fn the_urgent_pointer_points_at_the_same_byte() {
    let whole = packet(Flags::ACK | Flags::URG, 30, Payload::Length(100));
    let ahead = whole.slice_payload(10..20);
    assert_eq!(
        (ahead.tcp().unwrap().flags(), ahead.tcp().unwrap().urgent_pointer()),
        (Flags::ACK | Flags::URG, 20)
    );
    let behind = whole.slice_payload(30..100);
    assert_eq!((behind.tcp().unwrap().flags(), behind.tcp().unwrap().urgent_pointer()), (Flags::ACK, 0));
}

#[test]
fn a_long_simulated_super_packet_splits_into_packets_with_lengths() {
    let mut whole = packet(Flags::ACK, 0, Payload::Length(1_448_000));
    whole.set_gso_size(Some(1448));
    let segments: Vec<_> = whole.segments().collect();
    assert_eq!(segments.len(), 1000);
    for mut segment in segments {
        assert_eq!(segment.header()[2..4], 1488u16.to_be_bytes());
        segment.complete_checksum();
        assert_eq!(damage_of(&segment.to_vec()), 0);
    }
}

#[test]
fn an_opaque_packet_is_one_segment() {
    let key = FlowKey::new("10.0.0.1:80".parse().unwrap(), "10.0.0.2:5000".parse().unwrap());
    let mut udp = Packet::build_udp(key, Payload::Length(5000));
    udp.set_gso_size(Some(1000));
    assert_eq!(udp.slice_payload(1..2).payload().len(), 5000);
    assert_eq!(udp.segments().count(), 1);
}
