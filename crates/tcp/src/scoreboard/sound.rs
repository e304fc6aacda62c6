//! Checks the state of a scoreboard that was read from another process.

use super::{Mark, Scoreboard};

impl Scoreboard {
    /// True if the segments are adjacent from SND.UNA to SND.NXT, the list in order of sending links exactly its
    /// members, and the counters are right.
    pub(crate) fn is_sound(&self) -> bool {
        let mut at = self.una;
        let follow = self.segments.iter().all(|segment| {
            let follows = segment.start == at && segment.end > at;
            at = segment.end;
            follows
        });
        let waiting = self.segments.iter().filter(|segment| segment.is_lost_and_waiting()).count();
        follow
            && at == self.nxt
            && self.mss > 0
            && self.sacked.is_sound(self.una, self.nxt)
            && self.recount() == (self.sacked_out, self.lost_out, self.retrans_out)
            && waiting == self.waiting as usize
            && self.is_list_whole()
    }

    fn is_list_whole(&self) -> bool {
        let listed = self.segments.iter().filter(|segment| segment.mark.contains(Mark::LISTED)).count();
        let (mut found, mut last, mut next) = (0, None, self.oldest);
        while let Some(number) = next {
            let Some(segment) = self.get(number) else { return false };
            if found == listed
                || !segment.mark.contains(Mark::LISTED)
                || segment.prev != last.unwrap_or(number)
            {
                return false;
            }
            (found, last, next) = (found + 1, next, self.sent_after(number));
        }
        found == listed && last == self.newest
    }
}
