//! Half-open flows, oldest first. When places are short, the oldest is removed.
//!
//! Anybody can send SYNs, with any addresses. As in nf_conntrack (early_drop), half-open flows are removed before
//! answered ones, so a flood takes only the places of its own SYNs. A SYN stays in its queue longer than an honest
//! handshake takes, if the queue is longer than a flood's SYNs of one round trip. Each subscriber and each network of
//! servers has its own limit, so that no single one fills the queue.

use alloc::collections::VecDeque;
use core::net::IpAddr;

use crate::ids::{EntryId, SubscriberId};
use crate::keyed::{Key, Map, rekeyed};

/// The flows that a queue holds.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) enum Group {
    /// All half-open flows.
    All,
    /// Those of one subscriber.
    Subscriber(SubscriberId),
    /// Those with servers of one network.
    Network(IpAddr),
}

/// A place in the table, and the serial number of the flow that has it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Ticket {
    pub(crate) place: EntryId,
    pub(crate) serial: u32,
}

#[derive(Debug, Default)]
struct Queue {
    tickets: VecDeque<Ticket>,
    /// Number of tickets whose flows are still half open.
    live: u32,
}

/// A queue for each group.
#[derive(Debug, Default)]
pub(crate) struct HalfOpen {
    queues: Map<Group, Queue>,
}

/// Number of outdated tickets that a queue may always keep. Our choice.
const SLACK: usize = 64;
/// Our choice: a subscriber may have a 64th of all places half open, a network of servers four times as many. A client
/// that opens 64 flows at once can wait for some of them.
const SUBSCRIBER_PART: usize = 64;
const GROUP_MIN: usize = 64;

impl HalfOpen {
    /// Hashes with another key.
    pub(crate) fn set_key(&mut self, key: Key) {
        rekeyed(&mut self.queues, key);
    }

    /// Adds a flow that opens. `is_live` tells which tickets are still half open.
    pub(crate) fn add(&mut self, groups: [Group; 3], ticket: Ticket, is_live: impl Fn(Ticket) -> bool) {
        for group in groups {
            let queue = self.queues.entry(group).or_default();
            // The walk is rare: once in about as many calls as the queue has tickets.
            if queue.tickets.len() > 2 * queue.live as usize + SLACK {
                queue.tickets.retain(|&ticket| is_live(ticket));
            }
            queue.tickets.push_back(ticket);
            queue.live += 1;
        }
    }

    /// Removes a flow that is no longer half open.
    pub(crate) fn leave(&mut self, groups: [Group; 3]) {
        for group in groups {
            if let Some(queue) = self.queues.get_mut(&group) {
                queue.live = queue.live.saturating_sub(1);
                if queue.live == 0 {
                    self.queues.remove(&group);
                }
            }
        }
    }

    /// Returns the place of the oldest half-open flow of a group.
    pub(crate) fn oldest(&mut self, group: Group, is_live: impl Fn(Ticket) -> bool) -> Option<EntryId> {
        let tickets = &mut self.queues.get_mut(&group)?.tickets;
        while let Some(&ticket) = tickets.front() {
            if is_live(ticket) {
                return Some(ticket.place);
            }
            tickets.pop_front();
        }
        None
    }

    /// Number of half-open flows.
    pub(crate) fn len(&self) -> usize {
        self.queues.get(&Group::All).map_or(0, |queue| queue.live as usize)
    }

    /// True if a group has as many half-open flows as it may, in a table of `places`.
    pub(crate) fn is_full(&self, group: Group, places: usize) -> bool {
        let most = match group {
            Group::All => places,
            Group::Subscriber(_) => places / SUBSCRIBER_PART,
            Group::Network(_) => places / SUBSCRIBER_PART * 4,
        };
        self.queues.get(&group).is_some_and(|queue| queue.live as usize >= most.max(GROUP_MIN))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::ids::Id;

    #[test]
    fn the_oldest_goes_first_and_what_is_over_does_not_pile_up() {
        let mut half_open = HalfOpen::default();
        let groups = |subscriber| {
            [
                Group::All,
                Group::Subscriber(SubscriberId::new(subscriber)),
                Group::Network([10, 0, 0, 0].into()),
            ]
        };
        let ticket = |serial| Ticket { place: EntryId::new(serial as usize % 100), serial };
        half_open.add(groups(1), ticket(0), |_| true);
        for serial in 1..10_000 {
            half_open.add(groups(2), ticket(serial), |other| other.serial == 0);
            half_open.leave(groups(2));
        }
        assert!(half_open.queues[&Group::All].tickets.len() <= SLACK + 3);
        assert_eq!(half_open.queues.len(), 3, "a subscriber without any is not remembered");
        let is_live = |ticket: Ticket| ticket.serial == 0;
        assert_eq!(half_open.oldest(Group::All, is_live), Some(EntryId::new(0)));
        let subscriber = |id| Group::Subscriber(SubscriberId::new(id));
        assert_eq!(half_open.oldest(subscriber(1), is_live), Some(EntryId::new(0)));
        assert_eq!(half_open.oldest(subscriber(2), is_live), None);
        half_open.leave(groups(1));
        assert!(half_open.queues.is_empty());
    }
}
