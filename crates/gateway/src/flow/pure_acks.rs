//! The server's packets without data. Each waits behind the data below its position.

use alloc::collections::VecDeque;

use paceline_wire::Packet;

use super::account::Account;
use super::ack_filter::ECN_FLAGS;
use crate::context::Context;

/// Packets without data that may wait behind data of a flow. Our choice: a server sends few beside its data. If more
/// come, the newest replaces the one before it.
const PURE_ACKS_MAX: usize = 16;

/// The waiting packets, each with the position that it follows.
#[derive(Debug, Default, serde::Serialize, serde::Deserialize)]
pub(super) struct PureAcks(VecDeque<(u64, Packet)>);

impl PureAcks {
    /// Memory of one packet.
    const COST: usize = size_of::<(u64, Packet)>();

    /// Bytes of memory that they take.
    pub(super) fn memory(&self) -> u64 {
        (self.0.len() * Self::COST) as u64
    }

    /// The next packet to leave.
    pub(super) fn front(&self) -> Option<&Packet> {
        self.0.front().map(|(_, packet)| packet)
    }

    /// Lets a packet wait for the data below `start`. Returns it if there is no room and it has to pass.
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

    /// Replaces the newest waiting packet by a later one, which says all that it said. Acknowledgements are cumulative
    /// (RFC 9293, Section 3.4), and SACK blocks come again (RFC 2018, Section 4). Returns the packet if none waits or
    /// the ECN marks differ.
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

    /// Passes the packets that have no waiting data in front of them: all below `sent` has left.
    pub(super) fn release(&mut self, ctx: &mut Context<'_>, sent: u64) {
        while self.0.front().is_some_and(|(position, _)| *position <= sent)
            && let Some((_, packet)) = self.0.pop_front()
        {
            ctx.pass_to_client(packet);
        }
    }
}
