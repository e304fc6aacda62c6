//! The list of segments that may still be in flight, in order of their last transmission (Linux tsorted_sent_queue).

use super::{Mark, Scoreboard};

impl Scoreboard {
    /// The oldest segment of the list in order of sending.
    pub fn oldest(&self) -> Option<u32> {
        self.oldest
    }

    /// The segment sent after this one.
    pub fn sent_after(&self, number: u32) -> Option<u32> {
        self.get(number).map(|segment| segment.next).filter(|&next| next != number)
    }

    /// Appends to the list in order of sending.
    pub(super) fn link(&mut self, number: u32) {
        if let Some(segment) = self.get_mut(number) {
            segment.mark |= Mark::LISTED;
        }
        self.join(self.newest, Some(number));
        self.join(Some(number), None);
    }

    /// Inserts a segment by its departure time. This is needed only after an undo, so a linear search from the newest
    /// is enough.
    pub(super) fn link_in_order(&mut self, number: u32) {
        let Some(at) = self.get(number).map(|segment| (segment.sent_at, segment.end)) else { return };
        let later = |number: u32| self.get(number).is_some_and(|s| (s.sent_at, s.end) > at);
        let mut before = self.newest;
        while let Some(each) = before.filter(|&each| later(each)) {
            before = self.sent_before(each);
        }
        let after = before.map_or(self.oldest, |before| self.sent_after(before));
        if let Some(segment) = self.get_mut(number) {
            segment.mark |= Mark::LISTED;
        }
        self.join(before, Some(number));
        self.join(Some(number), after);
    }

    pub(super) fn unlink(&mut self, number: u32) {
        let Some(segment) = self.get_mut(number) else { return };
        if !segment.mark.contains(Mark::LISTED) {
            return;
        }
        segment.mark -= Mark::LISTED;
        let neighbour = |other: u32| (other != number).then_some(other);
        let (prev, next) = (neighbour(segment.prev), neighbour(segment.next));
        self.join(prev, next);
    }

    /// The segment of the list sent before this one.
    fn sent_before(&self, number: u32) -> Option<u32> {
        self.get(number).map(|segment| segment.prev).filter(|&prev| prev != number)
    }

    /// Links `next` after `prev`. `None` stands for the end of the list.
    fn join(&mut self, prev: Option<u32>, next: Option<u32>) {
        match prev.and_then(|prev| self.get_mut(prev).map(|segment| (prev, segment))) {
            Some((prev, segment)) => segment.next = next.unwrap_or(prev),
            None => self.oldest = next,
        }
        match next.and_then(|next| self.get_mut(next).map(|segment| (next, segment))) {
            Some((next, segment)) => segment.prev = prev.unwrap_or(next),
            None => self.newest = prev,
        }
    }
}
