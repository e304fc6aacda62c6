//! Packets that wait in a station for the medium: drop-tail, routing first (ns-2's Queue/DropTail/PriQueue, 50
//! packets).

use std::collections::VecDeque;

use super::StationId;
use super::store::DatagramId;

/// A datagram and the neighbour that it goes to next.
pub(super) type Waiting = (DatagramId, StationId);

#[derive(Clone, Debug)]
pub(super) struct InterfaceQueue {
    limit: usize,
    routing: VecDeque<Waiting>,
    data: VecDeque<Waiting>,
}

impl InterfaceQueue {
    pub(super) fn new(limit: usize) -> Self {
        InterfaceQueue { limit, routing: VecDeque::new(), data: VecDeque::new() }
    }

    /// Adds a datagram. Returns one that has no room: this one, or the last of data if this one is a routing datagram.
    pub(super) fn push(&mut self, waiting: Waiting, is_routing: bool) -> Option<DatagramId> {
        let full = self.routing.len() + self.data.len() >= self.limit;
        let dropped = match (full, is_routing) {
            (false, _) => None,
            (true, false) => return Some(waiting.0),
            (true, true) => match self.data.pop_back() {
                Some(last) => Some(last.0),
                None => return Some(waiting.0),
            },
        };
        if is_routing { &mut self.routing } else { &mut self.data }.push_back(waiting);
        dropped
    }

    pub(super) fn pop(&mut self) -> Option<Waiting> {
        self.routing.pop_front().or_else(|| self.data.pop_front())
    }

    /// Takes out a datagram for this neighbour.
    pub(super) fn pop_for(&mut self, to: StationId) -> Option<Waiting> {
        [&mut self.routing, &mut self.data].into_iter().find_map(|queue| {
            let at = queue.iter().position(|waiting| waiting.1 == to)?;
            queue.remove(at)
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn waiting(number: u32, to: StationId) -> Waiting {
        (DatagramId::numbered(number), to)
    }

    #[test]
    fn routing_goes_first_and_takes_the_room_of_data() {
        let mut queue = InterfaceQueue::new(2);
        assert_eq!(queue.push(waiting(1, 5), false), None);
        assert_eq!(queue.push(waiting(2, 6), false), None);
        assert_eq!(queue.push(waiting(3, 6), false), Some(DatagramId::numbered(3)));
        assert_eq!(queue.push(waiting(4, 6), true), Some(DatagramId::numbered(2)));
        assert_eq!([queue.pop(), queue.pop(), queue.pop()], [Some(waiting(4, 6)), Some(waiting(1, 5)), None]);
    }

    #[test]
    fn those_for_one_neighbour_can_be_taken_out() {
        let mut queue = InterfaceQueue::new(9);
        for (number, to) in [(1, 5), (2, 6), (3, 5)] {
            queue.push(waiting(number, to), number == 2);
        }
        assert_eq!(
            [queue.pop_for(5), queue.pop_for(5), queue.pop_for(5)],
            [Some(waiting(1, 5)), Some(waiting(3, 5)), None]
        );
        assert_eq!(queue.pop(), Some(waiting(2, 6)));
    }
}
