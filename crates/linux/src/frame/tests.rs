use super::*;
use crate::testing::tcp_packet;

const ETHERNET: [u8; 14] = [2, 0, 0, 0, 0, 1, 2, 0, 0, 0, 0, 2, 0x08, 0x00];

/// Bytes that a packet socket delivers for `packet`, sent with its own virtio header.
fn delivered(packet: &Packet) -> Vec<u8> {
    let mut prefix = [0; PREFIX_MAX];
    let (len, payload) = assemble(packet, &mut prefix);
    [&prefix[..len], payload].concat()
}

fn received(bytes: &[u8], tag: Option<VlanTag>) -> Result<Packet, FrameError> {
    Frame::parse(bytes, tag)?.to_packet(&mut BufferPool::new(1 << 20))
}

fn super_packet() -> Packet {
    let mut packet = tcp_packet(3000, Some(1460));
    packet.set_link(&ETHERNET);
    packet
}

#[test]
fn a_super_packet_comes_back_as_it_was_sent() {
    let bytes = delivered(&super_packet());
    let header = VirtioHeader::parse(&bytes).unwrap();
    let expected = VirtioHeader {
        flags: virtio::NEEDS_CSUM,
        gso_type: virtio::GSO_TCPV4,
        header_len: 54,
        gso_size: 1460,
        csum_start: 34,
        csum_offset: 16,
    };
    assert_eq!(header, expected);
    let packet = received(&bytes, None).unwrap();
    assert_eq!((packet.link(), packet.gso_size()), (&ETHERNET[..], Some(1460)));
    assert_eq!((packet.checksum(), packet.to_vec()), (Checksum::Partial, super_packet().to_vec()));
}

#[test]
fn a_tag_that_came_beside_the_frame_goes_back_into_it() {
    let packet = received(&delivered(&super_packet()), Some(VlanTag { tpid: 0x8100, tci: 0x2005 })).unwrap();
    let tagged = [&ETHERNET[..12], &[0x81, 0x00, 0x20, 0x05, 0x08, 0x00]].concat();
    assert_eq!((packet.link(), packet.is_tcp()), (&tagged[..], true));
    let bytes = delivered(&packet);
    assert_eq!(VirtioHeader::parse(&bytes).unwrap().csum_start, 38);
    // If the kernel hands over the outer tag, the inner tag stays in the frame.
    let twice = received(&bytes, Some(VlanTag { tpid: 0x88a8, tci: 1 })).unwrap();
    assert_eq!((twice.link().len(), twice.is_tcp()), (22, true));
}

#[test]
fn the_state_of_a_checksum_is_kept() {
    let mut packet = tcp_packet(10, None);
    packet.set_link(&ETHERNET);
    packet.complete_checksum();
    let mut bytes = delivered(&packet);
    assert_eq!(VirtioHeader::parse(&bytes), Some(VirtioHeader::default()));
    assert_eq!(received(&bytes, None).unwrap().checksum(), Checksum::Full);
    bytes[0] = virtio::DATA_VALID;
    assert_eq!(received(&bytes, None).unwrap().checksum(), Checksum::Verified);
}

#[test]
fn what_is_not_tcp_keeps_its_offloads() {
    let mut udp = vec![0x45, 0, 0, 36, 0, 0, 0, 0, 64, 17, 0, 0, 10, 0, 0, 1, 10, 0, 0, 2];
    udp.extend([0, 7, 0, 7, 0, 16, 0, 0, 1, 2, 3, 4, 5, 6, 7, 8]);
    let header = VirtioHeader {
        flags: virtio::NEEDS_CSUM,
        gso_type: virtio::GSO_UDP_L4,
        header_len: 42,
        gso_size: 4,
        csum_start: 34,
        csum_offset: 6,
    };
    let bytes = [&header.to_bytes()[..], &ETHERNET, &udp].concat();
    let packet = received(&bytes, None).unwrap();
    assert!(!packet.is_tcp());
    assert_eq!(delivered(&packet), bytes);
    let tagged = received(&bytes, Some(VlanTag { tpid: 0x8100, tci: 1 })).unwrap();
    assert_eq!(VirtioHeader::parse(&delivered(&tagged)).unwrap().csum_start, 38);
}

#[test]
fn other_protocols_are_not_looked_into() {
    let mut bytes = delivered(&super_packet());
    bytes[virtio::HEADER_LEN + 12] = 0x86;
    bytes[virtio::HEADER_LEN + 13] = 0x35;
    bytes[..virtio::HEADER_LEN].fill(0);
    let packet = received(&bytes, None).unwrap();
    assert!(!packet.is_tcp());
    assert_eq!(delivered(&packet), bytes);
}

#[test]
fn headers_that_contradict_the_frame_are_refused() {
    let good = delivered(&super_packet());
    for csum_start in [0u16, 13, 33, 35, u16::MAX] {
        let mut bytes = good.clone();
        bytes[6..8].copy_from_slice(&csum_start.to_ne_bytes());
        assert_eq!(received(&bytes, None).unwrap_err(), FrameError::Malformed);
    }
    for len in 0..good.len().min(100) {
        // The rest must give an error or an opaque packet, never a panic.
        if let Ok(packet) = received(&good[..len], None) {
            assert!(!packet.is_tcp());
        }
    }
}

#[test]
fn no_bytes_make_it_panic() {
    let mut state = 1u64;
    for _ in 0..20_000 {
        let mut bytes = delivered(&super_packet());
        for _ in 0..4 {
            state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
            let at = (state >> 33) as usize % 80;
            bytes[at] = (state >> 24) as u8;
        }
        if let Ok(packet) = received(&bytes, None) {
            let _ = delivered(&packet);
        }
    }
}
