//! Moves data of one leg to the other, then the end of the stream, then a reset. The ends expect this order.

use paceline_tcp::{CloseReason, Connection};
use paceline_wire::Instant;

use super::split_flow::{Bounds, SplitFlow};

impl SplitFlow {
    /// Moves what can be moved. In front of a leg waits no more than it sends within the other leg's RTT and a target.
    /// If gaps in the server's data last longer than the target, the longest gap replaces it.
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
        // Nearly every packet is of a download. So the demand of the server's leg is computed only if there is data to
        // pass.
        let uplink = match client.readable() {
            0 => 0,
            _ => server.demand(client.srtt() + bounds.target, u64::MAX, u64::MAX),
        };
        pass(now, uplink, client, server);
        pass_failure(server, client);
        pass_failure(client, server);
    }
}

/// Limits the window shown to the server. It is the demand of the client's leg within the server's RTT and a target,
/// less the data already here. So the data in flight and waiting is no more than the client's leg needs to stay busy.
/// No queue moves from the link into the gateway (design, 2). The demand is at least two segments of the server.
/// Segments of the client's leg may be smaller, and a window below a server's segment is never offered (RFC 9293,
/// Section 3.8.6.2.2).
fn show(bounds: &Bounds, demand: u64, server: &mut Connection, client: &Connection) {
    let waiting = server.readable() + client.unsent();
    let demand = demand.max(2 * server.peer_segment());
    server.limit_window(demand.saturating_sub(waiting).min(bounds.window));
}

/// Passes bytes if there is room, but no more than the sender needs until more can arrive. Unread bytes keep the window
/// of their sender closed.
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

/// Cuts `room` at the end of a segment. Our choice: otherwise the rest would leave as a short segment, and later
/// segments would straddle those of the other end. It does not cut to zero if nothing is in flight whose arrival would
/// make room.
fn whole_segments(room: u64, from: &Connection, to: &Connection) -> u64 {
    let left_over = (to.unsent() + room) % to.segment().max(1);
    if room >= from.readable() || (room < left_over && to.unacknowledged() == 0) {
        room
    } else {
        room.saturating_sub(left_over)
    }
}

/// Resets the other end if one end has reset its connection, or is gone. Its earlier data is delivered first, as if the
/// reset had come behind it. The reset then has the number that the other end expects.
fn pass_failure(from: &Connection, to: &mut Connection) {
    let failed = from.close_reason().is_some_and(|reason| reason != CloseReason::Finished);
    let delivered = from.readable() == 0 && to.unacknowledged() == 0;
    if failed && delivered && !to.is_closed() {
        to.abort();
    }
}
