//! TCP options: reading them in place, and building them.

use crate::seq::Seq;

/// Iterates over the options of a TCP header. Stops at the end of the list and at a malformed option.
#[derive(Clone, Copy)]
pub(super) struct Options<'a> {
    bytes: &'a [u8],
    at: usize,
}

/// One option other than end-of-list and no-operation.
#[derive(Clone, Copy)]
pub(super) struct TcpOption<'a> {
    pub(super) kind: u8,
    /// Offset of the option's kind byte in the option area.
    pub(super) at: usize,
    /// The bytes after kind and length.
    pub(super) data: &'a [u8],
}

impl<'a> Options<'a> {
    pub(super) fn new(bytes: &'a [u8]) -> Self {
        Options { bytes, at: 0 }
    }

    /// The end of the list, by its end-of-list option or with the header. `None` if it is malformed.
    pub(super) fn end(mut self) -> Option<usize> {
        while self.next().is_some() {}
        matches!(self.bytes.get(self.at), None | Some(&kind::END)).then_some(self.at)
    }
}

impl<'a> Iterator for Options<'a> {
    type Item = TcpOption<'a>;

    fn next(&mut self) -> Option<TcpOption<'a>> {
        while self.bytes.get(self.at) == Some(&kind::NOP) {
            self.at += 1;
        }
        let &[kind, len, ..] = self.bytes.get(self.at..)? else { return None };
        if kind == kind::END {
            return None;
        }
        let data = self.bytes.get(self.at + 2..self.at + usize::from(len))?;
        let option = TcpOption { kind, at: self.at, data };
        self.at += usize::from(len);
        Some(option)
    }
}

/// The options of a segment to be built. Options beyond 40 bytes are left out, SACK blocks first.
#[derive(Clone, Copy, Default, PartialEq, Eq, Debug)]
pub struct TcpOptionsRepr {
    /// Maximum segment size.
    pub mss: Option<u16>,
    /// Window scale shift.
    pub window_scale: Option<u8>,
    /// SACK-permitted.
    pub sack_permitted: bool,
    /// TSval and TSecr.
    pub timestamps: Option<(u32, u32)>,
    /// SACK blocks.
    pub sack_blocks: SackBlocks,
    /// Further options as header bytes.
    pub extra: &'static [u8],
}

/// Up to four SACK blocks in wire order. Each extends from its first sequence number to the one after its last.
#[derive(Clone, Copy, Default, PartialEq, Eq, Debug)]
pub struct SackBlocks {
    blocks: [(Seq, Seq); MAX_SACK_BLOCKS],
    len: u8,
}

impl SackBlocks {
    /// Adds a block. False if there are four already.
    pub fn push(&mut self, start: Seq, end: Seq) -> bool {
        match self.blocks.get_mut(usize::from(self.len)) {
            Some(block) => {
                *block = (start, end);
                self.len += 1;
                true
            }
            None => false,
        }
    }

    /// The blocks.
    pub fn as_slice(&self) -> &[(Seq, Seq)] {
        &self.blocks[..usize::from(self.len)]
    }
}

/// Takes the first four.
impl FromIterator<(Seq, Seq)> for SackBlocks {
    fn from_iter<I: IntoIterator<Item = (Seq, Seq)>>(blocks: I) -> Self {
        let mut all = SackBlocks::default();
        for (start, end) in blocks.into_iter().take(MAX_SACK_BLOCKS) {
            all.push(start, end);
        }
        all
    }
}

/// Takes the first four.
impl From<&[(Seq, Seq)]> for SackBlocks {
    fn from(blocks: &[(Seq, Seq)]) -> Self {
        blocks.iter().copied().collect()
    }
}

impl TcpOptionsRepr {
    /// Writes the option area, padded to whole words. Returns its length in bytes.
    pub(super) fn encode(&self, bytes: &mut [u8; MAX_OPTIONS_LEN]) -> usize {
        if let (Some(timestamps), true) = (self.timestamps, self.only_timestamps()) {
            return encode_timestamps(bytes, timestamps);
        }
        bytes.fill(kind::END);
        let mut area = Area { bytes, len: 0 };
        if let Some(mss) = self.mss {
            area.push(&[&[kind::MSS, 4], &mss.to_be_bytes()]);
        }
        if self.sack_permitted {
            // Before timestamps it takes the place of two bytes of padding. Without them it is aligned (RFC 7323,
            // Appendix A; as Linux does).
            if self.timestamps.is_none() {
                area.push(&[&[kind::NOP, kind::NOP]]);
            }
            area.push(&[&[kind::SACK_PERMITTED, 2]]);
        }
        if let Some((value, echo)) = self.timestamps {
            if area.len.is_multiple_of(4) {
                area.push(&[&[kind::NOP, kind::NOP]]);
            }
            area.push(&[&[kind::TIMESTAMPS, 10], &value.to_be_bytes(), &echo.to_be_bytes()]);
        }
        if let Some(shift) = self.window_scale {
            area.push(&[&[kind::NOP, kind::WINDOW_SCALE, 3, shift]]);
        }
        area.push(&[self.extra]);
        area.push_sack(self.sack_blocks.as_slice());
        area.len.next_multiple_of(4)
    }

    /// True if it has only timestamps, as nearly all segments.
    fn only_timestamps(&self) -> bool {
        self.mss.is_none()
            && self.window_scale.is_none()
            && !self.sack_permitted
            && self.sack_blocks.len == 0
            && self.extra.is_empty()
    }
}

/// Writes timestamps with the usual alignment (RFC 7323, Appendix A).
#[inline]
pub(super) fn encode_timestamps(bytes: &mut [u8; MAX_OPTIONS_LEN], (value, echo): (u32, u32)) -> usize {
    bytes[..4].copy_from_slice(&[kind::NOP, kind::NOP, kind::TIMESTAMPS, 10]);
    bytes[4..8].copy_from_slice(&value.to_be_bytes());
    bytes[8..12].copy_from_slice(&echo.to_be_bytes());
    12
}

struct Area<'a> {
    bytes: &'a mut [u8; MAX_OPTIONS_LEN],
    len: usize,
}

impl Area<'_> {
    /// Appends all of `parts`, or nothing.
    fn push(&mut self, parts: &[&[u8]]) {
        let len: usize = parts.iter().map(|part| part.len()).sum();
        if self.len + len > MAX_OPTIONS_LEN {
            return;
        }
        for part in parts {
            self.bytes[self.len..self.len + part.len()].copy_from_slice(part);
            self.len += part.len();
        }
    }

    fn push_sack(&mut self, blocks: &[(Seq, Seq)]) {
        let room = (MAX_OPTIONS_LEN - self.len).saturating_sub(4) / 8;
        let blocks = &blocks[..blocks.len().min(room)];
        if blocks.is_empty() {
            return;
        }
        self.push(&[&[kind::NOP, kind::NOP, kind::SACK, (2 + 8 * blocks.len()) as u8]]);
        for (start, end) in blocks {
            self.push(&[&start.0.to_be_bytes(), &end.0.to_be_bytes()]);
        }
    }
}

/// A data offset of 15 words leaves 40 bytes behind the fixed header.
pub(super) const MAX_OPTIONS_LEN: usize = 40;

const MAX_SACK_BLOCKS: usize = 4;

/// Option kinds used here.
pub(super) mod kind {
    pub(crate) const END: u8 = 0;
    pub(crate) const NOP: u8 = 1;
    pub(crate) const MSS: u8 = 2;
    pub(crate) const WINDOW_SCALE: u8 = 3;
    pub(crate) const SACK_PERMITTED: u8 = 4;
    pub(crate) const SACK: u8 = 5;
    pub(crate) const TIMESTAMPS: u8 = 8;
    pub(crate) const MD5: u8 = 19;
    pub(crate) const AO: u8 = 29;
    pub(crate) const MPTCP: u8 = 30;
    pub(crate) const FAST_OPEN: u8 = 34;
    pub(crate) const EXPERIMENT_1: u8 = 253;
    pub(crate) const EXPERIMENT_2: u8 = 254;
}
