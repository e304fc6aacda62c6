//! A server's tail loss probe (RFC 8985, Section 7.3) whose bytes are kept here.
//!
//! A server that waits for an ACK for two round trips sends its last segment again, as it does whenever the link fades. Only a D-SACK tells it
//! that nothing was lost; without one it takes the probe for a repair and reduces its window (Section 7.4.2). So the copy
//! passes, where it would have been without a gateway: behind the first copy, and before what the server sends later. So does what a repair of
//! the server's overtook (downlink.rs).

use core::ops::Range;

use super::{Context, Flow};
use crate::retransmit_buffer::Chunk;

impl Flow {
    /// The server has sent its newest bytes again, or what a repair overtook has come.
    pub(super) fn on_tail_probe(&mut self, ctx: &mut Context<'_>, range: Range<u64>) {
        self.stream.tail_probe = Some(range);
        self.release_tail_probe(ctx);
    }

    /// Lets the probe go once the first copy has left. Like what else passes, it needs no room: a server sends one in two round trips.
    pub(super) fn release_tail_probe(&mut self, ctx: &mut Context<'_>) {
        let sent = self.board.sent();
        let Some(Range { start, end }) = self.stream.tail_probe.take_if(|range| range.end <= sent) else {
            return;
        };
        // Of what is acknowledged or no longer kept nothing has to be told.
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
