//! A server's tail loss probe (RFC 8985, Section 7.3) whose bytes are kept here.
//!
//! A server that waits for an ACK for two round trips sends its last segment again. That happens whenever the link
//! fades. Only a D-SACK tells it that nothing was lost. Without one it takes the probe for a repair and reduces its
//! window (Section 7.4.2). So the copy passes at the place that it has without a gateway: behind the first copy, and
//! before later data. A packet that a repair of the server's overtook passes, too (downlink.rs).

use core::ops::Range;

use super::{Context, Flow};
use crate::retransmit_buffer::Chunk;

impl Flow {
    /// Takes the server's newest bytes, which it has sent again, or a packet that its repair overtook.
    pub(super) fn on_tail_probe(&mut self, ctx: &mut Context<'_>, range: Range<u64>) {
        self.stream.tail_probe = Some(range);
        self.release_tail_probe(ctx);
    }

    /// Passes the probe once the first copy has left. It waits for no room: a server sends one in two round trips.
    pub(super) fn release_tail_probe(&mut self, ctx: &mut Context<'_>) {
        let sent = self.board.sent();
        let Some(Range { start, end }) = self.stream.tail_probe.take_if(|range| range.end <= sent) else {
            return;
        };
        // Data that is acknowledged or no longer kept needs no D-SACK.
        let start = start.max(self.board.una());
        let holds = |chunk: &&Chunk| chunk.start <= start && start < end && end <= chunk.end;
        let Some(chunk) = self.buffer.from(start).filter(holds) else { return };
        let mut packet = chunk.packet(start, end);
        self.tell_no_newer(&mut packet);
        self.passed_on.refresh(&mut packet);
        self.filter.expect_reply();
        ctx.pass_to_client(packet);
    }
}
