//! Division of subscribers among several workers.
//!
//! The low bits of a subscriber's prefix select a bucket, and each worker has some of the buckets. The packet filter
//! of a worker's sockets and its nftables rule compute the same from the same bytes. Both can only load four bytes
//! and mask them, so it is no hash. This works well if prefixes are assigned one after another. It works badly if all
//! prefixes end in the same bits: then the configured prefix length is too long.

use std::net::IpAddr;

/// One worker's part of the subscribers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Slice {
    /// Index of the worker, from 0.
    pub index: u32,
    /// The number of workers, at most [`Slice::WORKERS_MAX`].
    pub of: u32,
    /// Prefix length of a subscriber in IPv4, at least 8.
    pub prefix_v4: u8,
    /// Prefix length of a subscriber in IPv6, at least 8.
    pub prefix_v6: u8,
}

/// Which address of a packet is the subscriber's.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Side {
    /// For packets from the servers.
    Destination,
    /// For packets from the subscribers.
    Source,
}

/// Place of a bucket's bits in an address: byte offset of the word, and the number of lower bits in it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Place {
    pub(crate) offset: u32,
    pub(crate) shift: u32,
}

impl Slice {
    /// Our choice: more than a machine needs, and few enough that each has several buckets.
    pub const WORKERS_MAX: u32 = 16;
    /// Number of buckets, a power of two. Our choice: with 3 workers and 64 buckets the shares differ by 5 %.
    pub(crate) const BUCKETS: u32 = 64;

    /// True if the subscriber with this address belongs to the slice.
    pub fn contains(&self, subscriber: IpAddr) -> bool {
        let (place, word) = match subscriber {
            IpAddr::V4(address) => (self.place(false), address.to_bits()),
            IpAddr::V6(address) => {
                let place = self.place(true);
                let bytes = address.octets();
                let word = bytes.iter().skip(place.offset as usize).take(4);
                (place, word.fold(0, |word, byte| word << 8 | u32::from(*byte)))
            }
        };
        (word >> place.shift & (Slice::BUCKETS - 1)) % self.of == self.index
    }

    pub(crate) fn place(&self, ipv6: bool) -> Place {
        let prefix = u32::from(if ipv6 { self.prefix_v6.clamp(8, 128) } else { self.prefix_v4.clamp(8, 32) });
        let end = prefix.div_ceil(8).max(4);
        Place { offset: end - 4, shift: end * 8 - prefix }
    }

    /// Returns the slice's words as they are in a packet after [`mask`](Self::mask).
    pub(crate) fn words(&self, ipv6: bool) -> impl Iterator<Item = [u8; 4]> + use<> {
        let (Slice { index, of, .. }, shift) = (*self, self.place(ipv6).shift);
        (0..Slice::BUCKETS)
            .filter(move |bucket| bucket % of == index)
            .map(move |b| (b << shift).to_be_bytes())
    }

    /// Returns the mask of the bucket's bits in a packet's word.
    pub(crate) fn mask(&self, ipv6: bool) -> [u8; 4] {
        ((Slice::BUCKETS - 1) << self.place(ipv6).shift).to_be_bytes()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn slices(of: u32, prefix_v4: u8, prefix_v6: u8) -> Vec<Slice> {
        (0..of).map(|index| Slice { index, of, prefix_v4, prefix_v6 }).collect()
    }

    #[test]
    fn each_subscriber_has_one_worker_and_all_its_addresses_have() {
        for (v4, v6) in [(32, 64), (24, 56), (30, 61), (8, 48)] {
            let slices = slices(3, v4, v6);
            let worker = |address: &str| {
                let address = address.parse().unwrap();
                let found: Vec<u32> =
                    slices.iter().filter(|s| s.contains(address)).map(|s| s.index).collect();
                assert_eq!(found.len(), 1);
                found[0]
            };
            assert_eq!(worker("2001:db8:1:7::1"), worker("2001:db8:1:7:ffff::9"));
            if v4 <= 30 {
                assert_eq!(worker("10.1.2.4"), worker("10.1.2.7"));
            }
        }
    }

    #[test]
    fn words_are_what_is_contained() {
        for (v4, v6) in [(32, 64), (24, 56), (27, 61)] {
            let slice = slices(3, v4, v6)[1];
            for low in 0..=255u8 {
                let v4: IpAddr = [10, low, low.wrapping_mul(7), low ^ 0x55].into();
                let IpAddr::V4(bytes) = v4 else { continue };
                let mask = u32::from_be_bytes(slice.mask(false));
                let word = (bytes.to_bits() & mask).to_be_bytes();
                assert_eq!(slice.words(false).any(|own| own == word), slice.contains(v4));
            }
        }
    }
}
