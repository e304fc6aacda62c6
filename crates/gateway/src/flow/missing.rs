//! What the client lacks of the server's stream, and who can send it again.

use super::server_stream::ServerStream;
use crate::retransmit_buffer::RetransmitBuffer;
use crate::scoreboard::Scoreboard;

/// The stream between its ends: the client's reports, the data kept here, and how far the server has come.
pub(super) struct MissingData<'a> {
    board: &'a Scoreboard,
    buffer: &'a RetransmitBuffer,
    received: u64,
}

impl<'a> MissingData<'a> {
    pub(super) fn of(board: &'a Scoreboard, buffer: &'a RetransmitBuffer, stream: &ServerStream) -> Self {
        MissingData { board, buffer, received: stream.received() }
    }

    /// First position that the client has not acknowledged.
    pub(super) fn una(&self) -> u64 {
        self.board.una()
    }

    /// Position after the server's newest byte.
    pub(super) fn received(&self) -> u64 {
        self.received
    }

    /// True if something has not come from the server.
    pub(super) fn has_gap(&self) -> bool {
        self.buffer.has_gap(self.board.una(), self.received)
    }

    /// True if something is missing here, or the server's repair of it is in flight to the client. Then the client's
    /// reports are about losses before the gateway, too. A server that hears nothing of them for a round trip stands
    /// still (BBR) or times out.
    pub(super) fn server_is_repairing(&self) -> bool {
        self.board.has_server_repairs() || self.has_gap()
    }

    /// True if the byte at `position` has left for the client and can be sent again.
    pub(super) fn is_repaired_here(&self, position: u64) -> bool {
        position < self.board.sent() && self.buffer.at(position).is_some()
    }

    /// Returns the lowest position that has left, is kept, and is not reported by the client.
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
