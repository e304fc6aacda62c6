//! What one leg has goes to the other: bytes, the end of the stream, a reset. In this order, as the ends would have it.

use paceline_tcp::{CloseReason, Connection};
use paceline_wire::Instant;

use super::split_flow::{Bounds, SplitFlow};

impl SplitFlow {
    /// Moves on whatever can be moved. What leaves a leg within the other's RTT and a target may wait in front of it,
    /// and where gaps come from the server, within as long as they take.
    pub(super) fn relay(&mut self, now: Instant) {
        let (bounds, Some(client)) = (self.bounds, &mut self.client) else { return };
        let (server, client) = (&mut self.server.connection, &mut client.connection);
        let rtt = server.round_trip();
        let wait = bounds.target.max(self.gaps.room(now, rtt));
        let downlink = client.demand(rtt + wait, bounds.in_flight, bounds.at_once);
        pass(now, downlink, server, client);
        if bounds.window > 0 {
            show(&bounds, downlink, server, client);
        }
        // Nearly every packet is of a download: what the server's leg takes is asked for only where there is something to pass.
        let uplink = match client.readable() {
            0 => 0,
            _ => server.demand(client.srtt() + bounds.target, u64::MAX, u64::MAX),
        };
        pass(now, uplink, client, server);
        pass_failure(server, client);
        pass_failure(client, server);
    }
}

/// The window that the server is shown: what the client's leg takes within the server's RTT and a target, less what is here
/// already. So what is on its way and what waits are together no more than the client's leg needs for not to run dry, and no
/// queue is moved from the link into the gateway (design, 2). Two segments of the server's at least: those of the client's leg may be
/// smaller, and less than one of the server's is never offered (RFC 9293, Section 3.8.6.2.2).
fn show(bounds: &Bounds, demand: u64, server: &mut Connection, client: &Connection) {
    let waiting = server.readable() + client.unsent();
    let demand = demand.max(2 * server.peer_segment());
    server.limit_window(demand.saturating_sub(waiting).min(bounds.window));
}

/// Bytes as far as there is room, but no more than what the sender needs until more can have come: what is not read here keeps the
/// window of who sent it closed.
fn pass(now: Instant, most: u64, from: &mut Connection, to: &mut Connection) {
    while from.readable() > 0 {
        let room = whole_segments(to.room().min(most.saturating_sub(to.unsent())), from, to);
        let room = usize::try_from(room).unwrap_or(usize::MAX);
        let Some(payload) = from.read(now, room) else { break };
        to.write(&payload);
    }
    if from.is_read_finished() {
        to.close();
    }
}

/// Our choice: what is cut is cut where a segment will end, because what is left over would leave as a short one, and segments behind it
/// would lie across what the other end sent as one. Not where nothing is on its way, whose arrival would make more room.
fn whole_segments(room: u64, from: &Connection, to: &Connection) -> u64 {
    let left_over = (to.unsent() + room) % to.segment().max(1);
    if room >= from.readable() || (room < left_over && to.unacknowledged() == 0) {
        room
    } else {
        room.saturating_sub(left_over)
    }
}

/// One end has reset its connection, or is gone. What it sent before is delivered first, as it would be if the reset had come
/// behind it; then the reset has the number that the other end expects.
fn pass_failure(from: &Connection, to: &mut Connection) {
    let failed = from.close_reason().is_some_and(|reason| reason != CloseReason::Finished);
    let delivered = from.readable() == 0 && to.unacknowledged() == 0;
    if failed && delivered && !to.is_closed() {
        to.abort();
    }
}
