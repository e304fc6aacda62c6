//! Values that a detection keeps for segments in flight.

use alloc::collections::VecDeque;

/// One value for each segment, in stream order, from the first that has not arrived. Segments have the scoreboard's
/// numbers.
#[derive(Clone, Debug, serde::Serialize, serde::Deserialize)]
pub(super) struct Tracked<T> {
    base: u32,
    /// The position after the segment's last byte, and its value; `None` once it has arrived.
    entries: VecDeque<(u64, Option<T>)>,
}

impl<T> Default for Tracked<T> {
    fn default() -> Self {
        Tracked { base: 0, entries: VecDeque::new() }
    }
}

impl<T> Tracked<T> {
    /// A segment is sent for the first time.
    pub(super) fn push(&mut self, number: u32, end: u64, value: T) {
        if self.entries.is_empty() {
            self.base = number;
        }
        debug_assert_eq!(number, self.base.wrapping_add(self.entries.len() as u32));
        self.entries.push_back((end, Some(value)));
    }

    /// The value of a segment, unless it has arrived.
    pub(super) fn get(&self, number: u32) -> Option<&T> {
        self.entries.get(number.wrapping_sub(self.base) as usize)?.1.as_ref()
    }

    /// The value of a segment, unless it has arrived.
    pub(super) fn get_mut(&mut self, number: u32) -> Option<&mut T> {
        self.entries.get_mut(number.wrapping_sub(self.base) as usize)?.1.as_mut()
    }

    /// Removes the segment that ends at this position, because it has arrived.
    pub(super) fn remove(&mut self, end: u64) -> Option<(u32, T)> {
        // Mostly the first one.
        let index = match self.entries.front() {
            Some((first, _)) if *first == end => 0,
            _ => self.entries.partition_point(|(each, _)| *each < end),
        };
        let (_, value) = self.entries.get_mut(index).filter(|(each, _)| *each == end)?;
        let value = value.take();
        let number = self.base.wrapping_add(index as u32);
        while self.entries.front().is_some_and(|(_, value)| value.is_none()) {
            self.entries.pop_front();
            self.base = self.base.wrapping_add(1);
        }
        Some((number, value?))
    }

    /// Values of all segments that have not arrived.
    pub(super) fn iter_mut(&mut self) -> impl Iterator<Item = &mut T> {
        self.entries.iter_mut().filter_map(|(_, value)| value.as_mut())
    }

    /// The number of the first segment that has not arrived.
    pub(super) fn first(&self) -> u32 {
        self.base
    }

    /// The number after the last segment's.
    pub(super) fn end(&self) -> u32 {
        self.base.wrapping_add(self.entries.len() as u32)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn segments_go_as_they_arrive() {
        let mut tracked = Tracked::default();
        for n in 0..4u32 {
            tracked.push(7 + n, u64::from(n + 1) * 100, n);
        }
        assert_eq!(tracked.remove(300), Some((9, 2)));
        assert_eq!((tracked.remove(300), tracked.remove(250)), (None, None));
        assert_eq!(tracked.remove(100), Some((7, 0)));
        assert_eq!(
            (tracked.get(7), tracked.get(8), tracked.get(9), tracked.end()),
            (None, Some(&1), None, 11)
        );
        assert_eq!(tracked.remove(200), Some((8, 1)));
        assert_eq!(tracked.entries.len(), 1);
        tracked.remove(400);
        tracked.push(20, 900, 5);
        assert_eq!(tracked.get(20), Some(&5));
    }
}
