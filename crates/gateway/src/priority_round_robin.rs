//! Round robin within each class of [`crate::share`]. The highest class goes first.

use crate::ids::{Arena, Id};
use crate::ring::{Linked, Links, Ring};
use crate::share::CLASSES;

/// The entries that want to send: one circle for each priority class.
#[derive(Clone, Copy, Debug, Default, serde::Serialize, serde::Deserialize)]
pub(crate) struct PriorityRoundRobin<I> {
    rings: [Ring<I>; CLASSES],
    /// One bit for each circle, set if the circle has entries.
    occupied: u16,
    len: u32,
}

impl<I: Id> PriorityRoundRobin<I> {
    /// Number of entries in all circles.
    pub(crate) fn len(&self) -> u32 {
        self.len
    }

    /// Returns the highest class that has entries, and its front.
    pub(crate) fn front(&self) -> Option<(usize, I)> {
        let class = self.occupied.trailing_zeros() as usize;
        Some((class, self.rings.get(class)?.front()?))
    }

    pub(crate) fn push_back<T: Linked<Id = I>>(&mut self, class: usize, entries: &mut Arena<I, T>, id: I) {
        self.rings[class].push_back(entries, id);
        self.occupied |= 1 << class;
        self.len += 1;
    }

    pub(crate) fn remove<T: Linked<Id = I>>(&mut self, class: usize, entries: &mut Arena<I, T>, id: I) {
        self.rings[class].remove(entries, id);
        self.len -= 1;
        if self.rings[class].len() == 0 {
            self.occupied &= !(1 << class);
        }
    }

    /// True if the circles hold exactly these entries, each in its class.
    pub(crate) fn are_whole(&self, entries: &[(I, usize)], links: impl Fn(I) -> Option<Links<I>>) -> bool {
        let mut sizes = self.rings.iter().enumerate().map(|(class, ring)| {
            let own = entries.iter().filter(move |(_, of)| *of == class).map(|(id, _)| *id);
            ring.is_consistent(own, &links) && (ring.len() > 0) == (self.occupied >> class & 1 == 1)
        });
        let all: u32 = self.rings.iter().map(|ring| ring.len()).fold(0, u32::saturating_add);
        let occupied = (self.occupied >> self.rings.len()) == 0;
        sizes.all(|one| one) && all == self.len && occupied
    }

    /// Moves the front of a class to its back.
    pub(crate) fn rotate<T: Linked<Id = I>>(&mut self, class: usize, entries: &mut Arena<I, T>) {
        self.rings[class].rotate(entries);
    }

    /// Finds the first entry, in the order of service, for which `wanted` is true. It becomes the front of its class,
    /// and those before it go to the back.
    pub(crate) fn find<T: Linked<Id = I>>(
        &mut self,
        entries: &mut Arena<I, T>,
        wanted: impl Fn(&T) -> bool,
    ) -> Option<(usize, I)> {
        for (class, ring) in self.rings.iter_mut().enumerate() {
            for _ in 0..ring.len() {
                let front = ring.front()?;
                if wanted(&entries[front]) {
                    return Some((class, front));
                }
                ring.rotate(entries);
            }
        }
        None
    }
}
