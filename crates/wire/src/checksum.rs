//! The Internet checksum: RFC 1071 sums, RFC 1624 updates, and the pseudo headers of TCP.

use core::net::IpAddr;

/// The one's complement sum of `bytes` as big-endian 16-bit words, not folded. An odd last byte is padded with zero.
///
/// Sums may be added to each other as long as every part but the last has an even length.
pub fn sum(bytes: &[u8]) -> u64 {
    // RFC 1071, Section 2(B): the sum does not depend on byte order, so add in the machine's own and swap once.
    let mut words = bytes.chunks_exact(4);
    let mut native: u64 =
        words.by_ref().map(|w| u64::from(u32::from_ne_bytes([w[0], w[1], w[2], w[3]]))).sum();
    let mut rest = [0; 4];
    rest[..words.remainder().len()].copy_from_slice(words.remainder());
    native += u64::from(u32::from_ne_bytes(rest));
    u64::from(u16::from_be(fold(native)))
}

/// `sum` folded to 16 bits.
pub const fn fold(sum: u64) -> u16 {
    let mut sum = sum;
    while sum > 0xffff {
        sum = (sum & 0xffff) + (sum >> 16);
    }
    sum as u16
}

/// The sum of the pseudo header for TCP: RFC 9293, Section 3.1, and RFC 8200, Section 8.1.
///
/// Addresses of different families do not occur in a packet. Each is summed as it is.
pub fn pseudo_header(src: IpAddr, dst: IpAddr, tcp_len: usize) -> u64 {
    address(src) + address(dst) + tcp_and_len(tcp_len)
}

/// The sum of the pseudo header without its addresses.
pub fn tcp_and_len(tcp_len: usize) -> u64 {
    const TCP: u64 = 6;
    // The length is 32 bits wide in IPv6 and 16 in IPv4; the sum is the same.
    let len = tcp_len as u64;
    TCP + (len & 0xffff) + (len >> 16)
}

/// The checksum after words that summed to `old` became words that sum to `new`: RFC 1624, Eqn. 3.
pub const fn update(checksum: u16, old: u64, new: u64) -> u16 {
    !fold((!checksum) as u64 + (!fold(old)) as u64 + fold(new) as u64)
}

fn address(address: IpAddr) -> u64 {
    match address {
        IpAddr::V4(v4) => sum(&v4.octets()),
        IpAddr::V6(v6) => sum(&v6.octets()),
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    /// RFC 1071, Section 1, one word at a time.
    fn by_the_word(bytes: &[u8]) -> u16 {
        let mut sum: u32 = 0;
        for word in bytes.chunks(2) {
            sum += u32::from(word[0]) << 8 | u32::from(*word.get(1).unwrap_or(&0));
            sum = (sum & 0xffff) + (sum >> 16);
        }
        sum as u16
    }

    #[test]
    fn the_example_of_rfc_1071() {
        let bytes = [0x00, 0x01, 0xf2, 0x03, 0xf4, 0xf5, 0xf6, 0xf7];
        assert_eq!(fold(sum(&bytes)), 0xddf2);
    }

    #[test]
    fn the_example_of_rfc_1624() {
        // Section 4: 0xdd2f with a word that changes from 0x5555 to 0x3285; Eqn. 2 would give 0xffff.
        assert_eq!(update(0xdd2f, 0x5555, 0x3285), 0x0000);
    }

    #[test]
    fn a_long_pseudo_header_length_is_two_words() {
        let any = IpAddr::from([0, 0, 0, 0]);
        assert_eq!(fold(pseudo_header(any, any, 0x0001_0002)), 6 + 1 + 2);
    }

    proptest! {
        #[test]
        fn sum_equals_the_sum_by_the_word(bytes in proptest::collection::vec(any::<u8>(), 0..200)) {
            prop_assert_eq!(fold(sum(&bytes)) % 0xffff, by_the_word(&bytes) % 0xffff);
        }

        #[test]
        fn sums_of_even_parts_add_up(bytes in proptest::collection::vec(any::<u8>(), 0..200), cut in 0usize..100) {
            let (a, b) = bytes.split_at((2 * cut).min(bytes.len() / 2 * 2));
            prop_assert_eq!(fold(sum(a) + sum(b)) % 0xffff, by_the_word(&bytes) % 0xffff);
        }

        #[test]
        fn an_update_equals_a_new_sum(
            mut words in proptest::collection::vec(any::<[u8; 2]>(), 1..40), at: usize, new: [u8; 2], base in 1u64..0xffff,
        ) {
            // `base` stands for the pseudo header, which is never zero.
            let before = !fold(base + sum(words.as_flattened()));
            let at = at % words.len();
            let old = core::mem::replace(&mut words[at], new);
            let after = !fold(base + sum(words.as_flattened()));
            prop_assert_eq!(update(before, sum(&old), sum(&new)), after);
        }
    }
}
