//! Circles of entries that take turns. Each entry holds its own links. So joining, leaving and moving to the back cost
//! the same for any length, and allocate nothing.

use crate::ids::{Arena, Id};

/// The links of an entry to its two neighbours in a circle.
#[derive(Clone, Copy, Debug, Default, serde::Serialize, serde::Deserialize)]
pub(crate) struct Links<I> {
    before: I,
    after: I,
}

/// An entry that can stand in a circle.
pub(crate) trait Linked {
    type Id: Id;

    /// Returns its links.
    fn links(&mut self) -> &mut Links<Self::Id>;
}

/// One circle. The front has its turn.
#[derive(Clone, Copy, Debug, Default, serde::Serialize, serde::Deserialize)]
pub(crate) struct Ring<I> {
    front: Option<I>,
    len: u32,
}

impl<I: Id> Ring<I> {
    pub(crate) fn front(&self) -> Option<I> {
        self.front
    }

    pub(crate) fn len(&self) -> u32 {
        self.len
    }

    /// Adds `id`, which is in no circle, at the back.
    pub(crate) fn push_back<T: Linked<Id = I>>(&mut self, entries: &mut Arena<I, T>, id: I) {
        self.len += 1;
        let Some(front) = self.front else {
            *links(entries, id) = Links { before: id, after: id };
            self.front = Some(id);
            return;
        };
        let back = links(entries, front).before;
        *links(entries, id) = Links { before: back, after: front };
        links(entries, back).after = id;
        links(entries, front).before = id;
    }

    /// Removes `id`, which is in this circle.
    pub(crate) fn remove<T: Linked<Id = I>>(&mut self, entries: &mut Arena<I, T>, id: I) {
        let Links { before, after } = *links(entries, id);
        self.len -= 1;
        links(entries, before).after = after;
        links(entries, after).before = before;
        if self.front == Some(id) {
            self.front = (self.len > 0).then_some(after);
        }
    }

    /// Returns the entries of the circle, from the front.
    pub(crate) fn ids(&self, links: impl Fn(I) -> Links<I>) -> impl Iterator<Item = I> {
        core::iter::successors(self.front, move |&id| Some(links(id).after)).take(self.len as usize)
    }

    /// True if the circle holds exactly these entries, and each is linked with both of its neighbours.
    pub(crate) fn is_consistent(
        &self,
        entries: impl Iterator<Item = I>,
        links: impl Fn(I) -> Option<Links<I>>,
    ) -> bool {
        let mut missing: alloc::collections::BTreeSet<I> = entries.collect();
        if missing.len() != self.len as usize || self.front.is_some() != (self.len > 0) {
            return false;
        }
        let mut next = self.front;
        while let Some(id) = next.take_if(|id| missing.remove(id)) {
            let Some(own) = links(id) else { return false };
            let is_known = |other: I, back: fn(Links<I>) -> I| links(other).map(back) == Some(id);
            if !is_known(own.after, |links| links.before) || !is_known(own.before, |links| links.after) {
                return false;
            }
            next = Some(own.after);
        }
        missing.is_empty() && next == self.front
    }

    /// Moves the front to the back.
    pub(crate) fn rotate<T: Linked<Id = I>>(&mut self, entries: &mut Arena<I, T>) {
        self.front = self.front.map(|front| links(entries, front).after);
    }
}

fn links<T: Linked>(entries: &mut Arena<T::Id, T>, id: T::Id) -> &mut Links<T::Id> {
    entries[id].links()
}

#[cfg(test)]
mod tests {
    use alloc::collections::VecDeque;

    use proptest::prelude::*;

    use super::*;
    use crate::ids::EntryId;

    impl Linked for Links<EntryId> {
        type Id = EntryId;

        fn links(&mut self) -> &mut Links<EntryId> {
            self
        }
    }

    proptest! {
        /// The model is a queue of the standard library.
        #[test]
        fn a_ring_is_a_queue(operations in proptest::collection::vec((0u8..3, 0usize..8), 0..200)) {
            let mut entries: Arena<EntryId, Links<EntryId>> =
                (0..8).map(|id| (EntryId::new(id), Links::default())).collect();
            let (mut ring, mut model) = (Ring::default(), VecDeque::new());
            for (operation, id) in operations {
                let id = EntryId::new(id);
                match (operation, model.contains(&id)) {
                    (0, false) => {
                        ring.push_back(&mut entries, id);
                        model.push_back(id);
                    }
                    (1, true) => {
                        ring.remove(&mut entries, id);
                        model.retain(|&other| other != id);
                    }
                    (2, _) if !model.is_empty() => {
                        ring.rotate(&mut entries);
                        model.rotate_left(1);
                    }
                    _ => {}
                }
                prop_assert_eq!((ring.front(), ring.len()), (model.front().copied(), model.len() as u32));
            }
        }
    }
}
