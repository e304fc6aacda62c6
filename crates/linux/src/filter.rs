//! Classic BPF programs for packet sockets: which frames a port takes.
//!
//! A bridged gateway takes TCP over IPv4 and IPv6, UDP where it shares the link, and the ICMP messages that tell of a smaller path MTU, only. The nftables rules that keep the same packets from the kernel
//! must match exactly these, else a packet is forwarded twice or not at all. So the programs look at what a rule can look
//! at: the EtherType, the protocol field of IPv4 and the first next-header field of IPv6. A kernel hands over VLAN tags
//! beside the frame, so the offsets hold for tagged frames as well.

use std::io;

use libc::sock_filter;
use socket2::SockFilter;

/// Which frames a packet socket receives.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub enum Filter {
    /// All, of any protocol.
    #[default]
    All,
    /// TCP over IPv4 (protocol 6) and over IPv6 without extension headers (next header 6), fragments included; and "fragmentation
    /// needed" of ICMP (type 3, code 4), "packet too big" of ICMPv6 (type 2).
    Tcp {
        /// Frames to these addresses stay out: those of the host itself.
        except_destinations: Vec<[u8; 6]>,
        /// UDP as well, fragments included, unless it is sent to a group.
        datagrams: bool,
    },
}

impl Filter {
    /// The program, or `None` where none is needed.
    pub(crate) fn program(&self) -> io::Result<Option<Vec<SockFilter>>> {
        let Filter::Tcp { except_destinations, datagrams } = self else { return Ok(None) };
        if except_destinations.len() > EXCEPTIONS_MAX {
            return Err(io::Error::new(
                io::ErrorKind::InvalidInput,
                "a filter excepts at most 256 addresses",
            ));
        }
        let program = program(except_destinations, *datagrams);
        Ok(Some(program.iter().map(|step| SockFilter::new(step.code, step.jt, step.jf, step.k)).collect()))
    }
}

/// Well within the kernel's limit of 4,096 instructions.
const EXCEPTIONS_MAX: usize = 256;

fn program(except: &[[u8; 6]], datagrams: bool) -> Vec<sock_filter> {
    const TAKE: sock_filter = statement(RETURN, u32::MAX);
    const LEAVE: sock_filter = statement(RETURN, 0);
    let mut program = Vec::new();
    for address in except {
        let [a, b, c, d, e, f] = *address;
        program.push(statement(LOAD_WORD, 0));
        program.push(jump_equal(u32::from_be_bytes([a, b, c, d]), 0, 3));
        program.push(statement(LOAD_HALF, 4));
        program.push(jump_equal(u32::from(u16::from_be_bytes([e, f])), 0, 1));
        program.push(LEAVE);
    }
    if datagrams {
        program.extend(UDP_TO_ONE);
    }
    program.push(statement(LOAD_HALF, 12));
    program.push(jump_equal(ETHERTYPE_IPV4, 0, 9));
    program.push(statement(LOAD_BYTE, 14 + 9));
    program.push(jump_equal(PROTOCOL_TCP, 13, 0));
    program.push(jump_equal(PROTOCOL_ICMP, 0, 5));
    // Not a later fragment, which has no header.
    program.push(statement(LOAD_HALF, 14 + 6));
    program.push(jump(JUMP_ANY_BIT, 0x1fff, 3, 0));
    program.push(statement(LOAD_IPV4_LENGTH, 14));
    program.push(statement(LOAD_HALF_BEHIND, 14));
    program.push(jump_equal(ICMP_FRAGMENTATION_NEEDED, 7, 0));
    program.push(LEAVE);
    program.push(jump_equal(ETHERTYPE_IPV6, 0, 6));
    program.push(statement(LOAD_BYTE, 14 + 6));
    program.push(jump_equal(PROTOCOL_TCP, 3, 0));
    program.push(jump_equal(PROTOCOL_ICMPV6, 0, 3));
    program.push(statement(LOAD_BYTE, 14 + 40));
    program.push(jump_equal(ICMPV6_TOO_BIG, 0, 1));
    program.push(TAKE);
    program.push(LEAVE);
    program
}

/// Takes UDP, but not what is sent to a group, which has takers besides the other port: the first bit of the address is set.
const UDP_TO_ONE: [sock_filter; 10] = [
    statement(LOAD_BYTE, 0),
    jump(JUMP_ANY_BIT, 1, 8, 0),
    statement(LOAD_HALF, 12),
    jump_equal(ETHERTYPE_IPV4, 0, 2),
    statement(LOAD_BYTE, 14 + 9),
    jump_equal(PROTOCOL_UDP, 3, 4),
    jump_equal(ETHERTYPE_IPV6, 0, 3),
    statement(LOAD_BYTE, 14 + 6),
    jump_equal(PROTOCOL_UDP, 0, 1),
    statement(RETURN, u32::MAX),
];

const ETHERTYPE_IPV4: u32 = 0x0800;
const ETHERTYPE_IPV6: u32 = 0x86dd;
const PROTOCOL_TCP: u32 = 6;
const PROTOCOL_UDP: u32 = 17;
const PROTOCOL_ICMP: u32 = 1;
const PROTOCOL_ICMPV6: u32 = 58;
/// Type and code.
const ICMP_FRAGMENTATION_NEEDED: u32 = 0x0304;
const ICMPV6_TOO_BIG: u32 = 2;
const LOAD_WORD: u32 = libc::BPF_LD | libc::BPF_W | libc::BPF_ABS;
const LOAD_HALF: u32 = libc::BPF_LD | libc::BPF_H | libc::BPF_ABS;
const LOAD_BYTE: u32 = libc::BPF_LD | libc::BPF_B | libc::BPF_ABS;
/// The index register becomes the length of the IPv4 header at this place.
const LOAD_IPV4_LENGTH: u32 = libc::BPF_LDX | libc::BPF_B | libc::BPF_MSH;
/// At the index register and so much more.
const LOAD_HALF_BEHIND: u32 = libc::BPF_LD | libc::BPF_H | libc::BPF_IND;
const JUMP_ANY_BIT: u32 = libc::BPF_JMP | libc::BPF_JSET | libc::BPF_K;
const JUMP_EQUAL: u32 = libc::BPF_JMP | libc::BPF_JEQ | libc::BPF_K;
const RETURN: u32 = libc::BPF_RET | libc::BPF_K;

const fn statement(code: u32, k: u32) -> sock_filter {
    sock_filter { code: code as u16, jt: 0, jf: 0, k }
}

const fn jump_equal(k: u32, jt: u8, jf: u8) -> sock_filter {
    jump(JUMP_EQUAL, k, jt, jf)
}

const fn jump(code: u32, k: u32, jt: u8, jf: u8) -> sock_filter {
    sock_filter { code: code as u16, jt, jf, k }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// What the kernel's interpreter does, for the few instructions in use; bytes beyond the frame end it with 0.
    fn runs(program: &[sock_filter], frame: &[u8]) -> bool {
        let (mut at, mut accumulator, mut index) = (0, 0u32, 0usize);
        loop {
            let step = program[at];
            let load = |len: usize| -> Option<u32> {
                let from = step.k as usize + if u32::from(step.code) == LOAD_HALF_BEHIND { index } else { 0 };
                let bytes = frame.get(from..from + len)?;
                Some(bytes.iter().fold(0, |value, &byte| value << 8 | u32::from(byte)))
            };
            at += 1;
            let loaded = match u32::from(step.code) {
                LOAD_WORD => load(4),
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
        let program = program(&[], false);
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
        let program = program(&[], false);
        let mut too_big = frame([2, 0, 0, 0, 0, 1], 0x0800, 23, 1);
        // A header with one word of options.
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
    fn datagrams_to_one_are_taken_where_they_are_wanted() {
        let (one, all, group) = ([2, 0, 0, 0, 0, 1], [0xff; 6], [0x33, 0x33, 0, 0, 0, 1]);
        let (with, without) = (program(&[], true), program(&[], false));
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
        assert!(!runs(&program(&[one], true), &frame(one, 0x0800, 23, 17)));
    }

    #[test]
    fn frames_to_the_host_itself_are_left() {
        let (host, other_host, client) = ([2, 0, 0, 0, 0, 1], [2, 0, 0, 0, 0, 2], [2, 0, 0, 0, 1, 1]);
        let program = program(&[host, other_host], false);
        assert!(!runs(&program, &frame(host, 0x0800, 23, 6)));
        assert!(!runs(&program, &frame(other_host, 0x86dd, 20, 6)));
        assert!(runs(&program, &frame(client, 0x0800, 23, 6)));
    }
}
