//! Classic BPF programs that select the frames a packet socket takes.
//!
//! A bridged gateway takes TCP over IPv4 and IPv6, UDP if it shares the link, and ICMP messages about a smaller path
//! MTU. The nftables rules keep the same packets from the kernel. Rules and programs must match exactly the same
//! packets, or a packet is forwarded twice or not at all. So the programs examine only fields that a rule can
//! examine: the EtherType, the protocol field of IPv4 and the first next-header field of IPv6. A kernel hands over
//! VLAN tags beside the frame, so the offsets also hold for tagged frames.

use std::io;

use libc::sock_filter;
use socket2::SockFilter;

use crate::slice::{Side, Slice};

/// Which frames a packet socket receives.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub enum Filter {
    /// All frames, of any protocol.
    #[default]
    All,
    /// TCP over IPv4 (protocol 6) and over IPv6 without extension headers (next header 6), fragments included. Also
    /// "fragmentation needed" of ICMP (type 3, code 4) and "packet too big" of ICMPv6 (type 2).
    Tcp {
        /// Exclude frames to these addresses, which are those of the host itself.
        except_destinations: Vec<[u8; 6]>,
        /// Also take UDP, fragments included, unless it is sent to a group.
        datagrams: bool,
        /// Take only packets of these subscribers. An ICMP message from their side is about a packet to them, whoever
        /// sends it.
        slice: Option<(Slice, Side)>,
    },
}

impl Filter {
    /// Returns the program, or `None` if none is needed.
    pub(crate) fn program(&self) -> io::Result<Option<Vec<SockFilter>>> {
        let Filter::Tcp { except_destinations, datagrams, slice } = self else { return Ok(None) };
        if except_destinations.len() > EXCEPTIONS_MAX {
            return Err(io::Error::new(
                io::ErrorKind::InvalidInput,
                "a filter excepts at most 256 addresses",
            ));
        }
        Ok(Some(as_filter(&program(except_destinations, *datagrams, *slice))))
    }
}

/// Matches outgoing ICMP messages about a smaller path MTU. The bytes begin at the IP header.
pub(crate) fn outgoing_too_big() -> Vec<SockFilter> {
    as_filter(&too_big_program())
}

fn as_filter(program: &[sock_filter]) -> Vec<SockFilter> {
    program.iter().map(|step| SockFilter::new(step.code, step.jt, step.jf, step.k)).collect()
}

fn too_big_program() -> Vec<sock_filter> {
    let mut program = Program::default();
    program.push(LOAD_BYTE, PACKET_TYPE);
    program.jump(JUMP_EQUAL, PACKET_OUTGOING, JumpTarget::Next, JumpTarget::Leave);
    program.push(LOAD_BYTE, 0);
    program.push(SHIFT_RIGHT, 4);
    program.jump(JUMP_EQUAL, 4, JumpTarget::Next, JumpTarget::Ipv6);
    program.push(LOAD_BYTE, 9);
    program.jump(JUMP_EQUAL, PROTOCOL_ICMP, JumpTarget::Next, JumpTarget::Leave);
    program.push(LOAD_HALF, 6);
    program.jump(JUMP_ANY_BIT, 0x1fff, JumpTarget::Leave, JumpTarget::Next);
    program.push(LOAD_IPV4_LENGTH, 0);
    program.push(LOAD_HALF_BEHIND, 0);
    program.jump(JUMP_EQUAL, ICMP_FRAGMENTATION_NEEDED, JumpTarget::Take, JumpTarget::Leave);
    program.here(JumpTarget::Ipv6);
    program.jump(JUMP_EQUAL, 6, JumpTarget::Next, JumpTarget::Leave);
    program.push(LOAD_BYTE, 6);
    program.jump(JUMP_EQUAL, PROTOCOL_ICMPV6, JumpTarget::Next, JumpTarget::Leave);
    program.push(LOAD_BYTE, 40);
    program.jump(JUMP_EQUAL, ICMPV6_TOO_BIG, JumpTarget::Take, JumpTarget::Leave);
    program.here(JumpTarget::Take);
    program.push(RETURN, u32::MAX);
    program.here(JumpTarget::Leave);
    program.push(RETURN, 0);
    program.finish()
}

/// Our programs stay well within the kernel's limit of 4,096 instructions.
const EXCEPTIONS_MAX: usize = 256;

fn program(except: &[[u8; 6]], datagrams: bool, slice: Option<(Slice, Side)>) -> Vec<sock_filter> {
    let mut program = Program::default();
    for address in except {
        let [a, b, c, d, e, f] = *address;
        program.push(LOAD_WORD, 0);
        program.steps.push(jump(JUMP_EQUAL, u32::from_be_bytes([a, b, c, d]), 0, 3));
        program.push(LOAD_HALF, 4);
        program.steps.push(jump(JUMP_EQUAL, u32::from(u16::from_be_bytes([e, f])), 0, 1));
        program.push(RETURN, 0);
    }
    if datagrams {
        program.take_datagrams();
    }
    program.push(LOAD_HALF, 12);
    program.jump(JUMP_EQUAL, ETHERTYPE_IPV4, JumpTarget::Next, JumpTarget::Ipv6);
    program.push(LOAD_BYTE, 14 + 9);
    program.jump(JUMP_EQUAL, PROTOCOL_TCP, JumpTarget::Address4, JumpTarget::Next);
    program.jump(JUMP_EQUAL, PROTOCOL_ICMP, JumpTarget::Next, JumpTarget::Leave);
    // A later fragment has no ICMP header.
    program.push(LOAD_HALF, 14 + 6);
    program.jump(JUMP_ANY_BIT, 0x1fff, JumpTarget::Leave, JumpTarget::Next);
    program.push(LOAD_IPV4_LENGTH, 14);
    program.push(LOAD_HALF_BEHIND, 14);
    program.jump(JUMP_EQUAL, ICMP_FRAGMENTATION_NEEDED, JumpTarget::Quoted4, JumpTarget::Leave);
    program.here(JumpTarget::Ipv6);
    program.jump(JUMP_EQUAL, ETHERTYPE_IPV6, JumpTarget::Next, JumpTarget::Leave);
    program.push(LOAD_BYTE, 14 + 6);
    program.jump(JUMP_EQUAL, PROTOCOL_TCP, JumpTarget::Address6, JumpTarget::Next);
    program.jump(JUMP_EQUAL, PROTOCOL_ICMPV6, JumpTarget::Next, JumpTarget::Leave);
    program.push(LOAD_BYTE, 14 + 40);
    program.jump(JUMP_EQUAL, ICMPV6_TOO_BIG, JumpTarget::Quoted6, JumpTarget::Leave);
    if let Some((slice, side)) = slice {
        let address = |source, destination| if side == Side::Source { source } else { destination };
        let quoted = |code: u32, quoted: u32, ipv6: bool| match side {
            Side::Source => (code, 14 + quoted),
            // From the servers' side, the destination of the message is the subscriber whose packet it is about.
            Side::Destination => (LOAD_WORD, 14 + if ipv6 { 24 } else { 16 }),
        };
        program.test(JumpTarget::Address4, (LOAD_WORD, 14 + address(12, 16)), &slice, false);
        program.test(JumpTarget::Quoted4, quoted(LOAD_WORD_BEHIND, 8 + 16, false), &slice, false);
        program.test(JumpTarget::Address6, (LOAD_WORD, 14 + address(8, 24)), &slice, true);
        program.test(JumpTarget::Quoted6, quoted(LOAD_WORD, 40 + 8 + 24, true), &slice, true);
    }
    for all in [
        JumpTarget::Address4,
        JumpTarget::Quoted4,
        JumpTarget::Address6,
        JumpTarget::Quoted6,
        JumpTarget::Take,
    ] {
        program.here(all);
    }
    program.push(RETURN, u32::MAX);
    program.here(JumpTarget::Leave);
    program.push(RETURN, 0);
    program.finish()
}

/// Target of a jump.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum JumpTarget {
    Next,
    UdpIpv6,
    Rest,
    Ipv6,
    Address4,
    Quoted4,
    Address6,
    Quoted6,
    Take,
    Leave,
}

/// A program under construction. All jumps lead to later places.
#[derive(Debug, Default)]
struct Program {
    steps: Vec<sock_filter>,
    jumps: Vec<(usize, JumpTarget, JumpTarget)>,
    places: Vec<(JumpTarget, usize)>,
}

impl Program {
    fn push(&mut self, code: u32, k: u32) {
        self.steps.push(jump(code, k, 0, 0));
    }

    fn jump(&mut self, code: u32, k: u32, yes: JumpTarget, no: JumpTarget) {
        self.jumps.push((self.steps.len(), yes, no));
        self.push(code, k);
    }

    /// If a place is defined twice, the first definition counts.
    fn here(&mut self, place: JumpTarget) {
        self.places.push((place, self.steps.len()));
    }

    /// Takes UDP, but not to a group: then the first bit of the address is set, and others than the other port
    /// receive it too.
    fn take_datagrams(&mut self) {
        self.push(LOAD_BYTE, 0);
        self.jump(JUMP_ANY_BIT, 1, JumpTarget::Rest, JumpTarget::Next);
        self.push(LOAD_HALF, 12);
        self.jump(JUMP_EQUAL, ETHERTYPE_IPV4, JumpTarget::Next, JumpTarget::UdpIpv6);
        self.push(LOAD_BYTE, 14 + 9);
        self.jump(JUMP_EQUAL, PROTOCOL_UDP, JumpTarget::Address4, JumpTarget::Rest);
        self.here(JumpTarget::UdpIpv6);
        self.jump(JUMP_EQUAL, ETHERTYPE_IPV6, JumpTarget::Next, JumpTarget::Rest);
        self.push(LOAD_BYTE, 14 + 6);
        self.jump(JUMP_EQUAL, PROTOCOL_UDP, JumpTarget::Address6, JumpTarget::Rest);
        self.here(JumpTarget::Rest);
    }

    /// At `place`: takes the frame if an address belongs to the slice. `load` says how to load a word of the address,
    /// and where the address begins.
    fn test(&mut self, place: JumpTarget, load: (u32, u32), slice: &Slice, ipv6: bool) {
        let (code, at) = load;
        let word = slice.place(ipv6);
        self.here(place);
        self.push(code, at + word.offset);
        self.push(SHIFT_RIGHT, word.shift);
        self.push(AND, Slice::BUCKETS - 1);
        self.push(MODULO, slice.of.max(1));
        self.jump(JUMP_EQUAL, slice.index, JumpTarget::Take, JumpTarget::Leave);
    }

    fn finish(mut self) -> Vec<sock_filter> {
        for (at, yes, no) in self.jumps {
            let distance = |to: JumpTarget| {
                let place = self.places.iter().find(|(place, _)| *place == to);
                // All jumps are short and forward.
                place.map_or(0, |(_, place)| (place - at - 1) as u8)
            };
            let (yes, no) = (distance(yes), distance(no));
            (self.steps[at].jt, self.steps[at].jf) = (yes, no);
        }
        self.steps
    }
}

/// Special offset, not in the packet: linux/filter.h, SKF_AD_OFF + SKF_AD_PKTTYPE.
const PACKET_TYPE: u32 = -0x1000i32 as u32 + 4;
const PACKET_OUTGOING: u32 = 4;
const ETHERTYPE_IPV4: u32 = 0x0800;
const ETHERTYPE_IPV6: u32 = 0x86dd;
const PROTOCOL_TCP: u32 = 6;
const PROTOCOL_UDP: u32 = 17;
const PROTOCOL_ICMP: u32 = 1;
const PROTOCOL_ICMPV6: u32 = 58;
/// ICMP type and code.
const ICMP_FRAGMENTATION_NEEDED: u32 = 0x0304;
const ICMPV6_TOO_BIG: u32 = 2;
const LOAD_WORD: u32 = libc::BPF_LD | libc::BPF_W | libc::BPF_ABS;
const LOAD_HALF: u32 = libc::BPF_LD | libc::BPF_H | libc::BPF_ABS;
const LOAD_BYTE: u32 = libc::BPF_LD | libc::BPF_B | libc::BPF_ABS;
/// Sets the index register to the length of the IPv4 header at this offset.
const LOAD_IPV4_LENGTH: u32 = libc::BPF_LDX | libc::BPF_B | libc::BPF_MSH;
/// Loads from the sum of the index register and this offset.
const LOAD_HALF_BEHIND: u32 = libc::BPF_LD | libc::BPF_H | libc::BPF_IND;
const JUMP_ANY_BIT: u32 = libc::BPF_JMP | libc::BPF_JSET | libc::BPF_K;
const JUMP_EQUAL: u32 = libc::BPF_JMP | libc::BPF_JEQ | libc::BPF_K;
const LOAD_WORD_BEHIND: u32 = libc::BPF_LD | libc::BPF_W | libc::BPF_IND;
const SHIFT_RIGHT: u32 = libc::BPF_ALU | libc::BPF_RSH | libc::BPF_K;
const AND: u32 = libc::BPF_ALU | libc::BPF_AND | libc::BPF_K;
const MODULO: u32 = libc::BPF_ALU | libc::BPF_MOD | libc::BPF_K;
const RETURN: u32 = libc::BPF_RET | libc::BPF_K;

const fn jump(code: u32, k: u32, jt: u8, jf: u8) -> sock_filter {
    sock_filter { code: code as u16, jt, jf, k }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Interprets the few instructions in use, as the kernel does. A load beyond the frame ends the program with 0.
    fn runs(program: &[sock_filter], frame: &[u8]) -> bool {
        let (mut at, mut accumulator, mut index) = (0, 0u32, 0usize);
        loop {
            let step = program[at];
            let load = |len: usize| -> Option<u32> {
                let from = step.k as usize
                    + match u32::from(step.code) {
                        LOAD_HALF_BEHIND | LOAD_WORD_BEHIND => index,
                        _ => 0,
                    };
                let bytes = frame.get(from..from + len)?;
                Some(bytes.iter().fold(0, |value, &byte| value << 8 | u32::from(byte)))
            };
            at += 1;
            let loaded = match u32::from(step.code) {
                LOAD_WORD | LOAD_WORD_BEHIND => load(4),
                SHIFT_RIGHT => Some(accumulator >> step.k),
                AND => Some(accumulator & step.k),
                MODULO => Some(accumulator % step.k),
                LOAD_HALF | LOAD_HALF_BEHIND => load(2),
                LOAD_IPV4_LENGTH => {
                    index = usize::from(frame[step.k as usize] & 15) * 4;
                    continue;
                }
                JUMP_ANY_BIT => {
                    at += usize::from(if accumulator & step.k != 0 { step.jt } else { step.jf });
                    continue;
                }
                LOAD_BYTE => load(1),
                JUMP_EQUAL => {
                    at += usize::from(if accumulator == step.k { step.jt } else { step.jf });
                    continue;
                }
                RETURN => return step.k != 0,
                code => panic!("instruction {code:#x}"),
            };
            let Some(value) = loaded else { return false };
            accumulator = value;
        }
    }

    fn frame(destination: [u8; 6], ethertype: u16, protocol_at: usize, protocol: u8) -> Vec<u8> {
        let mut frame = vec![0; 60];
        frame[..6].copy_from_slice(&destination);
        frame[12..14].copy_from_slice(&ethertype.to_be_bytes());
        frame[protocol_at] = protocol;
        frame
    }

    #[test]
    fn only_tcp_is_taken() {
        let program = super::program(&[], false, None);
        let to = [2, 0, 0, 0, 0, 1];
        assert!(runs(&program, &frame(to, 0x0800, 23, 6)));
        assert!(runs(&program, &frame(to, 0x86dd, 20, 6)));
        assert!(!runs(&program, &frame(to, 0x0800, 23, 17)));
        assert!(!runs(&program, &frame(to, 0x86dd, 20, 44)), "an IPv6 fragment");
        assert!(!runs(&program, &frame(to, 0x0806, 23, 6)), "ARP");
        assert!(!runs(&program, &frame(to, 0x0800, 20, 6)));
        assert!(!runs(&program, &[0; 13]), "a truncated frame");
    }

    #[test]
    fn of_icmp_only_what_tells_of_a_smaller_mtu_is_taken() {
        let program = super::program(&[], false, None);
        let mut too_big = frame([2, 0, 0, 0, 0, 1], 0x0800, 23, 1);
        // An IPv4 header with one word of options.
        too_big[14] = 0x46;
        too_big[38..40].copy_from_slice(&[3, 4]);
        assert!(runs(&program, &too_big));
        too_big[21] = 9;
        assert!(!runs(&program, &too_big), "a later fragment");
        too_big[21] = 0;
        too_big[39] = 1;
        assert!(!runs(&program, &too_big), "a host out of reach");
        let mut too_big = frame([2, 0, 0, 0, 0, 1], 0x86dd, 20, 58);
        too_big[54] = 2;
        assert!(runs(&program, &too_big));
        too_big[54] = 135;
        assert!(!runs(&program, &too_big), "neighbour discovery");
    }

    #[test]
    fn of_what_leaves_only_messages_of_a_smaller_mtu_are_overheard() {
        // The test interpreter cannot load the packet type, so the first two steps are cut off. The live tests check
        // them.
        let program: Vec<sock_filter> = super::too_big_program().split_off(2);
        let packet = |bytes: &[(usize, u8)]| {
            let mut packet = vec![0; 60];
            bytes.iter().for_each(|&(at, byte)| packet[at] = byte);
            packet
        };
        // Jump distances are relative and forward, so they stay valid.
        assert!(runs(&program, &packet(&[(0, 0x46), (9, 1), (24, 3), (25, 4)])));
        assert!(!runs(&program, &packet(&[(0, 0x46), (9, 1), (24, 3), (25, 1)])), "a host out of reach");
        assert!(!runs(&program, &packet(&[(0, 0x46), (9, 1), (7, 1), (24, 3), (25, 4)])), "a later fragment");
        assert!(!runs(&program, &packet(&[(0, 0x45), (9, 6), (20, 3), (21, 4)])), "TCP");
        assert!(runs(&program, &packet(&[(0, 0x60), (6, 58), (40, 2)])));
        assert!(!runs(&program, &packet(&[(0, 0x60), (6, 58), (40, 1)])));
        assert!(!runs(&program, &packet(&[(0, 0x60), (6, 6), (40, 2)])));
    }

    #[test]
    fn datagrams_to_one_are_taken_where_they_are_wanted() {
        let (one, all, group) = ([2, 0, 0, 0, 0, 1], [0xff; 6], [0x33, 0x33, 0, 0, 0, 1]);
        let (with, without) = (program(&[], true, None), program(&[], false, None));
        for (ethertype, at) in [(0x0800, 23), (0x86dd, 20)] {
            assert!(runs(&with, &frame(one, ethertype, at, 17)));
            assert!(runs(&with, &frame(one, ethertype, at, 6)) && runs(&with, &frame(all, ethertype, at, 6)));
            assert!(
                !runs(&with, &frame(all, ethertype, at, 17))
                    && !runs(&with, &frame(group, ethertype, at, 17))
            );
            assert!(!runs(&without, &frame(one, ethertype, at, 17)));
            assert!(!runs(&with, &frame(one, ethertype, at, 50)));
        }
        assert!(!runs(&with, &frame(one, 0x0806, 23, 17)), "ARP");
        assert!(!runs(&program(&[one], true, None), &frame(one, 0x0800, 23, 17)));
    }

    #[test]
    fn frames_to_the_host_itself_are_left() {
        let (host, other_host, client) = ([2, 0, 0, 0, 0, 1], [2, 0, 0, 0, 0, 2], [2, 0, 0, 0, 1, 1]);
        let program = super::program(&[host, other_host], false, None);
        assert!(!runs(&program, &frame(host, 0x0800, 23, 6)));
        assert!(!runs(&program, &frame(other_host, 0x86dd, 20, 6)));
        assert!(runs(&program, &frame(client, 0x0800, 23, 6)));
    }

    fn sliced(side: Side) -> (Slice, Vec<sock_filter>) {
        let slice = Slice { index: 1, of: 3, prefix_v4: 28, prefix_v6: 56 };
        (slice, program(&[], true, Some((slice, side))))
    }

    #[test]
    fn a_worker_takes_its_subscribers_by_their_address() {
        for (side, at4, at6) in [(Side::Source, 26, 22), (Side::Destination, 30, 38)] {
            let (slice, program) = sliced(side);
            for n in 0..=255u8 {
                let address = [10, 0, n >> 2, n.wrapping_mul(37)];
                let mut packet = frame([2; 6], 0x0800, 23, 6);
                packet[at4..at4 + 4].copy_from_slice(&address);
                // Later fragments have the same addresses.
                packet[21] = n & 15;
                packet[23] = if n & 1 == 0 { 6 } else { 17 };
                assert_eq!(runs(&program, &packet), slice.contains(address.into()), "{address:?}");
                let mut packet = frame([2; 6], 0x86dd, 20, 6);
                let mut address = [0x20; 16];
                (address[6], address[7]) = (n, n.wrapping_mul(91));
                packet[at6..at6 + 16].copy_from_slice(&address);
                assert_eq!(runs(&program, &packet), slice.contains(address.into()), "{address:?}");
            }
        }
    }

    #[test]
    fn a_message_from_a_router_goes_to_the_worker_of_the_packet_that_it_quotes() {
        let (slice, program) = sliced(Side::Source);
        for n in 0..=255u8 {
            let subscriber = [10, 0, n, n.wrapping_mul(37)];
            let mut message = frame([2; 6], 0x0800, 23, 1);
            message.resize(100, 0);
            // An IPv4 header with one word of options.
            message[14] = 0x46;
            message[38..40].copy_from_slice(&[3, 4]);
            message[26..30].copy_from_slice(&[192, 0, 2, 1]);
            message[46 + 16..46 + 20].copy_from_slice(&subscriber);
            assert_eq!(runs(&program, &message), slice.contains(subscriber.into()), "{subscriber:?}");
            let mut message = frame([2; 6], 0x86dd, 20, 58);
            message.resize(120, 0);
            message[54] = 2;
            let mut subscriber = [0x20; 16];
            (subscriber[6], subscriber[7]) = (n, n.wrapping_mul(91));
            message[62 + 24..62 + 40].copy_from_slice(&subscriber);
            assert_eq!(runs(&program, &message), slice.contains(subscriber.into()), "{subscriber:?}");
        }
    }
}
