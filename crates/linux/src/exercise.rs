//! Properties that must hold for any bytes from a device, the kernel, a file or another process. Fuzz targets use
//! them, and the replay of their corpora.
#![allow(clippy::unwrap_used, clippy::panic, reason = "a check that fails ends the test")]

use std::io::{Read, Seek, Write};
use std::net::{Ipv4Addr, Shutdown, SocketAddr};
use std::os::fd::{AsFd, BorrowedFd};
use std::os::unix::net::UnixStream;

use nix::sys::memfd::{MFdFlags, memfd_create};
use paceline_gateway::Shifts;
use paceline_wire::{BufferPool, Checksum, FlowKey, Packet};

use crate::fallback::Fallback;
use crate::frame::{Frame, PREFIX_MAX, VlanTag, assemble};
use crate::handover;
use crate::netlink::{INDICES_MAX, Interest, error_of, next_message, number_messages};
use crate::nft::base_chain;
use crate::shift_file::{ShiftFile, seal};

/// `data`: choices, then virtio header and frame as a packet socket or a TUN delivers them. A received packet that is
/// written must be received as the same packet.
pub fn frame(data: &[u8]) {
    let Some((&choices, bytes)) = data.split_first() else { return };
    let tag = (choices & 2 == 2).then_some(VlanTag { tpid: 0x8100, tci: u16::from(choices) });
    let frame = if choices & 1 == 1 { Frame::parse_tun(bytes) } else { Frame::parse(bytes, tag) };
    let mut pool = BufferPool::new(1 << 20);
    let Ok(packet) = frame.and_then(|frame| frame.to_packet(&mut pool)) else { return };
    // With two tags, a kernel hands over one beside the frame.
    if packet.link().len() > 18 {
        return;
    }
    let mut prefix = [0; PREFIX_MAX];
    let (len, payload) = assemble(&packet, &mut prefix);
    let written = [&prefix[..len], payload].concat();
    let frame = if choices & 1 == 1 { Frame::parse_tun(&written) } else { Frame::parse(&written, None) };
    let again = frame.unwrap().to_packet(&mut pool).unwrap();
    assert_eq!((again.link(), again.to_vec()), (packet.link(), packet.to_vec()));
    assert_eq!(again.opaque_reason(), packet.opaque_reason());
    let offloads = |packet: &Packet| (packet.offload(), packet.gso_size(), packet.checksum());
    // A packet with a complete checksum leaves no offload to the interface.
    if packet.checksum() == Checksum::Partial || !packet.is_tcp() {
        assert_eq!(offloads(&again), offloads(&packet));
    }
}

/// `data`: a kernel's answer or message.
pub fn netlink(data: &[u8]) {
    let (mut rest, mut sequences, mut taken) = (data, Vec::new(), 0);
    while let Some((header, message, tail)) = next_message(rest) {
        assert!(message.len() >= 16 && tail.len() < rest.len(), "each is a step");
        taken += message.len();
        sequences.push(header.sequence);
        let _ = (error_of(message), base_chain(message));
        rest = tail;
    }
    assert!(taken <= data.len());
    let mut numbered = data.to_vec();
    let count = number_messages(&mut numbered, 7);
    let mut rest = numbered.as_slice();
    for sequence in 0..sequences.len() as u32 {
        let (header, _, tail) = next_message(rest).unwrap();
        assert!(sequence >= count || header.sequence == 7 + sequence);
        rest = tail;
    }
    let mut interest = Interest { names: vec!["w0".into()], indices: vec![3], priority: Some(7700) };
    let is_met = interest.is_met_by(data);
    assert!(interest.indices.len() <= INDICES_MAX);
    // A message about something else, placed first, must not hide the rest.
    let more = [&[16, 0, 0, 0, 3, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0], data].concat();
    let mut interest = Interest { names: vec!["w0".into()], indices: vec![3], priority: Some(7700) };
    assert_eq!(interest.is_met_by(&more), is_met);
}

/// `data`: choices, then a file of flows. A choice decides whether the checksums are made right. The adopted file
/// must work in every case.
pub fn shift_file(data: &[u8]) {
    let Some((&choices, bytes)) = data.split_first() else { return };
    let mut bytes = bytes.to_vec();
    if choices & 1 == 1 {
        seal(&mut bytes);
    }
    let mut file = std::fs::File::from(memfd_create(c"flows", MFdFlags::MFD_CLOEXEC).unwrap());
    file.write_all(&bytes).unwrap();
    let Ok(mut flows) = ShiftFile::adopt(file.try_clone().unwrap().into(), usize::from(choices >> 1)) else {
        return;
    };
    let end = |host: u8| SocketAddr::from((Ipv4Addr::new(203, 0, 113, host), 4_321));
    let (key, value) = (FlowKey::new(end(1), end(2)), Fallback::Reset);
    let has = |flows: &ShiftFile, value: Fallback| flows.load().contains(&(key, value));
    // Our files never hold a flow twice, but invented ones may.
    if !flows.load().iter().any(|(other, _)| *other == key) && flows.insert(key, value).is_ok() {
        assert!(has(&flows, value));
        let shifts = Shifts { client: 1, shown: 7, server: 2, added: true };
        flows.insert(key, shifts).unwrap();
        assert!(has(&flows, shifts.into()) && !has(&flows, value));
        let again = ShiftFile::adopt(flows.descriptor().unwrap(), 1_000).unwrap();
        assert_eq!((again.load(), again.len()), (flows.load(), flows.len()));
        assert!(flows.remove(&key) && !has(&flows, shifts.into()) && !flows.remove(&key));
    }
    file.rewind().unwrap();
    let mut written = Vec::new();
    file.read_to_end(&mut written).unwrap();
    assert_eq!(written.len(), bytes.len(), "its size stays");
}

/// `data`: the number of descriptors to send, then another process's message. A sent message must arrive. Bytes that
/// are no line must do no harm.
pub fn message(data: &[u8]) {
    let Some((&choices, said)) = data.split_first() else { return };
    let (here, there) = UnixStream::pair().unwrap();
    let descriptors: Vec<BorrowedFd<'_>> = (0..choices & 15).map(|_| here.as_fd()).collect();
    let line = String::from_utf8_lossy(said).replace('\n', " ");
    if choices & 16 == 16 && line.len() < 8_000 {
        handover::send(&here, &line, &descriptors).unwrap();
        let (got, fds) = handover::receive(&there).unwrap();
        assert_eq!((got.as_str(), fds.len()), (line.trim_end(), descriptors.len()));
        return;
    }
    // More bytes than the socket's buffer would block the writer.
    let said = &said[..said.len().min(32 << 10)];
    (&here).write_all(said).unwrap();
    here.shutdown(Shutdown::Write).unwrap();
    if let Ok((got, fds)) = handover::receive(&there) {
        assert!(said.starts_with(got.as_bytes()) && fds.is_empty());
    }
}

#[cfg(test)]
#[path = "../../../fuzz/replay.rs"]
mod replay;

#[cfg(test)]
mod tests {
    use super::replay::replay;

    #[test]
    fn frames_replayed() {
        replay("frame", 20_000, super::frame);
    }

    #[test]
    fn netlink_replayed() {
        replay("netlink", 20_000, super::netlink);
    }

    #[test]
    fn flow_files_replayed() {
        replay("shift_file", 2_000, super::shift_file);
    }

    #[test]
    fn messages_replayed() {
        replay("message", 2_000, super::message);
    }
}
