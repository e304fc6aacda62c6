//! The Internet checksum: RFC 1071 sums, RFC 1624 updates, and the pseudo headers of TCP.

use core::net::IpAddr;

/// The one's complement sum of `bytes` as big-endian 16-bit words, not folded; an odd last byte is padded with zero.
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
/// Addresses of different families do not occur in a packet; each is summed as it is.
pub fn pseudo_header(src: IpAddr, dst: IpAddr, tcp_len: usize) -> u64 {
    const TCP: u64 = 6;
    // The length is 32 bits wide in IPv6 and 16 in IPv4; the sum is the same.
    let len = tcp_len as u64;
    address(src) + address(dst) + TCP + (len & 0xffff) + (len >> 16)
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
