use std::net::{IpAddr, SocketAddr};

use paceline_wire::{Checksum, Ecn, Flags, FlowKey, OpaqueReason, Packet, Payload, Seq, TcpRepr};
use proptest::prelude::*;

use crate::oracle::{damage_of, ip_header_is_right, pool, pseudo_sum, sample};

fn parse(bytes: &[u8]) -> Packet {
    Packet::parse(&[], bytes, &mut pool()).unwrap()
}

/// IPv6 with these extension headers (type, bytes behind the next-header field) before 20 bytes of TCP.
fn ipv6_with(extensions: &[(u8, &[u8])]) -> Vec<u8> {
    let mut chain = Vec::new();
    let types = extensions.iter().map(|e| e.0).chain([6]).collect::<Vec<_>>();
    for (i, (_, rest)) in extensions.iter().enumerate() {
        chain.push(types[i + 1]);
        chain.extend(*rest);
    }
    chain.extend([0, 80, 0, 81, 0, 0, 0, 1, 0, 0, 0, 2, 0x50, 0x10, 0, 9, 0, 0, 0, 0]);
    let mut bytes = vec![0x60, 0, 0, 0, 0, chain.len() as u8, types[0], 64];
    bytes.extend([1; 32]);
    bytes.extend(chain);
    bytes
}

fn v4(len: u16, protocol: u8, fragment: u16) -> Vec<u8> {
    let mut bytes = vec![0x45, 0, 0, 0, 0, 1, 0, 0, 64, protocol, 0, 0, 10, 0, 0, 1, 10, 0, 0, 2];
    bytes[2..4].copy_from_slice(&len.to_be_bytes());
    bytes[6..8].copy_from_slice(&fragment.to_be_bytes());
    bytes.extend([0, 80, 0, 81, 0, 0, 0, 1, 0, 0, 0, 2, 0x50, 0x10, 0, 9, 0, 0, 0, 0]);
    bytes
}

proptest! {
    #[test]
    fn the_fields_are_those_that_were_written(sample in sample()) {
        let packet = sample.packet();
        let tcp = packet.tcp().unwrap();
        prop_assert_eq!(tcp.seq(), Seq(sample.tcp.sequence_number));
        prop_assert_eq!(tcp.ack(), Seq(sample.tcp.acknowledgment_number));
        prop_assert_eq!(tcp.window(), sample.tcp.window_size);
        prop_assert_eq!(tcp.urgent_pointer(), sample.tcp.urgent_pointer);
        prop_assert_eq!(tcp.options(), sample.tcp.options.as_slice());
        prop_assert_eq!(tcp.payload_len(), sample.payload.len());
        let flags = tcp.flags();
        let bits = [Flags::AE, Flags::FIN, Flags::SYN, Flags::RST, Flags::PSH, Flags::ACK, Flags::URG, Flags::ECE, Flags::CWR];
        let t = &sample.tcp;
        prop_assert_eq!(bits.map(|bit| flags.contains(bit)), [t.ns, t.fin, t.syn, t.rst, t.psh, t.ack, t.urg, t.ece, t.cwr]);
        let seq_len = sample.payload.len() + usize::from(t.syn) + usize::from(t.fin);
        prop_assert_eq!(tcp.seq_len() as usize, seq_len);
        prop_assert_eq!(tcp.end_seq(), Seq(t.sequence_number.wrapping_add(seq_len as u32)));
        let ecn = [Ecn::NotEct, Ecn::Ect1, Ecn::Ect0, Ecn::Ce][usize::from(sample.tos & 3)];
        prop_assert_eq!((packet.ecn(), tcp.ecn()), (Some(ecn), ecn));
        prop_assert_eq!(packet.payload().bytes(), Some(&sample.payload[..]));
        let ip = |a: [u8; 16]| if sample.v6 { IpAddr::from(a) } else { IpAddr::from([a[0], a[1], a[2], a[3]]) };
        let key = FlowKey::new(
            SocketAddr::new(ip(sample.addresses[0]), t.source_port),
            SocketAddr::new(ip(sample.addresses[1]), t.destination_port),
        );
        prop_assert_eq!(packet.flow_key(), Some(key));
        prop_assert_eq!(key.reversed().reversed(), key);
    }

    #[test]
    fn what_goes_in_comes_out(sample in sample(), padding in 0usize..30, link in proptest::collection::vec(any::<u8>(), 0..=22)) {
        let bytes = sample.bytes();
        let padded = [&bytes[..], &vec![0x55; padding]].concat();
        let packet = Packet::parse(&link, &padded, &mut pool()).unwrap();
        prop_assert_eq!(packet.opaque_reason(), None);
        prop_assert_eq!(packet.link(), &link[..]);
        prop_assert_eq!(packet.ip_len(), bytes.len());
        prop_assert_eq!(packet.to_vec(), &bytes[..]);
        // The same in two steps.
        let (mut packet, payload) = Packet::parse_headers(&link, &padded);
        prop_assert_eq!(&padded[payload.clone()], &sample.payload[..]);
        prop_assert_eq!(packet.ip_len(), payload.start);
        packet.set_payload(padded[payload].to_vec().into());
        prop_assert_eq!((packet.link(), packet.to_vec()), (&link[..], bytes));
    }

    #[test]
    fn checksums_are_judged_as_the_oracle_does(sample in sample()) {
        let packet = sample.packet();
        prop_assert_eq!(packet.verify_checksum(), damage_of(&sample.bytes()) == 0);
        prop_assert_eq!(damage_of(&sample.bytes()), sample.damage);
    }

    #[test]
    fn built_packets_are_right(sample in sample()) {
        let key = sample.packet().flow_key().unwrap();
        let repr = TcpRepr { seq: Seq(7), ack: Seq(9), flags: Flags::ACK, window: 100, ..TcpRepr::default() };
        let mut packet = Packet::build_tcp(key, &repr, sample.payload.clone().into());
        prop_assert_eq!(packet.checksum(), Checksum::Partial);
        prop_assert_eq!(packet.tcp().unwrap().checksum_field(), pseudo_sum(&packet.to_vec()));
        packet.complete_checksum();
        prop_assert_eq!(damage_of(&packet.to_vec()), 0);
        prop_assert!(packet.verify_checksum());
        prop_assert!(ip_header_is_right(&packet.to_vec()));
        prop_assert_eq!(packet.flow_key(), Some(key));
    }
}

#[test]
fn other_protocols_are_opaque_but_have_addresses() {
    let packet = parse(&v4(40, 17, 0));
    assert_eq!(packet.opaque_reason(), Some(OpaqueReason::NotTcp));
    assert_eq!(packet.addresses(), Some(([10, 0, 0, 1].into(), [10, 0, 0, 2].into())));
    assert!(packet.tcp().is_none() && packet.flow_key().is_none());
    assert_eq!(parse(&[0, 1, 8, 0, 6, 4]).opaque_reason(), Some(OpaqueReason::NotIp));
    assert_eq!(parse(&[]).opaque_reason(), Some(OpaqueReason::NotIp));
}

#[test]
fn fragments_are_opaque() {
    for fragment in [0x2000, 0x0001, 0x3fff] {
        assert_eq!(parse(&v4(40, 6, fragment)).opaque_reason(), Some(OpaqueReason::Fragment));
    }
    // A packet with "don't fragment" is no fragment.
    assert!(parse(&v4(40, 6, 0x4000)).is_tcp());
    let fragment = ipv6_with(&[(44, &[0, 0, 0, 0, 0, 0, 1])]);
    assert_eq!(parse(&fragment).opaque_reason(), Some(OpaqueReason::Fragment));
}

#[test]
fn ipv6_extension_headers_stay_in_the_header() {
    let bytes = ipv6_with(&[(0, &[0; 7]), (43, &[0, 0, 0, 0, 0, 0, 0]), (60, &[1; 15])]);
    let packet = parse(&bytes);
    assert_eq!(packet.tcp_offset(), Some(40 + 8 + 8 + 16));
    assert_eq!(packet.tcp().unwrap().window(), 9);
    assert_eq!(packet.to_vec(), bytes);
    let still_on_its_way = ipv6_with(&[(43, &[0, 0, 1, 0, 0, 0, 0])]);
    assert_eq!(parse(&still_on_its_way).opaque_reason(), Some(OpaqueReason::NotTcp));
    let authenticated = ipv6_with(&[(51, &[0; 7])]);
    assert_eq!(parse(&authenticated).opaque_reason(), Some(OpaqueReason::NotTcp));
}

#[test]
fn headers_without_room_are_opaque() {
    let mut long = [0; 143];
    long[0] = 17;
    let bytes = ipv6_with(&[(60, &long)]);
    let packet = parse(&bytes);
    assert_eq!(packet.opaque_reason(), Some(OpaqueReason::HeadersTooLong));
    assert_eq!(packet.to_vec(), bytes);
}

#[test]
fn contradictions_are_malformed_and_pass_unchanged() {
    let good = v4(40, 6, 0);
    let change = |at: usize, value: u8| {
        let mut bytes = good.clone();
        bytes[at] = value;
        bytes
    };
    let mut cases = vec![
        change(0, 0x44),  // IP header of 16 bytes
        change(0, 0x4f),  // IP header of 60 bytes, total length 40
        change(3, 41),    // longer than the packet
        change(3, 19),    // shorter than its header
        change(3, 0),     // no length at all
        change(3, 39),    // too short for TCP
        change(32, 0x40), // TCP header of 16 bytes
        change(32, 0x60), // TCP header beyond the packet
        change(32, 0xf0),
    ];
    cases.extend((1..40).map(|len| good[..len].to_vec()));
    cases.extend((1..60).map(|len| ipv6_with(&[])[..len].to_vec()));
    // An extension header longer than the packet.
    cases.push(ipv6_with(&[(60, &[200, 0, 0, 0, 0, 0, 0])]));
    for bytes in cases {
        let packet = parse(&bytes);
        assert_eq!(packet.opaque_reason(), Some(OpaqueReason::Malformed), "{bytes:?}");
        assert_eq!(packet.addresses(), None);
        assert_eq!(packet.to_vec(), bytes);
    }
}

#[test]
fn super_packets_beyond_the_length_field_are_opaque() {
    let mut v4 = v4(0, 6, 0);
    v4.resize(70_000, 0);
    let mut v6 = ipv6_with(&[]);
    v6[5] = 0;
    v6.resize(70_000, 0);
    let mut jumbo_option = ipv6_with(&[(0, &[0, 0xc2, 4, 0, 1, 0x11, 0x70])]);
    jumbo_option[5] = 0;
    for bytes in [v4, v6, jumbo_option] {
        let packet = parse(&bytes);
        assert_eq!(packet.opaque_reason(), Some(OpaqueReason::Jumbogram));
        assert_eq!(packet.ip_len(), bytes.len());
        assert_eq!(packet.to_vec(), bytes);
        assert!(packet.addresses().is_some());
    }
}

#[test]
fn an_exhausted_pool_is_the_only_refusal() {
    let mut pool = paceline_wire::BufferPool::new(2048);
    let sample_bytes = [v4(140, 6, 0), vec![0; 100]].concat();
    let first = Packet::parse(&[], &sample_bytes, &mut pool);
    assert!(first.is_some());
    assert!(Packet::parse(&[], &sample_bytes, &mut pool).is_none());
    // Headers need no buffer.
    assert!(Packet::parse(&[], &v4(40, 6, 0), &mut pool).is_some());
    drop(first);
    assert!(Packet::parse(&[], &sample_bytes, &mut pool).is_some());
}

#[test]
fn a_stream_of_packets_needs_no_more_memory_than_its_packets_in_flight() {
    let mut pool = paceline_wire::BufferPool::new(64 << 20);
    let bytes = [v4(40 + 1400, 6, 0), vec![7; 1400]].concat();
    let mut in_flight = std::collections::VecDeque::new();
    for _ in 0..10_000 {
        in_flight.push_back(Packet::parse(&[], &bytes, &mut pool).unwrap().slice_payload(100..1400));
        if in_flight.len() > 50 {
            in_flight.pop_front();
        }
    }
    assert_eq!(pool.allocated(), 51 * 2048);
}

#[test]
fn simulated_payload_has_a_length_only() {
    let key = FlowKey::new("10.0.0.1:80".parse().unwrap(), "10.0.0.2:5000".parse().unwrap());
    let repr = TcpRepr { flags: Flags::ACK | Flags::PSH, ..TcpRepr::default() };
    let mut packet = Packet::build_tcp(key, &repr, Payload::Length(1448));
    assert_eq!((packet.ip_len(), packet.tcp().unwrap().seq_len()), (1488, 1448));
    packet.complete_checksum();
    assert!(packet.verify_checksum());
    assert_eq!(damage_of(&packet.to_vec()), 0);
    let udp = Packet::build_udp(key, Payload::Length(1200));
    assert_eq!((udp.ip_len(), udp.opaque_reason()), (1228, Some(OpaqueReason::NotTcp)));
    assert_eq!(parse(&udp.to_vec()).to_vec(), udp.to_vec());
    assert!(udp.addresses().is_some());
}

#[test]
fn a_packet_stays_small() {
    assert!(size_of::<Packet>() <= 272, "{}", size_of::<Packet>());
}
