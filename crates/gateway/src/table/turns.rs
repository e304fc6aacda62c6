//! Decides who sends next: the flows of a subscriber take turns in its circles, the subscribers in the gateway's.

use paceline_wire::Instant;

use super::Table;
use crate::config::ScheduleMode;
use crate::ids::{EntryId, SubscriberId};
use crate::schedule::Departure;
use crate::share::Share;

impl Table {
    /// Puts the flow into the circle of its present class. If it is new there, it goes to the back.
    pub(super) fn join(&mut self, id: EntryId, now: Instant) {
        let entry = &mut self.entries[id];
        let subscriber = &mut self.subscribers[entry.scheduled.subscriber()];
        let class = entry.share.class(now);
        let free = entry.scheduled.needs_no_room();
        let repairing = !free && entry.scheduled.head_is_lost();
        subscriber.repairing += u32::from(repairing);
        subscriber.repairing -= u32::from(entry.repairing);
        entry.repairing = repairing;
        entry.departs_at = entry.share.owed_at(now).into_iter().chain(subscriber.share.owed_at(now)).min();
        let before = (entry.class.replace(class), core::mem::replace(&mut entry.free, free));
        if before != (Some(class), free) {
            if let (Some(class), free) = before {
                subscriber.circles(free).remove(class, &mut self.entries, id);
            }
            subscriber.circles(free).push_back(class, &mut self.entries, id);
        }
    }

    /// Takes the flow out of its circle: it has nothing to send, or must wait.
    pub(super) fn leave(&mut self, id: EntryId) {
        let entry = &mut self.entries[id];
        let subscriber = &mut self.subscribers[entry.scheduled.subscriber()];
        subscriber.repairing -= u32::from(entry.repairing);
        entry.repairing = false;
        entry.departs_at = None;
        entry.share.leave_turn();
        if let Some(class) = entry.class.take() {
            subscriber.circles(entry.free).remove(class, &mut self.entries, id);
        }
    }

    /// Puts a subscriber that wants to send into the circle of its present class.
    pub(super) fn activate(&mut self, index: SubscriberId, now: Instant) {
        let subscriber = &mut self.subscribers[index];
        if subscriber.senders() == 0 {
            return;
        }
        let class = subscriber.share.class(now);
        if subscriber.class != Some(class) {
            self.deactivate(index);
            self.subscribers[index].class = Some(class);
            self.active.push_back(class, &mut self.subscribers, index);
        }
    }

    pub(super) fn deactivate(&mut self, index: SubscriberId) {
        if let Some(class) = self.subscribers[index].class.take() {
            self.active.remove(class, &mut self.subscribers, index);
        }
        self.list_for_turn(index);
    }

    /// Returns the flow whose packet leaves next, and the most bytes of that packet.
    ///
    /// Subscribers take turns in the order of [`Share`], and so do the flows of each. One that cannot send is passed
    /// over. One moves to the back after as many packets as its weight (Section 7.2). A flow that needs no room does
    /// not wait behind those that need it.
    pub(crate) fn next_sender(&mut self, now: Instant, mode: ScheduleMode) -> Option<(EntryId, u64)> {
        while let Some((class, index)) = self.active.front() {
            if let Some(at) = self.capacity.held_until(now) {
                let (_, id) = self.subscribers[index].front(true)?;
                self.look_again(id, at);
                return None;
            }
            if let Some(next) = self.next_of_subscriber(index, now, mode) {
                if self.subscribers[index].share.take_turn() {
                    self.active.rotate(class, &mut self.subscribers);
                }
                return Some(next);
            }
            // An ACK, a packet or a timer brings it back.
            self.deactivate(index);
        }
        None
    }

    fn next_of_subscriber(
        &mut self,
        index: SubscriberId,
        now: Instant,
        mode: ScheduleMode,
    ) -> Option<(EntryId, u64)> {
        let mut has_room = true;
        loop {
            let subscriber = &mut self.subscribers[index];
            let (class, id) = subscriber.front(has_room)?;
            if let Some(at) = subscriber.share.held_until(now) {
                self.look_again(id, at);
                return None;
            }
            let entry = &mut self.entries[id];
            let waiting = match entry.scheduled.next_departure(mode, now) {
                Some(Departure::Now) => entry.share.held_until(now),
                Some(Departure::At(at)) => Some(at),
                _ => {
                    self.leave(id);
                    continue;
                }
            };
            if let Some(at) = waiting {
                self.leave(id);
                self.look_again(id, at);
                continue;
            }
            let bytes = entry.scheduled.next_bytes(subscriber.downlink.quantum());
            if entry.free || subscriber.downlink.fits(now, bytes) {
                return Some(self.grant(class, id, now));
            }
            if let Some((class, id)) = self.next_repair(index, now, mode) {
                return Some(self.grant(class, id, now));
            }
            if let Some(at) = self.subscribers[index].downlink.room_at(now, bytes) {
                self.look_again(id, at);
            }
            has_room = false;
        }
    }

    /// Returns a flow whose client waits for a retransmission, if one is due. It needs no room, and waits behind
    /// nobody.
    fn next_repair(
        &mut self,
        index: SubscriberId,
        now: Instant,
        mode: ScheduleMode,
    ) -> Option<(usize, EntryId)> {
        let subscriber = &mut self.subscribers[index];
        if subscriber.repairing == 0 {
            return None;
        }
        let found = subscriber.circles(false).find(&mut self.entries, |entry| {
            entry.repairing
                && entry.scheduled.next_departure(mode, now) == Some(Departure::Now)
                && entry.share.held_until(now).is_none()
        });
        let (class, id) = found?;
        let due = subscriber.downlink.repair_due();
        if due > now {
            // Perhaps no more ACK comes that would make room.
            self.look_again(id, due);
            return None;
        }
        subscriber.downlink.on_repair_without_room(now);
        Some((class, id))
    }

    /// Gives the turn to the flow at the front of `class`. Returns the flow and the most bytes of its packet.
    fn grant(&mut self, class: usize, id: EntryId, now: Instant) -> (EntryId, u64) {
        let entry = &mut self.entries[id];
        let subscriber = &mut self.subscribers[entry.scheduled.subscriber()];
        let bytes = entry.scheduled.next_bytes(subscriber.downlink.quantum());
        let limit = even_share(subscriber.downlink.room(now), subscriber.senders()).max(bytes);
        let shares = [&entry.share, &subscriber.share, &self.capacity];
        let limit = shares.into_iter().map(Share::allowance).fold(limit, u64::min);
        if entry.share.take_turn() {
            subscriber.free_had_turn = entry.free;
            subscriber.circles(entry.free).rotate(class, &mut self.entries);
        }
        (id, limit)
    }

    /// Lets the schedule look at the flow again at `at`.
    pub(super) fn look_again(&mut self, id: EntryId, at: Instant) {
        let entry = &mut self.entries[id];
        entry.departs_at = Some(entry.departs_at.map_or(at, |other| other.min(at)));
        self.timers.set(&mut entry.armed, id, at);
    }
}

/// Returns the most bytes of a packet if `room` bytes are left and `flows` flows want to send. A single flow sends
/// whole super-packets. Each of several flows sends an eighth of an even share, so that short intervals are shared
/// evenly, too.
fn even_share(room: u64, flows: u32) -> u64 {
    if flows <= 1 { room } else { room / (8 * u64::from(flows)) }
}
