//! Many packets per system call: `recvmmsg` and `sendmmsg`. A batch has a block for each received packet. For a long
//! payload, the block's memory and a piece of the payload memory are exchanged, so that nothing long is copied.

#![allow(clippy::unnecessary_cast, reason = "lengths and flags have other types with other C libraries")]

use std::io;
use std::os::fd::{AsRawFd, BorrowedFd};
use std::ptr;

use paceline_wire::{Block, BufferPool, Packet};

use crate::frame::{Frame, FrameError, PREFIX_MAX, VlanTag};
use crate::outbox::{Outbox, SendProgress};
use crate::virtio::HEADER_LEN;

/// The packets of one `recvmmsg`.
#[derive(Debug)]
pub(crate) struct ReceiveBatch {
    blocks: Box<[Block]>,
    control: Box<[ControlBuffer]>,
    iovecs: Box<[libc::iovec]>,
    headers: Box<[libc::mmsghdr]>,
}

// SAFETY: the pointers in `iovecs` and `headers` lead to heap memory that the other fields own, the blocks' bytes
// included. This memory does not move when the value moves.
unsafe impl Send for ReceiveBatch {}

impl ReceiveBatch {
    /// Allocates memory for `capacity` packets of any size. On a link without super-packets most of it is never
    /// touched, and so costs nothing.
    pub(crate) fn new(capacity: usize) -> Self {
        let capacity = capacity.clamp(1, CAPACITY_MAX);
        let mut blocks: Box<[Block]> = (0..capacity).map(|_| Block::default()).collect();
        let mut control = vec![ControlBuffer([0; CONTROL_BYTES]); capacity].into_boxed_slice();
        let mut iovecs: Box<[libc::iovec]> = blocks
            .iter_mut()
            .map(|block| libc::iovec { iov_base: block.as_mut_ptr().cast(), iov_len: Block::LEN })
            .collect();
        let headers = iovecs
            .iter_mut()
            .zip(control.iter_mut())
            .map(|(iovec, control)| libc::mmsghdr {
                msg_hdr: message(iovec, 1, control.0.as_mut_ptr().cast(), CONTROL_BYTES),
                msg_len: 0,
            })
            .collect();
        ReceiveBatch { blocks, control, iovecs, headers }
    }

    pub(crate) fn capacity(&self) -> usize {
        self.headers.len()
    }

    /// Receives waiting packets, up to the capacity. Returns `Ok(0)` if none wait.
    pub(crate) fn receive(&mut self, socket: BorrowedFd<'_>) -> io::Result<usize> {
        debug_assert_eq!(self.iovecs.len(), self.headers.len());
        for header in &mut self.headers {
            if header.msg_hdr.msg_controllen as usize == CONTROL_BYTES && header.msg_len == 0 {
                break; // This one and those behind it were not written to.
            }
            header.msg_hdr.msg_controllen = CONTROL_BYTES as _;
            header.msg_len = 0;
        }
        let len = self.headers.len() as libc::c_uint;
        let flags = libc::MSG_DONTWAIT | libc::MSG_TRUNC;
        // SAFETY: the headers point to buffers of the stated lengths, which this value owns and which outlive the
        // call. When `take` gives a block's memory away, it leaves no pointer to it.
        let count = unsafe {
            libc::recvmmsg(socket.as_raw_fd(), self.headers.as_mut_ptr(), len, flags as _, ptr::null_mut())
        };
        match usize::try_from(count) {
            Ok(count) => Ok(count),
            Err(_) => match io::Error::last_os_error() {
                error if matches!(error.kind(), io::ErrorKind::WouldBlock | io::ErrorKind::Interrupted) => {
                    Ok(0)
                }
                error => Err(error),
            },
        }
    }

    /// Returns packet `index` of the last batch, with its payload in memory of `pool`. May be called once for each
    /// packet, because the block may have other memory afterwards.
    pub(crate) fn take(&mut self, index: usize, pool: &mut BufferPool) -> Result<Packet, FrameError> {
        let frame = self.frame(index)?;
        let ip_at = frame.ip_at();
        let (mut packet, payload) = frame.headers()?;
        let block = &mut self.blocks[index];
        let payload = pool.keep(block, ip_at + payload.start..ip_at + payload.end);
        // The block may have other memory. The next packet goes to the block's present memory.
        self.iovecs[index].iov_base = block.as_mut_ptr().cast();
        packet.set_payload(payload.ok_or(FrameError::PoolExhausted)?);
        Ok(packet)
    }

    fn frame(&self, index: usize) -> Result<Frame<'_>, FrameError> {
        let len = self.headers[index].msg_len as usize;
        let bytes = self.blocks[index].get(..len).ok_or(FrameError::TooLong)?;
        Frame::parse(bytes, self.control_messages(index).find_map(vlan_tag))
    }

    /// The kernel's receive stamp of packet `index`, in nanoseconds of `CLOCK_REALTIME`.
    pub(crate) fn stamp_ns(&self, index: usize) -> Option<u64> {
        self.control_messages(index).find_map(stamp_ns)
    }

    fn control_messages(&self, index: usize) -> ControlMessages<'_> {
        let len = self.headers[index].msg_hdr.msg_controllen as usize;
        ControlMessages(&self.control[index].0[..len.min(CONTROL_BYTES)])
    }
}

/// The packets of one `sendmmsg`. Each is a prefix (virtio, link, network and transport header) and a payload.
#[derive(Debug)]
pub(crate) struct SendBatch {
    prefixes: Box<[[u8; PREFIX_MAX]]>,
    iovecs: Vec<libc::iovec>,
    headers: Vec<libc::mmsghdr>,
}

// SAFETY: `iovecs` and `headers` are filled and emptied within `send`; between calls they hold no pointers.
unsafe impl Send for SendBatch {}

impl SendBatch {
    pub(crate) fn new(capacity: usize) -> Self {
        let capacity = capacity.clamp(1, CAPACITY_MAX);
        SendBatch {
            prefixes: vec![[0; PREFIX_MAX]; capacity].into_boxed_slice(),
            iovecs: Vec::with_capacity(2 * capacity),
            headers: Vec::with_capacity(capacity),
        }
    }

    /// Sends from the front of `outbox` until it is empty or the device takes no more.
    pub(crate) fn send(&mut self, socket: BorrowedFd<'_>, outbox: &mut Outbox) -> SendProgress {
        while !outbox.is_empty() {
            match self.send_once(socket, outbox) {
                Ok(count) => outbox.sent(count),
                Err(error) => match outbox.refused(&error) {
                    SendProgress::All => {}
                    wait => return wait,
                },
            }
        }
        SendProgress::All
    }

    fn send_once(&mut self, socket: BorrowedFd<'_>, outbox: &Outbox) -> io::Result<usize> {
        for (packet, prefix) in outbox.iter().zip(&mut self.prefixes) {
            let (len, payload) = crate::frame::assemble(packet, prefix);
            self.iovecs.push(libc::iovec { iov_base: prefix.as_mut_ptr().cast(), iov_len: len });
            self.iovecs
                .push(libc::iovec { iov_base: payload.as_ptr().cast_mut().cast(), iov_len: payload.len() });
        }
        // Take pointers to the vector's elements only after it has stopped growing.
        for pair in self.iovecs.chunks_exact_mut(2) {
            self.headers.push(libc::mmsghdr {
                msg_hdr: message(pair.as_mut_ptr(), 2, ptr::null_mut(), 0),
                msg_len: 0,
            });
        }
        let len = self.headers.len() as libc::c_uint;
        // SAFETY: headers and iovecs describe the prefixes, which this value owns, and the payloads. `outbox` keeps
        // the payloads alive and unmoved while it is borrowed. The kernel only reads them.
        let count = unsafe {
            libc::sendmmsg(socket.as_raw_fd(), self.headers.as_mut_ptr(), len, libc::MSG_DONTWAIT as _)
        };
        let result = usize::try_from(count).map_err(|_| io::Error::last_os_error());
        self.iovecs.clear();
        self.headers.clear();
        result
    }
}

/// Virtio header, link header with two tags, and the largest IP packet without the jumbo payload option.
const _: () = assert!(HEADER_LEN + 22 + 65_535 <= Block::LEN, "a block holds any packet");
/// The kernel's own limit on messages per call.
const CAPACITY_MAX: usize = 1024;
/// A time stamp and the auxiliary data of a packet socket take 72 bytes.
const CONTROL_BYTES: usize = 128;

/// Control messages begin with a word, so the buffer is aligned to one.
#[derive(Clone, Debug)]
#[repr(C, align(8))]
struct ControlBuffer([u8; CONTROL_BYTES]);

fn message(
    iovecs: *mut libc::iovec,
    count: usize,
    control: *mut libc::c_void,
    control_len: usize,
) -> libc::msghdr {
    // SAFETY: a structure of numbers and pointers, for which zero is a value. With musl it has padding fields that
    // cannot be named.
    let mut message: libc::msghdr = unsafe { std::mem::zeroed() };
    message.msg_iov = iovecs;
    message.msg_iovlen = count as _;
    message.msg_control = control;
    message.msg_controllen = control_len as _;
    message
}

struct ControlMessage<'a> {
    level: i32,
    kind: i32,
    data: &'a [u8],
}

/// Walks `cmsghdr`s. Each has a length (a word), level and type (32 bits each), and data padded to a word.
struct ControlMessages<'a>(&'a [u8]);

impl<'a> Iterator for ControlMessages<'a> {
    type Item = ControlMessage<'a>;

    fn next(&mut self) -> Option<ControlMessage<'a>> {
        const WORD: usize = size_of::<usize>();
        const HEADER: usize = WORD + 8;
        let len = usize::from_ne_bytes(*self.0.first_chunk()?);
        let level = i32::from_ne_bytes(*self.0.get(WORD..)?.first_chunk()?);
        let kind = i32::from_ne_bytes(*self.0.get(WORD + 4..)?.first_chunk()?);
        let data = self.0.get(HEADER..len)?;
        self.0 = self.0.get(len.next_multiple_of(WORD)..).unwrap_or_default();
        Some(ControlMessage { level, kind, data })
    }
}

fn stamp_ns(message: ControlMessage<'_>) -> Option<u64> {
    if (message.level, message.kind) != (libc::SOL_SOCKET, libc::SO_TIMESTAMPNS) {
        return None;
    }
    let (seconds, nanoseconds) = match message.data.len() {
        // 32-bit kernels.
        8 => {
            let (seconds, rest) = message.data.split_first_chunk()?;
            (i64::from(i32::from_ne_bytes(*seconds)), i64::from(i32::from_ne_bytes(*rest.first_chunk()?)))
        }
        _ => {
            let (seconds, rest) = message.data.split_first_chunk()?;
            (i64::from_ne_bytes(*seconds), i64::from_ne_bytes(*rest.first_chunk()?))
        }
    };
    let (seconds, nanoseconds) = (u64::try_from(seconds).ok()?, u64::try_from(nanoseconds).ok()?);
    Some(seconds.saturating_mul(1_000_000_000).saturating_add(nanoseconds))
}

/// Reads a `tpacket_auxdata`: 32-bit status, len, snaplen, then 16-bit mac, net, TCI and TPID.
fn vlan_tag(message: ControlMessage<'_>) -> Option<VlanTag> {
    if (message.level, message.kind) != (libc::SOL_PACKET, libc::PACKET_AUXDATA) {
        return None;
    }
    let status = u32::from_ne_bytes(*message.data.first_chunk()?);
    let half = |at: usize| Some(u16::from_ne_bytes(*message.data.get(at..)?.first_chunk()?));
    let (tci, tpid) = (half(16)?, half(18)?);
    if status & libc::TP_STATUS_VLAN_VALID == 0 {
        return None;
    }
    let has_tpid = status & libc::TP_STATUS_VLAN_TPID_VALID != 0;
    Some(VlanTag { tpid: if has_tpid { tpid } else { libc::ETH_P_8021Q as u16 }, tci })
}

#[cfg(test)]
mod tests;
