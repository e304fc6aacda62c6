//! The sequence numbers that an end has sent.

use paceline_wire::Seq;

/// Ranges: a first number and the count of the following ones. An honest connection has one range. A forged segment may
/// have any number, and so has the reset that answers it (RFC 9293, Section 3.10.7.1). Numbers more than 2^31 apart
/// have no order, so no maximum exists.
#[derive(Debug, Default)]
pub(crate) struct Numbers(Vec<(Seq, u32)>);

impl Numbers {
    /// Notes a segment from `start` to before `end`. It extends a range that it overlaps or follows.
    pub(crate) fn note(&mut self, start: Seq, end: Seq) {
        let len = end.0.wrapping_sub(start.0);
        let touched = self.0.iter_mut().find(|(first, sent)| start.0.wrapping_sub(first.0) <= *sent);
        match touched {
            Some((first, sent)) => *sent = (*sent).max((start.0.wrapping_sub(first.0)).saturating_add(len)),
            None => self.0.push((start, len)),
        }
    }

    /// True if `ack` acknowledges a number that was sent, and all before it.
    pub(crate) fn hold(&self, ack: Seq) -> bool {
        self.0.iter().any(|(first, sent)| (1..=*sent).contains(&ack.0.wrapping_sub(first.0)))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_forged_number_far_away_changes_nothing() {
        let mut sent = Numbers::default();
        // A forged segment, then a SYN, then a forged one more than 2^31 away.
        sent.note(Seq(0), Seq(0));
        sent.note(Seq(2_733_119_035), Seq(2_733_119_036));
        sent.note(Seq(594_023_996), Seq(594_023_996));
        assert!(sent.hold(Seq(2_733_119_036)));
        assert!(!sent.hold(Seq(2_733_119_035)), "the SYN is not acknowledged by its own number");
        assert!(!sent.hold(Seq(2_733_119_037)), "one more than was sent");
        assert!(!sent.hold(Seq(594_023_996)) && !sent.hold(Seq(0)), "a segment of nothing");
    }

    #[test]
    fn a_stream_grows_over_the_end_of_numbers() {
        let mut sent = Numbers::default();
        sent.note(Seq(u32::MAX - 10), Seq(u32::MAX - 9));
        sent.note(Seq(u32::MAX - 9), Seq(91));
        sent.note(Seq(u32::MAX - 9), Seq(0));
        assert!(sent.hold(Seq(91)) && sent.hold(Seq(1)) && !sent.hold(Seq(92)));
        // A segment forged ahead leaves a hole of numbers never sent.
        sent.note(Seq(1_000), Seq(1_100));
        assert!(
            sent.hold(Seq(1_001)) && sent.hold(Seq(1_100)) && !sent.hold(Seq(1_000)) && !sent.hold(Seq(500))
        );
    }
}
