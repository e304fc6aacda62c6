//! Hashes with a key. Anybody can choose addresses, ports and numbers. With a key, nobody can choose colliding ones.

#![allow(deprecated)] // core has no other name for SipHash 2-4 (Aumasson and Bernstein, 2012), which std only wraps.

use core::hash::{BuildHasher, Hash, SipHasher};

use hashbrown::HashMap;

/// The key. A running gateway draws one. A simulator leaves it at zero, or takes it from its seed.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
pub(crate) struct Key(pub(crate) [u64; 2]);

/// A map in which nobody can choose colliding keys.
pub(crate) type Map<K, V> = HashMap<K, V, Key>;

impl BuildHasher for Key {
    type Hasher = SipHasher;

    fn build_hasher(&self) -> SipHasher {
        SipHasher::new_with_keys(self.0[0], self.0[1])
    }
}

impl Key {
    /// The hash of one value.
    pub(crate) fn hash(self, value: &impl Hash) -> u64 {
        self.hash_one(value)
    }
}

/// The same map with another key.
pub(crate) fn rekeyed<K: Hash + Eq, V>(map: &mut Map<K, V>, key: Key) {
    let mut other = Map::with_capacity_and_hasher(map.len(), key);
    other.extend(map.drain());
    *map = other;
}
