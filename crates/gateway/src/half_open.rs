//! Flows that nobody has answered for yet, oldest first, so that they make room when there is none.
//!
//! Anybody can send SYNs, with any addresses. As in nf_conntrack (early_drop), what has not been answered goes before what has: a flood takes the
//! places of its own SYNs only. A SYN is in a queue for much longer than an honest handshake takes, as long as the queue is longer than
//! what a flood brings in a round trip; so that no flood fills it from one network alone, each has an end of its own.

use alloc::collections::VecDeque;
use core::net::IpAddr;

use crate::keyed::{Key, Map, rekeyed};

/// Whose flows a queue holds.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) enum Group {
    /// All.
    All,
    /// Those of a subscriber.
    Subscriber(u32),
    /// Those with servers of a network.
    Network(IpAddr),
}

/// A place in the table, and which of the flows it is that had this place.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Ticket {
    pub(crate) place: u32,
    pub(crate) serial: u32,
}

#[derive(Debug, Default)]
struct Queue {
    tickets: VecDeque<Ticket>,
    /// Those of flows that are still half open.
    live: u32,
}

/// The queues.
#[derive(Debug, Default)]
pub(crate) struct HalfOpen {
    queues: Map<Group, Queue>,
}

/// Tickets out of date that are borne at least. Our choice.
const SLACK: usize = 64;
/// Our choice: a subscriber may have this part of all places half open, a network of servers four times as much. Nobody opens 64 flows at once
/// who cannot wait for some of them.
const SUBSCRIBER_PART: usize = 64;
const GROUP_MIN: usize = 64;

impl HalfOpen {
    /// Hashes with another key.
    pub(crate) fn set_key(&mut self, key: Key) {
        rekeyed(&mut self.queues, key);
    }

    /// A flow opens. `is_live` tells which tickets are still in use.
    pub(crate) fn add(&mut self, groups: [Group; 3], ticket: Ticket, is_live: impl Fn(Ticket) -> bool) {
        for group in groups {
            let queue = self.queues.entry(group).or_default();
            // Only once in as many times as tickets are kept.
            if queue.tickets.len() > 2 * queue.live as usize + SLACK {
                queue.tickets.retain(|&ticket| is_live(ticket));
            }
            queue.tickets.push_back(ticket);
            queue.live += 1;
        }
    }

    /// A flow is no longer half open.
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

    /// The oldest of a group.
    pub(crate) fn oldest(&mut self, group: Group, is_live: impl Fn(Ticket) -> bool) -> Option<u32> {
        let tickets = &mut self.queues.get_mut(&group)?.tickets;
        while let Some(&ticket) = tickets.front() {
            if is_live(ticket) {
                return Some(ticket.place);
            }
            tickets.pop_front();
        }
        None
    }

    /// How many there are in all.
    pub(crate) fn len(&self) -> usize {
        self.queues.get(&Group::All).map_or(0, |queue| queue.live as usize)
    }

    /// A group has as many as it may have, of so many places.
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

    #[test]
    fn the_oldest_goes_first_and_what_is_over_does_not_pile_up() {
        let mut half_open = HalfOpen::default();
        let groups =
            |subscriber| [Group::All, Group::Subscriber(subscriber), Group::Network([10, 0, 0, 0].into())];
        let ticket = |serial| Ticket { place: serial % 100, serial };
        half_open.add(groups(1), ticket(0), |_| true);
        for serial in 1..10_000 {
            half_open.add(groups(2), ticket(serial), |other| other.serial == 0);
            half_open.leave(groups(2));
        }
        assert!(half_open.queues[&Group::All].tickets.len() <= SLACK + 3);
        assert_eq!(half_open.queues.len(), 3, "a subscriber without any is not remembered");
        let is_live = |ticket: Ticket| ticket.serial == 0;
        assert_eq!(half_open.oldest(Group::All, is_live), Some(0));
        assert_eq!(half_open.oldest(Group::Subscriber(1), is_live), Some(0));
        assert_eq!(half_open.oldest(Group::Subscriber(2), is_live), None);
        half_open.leave(groups(1));
        assert!(half_open.queues.is_empty());
    }
}
