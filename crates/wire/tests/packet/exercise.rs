//! All operations of the program on bytes from the network, with their invariants.
//!
//! Shared by the fuzz target `packet` and by the replay of its corpus.

use paceline_wire::{BufferPool, Checksum, Packet, Seq};

/// `data` has one byte of choices, two of segment size, one of window shift, then an IP packet.
pub(crate) fn exercise(data: &[u8]) {
    let Some((&[choices, size_high, size_low, shift], ip)) = data.split_first_chunk::<4>() else { return };
    let mut pool = BufferPool::new(1 << 20);
    let Some(mut packet) = Packet::parse(&[], ip, &mut pool) else { return };
    let bytes = packet.to_vec();
    assert_eq!(bytes, ip[..bytes.len()], "parse and write are not the identity");
    assert!(packet.is_tcp() || packet.tcp_mut().is_none());
    reads(&packet);
    packet.set_gso_size(Some(u16::from_be_bytes([size_high, size_low])));
    if !packet.is_tcp() {
        assert_eq!(packet.slice_payload(1..2).to_vec(), bytes);
        assert_eq!(packet.segments().count(), 1);
        return;
    }
    let again = Packet::parse(&[], &bytes, &mut pool).unwrap();
    assert_eq!((again.header(), again.payload()), (packet.header(), packet.payload()));
    if choices & 1 == 1 {
        // As the kernel delivers it: the sender's checksum is gone.
        packet = with_partial_checksum(&packet, &mut pool);
    } else if choices & 2 == 2 {
        packet.set_checksum(Checksum::Verified);
    }
    let damage = damage_of(&packet);
    cuts(&packet, damage);
    edits(&mut packet, damage, choices, shift);
    cuts(&packet, damage);
}

/// Calls every getter and checks that the results are consistent.
fn reads(packet: &Packet) {
    assert_eq!(packet.ip_len(), packet.header().len() + packet.payload().len());
    assert_eq!(packet.ecn().is_some(), packet.addresses().is_some());
    assert!(packet.write_ip(&mut []).is_none() || packet.ip_len() == 0);
    assert_eq!(packet.is_tcp(), packet.flow_key().is_some());
    packet.verify_checksum();
    let Some(tcp) = packet.tcp() else { return };
    assert_eq!(tcp.end_seq(), tcp.seq().add(tcp.seq_len()));
    assert!(tcp.sack_blocks().count() <= 4);
    assert!(tcp.window_scale().unwrap_or(0) <= 14);
    assert!(tcp.options().len() <= 40);
    let _ = (
        tcp.mss(),
        tcp.sack_permitted(),
        tcp.timestamps(),
        tcp.covers_headers(),
        tcp.mptcp(),
        tcp.fast_open(),
    );
}

fn cuts(packet: &Packet, damage: u16) {
    // Tiny segments of a long packet would only take time.
    let short = packet.payload().len() <= 64 * usize::from(packet.gso_size().unwrap_or(u16::MAX));
    if short {
        let mut payload = Vec::new();
        for segment in packet.clone().segments() {
            assert!(segment.gso_size().is_none() || segment.payload().len() == packet.payload().len());
            payload.extend_from_slice(segment.payload().bytes().unwrap());
            is_sound(&segment, damage, packet);
        }
        assert_eq!(packet.payload().bytes(), Some(&payload[..]));
        joins(packet);
    }
    let third = packet.payload().len() / 3;
    for range in [0..third, third..2 * third + 1, third..usize::MAX, usize::MAX..usize::MAX] {
        is_sound(&packet.slice_payload(range), damage, packet);
    }
}

/// Segments that join must be the same after a split of the result.
fn joins(packet: &Packet) {
    let mut segments = packet.clone().segments();
    let Some(mut joined) = segments.next() else { return };
    let mut parts = vec![joined.clone()];
    for segment in segments {
        if joined.join(&segment) {
            parts.push(segment);
        }
    }
    let split: Vec<_> = joined.segments().map(|segment| segment.to_vec()).collect();
    assert_eq!(split, parts.iter().map(Packet::to_vec).collect::<Vec<_>>());
}

/// A part can be parsed, and its checksum is right if that of the whole is.
fn is_sound(part: &Packet, damage: u16, whole: &Packet) {
    if whole.checksum() == Checksum::Full {
        assert_eq!(damage_of(part) == 0, damage == 0);
    }
    let bytes = part.to_vec();
    let parsed = Packet::parse(&[], &bytes, &mut BufferPool::new(1 << 20)).unwrap();
    assert!(parsed.is_tcp());
    assert_eq!(parsed.to_vec(), bytes);
    assert_eq!(ipv4_header_damage(part), ipv4_header_damage(whole));
}

fn edits(packet: &mut Packet, damage: u16, choices: u8, shift: u8) {
    let key = packet.flow_key();
    let before = packet.clone();
    let mut tcp = packet.tcp_mut().unwrap();
    if choices & 4 == 4 {
        tcp.remove_window_scale();
        assert_eq!(tcp.as_tcp().window_scale(), None);
    }
    if tcp.add_syn_option_window_scale(shift).is_ok() {
        assert_eq!(tcp.as_tcp().window_scale(), Some(shift.min(14)));
    }
    let mut turn = choices;
    let kept = tcp.retain_sack_blocks(|_, _| {
        turn = turn.rotate_right(1);
        turn & 1 == 1
    });
    assert_eq!(tcp.as_tcp().sack_blocks().count(), kept);
    assert_eq!(tcp.set_timestamps(5, 6), before.tcp().unwrap().timestamps().is_some());
    tcp.set_window(0x1234);
    tcp.set_ack(Seq(0x1234_5678));
    tcp.set_seq(Seq(0xfedc_ba98));
    tcp.set_flags(!tcp.as_tcp().flags());
    packet.set_ecn(paceline_wire::Ecn::Ce);
    assert_eq!(packet.flow_key(), key);
    assert_eq!(packet.payload(), before.payload());
    assert_eq!(damage_of(packet), damage);
    assert_eq!(ipv4_header_damage(packet), ipv4_header_damage(&before));
    reads(packet);
}

/// The error of the TCP checksum once it is complete. Computed one word at a time, unlike the code under test.
fn damage_of(packet: &Packet) -> u16 {
    let mut packet = packet.clone();
    packet.complete_checksum();
    let bytes = packet.to_vec();
    let segment = &bytes[packet.tcp_offset().unwrap()..];
    pseudo_header(&packet).add(words(segment)).0
}

fn ipv4_header_damage(packet: &Packet) -> u16 {
    if packet.is_ipv6() { 0 } else { words(&packet.header()[..packet.tcp_offset().unwrap()]).0 }
}

fn with_partial_checksum(packet: &Packet, pool: &mut BufferPool) -> Packet {
    let mut bytes = packet.to_vec();
    let at = packet.tcp_offset().unwrap() + 16;
    bytes[at..at + 2].copy_from_slice(&pseudo_header(packet).0.to_be_bytes());
    let mut partial = Packet::parse(&[], &bytes, pool).unwrap();
    partial.set_checksum(Checksum::Partial);
    partial.set_gso_size(packet.gso_size());
    partial
}

fn pseudo_header(packet: &Packet) -> Ones {
    let bytes = packet.header();
    let addresses = if packet.is_ipv6() { &bytes[8..40] } else { &bytes[12..20] };
    let len = packet.ip_len() - packet.tcp_offset().unwrap();
    words(addresses).add(words(&[0, 6])).add(words(&(len as u32).to_be_bytes()))
}

/// A number modulo 65535, as one's complement sums are.
struct Ones(u16);

impl Ones {
    fn add(self, other: Ones) -> Ones {
        Ones(((u32::from(self.0) + u32::from(other.0)) % 0xffff) as u16)
    }
}

fn words(bytes: &[u8]) -> Ones {
    let word = |w: &[u8]| Ones(u16::from_be_bytes([w[0], *w.get(1).unwrap_or(&0)]) % 0xffff);
    bytes.chunks(2).fold(Ones(0), |sum, w| sum.add(word(w)))
}
