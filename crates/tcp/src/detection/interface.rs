//! The interface of loss detections: what one is told, what it answers, and how it marks what is lost.

use core::fmt::Debug;

use paceline_wire::{Duration, Instant};

use crate::congestion::CaState;
use crate::names::named;
use crate::scoreboard::{Mark, Scoreboard, Segment};

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
        /// Two serialized timers: one for the retransmission, one for the congestion response (TCP-NCL).
        Ncl = "ncl",
        /// TCP-NCL with a second retransmission decision timer, for the retransmission.
        NclSecondRd = "ncl-second-rd",
        /// TCP-NCL with a second RD timer, a tau_CD that follows the congestive share of losses, and a sketch in place of the record.
        NclAdaptive = "ncl-adaptive",
        /// A round trip after the first duplicate ACK (Bhandarkar and Reddy 2004; RFC 4653 is its successor).
        TcpDcr = "tcp-dcr",
        /// RFC 6675, unanswered while packets come out of order (Wang and Zhang 2002).
        TcpDoor = "tcp-door",
        /// By a timer for each packet (Bohacek et al. 2006).
        TcpPr = "tcp-pr",
        /// RFC 6675 with a threshold that follows the reordering (Zhang et al. 2003).
        RrTcp = "rr-tcp",
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

    /// The retransmission timeout has come. False when the window is not to be lowered for it.
    fn answers_timeout(&mut self, _now: Instant) -> bool {
        true
    }

    /// The retransmission timeout is never shorter.
    fn least_rto(&self) -> Duration {
        Duration::ZERO
    }

    /// A recovery was not called for (undo), or ended as it should.
    fn on_recovery_end(&mut self, _undone: bool) {}

    /// Whether it decides the response to congestion itself: a loss alone changes neither window nor state then,
    /// [`LossOutcome::response`] does. Such a detection is told of every segment, and has a timer of its own beside the
    /// retransmission timeout.
    fn owns_response(&self) -> bool {
        false
    }

    /// A segment was sent. Only where [`owns_response`](Self::owns_response).
    fn on_sent(&mut self, _sent: &Sent) {}

    /// A segment was acknowledged, cumulatively or by SACK; as it was before that. Only where it owns its response.
    fn on_delivered(&mut self, _now: Instant, _segment: &Segment) {}

    /// The retransmission timeout has come, before anything is sent again. Only where it owns its response.
    fn on_retransmission_timeout(&mut self) {}

    /// When [`on_timeout`](Self::on_timeout) is wanted. Only where it owns its response.
    fn next_timeout(&self) -> Option<Instant> {
        None
    }

    /// Whether a lost segment is sent again whatever the window says: it takes the place of the lost one.
    fn retransmits_at_once(&self) -> bool {
        false
    }

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
    /// By how much a timer comes later, so that what it waits for is over (Linux TCP_TIMEOUT_MIN).
    pub timeout_min: Duration,
    /// How many segments may be overtaken without one being lost; three until reordering was seen.
    pub reordering: u32,
    /// Reordering was seen.
    pub reordering_seen: bool,
    /// By how many segments one that arrived had been overtaken; 0 where none was.
    pub reordered_by: u32,
    /// A D-SACK that speaks of reordering came with it.
    pub dsack: bool,
    /// What had been delivered when the newest delivered segment was sent.
    pub prior_delivered: Option<u64>,
    /// Packets delivered in all.
    pub delivered: u64,
    /// The congestion window, in packets.
    pub cwnd: u32,
}

/// A segment that is being sent.
#[derive(Clone, Copy, Debug)]
pub struct Sent {
    /// When.
    pub now: Instant,
    /// Its running number.
    pub number: u32,
    /// The position after its last.
    pub end: u64,
    /// It was sent before.
    pub retransmission: bool,
    /// The congestion window, in packets.
    pub cwnd: u32,
}

/// The segment sent last among those delivered (RACK.segment of RFC 8985).
#[derive(Clone, Copy, Debug, serde::Serialize, serde::Deserialize)]
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
    /// What becomes of the window; only where the detection owns its response.
    pub response: CongestionResponse,
}

/// The response to congestion (RFC 5681) that a detection asks for.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub enum CongestionResponse {
    /// Not at all, or not yet.
    #[default]
    None,
    /// The window is what the congestion control makes of it after a loss, at once, and may grow again.
    Reduce,
    /// As if the window were still so many packets, which it was when the lost packet left (TCP-PR).
    ReduceFrom(u32),
    /// One packet, and slow start (TCP-PR, extreme losses).
    Restart,
    /// By a fast recovery.
    FastRecovery,
    /// The last response is taken back.
    Undo,
}

/// DupThresh (RFC 6675, Section 2).
pub const DUP_THRESH: u32 = 3;

/// Marks every segment from that at `from` up to `position` that did not arrive. Returns where it ended: a position, because running
/// numbers wrap, and there may be no loss to judge for longer than that takes.
pub(crate) fn mark_below(board: &mut Scoreboard, from: u64, position: u64, outcome: &mut LossOutcome) -> u64 {
    let (mut number, end) = (board.number_at(from), board.numbers().1);
    while number != end {
        match board.get(number) {
            Some(segment) if segment.end <= position => {
                let sent_again = segment.mark.contains(Mark::RETRANSMITTED);
                outcome.marked |= !sent_again && board.mark_lost(number);
            }
            _ => break,
        }
        number = number.wrapping_add(1);
    }
    board.get(number).map_or(board.nxt(), |segment| segment.start)
}
