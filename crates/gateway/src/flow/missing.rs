//! What the client lacks of the server's stream, and who can send it again.

use super::server_stream::ServerStream;
use crate::retransmit_buffer::RetransmitBuffer;
use crate::scoreboard::Scoreboard;

/// The stream between its ends: what the client reports, what is kept here, and how far it has come.
pub(super) struct Missing<'a> {
    board: &'a Scoreboard,
    buffer: &'a RetransmitBuffer,
    received: u64,
}

impl<'a> Missing<'a> {
    pub(super) fn of(board: &'a Scoreboard, buffer: &'a RetransmitBuffer, stream: &ServerStream) -> Self {
        Missing { board, buffer, received: stream.received() }
    }

    /// The client has all below.
    pub(super) fn una(&self) -> u64 {
        self.board.una()
    }

    /// Position after the server's newest byte.
    pub(super) fn received(&self) -> u64 {
        self.received
    }

    /// Something has not come from the server.
    pub(super) fn has_gap(&self) -> bool {
        self.buffer.has_gap(self.board.una(), self.received)
    }

    /// Something is missing here, or the server's repair of it is on its way to the client: what the client reports is about losses before
    /// the gateway, too, and a server that heard nothing of it for a round trip would stand still (BBR) or time out.
    pub(super) fn server_is_repairing(&self) -> bool {
        self.board.has_server_repairs() || self.has_gap()
    }

    /// The byte at `position` has left for the client and can be sent again.
    pub(super) fn is_repaired_here(&self, position: u64) -> bool {
        position < self.board.sent() && self.buffer.at(position).is_some()
    }

    /// The lowest position, not reported by the client, that has left and is kept.
    pub(super) fn lowest_repairable(&self, ack: u64) -> Option<u64> {
        let mut position = ack;
        // A step skips a gap of the buffer or a reported range; a client reports few.
        for _ in 0..8 {
            let chunk = self.buffer.from(position)?;
            position = position.max(chunk.start);
            if position >= self.board.sent() {
                return None;
            }
            match self.board.sacked_until(position) {
                Some(end) => position = end,
                None => return Some(position),
            }
        }
        Some(position)
    }
}
