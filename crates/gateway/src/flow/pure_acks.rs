//! The server's packets without data, each behind the data below its position.

use alloc::collections::VecDeque;

use paceline_wire::{Flags, Packet};

use super::ack_filter::ECN_FLAGS;
use super::passed_on::timestamp_of;
use super::{Context, Flow};
use crate::status::FlowStage;

/// Packets without data that may wait behind data of a flow. Our choice: a server sends few beside its data. Of more the newest counts.
const PURE_ACKS_MAX: usize = 16;

/// Those that wait, each with the position that it follows.
#[derive(Debug, Default)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
pub(super) struct PureAcks(VecDeque<(u64, Packet)>);

impl PureAcks {
    /// Memory of one.
    const COST: usize = size_of::<(u64, Packet)>();

    /// Bytes of memory that they take.
    pub(super) fn memory(&self) -> u64 {
        (self.0.len() * Self::COST) as u64
    }

    /// The next to go.
    pub(super) fn front(&self) -> Option<&Packet> {
        self.0.front().map(|(_, packet)| packet)
    }

    fn is_full(&self) -> bool {
        self.0.len() >= PURE_ACKS_MAX
    }

    /// No room to wait: the packet takes the place of the one that came before it, since it says all that one said (RFC 9293, Section 3.4:
    /// acknowledgements are cumulative; RFC 2018, Section 4: SACK blocks come again). Not if that one brought ECN marks of its own, or
    /// there is none. Returns a packet that has no place.
    fn replace(&mut self, start: u64, packet: Packet) -> Option<Packet> {
        let marks = |packet: &Packet| packet.tcp().map(|tcp| tcp.flags() & ECN_FLAGS);
        match self.0.back_mut() {
            Some(back) if marks(&back.1) == marks(&packet) => {
                *back = (start, packet);
                None
            }
            _ => Some(packet),
        }
    }

    /// The next of those that have no data in front of them when all below `sent` has left.
    fn pop_until(&mut self, sent: u64) -> Option<Packet> {
        self.0.front().filter(|(position, _)| *position <= sent)?;
        self.0.pop_front().map(|(_, packet)| packet)
    }
}

impl Flow {
    /// No data: keep-alives and window probes go at once, having an old sequence number; anything else keeps its
    /// place behind the data that waits.
    pub(super) fn on_pure_ack(&mut self, ctx: &mut Context<'_>, flags: Flags, start: u64, packet: Packet) {
        let is_reset = flags.contains(Flags::RST);
        if start < self.stream.received() && !is_reset {
            self.filter.expect_reply();
            self.note_passed(start, timestamp_of(&packet));
            return ctx.pass_to_client(packet);
        }
        if self.board.sent() >= start || self.buffer.is_empty() {
            ctx.pass_to_client(packet);
        } else if !self.pure_acks.is_full() && self.has_room(ctx, PureAcks::COST) {
            self.pure_acks.0.push_back((start, packet));
        } else if let Some(packet) = self.pure_acks.replace(start, packet) {
            ctx.pass_to_client(packet);
        }
        if is_reset {
            self.close(ctx, FlowStage::Reset);
        }
    }

    /// Lets all of them go.
    pub(super) fn flush_pure_acks(&mut self, ctx: &mut Context<'_>) {
        while let Some(packet) = self.pure_acks.pop_until(u64::MAX) {
            ctx.pass_to_client(packet);
        }
    }

    /// Lets those go that no longer have data in front of them.
    pub(super) fn release_pure_acks(&mut self, ctx: &mut Context<'_>) {
        while let Some(packet) = self.pure_acks.pop_until(self.board.sent()) {
            ctx.pass_to_client(packet);
        }
    }
}
