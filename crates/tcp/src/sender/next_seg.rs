//! What may go in recovery when nothing that is lost waits and no new data may be sent: NextSeg(), rules (3) and (4) of
//! RFC 6675, Section 4.

use paceline_wire::Instant;

use super::Sender;
use super::transmit::Transmission;
use crate::congestion::CaState;
use crate::scoreboard::Mark;

/// State of NextSeg.
#[derive(Clone, Copy, Debug, Default)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
pub(super) struct NextSeg {
    /// After the highest segment that was sent again in this recovery (HighRxt), or below which all has arrived.
    high_rxt: u32,
    /// RescueRxt: RecoveryPoint of the last rescue.
    rescue_rxt: Option<u64>,
}

impl Sender {
    /// A segment that is not known to be lost, once more.
    pub(super) fn poll_early_retransmission(&mut self, now: Instant) -> Option<Transmission> {
        if self.state != CaState::Recovery { None } else { self.find_early_retransmission(now) }
    }

    #[inline(never)]
    fn find_early_retransmission(&mut self, now: Instant) -> Option<Transmission> {
        let may = self.detection.retransmits_early() && self.in_flight() < self.window.cwnd;
        if !may {
            return None;
        }
        let hole = self.unreported_hole();
        if hole.is_some() && !self.is_allowed() {
            return None;
        }
        let number = match hole {
            Some(number) => number,
            None if self.allowance == 0 => return None,
            None => self.rescue()?,
        };
        self.retransmit(now, number)
    }

    /// Recovery begins.
    pub(super) fn reset_high_rxt(&mut self) {
        self.next_seg.high_rxt = self.board.numbers().0;
    }

    /// A segment is sent again in recovery.
    pub(super) fn raise_high_rxt(&mut self, number: u32) {
        let next = number.wrapping_add(1);
        if (next.wrapping_sub(self.next_seg.high_rxt) as i32) > 0 {
            self.next_seg.high_rxt = next;
        }
    }

    /// Rule (3): missing, not sent again, and below something that has arrived, but by fewer than DupThresh segments.
    fn unreported_hole(&mut self) -> Option<u32> {
        if self.board.sacked_out() == 0 {
            return None;
        }
        let first = self.board.numbers().0;
        let end = self.board.number_at(self.board.highest_sack() - 1);
        let mut number = self.next_seg.high_rxt;
        if (number.wrapping_sub(first) as i32) < 0 {
            number = first;
        }
        while (end.wrapping_sub(number) as i32) > 0 {
            self.next_seg.high_rxt = number;
            let known = Mark::SACKED | Mark::RETRANSMITTED;
            if self.board.get(number).is_some_and(|segment| !segment.mark.intersects(known)) {
                return Some(number);
            }
            number = number.wrapping_add(1);
        }
        None
    }

    /// Rule (4): once in a recovery, the highest segment that has not arrived.
    fn rescue(&mut self) -> Option<u32> {
        if self.next_seg.rescue_rxt.is_some_and(|rescue| self.board.una() <= rescue) {
            return None;
        }
        let last = self.board.iter().rev().position(|segment| !segment.mark.contains(Mark::SACKED))?;
        self.next_seg.rescue_rxt = Some(self.high_seq.max(self.board.una()));
        Some(self.board.numbers().1.wrapping_sub(1 + last as u32))
    }
}
