//! Headers that no honest host sends.

use paceline_gateway::{RADIO, WAN};
use paceline_wire::{BufferPool, Flags, Packet, TcpOptionsRepr, TcpRepr};

use crate::blind::each;
use crate::world::{World, conspirators, header, open, segment, victim, withstands};

/// Parses a packet as read from a device.
pub fn parse(ip: &[u8]) -> Packet {
    Packet::parse(&[], ip, &mut BufferPool::new(1 << 20)).expect("room for one packet")
}

/// Sends one segment of the victim's flow in each direction, with bytes changed by `edit`.
fn bent(edit: impl Fn(&mut Vec<u8>, &mut World)) {
    withstands(|world| {
        for (port, key) in [(RADIO, victim()), (WAN, victim().reversed())] {
            let seq = world.random.below(1 << 32) as u32;
            let mut ip = segment(key, header(seq, seq, Flags::ACK), &[3; 64]).to_vec();
            edit(&mut ip, world);
            world.inject(port, parse(&ip));
        }
    });
}

#[test]
fn random_bytes() {
    bent(|ip, world| {
        for byte in ip.iter_mut().skip(20) {
            *byte = world.random.below(256) as u8;
        }
    });
}

#[test]
fn truncated_headers() {
    bent(|ip, world| ip.truncate(world.random.below(60) as usize));
}

#[test]
fn lengths_that_do_not_fit() {
    bent(|ip, world| {
        let field = [0, 2, 3, 32][world.random.below(4) as usize];
        ip[field] = world.random.below(256) as u8;
    });
}

#[test]
fn wrong_checksums() {
    bent(|ip, _| ip[36] ^= 0x55);
}

#[test]
fn fragments() {
    bent(|ip, world| {
        ip[6] = 0x20;
        ip[7] = world.random.below(256) as u8;
    });
}

/// All flags, no flags, and combinations that exclude each other.
#[test]
fn impossible_flags() {
    each(|world, _, _| {
        let fin_syn_rst = Flags::FIN | Flags::SYN | Flags::RST;
        for flags in [Flags::default(), fin_syn_rst | Flags::PSH | Flags::ACK | Flags::URG, fin_syn_rst] {
            let seq = world.random.below(1 << 32) as u32;
            world.inject(RADIO, segment(victim(), header(seq, 0, flags), &[]));
            world.inject(WAN, segment(victim().reversed(), header(seq, 0, flags), &[]));
        }
    });
}

/// Options of zero length, options beyond the header, and options of unknown kinds.
#[test]
fn option_bombs() {
    const BOMBS: [&[u8]; 6] = [
        &[2, 0, 2, 0, 2, 0, 2, 0],
        &[3, 255, 1, 1],
        &[5, 34, 1, 1],
        &[8, 2, 8, 2, 8, 2, 8, 2],
        &[254, 40, 1, 1],
        &[1; 40],
    ];
    withstands(|world| {
        for (n, extra) in BOMBS.into_iter().enumerate() {
            let key = conspirators(n as u16);
            let options = TcpOptionsRepr { extra, ..Default::default() };
            for flags in [Flags::SYN, Flags::ACK] {
                world.inject(RADIO, segment(key, TcpRepr { options, ..header(1, 1, flags) }, &[]));
                let answer = TcpRepr { options, ..header(1, 2, flags | Flags::ACK) };
                world.inject(WAN, segment(key.reversed(), answer, &[]));
            }
        }
    });
}

/// RFC 9293, Section 3.7.1: a maximum segment size of zero, of one byte, and larger than any packet.
#[test]
fn segment_sizes_of_all_sorts() {
    withstands(|world| {
        for (n, mss) in [0, 1, 8, 63, 65_535].into_iter().enumerate() {
            let key = conspirators(n as u16);
            open(
                world,
                key,
                TcpOptionsRepr { mss: Some(mss), window_scale: Some(255), ..Default::default() },
            );
            world.inject(WAN, segment(key.reversed(), header(1, 1, Flags::ACK), &[9; 1_000]));
            world.inject(RADIO, segment(key, header(1, 501, Flags::ACK), &[9; 1_000]));
        }
    });
}

/// Sequence numbers that wrap during the flow (RFC 9293, Section 3.4).
#[test]
fn sequence_numbers_that_wrap() {
    withstands(|world| {
        let key = conspirators(1);
        world.inject(RADIO, segment(key, header(u32::MAX, 0, Flags::SYN), &[]));
        world.inject(WAN, segment(key.reversed(), header(u32::MAX - 900, 0, Flags::SYN | Flags::ACK), &[]));
        world.inject(RADIO, segment(key, header(0, u32::MAX - 899, Flags::ACK), &[]));
        for n in 0..10u32 {
            let seq = (u32::MAX - 899).wrapping_add(500 * n);
            world.inject(WAN, segment(key.reversed(), header(seq, 0, Flags::ACK), &[9; 500]));
            world.inject(RADIO, segment(key, header(0, seq.wrapping_add(500), Flags::ACK), &[]));
        }
    });
}

/// RFC 6093: urgent pointers beyond the data.
#[test]
fn urgent_pointers() {
    withstands(|world| {
        let key = conspirators(1);
        open(world, key, TcpOptionsRepr::default());
        for n in 0..20u32 {
            let urgent_pointer = (n * 3_400) as u16;
            let repr = TcpRepr { urgent_pointer, ..header(1 + 10 * n, 1, Flags::ACK | Flags::URG) };
            world.inject(WAN, segment(key.reversed(), repr, &[9; 10]));
            world.inject(RADIO, segment(key, repr, &[9; 10]));
        }
    });
}
