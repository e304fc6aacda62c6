//! Editing the headers of a packet in place. A right checksum stays right, a wrong one stays wrong.

use core::fmt;
use core::ops::Range;

use super::options::{MAX_OPTIONS_LEN, Options, kind};
use super::{Checksum, Ecn, Flags, HEADER_CAPACITY, Packet, Tcp, u16_at, u32_at};
use crate::checksum;
use crate::seq::Seq;

/// A TCP header that can be edited.
#[derive(Debug)]
pub struct TcpMut<'a> {
    packet: &'a mut Packet,
}

/// The header has no room for another option.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct NoRoom;

impl fmt::Display for NoRoom {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("no room for another TCP option")
    }
}

impl core::error::Error for NoRoom {}

impl Packet {
    /// The TCP header for editing. `None` in an opaque packet.
    pub fn tcp_mut(&mut self) -> Option<TcpMut<'_>> {
        self.is_tcp().then_some(TcpMut { packet: self })
    }

    /// Sets the ECN field of the IP header. Does nothing if [`addresses`](Self::addresses) is `None`.
    pub fn set_ecn(&mut self, ecn: Ecn) {
        let Some((src, _)) = self.addresses() else { return };
        let bits = match ecn {
            Ecn::NotEct => 0,
            Ecn::Ect1 => 1,
            Ecn::Ect0 => 2,
            Ecn::Ce => 3,
        };
        if src.is_ipv6() {
            self.header[1] = self.header[1] & !0x30 | bits << 4;
        } else {
            let tos = self.header[1] & !3 | bits;
            self.set_ipv4_word(0, u16::from_be_bytes([self.header[0], tos]));
        }
    }

    /// Writes the length of headers and payload into the IP header, or zero if it does not fit the field.
    pub(super) fn update_ip_len(&mut self) {
        let len = self.ip_len();
        if self.header[0] >> 4 == 4 {
            self.set_ipv4_word(2, u16::try_from(len).unwrap_or(0));
        } else {
            let payload_len = u16::try_from(len - IPV6_HEADER_LEN).unwrap_or(0);
            self.header[4..6].copy_from_slice(&payload_len.to_be_bytes());
        }
    }

    /// Replaces the 16-bit word at `at` of an IPv4 header and updates the header checksum.
    pub(super) fn set_ipv4_word(&mut self, at: usize, word: u16) {
        let old = u16_at(&self.header, at);
        let sum = checksum::update(u16_at(&self.header, 10), old.into(), word.into());
        self.header[at..at + 2].copy_from_slice(&word.to_be_bytes());
        self.header[10..12].copy_from_slice(&sum.to_be_bytes());
    }

    /// Lets `edit` change bytes of the TCP header and updates the checksum. `range` starts at an even offset.
    pub(super) fn edit_tcp(&mut self, range: Range<usize>, edit: impl FnOnce(&mut [u8])) {
        let tcp_at = usize::from(self.tcp_at);
        let bytes = &mut self.header[tcp_at + range.start..tcp_at + range.end];
        // A partial checksum covers only the pseudo header.
        if self.checksum == Checksum::Partial {
            return edit(bytes);
        }
        let old = checksum::sum(bytes);
        edit(bytes);
        let new = checksum::sum(bytes);
        self.set_checksum_field(checksum::update(self.checksum_field(), old, new));
    }
}

impl<'a> TcpMut<'a> {
    /// The header, for reading.
    pub fn as_tcp(&self) -> Tcp<'_> {
        self.packet.tcp_view()
    }

    /// Sets the sequence number.
    pub fn set_seq(&mut self, seq: Seq) {
        self.set(4, &seq.0.to_be_bytes());
    }

    /// Sets the acknowledgement number.
    pub fn set_ack(&mut self, ack: Seq) {
        self.set(8, &ack.0.to_be_bytes());
    }

    /// Sets the control bits.
    pub fn set_flags(&mut self, flags: Flags) {
        self.packet.edit_tcp(12..14, |bytes| {
            let others = u16_at(bytes, 0) & !Flags::all().bits();
            bytes.copy_from_slice(&(others | flags.bits()).to_be_bytes());
        });
    }

    /// Sets the window field, not scaled.
    pub fn set_window(&mut self, window: u16) {
        self.set(14, &window.to_be_bytes());
    }

    /// Sets the urgent pointer.
    pub fn set_urgent_pointer(&mut self, pointer: u16) {
        self.set(18, &pointer.to_be_bytes());
    }

    /// Sets TSval and TSecr. False if the packet has no timestamps.
    pub fn set_timestamps(&mut self, value: u32, echo: u32) -> bool {
        let mut found = false;
        self.edit_options(|options| {
            found = for_each_option(options, kind::TIMESTAMPS, |data| {
                if let Some((first, second)) = data.split_at_mut_checked(4)
                    && second.len() == 4
                {
                    first.copy_from_slice(&value.to_be_bytes());
                    second.copy_from_slice(&echo.to_be_bytes());
                }
            });
        });
        found && self.as_tcp().timestamps().is_some()
    }

    /// Adds a window scale option to a SYN, or changes the existing ones. All are changed, because readers differ on
    /// which one counts.
    ///
    /// The header grows by up to 4 bytes. Returns `NoRoom` without a change if there is no room, the packet is no SYN,
    /// or its options are malformed.
    pub fn add_syn_option_window_scale(&mut self, shift: u8) -> Result<(), NoRoom> {
        let tcp = self.as_tcp();
        if !tcp.flags().contains(Flags::SYN) {
            return Err(NoRoom);
        }
        if tcp.window_scale().is_some() {
            self.edit_options(|options| {
                for_each_option(options, kind::WINDOW_SCALE, |data| data.fill(shift));
            });
            return Ok(());
        }
        let end = Options::new(tcp.options()).end().ok_or(NoRoom)?;
        let old_len = tcp.options().len();
        // Padding behind an end-of-list option is room too.
        let new_len = (end + WINDOW_SCALE_LEN).next_multiple_of(4).max(old_len);
        self.grow_options(new_len)?;
        self.edit_options(|options| {
            // Four bytes if the list ended on a word boundary, which is the usual alignment.
            let at = if end + WINDOW_SCALE_LEN < new_len && end == old_len { end + 1 } else { end };
            options[end..].fill(kind::END);
            options[end..at].fill(kind::NOP);
            options[at..at + WINDOW_SCALE_LEN].copy_from_slice(&[kind::WINDOW_SCALE, 3, shift]);
        });
        Ok(())
    }

    /// Replaces the window scale option by no-operations. The header keeps its length.
    pub fn remove_window_scale(&mut self) {
        self.edit_options(|options| {
            while let Some(at) = Options::new(options).find(|o| o.kind == kind::WINDOW_SCALE).map(|o| o.at) {
                let len = usize::from(options[at + 1]);
                options[at..at + len].fill(kind::NOP);
            }
        });
    }

    /// Keeps the SACK blocks for which `keep(start, end)` is true and returns their number.
    ///
    /// Removed blocks are replaced by no-operations, and the option, too, if no block is left. The header keeps its
    /// length.
    pub fn retain_sack_blocks(&mut self, mut keep: impl FnMut(Seq, Seq) -> bool) -> usize {
        let mut kept_in_all = 0;
        if self.as_tcp().sack_blocks().next().is_none() {
            return 0;
        }
        self.edit_options(|options| {
            let mut from = 0;
            while let Some((at, len)) = next_sack(options, from) {
                let option = &mut options[at..at + len];
                from = at + len;
                let mut kept = 2;
                for block in (2..len).step_by(8) {
                    if keep(Seq(u32_at(option, block)), Seq(u32_at(option, block + 4))) {
                        option.copy_within(block..block + 8, kept);
                        kept += 8;
                        kept_in_all += 1;
                    }
                }
                let kept = if kept == 2 { 0 } else { kept };
                option[kept..].fill(kind::NOP);
                if kept > 0 {
                    option[1] = kept as u8;
                }
            }
        });
        kept_in_all
    }

    fn set(&mut self, at: usize, value: &[u8]) {
        self.packet.edit_tcp(at..at + value.len(), |bytes| bytes.copy_from_slice(value));
    }

    fn edit_options(&mut self, edit: impl FnOnce(&mut [u8])) {
        let end = usize::from(self.packet.header_len - self.packet.tcp_at);
        self.packet.edit_tcp(FIXED_LEN..end, edit);
    }

    /// Extends the option area to `new_len` bytes, a multiple of 4 and not less than before. New bytes are end-of-list
    /// options.
    fn grow_options(&mut self, new_len: usize) -> Result<(), NoRoom> {
        let packet = &mut *self.packet;
        let tcp_at = usize::from(packet.tcp_at);
        let old_len = usize::from(packet.header_len) - tcp_at - FIXED_LEN;
        let header_len = tcp_at + FIXED_LEN + new_len;
        let grown_ip_len = packet.ip_len() + new_len - old_len;
        if new_len > MAX_OPTIONS_LEN || header_len > HEADER_CAPACITY || grown_ip_len > usize::from(u16::MAX) {
            return Err(NoRoom);
        }
        let old_tcp_len = packet.tcp_len();
        packet.header[usize::from(packet.header_len)..header_len].fill(kind::END);
        packet.header_len = header_len as u8;
        packet.update_ip_len();
        packet.change_tcp_len(old_tcp_len);
        packet.edit_tcp(12..14, |bytes| bytes[0] = bytes[0] & 0x0f | ((FIXED_LEN + new_len) as u8 / 4) << 4);
        Ok(())
    }
}

/// Calls `edit` with the data of every option of this kind. False if there is none.
fn for_each_option(options: &mut [u8], kind: u8, mut edit: impl FnMut(&mut [u8])) -> bool {
    let mut from = 0;
    let mut found = false;
    while let Some((at, len)) = next_option(options, from, kind) {
        edit(&mut options[at + 2..at + len]);
        from = at + len;
        found = true;
    }
    found
}

/// The offset and length of the next option of this kind at or behind `from`. An option starts at `from`.
fn next_option(options: &[u8], from: usize, kind: u8) -> Option<(usize, usize)> {
    let option = Options::new(options.get(from..)?).find(|option| option.kind == kind)?;
    Some((from + option.at, option.data.len() + 2))
}

/// The next SACK option that consists of whole blocks.
fn next_sack(options: &[u8], from: usize) -> Option<(usize, usize)> {
    let mut from = from;
    loop {
        let (at, len) = next_option(options, from, kind::SACK)?;
        if len % 8 == 2 {
            return Some((at, len));
        }
        from = at + len;
    }
}

/// A TCP header without options.
const FIXED_LEN: usize = 20;

const WINDOW_SCALE_LEN: usize = 3;

const IPV6_HEADER_LEN: usize = 40;
