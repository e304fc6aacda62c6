//! A plain copy of the state of a connection, for tests, logs and plots.

use paceline_wire::{Duration, Instant, Rate};

use crate::congestion::{CaState, CongestionName};
use crate::connection::{Connection, State};
use crate::detection::DetectionName;
use crate::receiver::Receiver;
use crate::reduction::ReductionName;
use crate::send_queue::SendQueue;
use crate::sender::Sender;

/// The state of a connection. Fields that exist in Linux struct tcp_info have the same names. Windows are in packets of
/// `snd_mss`, times in microseconds.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Status {
    /// The state of the connection.
    pub state: State,
    /// The state of the sender.
    pub ca_state: CaState,
    /// Congestion control.
    pub congestion: CongestionName,
    /// Rate reduction.
    pub reduction: ReductionName,
    /// Loss detection.
    pub detection: DetectionName,
    /// Window scale shift of the peer's windows.
    pub snd_wscale: u8,
    /// Window scale shift of our windows.
    pub rcv_wscale: u8,
    /// Payload of a full-sized segment.
    pub snd_mss: u32,
    /// ECN was negotiated.
    pub ecn: bool,
    /// Segments in flight.
    pub pulse: StatusSummary,
    /// The retransmission timer and the RTTs behind it.
    pub timing: Timing,
    /// The sender's windows and unsent data.
    pub window: Windows,
    /// Data sent and acknowledged since the start.
    pub sent: Sent,
    /// Timeouts, recoveries and other episodes since the start.
    pub episodes: Episodes,
    /// The time that the sender had data to send, and what limited it.
    pub busy: BusyTime,
    /// The receiver: received data and the offered window.
    pub receiver: Received,
}

/// The retransmission timer and the RTTs behind it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Timing {
    /// Retransmission timeout.
    pub rto: u64,
    /// RTT variation.
    pub rttvar: u64,
    /// The shortest RTT; zero before the first sample.
    pub min_rtt: u64,
    /// Timeouts in a row.
    pub retransmits: u32,
    /// Unanswered window probes.
    pub probes: u32,
    /// Doublings of the timeout.
    pub backoff: u32,
}

/// The sender's windows and unsent data.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Windows {
    /// Slow start threshold.
    pub snd_ssthresh: u32,
    /// Congestion window.
    pub snd_cwnd: u32,
    /// The peer's window in bytes.
    pub snd_wnd: u64,
    /// The pacer's rate in bytes per second, or zero without pacing.
    pub pacing_rate: u64,
    /// Reordering distance in segments.
    pub reordering: u32,
    /// Number of times that reordering was observed.
    pub reord_seen: u32,
    /// SND.UNA, of the 64-bit stream.
    pub snd_una: u64,
    /// SND.NXT.
    pub snd_nxt: u64,
    /// Bytes written and not yet sent.
    pub notsent_bytes: u64,
    /// Size of the send buffer in bytes.
    pub sndbuf: u64,
}

/// Data sent and acknowledged since the start.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Sent {
    /// Data segments sent.
    pub data_segs_out: u64,
    /// Bytes sent, retransmissions included.
    pub bytes_sent: u64,
    /// Number of retransmitted segments.
    pub total_retrans: u64,
    /// Bytes retransmitted.
    pub bytes_retrans: u64,
    /// Bytes acknowledged.
    pub bytes_acked: u64,
    /// Packets delivered.
    pub delivered: u64,
    /// D-SACKs received, in segments.
    pub dsack_dups: u64,
    /// Segments sent beyond the peer's window.
    pub beyond_window: u64,
}

/// Timeouts, recoveries and other episodes since the start.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Episodes {
    /// Retransmission timeouts.
    pub total_rto: u64,
    /// Tail loss probes.
    pub loss_probes: u64,
    /// Fast recoveries.
    pub recoveries: u64,
    /// Of those, the number with an application stall.
    pub stalled_recoveries: u64,
    /// Application stalls.
    pub application_stalls: u64,
    /// Undone reductions.
    pub undos: u64,
    /// Retransmissions by Hack 1.
    pub hack1: u64,
    /// Reductions caused by an ECN-Echo.
    pub ecn_reductions: u64,
}

/// The time that the sender had data to send, and what limited it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct BusyTime {
    /// Time with data to send.
    pub busy_time: u64,
    /// Of that, limited by the peer's window.
    pub rwnd_limited: u64,
    /// Of that, limited by the send buffer.
    pub sndbuf_limited: u64,
}

/// The receiver: received data and the offered window.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Received {
    /// Data segments received.
    pub data_segs_in: u64,
    /// Bytes received, in order or not.
    pub bytes_received: u64,
    /// Segments received out of order.
    pub rcv_ooopack: u64,
    /// Data segments received with CE.
    pub received_ce: u64,
    /// Size of the receive buffer in bytes.
    pub rcvbuf: u64,
    /// The receiver's own RTT.
    pub rcv_rtt: u64,
    /// The shortest receiver's RTT, if DRWA measures it.
    pub rcv_rtt_min: u64,
    /// DRWA's lambda in hundredths.
    pub drwa_lambda_percent: u32,
    /// RCV.NXT.
    pub rcv_nxt: u64,
    /// The right edge of the offered window. It never moves back.
    pub rcv_edge: u64,
    /// Bytes that wait for a hole to be filled.
    pub out_of_order: u64,
    /// Segments with discarded data beyond the window.
    pub beyond_rcv_wnd: u64,
}

/// The most frequently read fields of a [`Status`], which are cheap to read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct StatusSummary {
    /// Segments sent and not cumulatively acknowledged.
    pub unacked: u32,
    /// Of those, reported by SACK.
    pub sacked: u32,
    /// Of those, marked lost.
    pub lost: u32,
    /// Of those, retransmitted.
    pub retrans: u32,
    /// Pipe: unacked - sacked - lost + retrans.
    pub in_flight: u32,
    /// Smoothed RTT.
    pub rtt: u64,
}

impl Connection {
    /// Returns a few numbers of the current state.
    pub fn pulse(&self) -> StatusSummary {
        let (Sender { board, rtt, .. }, in_flight) = (self.halves().0, self.halves().0.in_flight());
        StatusSummary {
            unacked: board.packets_out(),
            sacked: board.packets_out() + board.retrans_out() - board.lost_out() - in_flight,
            lost: board.lost_out(),
            retrans: board.retrans_out(),
            in_flight,
            rtt: rtt.srtt().as_micros(),
        }
    }

    /// Returns the state at `now`.
    pub fn status(&self, now: Instant) -> Status {
        let (sender, receiver, queue) = self.halves();
        let (snd_wscale, rcv_wscale) = self.shifts();
        let (ecn, received_ce) = self.ecn_status();
        Status {
            state: self.state(),
            ca_state: sender.episode.state,
            congestion: sender.congestion().name(),
            reduction: self.config().reduction,
            detection: self.config().detection,
            snd_wscale,
            rcv_wscale,
            snd_mss: sender.mss,
            ecn,
            pulse: self.pulse(),
            timing: Timing::of(sender),
            window: Windows::of(sender, queue),
            sent: Sent::of(sender),
            episodes: Episodes::of(sender),
            busy: BusyTime::of(sender, now),
            receiver: Received::of(receiver, received_ce),
        }
    }
}

impl Timing {
    fn of(sender: &Sender) -> Self {
        let rtt = &sender.rtt;
        Timing {
            rto: sender.rto().as_micros(),
            rttvar: (rtt.rttvar4() / 4).as_micros(),
            min_rtt: rtt.min().unwrap_or(Duration::ZERO).as_micros(),
            retransmits: sender.timer.retransmits,
            probes: sender.timer.probes_out,
            backoff: sender.timer.backoff,
        }
    }
}

impl Windows {
    fn of(sender: &Sender, queue: &SendQueue) -> Self {
        let board = &sender.board;
        Windows {
            snd_ssthresh: sender.control.window.ssthresh,
            snd_cwnd: sender.control.window.cwnd,
            snd_wnd: sender.peer.snd_wnd,
            pacing_rate: sender.congestion().pacing_rate().unwrap_or(Rate::ZERO).as_bytes_per_sec(),
            reordering: sender.reordering.distance,
            reord_seen: sender.reordering.seen,
            snd_una: board.una(),
            snd_nxt: board.nxt(),
            notsent_bytes: queue.end().saturating_sub(board.nxt()),
            sndbuf: queue.size(),
        }
    }
}

impl Sent {
    fn of(sender: &Sender) -> Self {
        let totals = &sender.totals;
        Sent {
            data_segs_out: totals.segments_sent,
            bytes_sent: totals.bytes_sent,
            total_retrans: totals.segments_retransmitted,
            bytes_retrans: totals.bytes_retransmitted,
            bytes_acked: totals.bytes_acked,
            delivered: sender.rate.delivered(),
            dsack_dups: totals.dsack_dups,
            beyond_window: totals.beyond_window,
        }
    }
}

impl Episodes {
    fn of(Sender { totals, .. }: &Sender) -> Self {
        Episodes {
            total_rto: totals.timeouts,
            loss_probes: totals.probes,
            recoveries: totals.recoveries,
            stalled_recoveries: totals.stalled_recoveries,
            application_stalls: totals.stalls,
            undos: totals.undos,
            hack1: totals.hack1,
            ecn_reductions: totals.ecn_reductions,
        }
    }
}

impl BusyTime {
    fn of(sender: &Sender, now: Instant) -> Self {
        let (busy, rwnd, sndbuf) = sender.times(now);
        BusyTime {
            busy_time: busy.as_micros(),
            rwnd_limited: rwnd.as_micros(),
            sndbuf_limited: sndbuf.as_micros(),
        }
    }
}

impl Received {
    fn of(receiver: &Receiver, received_ce: u64) -> Self {
        let path = receiver.path();
        Received {
            data_segs_in: receiver.totals.segments,
            bytes_received: receiver.totals.bytes,
            rcv_ooopack: receiver.totals.out_of_order,
            received_ce,
            rcvbuf: receiver.buffer(),
            rcv_rtt: path.rtt.as_micros(),
            rcv_rtt_min: path.rtt_min.as_micros(),
            drwa_lambda_percent: path.lambda_percent,
            rcv_nxt: receiver.nxt,
            rcv_edge: receiver.edge(),
            out_of_order: receiver.out_of_order_bytes(),
            beyond_rcv_wnd: receiver.totals.beyond_window,
        }
    }
}
