//! A set of stream positions as sorted, disjoint ranges.

use alloc::collections::VecDeque;

/// Ranges that neither overlap nor touch, lowest first. Growth at either end costs O(1).
#[derive(Clone, Debug, Default, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
pub struct RangeSet {
    ranges: VecDeque<(u64, u64)>,
}

impl RangeSet {
    /// Adds `start..end`. Calls `added` for every part that was not in the set, and returns the range that contains all of
    /// it afterwards.
    pub fn insert(&mut self, start: u64, end: u64, mut added: impl FnMut(u64, u64)) -> (u64, u64) {
        if start >= end {
            return (start, start);
        }
        // The first range that touches or follows the new one; nearly always the last, or none.
        let first = match self.ranges.back() {
            None => 0,
            Some(&(last_start, last_end)) if last_start <= start => {
                self.ranges.len() - usize::from(last_end >= start)
            }
            Some(_) => self.ranges.partition_point(|&(_, e)| e < start),
        };
        let (mut merged_start, mut merged_end, mut covered) = (start, end, start);
        let mut last = first;
        while let Some(&(s, e)) = self.ranges.get(last) {
            if s > end {
                break;
            }
            if s > covered {
                added(covered, s);
            }
            merged_start = merged_start.min(s);
            merged_end = merged_end.max(e);
            covered = covered.max(e);
            last += 1;
        }
        if covered < end {
            added(covered, end);
        }
        match last - first {
            0 => self.ranges.insert(first, (merged_start, merged_end)),
            more => {
                self.ranges[first] = (merged_start, merged_end);
                if more > 1 {
                    self.ranges.drain(first + 1..last);
                }
            }
        }
        (merged_start, merged_end)
    }

    /// Removes everything below `position`.
    pub fn remove_below(&mut self, position: u64) {
        while let Some(front) = self.ranges.front_mut() {
            if front.1 <= position {
                self.ranges.pop_front();
            } else {
                front.0 = front.0.max(position);
                return;
            }
        }
    }

    /// True if some range overlaps or adjoins `start..end`.
    pub fn touches(&self, start: u64, end: u64) -> bool {
        let at = self.ranges.partition_point(|&(_, e)| e < start);
        self.ranges.get(at).is_some_and(|&(s, _)| s <= end)
    }

    /// The range that contains `position`.
    pub fn covering(&self, position: u64) -> Option<(u64, u64)> {
        let at = self.ranges.partition_point(|&(_, end)| end <= position);
        self.ranges.get(at).copied().filter(|&(start, _)| start <= position)
    }

    /// The lowest range.
    pub fn first(&self) -> Option<(u64, u64)> {
        self.ranges.front().copied()
    }

    /// The highest range.
    pub fn last(&self) -> Option<(u64, u64)> {
        self.ranges.back().copied()
    }

    /// All ranges, lowest first.
    pub fn iter(&self) -> impl DoubleEndedIterator<Item = (u64, u64)> + '_ {
        self.ranges.iter().copied()
    }

    /// The number of ranges.
    pub fn len(&self) -> usize {
        self.ranges.len()
    }

    /// True when there are none.
    pub fn is_empty(&self) -> bool {
        self.ranges.is_empty()
    }

    /// True if the ranges lie apart, in order, within `start..=end`. For a set that was read.
    pub(crate) fn is_sound(&self, start: u64, end: u64) -> bool {
        let mut from = Some(start);
        self.ranges.iter().all(|&(s, e)| {
            let apart = from.is_some_and(|from| s >= from) && s < e && e <= end;
            from = e.checked_add(1);
            apart
        })
    }

    /// Removes everything.
    pub fn clear(&mut self) {
        self.ranges.clear();
    }
}

#[cfg(test)]
mod tests {
    extern crate std;

    use std::collections::BTreeSet;
    use std::vec::Vec;

    use proptest::prelude::*;

    use super::*;

    proptest! {
        /// The set equals a set of numbers, and reports each number once.
        #[test]
        fn it_is_a_set(operations in proptest::collection::vec((0u64..60, 0u64..20, any::<bool>()), 1..60)) {
            let mut ranges = RangeSet::default();
            let mut model = BTreeSet::new();
            for (start, len, remove) in operations {
                if remove {
                    ranges.remove_below(start);
                    model.retain(|&n| n >= start);
                } else {
                    let mut fresh = Vec::new();
                    let near = |n: &u64| (start.saturating_sub(1)..=start + len).contains(n);
                    prop_assert_eq!(ranges.touches(start, start + len), model.iter().any(near));
                    let merged = ranges.insert(start, start + len, |s, e| fresh.extend(s..e));
                    let expected: Vec<u64> = (start..start + len).filter(|n| !model.contains(n)).collect();
                    prop_assert_eq!(fresh, expected);
                    model.extend(start..start + len);
                    if len > 0 {
                        prop_assert_eq!(ranges.covering(start), Some(merged));
                    }
                }
                let flat: Vec<u64> = ranges.iter().flat_map(|(s, e)| s..e).collect();
                prop_assert_eq!(flat, model.iter().copied().collect::<Vec<_>>());
                prop_assert!(ranges.iter().zip(ranges.iter().skip(1)).all(|(a, b)| a.1 < b.0));
            }
        }
    }
}
