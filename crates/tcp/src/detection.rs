//! Loss detection: which segment is lost, and when congestion is to be answered.

mod fack;
mod rack;
mod rfc6675;

use alloc::boxed::Box;
use core::fmt::Debug;

use paceline_wire::{Duration, Instant};

use crate::congestion::CaState;
use crate::names::named;
use crate::scoreboard::{Scoreboard, Segment};

pub use fack::Fack;
pub use rack::Rack;
pub use rfc6675::Rfc6675;

named! {
    /// A loss detection by name.
    DetectionName {
        /// Three segments above it have arrived (RFC 6675).
        Rfc6675 = "rfc6675",
        /// By the most forward segment, as Linux 3.10.
        Fack = "fack",
        /// By time, with probes of the tail (RFC 8985), with Linux's choices.
        #[default]
        RackTlp = "rack-tlp",
    }
}

impl DetectionName {
    /// A new instance.
    pub fn build(self) -> Box<dyn LossDetection> {
        match self {
            DetectionName::Rfc6675 => Box::new(Rfc6675::default()),
            DetectionName::Fack => Box::new(Fack::default()),
            DetectionName::RackTlp => Box::new(Rack::default()),
        }
    }
}

/// Marks segments as lost. It never sends, and never touches cwnd.
pub trait LossDetection: Debug + Send {
    /// Which one it is.
    fn name(&self) -> DetectionName;

    /// An ACK that may tell of a loss, after it was entered on the board.
    fn on_ack(&mut self, board: &mut Scoreboard, sample: &LossSample) -> LossOutcome;

    /// The time given by [`LossOutcome::timer`] has come.
    fn on_timeout(&mut self, _board: &mut Scoreboard, _sample: &LossSample) -> LossOutcome {
        LossOutcome::default()
    }

    /// Every ACK that acknowledges something, before [`on_ack`](Self::on_ack).
    fn on_measurement(&mut self, _sample: &LossSample) {}

    /// Whether the retransmission timeout takes this segment, not the first, for lost.
    fn expires(&self, _segment: &Segment, _sample: &LossSample) -> bool {
        true
    }

    /// A recovery was not called for (undo), or ended as it should.
    fn on_recovery_end(&mut self, _undone: bool) {}

    /// Whether what is not yet known to be lost is sent again when nothing else may go (RFC 6675, Section 4, NextSeg rules (3)
    /// and (4)).
    fn retransmits_early(&self) -> bool {
        false
    }

    /// Whether the tail is probed before the timeout (RFC 8985, Section 7).
    fn probes_tail(&self) -> bool {
        false
    }
}

/// What one ACK says of losses.
#[derive(Clone, Copy, Debug, Default)]
pub struct LossSample {
    /// When it arrived.
    pub now: Instant,
    /// The state of the sender.
    pub state: CaState,
    /// The segment delivered that was sent last.
    pub newest: Option<Newest>,
    /// It neither acknowledged nor brought data, nor changed the window.
    pub duplicate: bool,
    /// It brought news by SACK.
    pub sacked_news: bool,
    /// Smoothed RTT.
    pub srtt: Duration,
    /// The shortest RTT.
    pub min_rtt: Duration,
    /// How many segments may be overtaken without one being lost; three until reordering was seen.
    pub reordering: u32,
    /// Reordering was seen.
    pub reordering_seen: bool,
    /// A D-SACK that speaks of reordering came with it.
    pub dsack: bool,
    /// What had been delivered when the newest delivered segment was sent.
    pub prior_delivered: Option<u64>,
    /// Packets delivered in all.
    pub delivered: u64,
}

/// The segment sent last among those delivered (RACK.segment of RFC 8985).
#[derive(Clone, Copy, Debug)]
pub struct Newest {
    /// When it was sent.
    pub sent_at: Instant,
    /// The position after its last.
    pub end: u64,
    /// Its round-trip time.
    pub rtt: Duration,
}

/// What became of it.
#[derive(Clone, Copy, Debug, Default)]
pub struct LossOutcome {
    /// Segments were newly marked.
    pub marked: bool,
    /// One of them had been sent again before.
    pub lost_retransmission: bool,
    /// When more will be known, if nothing arrives.
    pub timer: Option<Instant>,
}

/// DupThresh (RFC 6675, Section 2).
pub const DUP_THRESH: u32 = 3;

/// Marks every segment from `from` (a running number) up to `position` that did not arrive. Returns where it ended.
pub(crate) fn mark_below(board: &mut Scoreboard, from: u32, position: u64, outcome: &mut LossOutcome) -> u32 {
    let (first, end) = board.numbers();
    let mut number = if (from.wrapping_sub(first) as i32) < 0 { first } else { from };
    while number != end {
        match board.get(number) {
            Some(segment) if segment.end <= position => {
                let sent_again = segment.mark.contains(crate::scoreboard::Mark::RETRANSMITTED);
                outcome.marked |= !sent_again && board.mark_lost(number);
            }
            _ => break,
        }
        number = number.wrapping_add(1);
    }
    number
}
