//! Numbers of the gateway's tables. Each table has a type of its own for them, so that no number is used in another
//! table.

use core::fmt::Debug;
use core::hash::Hash;
use core::marker::PhantomData;
use core::ops::{Index, IndexMut};

use slab::Slab;

/// The number of a place in one kind of table.
pub(crate) trait Id: Copy + Debug + Default + Ord + Hash {
    fn new(index: usize) -> Self;

    fn index(self) -> usize;
}

macro_rules! id {
    ($($(#[$doc:meta])* $name:ident),* $(,)?) => {$(
        $(#[$doc])*
        #[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash, serde::Serialize, serde::Deserialize)]
        #[serde(transparent)]
        pub(crate) struct $name(u32);

        impl Id for $name {
            fn new(index: usize) -> Self {
                $name(index as u32)
            }

            fn index(self) -> usize {
                self.0 as usize
            }
        }
    )*};
}

id! {
    /// An entry of the scheduler: a transparent flow, or the client's leg of a split one.
    EntryId,
    /// A subscriber.
    SubscriberId,
    /// A split flow.
    SplitFlowId,
    /// A client or a network of servers in the memory of `auto`.
    MemoryId,
}

/// A slab whose places have numbers of type `I`.
#[derive(Clone, Debug, serde::Serialize, serde::Deserialize)]
#[serde(transparent)]
pub(crate) struct Arena<I, T> {
    slab: Slab<T>,
    #[serde(skip)]
    id: PhantomData<I>,
}

impl<I: Id, T> Arena<I, T> {
    pub(crate) fn new() -> Self {
        Arena { slab: Slab::new(), id: PhantomData }
    }

    pub(crate) fn len(&self) -> usize {
        self.slab.len()
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.slab.is_empty()
    }

    pub(crate) fn capacity(&self) -> usize {
        self.slab.capacity()
    }

    pub(crate) fn contains(&self, id: I) -> bool {
        self.slab.contains(id.index())
    }

    pub(crate) fn get(&self, id: I) -> Option<&T> {
        self.slab.get(id.index())
    }

    pub(crate) fn get_mut(&mut self, id: I) -> Option<&mut T> {
        self.slab.get_mut(id.index())
    }

    /// The number that the next value gets.
    pub(crate) fn next_id(&self) -> I {
        I::new(self.slab.vacant_key())
    }

    pub(crate) fn insert(&mut self, value: T) -> I {
        I::new(self.slab.insert(value))
    }

    /// Removes a value that is there.
    pub(crate) fn remove(&mut self, id: I) -> T {
        self.slab.remove(id.index())
    }

    pub(crate) fn iter(&self) -> impl Iterator<Item = (I, &T)> {
        self.slab.iter().map(|(index, value)| (I::new(index), value))
    }

    pub(crate) fn values(&self) -> impl Iterator<Item = &T> {
        self.slab.iter().map(|(_, value)| value)
    }

    pub(crate) fn values_mut(&mut self) -> impl Iterator<Item = &mut T> {
        self.slab.iter_mut().map(|(_, value)| value)
    }
}

impl<I: Id, T> Default for Arena<I, T> {
    fn default() -> Self {
        Arena::new()
    }
}

impl<I: Id, T> Index<I> for Arena<I, T> {
    type Output = T;

    fn index(&self, id: I) -> &T {
        &self.slab[id.index()]
    }
}

impl<I: Id, T> IndexMut<I> for Arena<I, T> {
    fn index_mut(&mut self, id: I) -> &mut T {
        &mut self.slab[id.index()]
    }
}

impl<I: Id, T> FromIterator<(I, T)> for Arena<I, T> {
    fn from_iter<It: IntoIterator<Item = (I, T)>>(values: It) -> Self {
        let values = values.into_iter().map(|(id, value)| (id.index(), value));
        Arena { slab: values.collect(), id: PhantomData }
    }
}
