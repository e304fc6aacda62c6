//! What one side has goes to the other: bytes, the end of the stream, a reset. In this order, as the ends would have it.

use paceline_tcp::{CloseReason, Connection};
use paceline_wire::{Duration, Instant};

use super::pair::Pair;

impl Pair {
    /// Moves on whatever can be moved. What leaves a side within the other's RTT and `target` may wait in front of it.
    pub(super) fn relay(&mut self, now: Instant, target: Duration) {
        let Some(client) = &mut self.client else { return };
        let (server, client) = (&mut self.server.connection, &mut client.connection);
        pass(now, target, server, client);
        pass(now, target, client, server);
        pass_failure(now, server, client);
        pass_failure(now, client, server);
    }
}

/// Bytes as far as there is room: what is not read here keeps the window of who sent it closed. No more than what the sender
/// needs until more can have come: what waits here is delay, and no queue is to be moved from the link into the gateway (design, 2).
fn pass(now: Instant, target: Duration, from: &mut Connection, to: &mut Connection) {
    let most = to.demand(from.srtt() + target);
    while from.readable() > 0 {
        let room = to.room().min(most.saturating_sub(to.unsent()));
        let room = usize::try_from(room).unwrap_or(usize::MAX);
        let Some(payload) = from.read(now, room) else { break };
        to.write(&payload);
    }
    if from.is_read_finished() {
        to.close();
    }
}

/// One end has reset its connection, or is gone. What it sent before is delivered first, as it would be if the reset had come
/// behind it; then the reset has the number that the other end expects.
fn pass_failure(now: Instant, from: &Connection, to: &mut Connection) {
    let failed = from.close_reason().is_some_and(|reason| reason != CloseReason::Finished);
    let delivered = from.readable() == 0 && to.unacknowledged() == 0;
    if failed && delivered && !to.is_closed() {
        to.abort(now);
    }
}
