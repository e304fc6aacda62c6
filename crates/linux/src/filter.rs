//! Classic BPF programs for packet sockets: which frames a port takes.
//!
//! A bridged gateway takes TCP over IPv4 and IPv6 only. The nftables rule that keeps the same packets from the kernel
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
    /// TCP over IPv4 (protocol 6) and over IPv6 without extension headers (next header 6), fragments included.
    Tcp {
        /// Frames to these addresses stay out: those of the host itself.
        except_destinations: Vec<[u8; 6]>,
    },
}

impl Filter {
    /// The program, or `None` where none is needed.
    pub(crate) fn program(&self) -> io::Result<Option<Vec<SockFilter>>> {
        let Filter::Tcp { except_destinations } = self else { return Ok(None) };
        if except_destinations.len() > EXCEPTIONS_MAX {
            return Err(io::Error::new(
                io::ErrorKind::InvalidInput,
                "a filter excepts at most 256 addresses",
            ));
        }
        let program = tcp_program(except_destinations);
        Ok(Some(program.iter().map(|step| SockFilter::new(step.code, step.jt, step.jf, step.k)).collect()))
    }
}

/// Well within the kernel's limit of 4,096 instructions.
const EXCEPTIONS_MAX: usize = 256;

fn tcp_program(except: &[[u8; 6]]) -> Vec<sock_filter> {
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
    program.push(statement(LOAD_HALF, 12));
    program.push(jump_equal(ETHERTYPE_IPV4, 0, 3));
    program.push(statement(LOAD_BYTE, 14 + 9));
    program.push(jump_equal(PROTOCOL_TCP, 3, 0));
    program.push(LEAVE);
    program.push(jump_equal(ETHERTYPE_IPV6, 0, 3));
    program.push(statement(LOAD_BYTE, 14 + 6));
    program.push(jump_equal(PROTOCOL_TCP, 0, 1));
    program.push(TAKE);
    program.push(LEAVE);
    program
}

const ETHERTYPE_IPV4: u32 = 0x0800;
const ETHERTYPE_IPV6: u32 = 0x86dd;
const PROTOCOL_TCP: u32 = 6;
const LOAD_WORD: u32 = libc::BPF_LD | libc::BPF_W | libc::BPF_ABS;
const LOAD_HALF: u32 = libc::BPF_LD | libc::BPF_H | libc::BPF_ABS;
const LOAD_BYTE: u32 = libc::BPF_LD | libc::BPF_B | libc::BPF_ABS;
const JUMP_EQUAL: u32 = libc::BPF_JMP | libc::BPF_JEQ | libc::BPF_K;
const RETURN: u32 = libc::BPF_RET | libc::BPF_K;

const fn statement(code: u32, k: u32) -> sock_filter {
    sock_filter { code: code as u16, jt: 0, jf: 0, k }
}

const fn jump_equal(k: u32, jt: u8, jf: u8) -> sock_filter {
    sock_filter { code: JUMP_EQUAL as u16, jt, jf, k }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// What the kernel's interpreter does, for the few instructions in use; bytes beyond the frame end it with 0.
    fn runs(program: &[sock_filter], frame: &[u8]) -> bool {
        let (mut at, mut accumulator) = (0, 0u32);
        loop {
            let step = program[at];
            let load = |len: usize| -> Option<u32> {
                let bytes = frame.get(step.k as usize..step.k as usize + len)?;
                Some(bytes.iter().fold(0, |value, &byte| value << 8 | u32::from(byte)))
            };
            at += 1;
            let loaded = match u32::from(step.code) {
                LOAD_WORD => load(4),
                LOAD_HALF => load(2),
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
        let program = tcp_program(&[]);
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
    fn frames_to_the_host_itself_are_left() {
        let (host, other_host, client) = ([2, 0, 0, 0, 0, 1], [2, 0, 0, 0, 0, 2], [2, 0, 0, 0, 1, 1]);
        let program = tcp_program(&[host, other_host]);
        assert!(!runs(&program, &frame(host, 0x0800, 23, 6)));
        assert!(!runs(&program, &frame(other_host, 0x86dd, 20, 6)));
        assert!(runs(&program, &frame(client, 0x0800, 23, 6)));
    }
}
