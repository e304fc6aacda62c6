//! The interface of loss detections: what a detection is told, what it answers, and how it marks segments.

use core::fmt::Debug;

use paceline_wire::{Duration, Instant};

use crate::congestion::CaState;
use crate::names::named;
use crate::scoreboard::{Mark, Scoreboard, Segment};

named! {
    /// A loss detection by name.
    DetectionName {
        /// A segment is lost when three segments above it have arrived (RFC 6675).
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
        /// RFC 6675, without congestion response while packets come out of order (Wang and Zhang 2002).
        TcpDoor = "tcp-door",
        /// By a timer for each packet (Bohacek et al. 2006).
        TcpPr = "tcp-pr",
        /// RFC 6675 with a threshold that follows the reordering (Zhang et al. 2003).
        RrTcp = "rr-tcp",
    }
}

/// Marks segments as lost. It never sends, and never touches cwnd.
pub trait LossDetection: Debug + Send {
    /// Name of the algorithm.
    fn name(&self) -> DetectionName;

    /// Takes an ACK that may indicate a loss. The scoreboard has it already.
    fn on_ack(&mut self, board: &mut Scoreboard, sample: &LossSample) -> LossOutcome;

    /// The time given by [`LossOutcome::timer`] has come.
    fn on_timeout(&mut self, _board: &mut Scoreboard, _sample: &LossSample) -> LossOutcome {
        LossOutcome::default()
    }

    /// Takes every ACK that acknowledges something, before [`on_ack`](Self::on_ack).
    fn on_measurement(&mut self, _sample: &LossSample) {}

    /// True if a retransmission timeout marks this segment as lost. The first segment is always marked.
    fn expires(&self, _segment: &Segment, _sample: &LossSample) -> bool {
        true
    }

    /// The retransmission timer has expired. Returns false if the window must not be reduced for it.
    fn answers_timeout(&mut self, _now: Instant) -> bool {
        true
    }

    /// The least retransmission timeout.
    fn least_rto(&self) -> Duration {
        Duration::ZERO
    }

    /// A recovery has ended, either undone as spurious or completed.
    fn on_recovery_end(&mut self, _undone: bool) {}

    /// True if the detection decides the congestion response. Then a loss alone changes neither window nor state, but
    /// [`LossOutcome::response`] does. Such a detection is told of every segment. It has a timer besides the
    /// retransmission timer.
    fn owns_response(&self) -> bool {
        false
    }

    /// A segment was sent. Called only if it [owns the response](Self::owns_response).
    fn on_sent(&mut self, _sent: &Sent) {}

    /// A segment was acknowledged, cumulatively or by SACK. `segment` shows it before that. Called only if it owns the
    /// response.
    fn on_delivered(&mut self, _now: Instant, _segment: &Segment) {}

    /// The retransmission timer has expired, and nothing was retransmitted yet. Called only if it owns the response.
    fn on_retransmission_timeout(&mut self) {}

    /// When to call [`on_timeout`](Self::on_timeout). Asked only if it owns the response.
    fn next_timeout(&self) -> Option<Instant> {
        None
    }

    /// True if a lost segment is retransmitted whatever the window says, because it replaces the lost one.
    fn retransmits_at_once(&self) -> bool {
        false
    }

    /// True if segments not known to be lost are retransmitted when nothing else may be sent (RFC 6675, Section 4,
    /// NextSeg rules (3) and (4)).
    fn retransmits_early(&self) -> bool {
        false
    }

    /// True if the tail is probed before the timeout (RFC 8985, Section 7).
    fn probes_tail(&self) -> bool {
        false
    }
}

/// The content of one ACK that concerns losses.
#[derive(Clone, Copy, Debug, Default)]
pub struct LossSample {
    /// When it arrived.
    pub now: Instant,
    /// The state of the sender.
    pub state: CaState,
    /// The delivered segment that was sent last.
    pub newest: Option<Newest>,
    /// True if it neither acknowledged nor carried data, nor changed the window.
    pub duplicate: bool,
    /// True if it brought news by SACK.
    pub sacked_news: bool,
    /// Smoothed RTT.
    pub srtt: Duration,
    /// The shortest RTT.
    pub min_rtt: Duration,
    /// Added to a timer, so that what it waits for is over (Linux TCP_TIMEOUT_MIN).
    pub timeout_min: Duration,
    /// Number of segments that may overtake one that is not lost; three until reordering was seen.
    pub reordering: u32,
    /// True if reordering was seen.
    pub reordering_seen: bool,
    /// Number of segments that had overtaken one that arrived; 0 without reordering.
    pub reordered_by: u32,
    /// True if it carried a D-SACK that indicates reordering.
    pub dsack: bool,
    /// Number of packets delivered when the newest delivered segment was sent.
    pub prior_delivered: Option<u64>,
    /// Total number of packets delivered.
    pub delivered: u64,
    /// The congestion window, in packets.
    pub cwnd: u32,
}

/// A segment that is being sent.
#[derive(Clone, Copy, Debug)]
pub struct Sent {
    /// Departure time.
    pub now: Instant,
    /// Its running number.
    pub number: u32,
    /// The position after its last byte.
    pub end: u64,
    /// True if it was sent before.
    pub retransmission: bool,
    /// The congestion window, in packets.
    pub cwnd: u32,
}

/// The segment sent last among those delivered (RACK.segment of RFC 8985).
#[derive(Clone, Copy, Debug, serde::Serialize, serde::Deserialize)]
pub struct Newest {
    /// When it was sent.
    pub sent_at: Instant,
    /// The position after its last byte.
    pub end: u64,
    /// Its round-trip time.
    pub rtt: Duration,
}

/// The result of a detection.
#[derive(Clone, Copy, Debug, Default)]
pub struct LossOutcome {
    /// True if segments were newly marked as lost.
    pub marked: bool,
    /// True if one of them had been retransmitted before.
    pub lost_retransmission: bool,
    /// When to check again if no ACK arrives.
    pub timer: Option<Instant>,
    /// The congestion response; only if the detection owns it.
    pub response: CongestionResponse,
}

/// The response to congestion (RFC 5681) that a detection asks for.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub enum CongestionResponse {
    /// No response, or none yet.
    #[default]
    None,
    /// Set the window at once to the congestion control's value after a loss. It may grow again.
    Reduce,
    /// As `Reduce`, from a window of this many packets: the window when the lost packet left (TCP-PR).
    ReduceFrom(u32),
    /// One packet, and slow start (TCP-PR, extreme losses).
    Restart,
    /// Enter fast recovery.
    FastRecovery,
    /// Undo the last response.
    Undo,
}

/// DupThresh (RFC 6675, Section 2).
pub const DUP_THRESH: u32 = 3;

/// Marks each segment from position `from` up to `position` that did not arrive. Returns the position where it ended.
/// Segment numbers would not do, because they may wrap before the next loss.
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
