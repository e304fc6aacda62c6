//! The server's packets without data, each behind the data below its position.

use alloc::collections::VecDeque;

use paceline_wire::Packet;

use super::account::Account;
use super::ack_filter::ECN_FLAGS;
use crate::context::Context;

/// Packets without data that may wait behind data of a flow. Our choice: a server sends few beside its data. Of more the newest counts.
const PURE_ACKS_MAX: usize = 16;

/// Those that wait, each with the position that it follows.
#[derive(Debug, Default, serde::Serialize, serde::Deserialize)]
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

    /// One is to wait for the data below `start`. Returns it if it has to pass, without room for it.
    pub(super) fn push(
        &mut self,
        ctx: &Context<'_>,
        account: &Account,
        start: u64,
        packet: Packet,
    ) -> Option<Packet> {
        if self.0.len() < PURE_ACKS_MAX && account.has_room(ctx, Self::COST) {
            self.0.push_back((start, packet));
            return None;
        }
        self.replace(start, packet)
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

    /// Lets those go that have no data in front of them when all below `sent` has left.
    pub(super) fn release(&mut self, ctx: &mut Context<'_>, sent: u64) {
        while self.0.front().is_some_and(|(position, _)| *position <= sent)
            && let Some((_, packet)) = self.0.pop_front()
        {
            ctx.pass_to_client(packet);
        }
    }
}
