//! RR-TCP: M. Zhang, B. Karp, S. Floyd, L. Peterson, "RR-TCP: A Reordering-Robust TCP with DSACK", ICNP 2003.

use super::rfc6675::lost_below;
use super::{DUP_THRESH, DetectionName, LossDetection, LossOutcome, LossSample, mark_below};
use crate::congestion::CaState;
use crate::scoreboard::Scoreboard;

/// RFC 6675 with a variable threshold of duplicate ACKs. A share of the reordering seen, the FA ratio, stays below it.
/// The ratio falls when waiting has cost a timeout. It rises after a spurious fast retransmission, whose effects the
/// sender undoes (D-SACK, RFC 3708; Eifel).
#[derive(Clone, Debug, serde::Serialize, serde::Deserialize)]
pub struct RrTcp {
    judged: u64,
    /// Histogram of recent reordering: the number of segments that were overtaken by this many others.
    #[serde(with = "crate::snapshot::array")]
    lengths: [u16; LENGTHS_MAX],
    seen: u32,
    /// The share of reordering that causes no fast retransmission, in thousandths.
    fa_per_mille: i32,
    dup_thresh: u32,
}

/// Number of lengths of reordering that are told apart. Our choice: a longer one exceeds a window of the links here
/// anyway.
const LENGTHS_MAX: usize = 256;
/// At this total all counts are halved, so that old ones fade. The paper keeps a scoreboard of recent ones. Our choice:
/// this length, and a histogram in place of the list, because it needs no memory per sample.
const SEEN_MAX: u32 = 1_000;
/// Start and range of the FA ratio. Our choice, after the paper's range of percentiles.
const FA_START: i32 = 900;
const FA_RANGE: core::ops::RangeInclusive<i32> = 100..=999;
/// S: the upward step of the FA ratio, 0.01.
const FA_STEP: i32 = 10;
/// A timeout costs a window and more. A spurious fast retransmission that is undone costs half a window for a round
/// trip. The paper weighs the two by their cost in packets. Our choice: four, for windows of some ten packets.
const FA_STEP_TIMEOUT: i32 = 4 * FA_STEP;

impl Default for RrTcp {
    fn default() -> Self {
        RrTcp {
            judged: 0,
            lengths: [0; LENGTHS_MAX],
            seen: 0,
            fa_per_mille: FA_START,
            dup_thresh: DUP_THRESH,
        }
    }
}

impl RrTcp {
    fn record(&mut self, length: u32) {
        if self.seen >= SEEN_MAX {
            self.lengths.iter_mut().for_each(|count| *count /= 2);
            self.seen = self.lengths.iter().map(|&count| u32::from(count)).sum();
        }
        self.lengths[(length as usize).min(LENGTHS_MAX - 1)] += 1;
        self.seen += 1;
        self.set_threshold();
    }

    /// The threshold is one more than the length that this share of the reordering does not exceed.
    fn set_threshold(&mut self) {
        let wanted = u64::from(self.seen) * self.fa_per_mille.unsigned_abs() as u64;
        let mut below = 0;
        let length = self.lengths.iter().position(|&count| {
            below += u64::from(count) * 1_000;
            below >= wanted
        });
        self.dup_thresh = (length.unwrap_or(0) as u32 + 1).max(DUP_THRESH);
    }

    fn move_ratio(&mut self, by: i32) {
        self.fa_per_mille = (self.fa_per_mille + by).clamp(*FA_RANGE.start(), *FA_RANGE.end());
        self.set_threshold();
    }
}

impl LossDetection for RrTcp {
    fn name(&self) -> DetectionName {
        DetectionName::RrTcp
    }

    fn on_measurement(&mut self, sample: &LossSample) {
        if sample.reordered_by > 0 {
            self.record(sample.reordered_by);
        }
    }

    fn on_ack(&mut self, board: &mut Scoreboard, sample: &LossSample) -> LossOutcome {
        let mut outcome = LossOutcome::default();
        // Extended limited transmit keeps ACKs coming for one more window. More duplicate ACKs than that never come.
        let threshold = self.dup_thresh.min(sample.cwnd.saturating_sub(1)).max(DUP_THRESH);
        let threshold = if sample.state == CaState::Recovery { DUP_THRESH } else { threshold };
        self.judged = mark_below(board, self.judged, lost_below(board, threshold), &mut outcome);
        outcome
    }

    fn retransmits_early(&self) -> bool {
        true
    }

    fn on_recovery_end(&mut self, undone: bool) {
        if undone {
            self.judged = 0;
            self.move_ratio(FA_STEP);
        }
    }

    fn answers_timeout(&mut self, _now: paceline_wire::Instant) -> bool {
        if self.dup_thresh > DUP_THRESH {
            self.move_ratio(-FA_STEP_TIMEOUT);
        }
        true
    }
}

#[cfg(test)]
mod tests {
    use super::super::rack::tests::{board, sample_at};
    use super::*;

    fn seen(lengths: &[u32]) -> RrTcp {
        let mut rr = RrTcp::default();
        for &reordered_by in lengths {
            rr.on_measurement(&LossSample { reordered_by, ..sample_at(50) });
        }
        rr
    }

    #[test]
    fn the_threshold_lets_nine_of_ten_through() {
        assert_eq!(RrTcp::default().dup_thresh, 3);
        assert_eq!(seen(&[5, 5, 6, 6, 7, 7, 8, 8, 8, 20]).dup_thresh, 9);
        let mut rr = seen(&[8, 8, 8, 8, 8, 20]);
        let mut board = board(20);
        board.sack(1_100, 2_000, |_| {});
        let sample = LossSample { cwnd: 20, sacked_news: true, ..sample_at(60) };
        // Nine segments above the first have arrived. The threshold is 21, but at most the window less one.
        assert_eq!((rr.dup_thresh, rr.on_ack(&mut board, &sample).marked), (21, false));
        assert!(rr.on_ack(&mut board, &LossSample { cwnd: 10, ..sample }).marked);
    }

    #[test]
    fn errors_move_the_ratio_both_ways() {
        let mut rr = seen(&[4, 4, 4, 4, 4, 4, 4, 4, 9, 30]);
        assert_eq!(rr.dup_thresh, 10);
        rr.on_recovery_end(true);
        assert_eq!(rr.dup_thresh, 31);
        rr.answers_timeout(sample_at(1).now);
        rr.answers_timeout(sample_at(1).now);
        rr.answers_timeout(sample_at(1).now);
        assert_eq!(rr.dup_thresh, 5);
    }

    #[test]
    fn old_reordering_fades() {
        let mut rr = RrTcp::default();
        (0..1_000).for_each(|_| rr.record(100));
        (0..10_000).for_each(|_| rr.record(5));
        assert_eq!(rr.dup_thresh, 6);
        assert!(rr.seen <= SEEN_MAX);
    }
}
