//! Which subscribers fall to one worker of several.
//!
//! A subscriber belongs to a bucket, by the low bits of the prefix that names it, and each worker has some of the buckets. The
//! packet filter of a worker's sockets and its nftables rule compute the same from the same bytes, and have no more in common
//! than loading four bytes and masking them: so it is no hash. That serves as well where prefixes are handed out one after
//! the other, and badly where all of them end in the same bits: then the prefix that names a subscriber is said too long.

use std::net::IpAddr;

/// A worker's part of the subscribers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Slice {
    /// Which worker, from 0.
    pub index: u32,
    /// How many there are, at most [`Slice::WORKERS_MAX`].
    pub of: u32,
    /// Bits of an IPv4 address that name a subscriber, at least 8.
    pub prefix_v4: u8,
    /// The same of an IPv6 address.
    pub prefix_v6: u8,
}

/// Which address of a packet is the subscriber's.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Side {
    /// It comes from the servers.
    Destination,
    /// It comes from the subscribers.
    Source,
}

/// Where the bits of a bucket are in an address: in the word at this byte, above so many others.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Place {
    pub(crate) offset: u32,
    pub(crate) shift: u32,
}

impl Slice {
    /// Our choice: more than a machine needs, and few enough that each has several buckets.
    pub const WORKERS_MAX: u32 = 16;
    /// A power of two; our choice: with 3 workers of 64 buckets the shares differ by 5 %.
    pub(crate) const BUCKETS: u32 = 64;

    /// The packets of the subscriber with this address are in it.
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

    /// The words that belong to it, as they are in a packet, once [`mask`](Self::mask) was applied.
    pub(crate) fn words(&self, ipv6: bool) -> impl Iterator<Item = [u8; 4]> + use<> {
        let (Slice { index, of, .. }, shift) = (*self, self.place(ipv6).shift);
        (0..Slice::BUCKETS)
            .filter(move |bucket| bucket % of == index)
            .map(move |b| (b << shift).to_be_bytes())
    }

    /// The bits of the bucket in a packet's word.
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
