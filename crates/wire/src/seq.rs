//! TCP sequence numbers: 32 bits that wrap (RFC 9293, Section 3.4).

use core::fmt;

/// A sequence or acknowledgement number. Comparison is by distance, so it is deliberately not `Ord`.
#[derive(Clone, Copy, Default, PartialEq, Eq, Hash, serde::Serialize, serde::Deserialize)]
pub struct Seq(pub u32);

impl Seq {
    /// `self + n` modulo 2^32.
    #[must_use]
    pub const fn add(self, n: u32) -> Seq {
        Seq(self.0.wrapping_add(n))
    }

    /// The signed distance from `other` to `self`: positive when `self` is later.
    pub const fn distance(self, other: Seq) -> i32 {
        self.0.wrapping_sub(other.0) as i32
    }

    /// `self < other` on the circle.
    pub const fn before(self, other: Seq) -> bool {
        self.distance(other) < 0
    }

    /// The position in the 64-bit stream that is nearest to `near` and has this sequence number in its low 32 bits.
    ///
    /// Streams start at 2^32 plus the initial sequence number, so positions below it exist and never underflow.
    pub const fn unwrap_near(self, near: u64) -> u64 {
        near.wrapping_add_signed(self.distance(Seq(near as u32)) as i64)
    }
}

/// The low 32 bits of a stream position.
impl From<u64> for Seq {
    fn from(position: u64) -> Seq {
        Seq(position as u32)
    }
}

impl fmt::Debug for Seq {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "#{}", self.0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn comparison_wraps() {
        assert!(Seq(u32::MAX).before(Seq(0)));
        assert!(!Seq(0).before(Seq(u32::MAX)));
        assert_eq!(Seq(2).distance(Seq(u32::MAX)), 3);
    }

    #[test]
    fn unwrapping_crosses_the_wrap_in_both_directions() {
        let near = (1 << 32) | 0xffff_fff0;
        assert_eq!(Seq(5).unwrap_near(near), (2 << 32) + 5);
        assert_eq!(Seq(0xffff_ff00).unwrap_near((2 << 32) + 5), (1 << 32) | 0xffff_ff00);
        assert_eq!(Seq::from((2 << 32) + 5u64), Seq(5));
    }
}
