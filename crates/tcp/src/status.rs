//! A plain copy of the state of a connection, for tests, logs and plots.

use paceline_wire::{Duration, Instant, Rate};

use crate::congestion::{CaState, CongestionName};
use crate::connection::{Connection, State};
use crate::detection::DetectionName;
use crate::reduction::ReductionName;
use crate::sender::Sender;

/// The state of a connection. Fields that Linux's struct tcp_info has are named as there; windows are in packets of
/// `snd_mss`, times in microseconds.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Status {
    /// Where it is in its life.
    pub state: State,
    /// The state of the sender.
    pub ca_state: CaState,
    /// Congestion control.
    pub congestion: CongestionName,
    /// Rate reduction.
    pub reduction: ReductionName,
    /// Loss detection.
    pub detection: DetectionName,
    /// Timeouts in a row.
    pub retransmits: u32,
    /// Window probes unanswered.
    pub probes: u32,
    /// Doublings of the timeout.
    pub backoff: u32,
    /// Shift of the peer's windows.
    pub snd_wscale: u8,
    /// Shift of ours.
    pub rcv_wscale: u8,
    /// Retransmission timeout.
    pub rto: u64,
    /// Payload of a full-sized segment.
    pub snd_mss: u32,
    /// Segments sent and not cumulatively acknowledged.
    pub unacked: u32,
    /// Of those, reported by SACK.
    pub sacked: u32,
    /// Of those, taken for lost.
    pub lost: u32,
    /// Of those, sent again.
    pub retrans: u32,
    /// Pipe: unacked - sacked - lost + retrans.
    pub in_flight: u32,
    /// Smoothed RTT.
    pub rtt: u64,
    /// Its variance.
    pub rttvar: u64,
    /// The shortest RTT; zero before the first sample.
    pub min_rtt: u64,
    /// Slow start threshold.
    pub snd_ssthresh: u32,
    /// Congestion window.
    pub snd_cwnd: u32,
    /// The peer's window in bytes.
    pub snd_wnd: u64,
    /// Reordering distance in segments.
    pub reordering: u32,
    /// Times that reordering was seen.
    pub reord_seen: u32,
    /// Segments sent again in all.
    pub total_retrans: u64,
    /// The pacer's rate in bytes per second; zero without one.
    pub pacing_rate: u64,
    /// Bytes acknowledged.
    pub bytes_acked: u64,
    /// Bytes received in order or not.
    pub bytes_received: u64,
    /// Bytes sent, retransmissions included.
    pub bytes_sent: u64,
    /// Bytes sent again.
    pub bytes_retrans: u64,
    /// Data segments sent.
    pub data_segs_out: u64,
    /// Data segments received.
    pub data_segs_in: u64,
    /// Bytes written and not yet sent.
    pub notsent_bytes: u64,
    /// Packets delivered.
    pub delivered: u64,
    /// Time with something to send.
    pub busy_time: u64,
    /// Of that, limited by the peer's window.
    pub rwnd_limited: u64,
    /// Of that, limited by the send buffer.
    pub sndbuf_limited: u64,
    /// D-SACKs received, in segments.
    pub dsack_dups: u64,
    /// Segments received out of order.
    pub rcv_ooopack: u64,
    /// Timeouts of the retransmission timer.
    pub total_rto: u64,
    /// Probes of the tail.
    pub loss_probes: u64,
    /// Fast recoveries.
    pub recoveries: u64,
    /// Of those, how many met an application stall.
    pub stalled_recoveries: u64,
    /// Application stalls.
    pub application_stalls: u64,
    /// Reductions taken back.
    pub undos: u64,
    /// Segments sent beyond the peer's window.
    pub beyond_window: u64,
    /// Retransmissions that Hack 1 brought.
    pub hack1: u64,
    /// ECN was agreed.
    pub ecn: bool,
    /// Reductions that an ECN-Echo called for.
    pub ecn_reductions: u64,
    /// Segments with data received that had met congestion.
    pub received_ce: u64,
    /// Size of the send buffer in bytes.
    pub sndbuf: u64,
    /// Size of the receive buffer in bytes.
    pub rcvbuf: u64,
    /// The receiver's own RTT.
    pub rcv_rtt: u64,
    /// The shortest of it, where DRWA keeps it.
    pub rcv_rtt_min: u64,
    /// DRWA's lambda in hundredths.
    pub drwa_lambda_percent: u32,
    /// SND.UNA, of the 64-bit stream.
    pub snd_una: u64,
    /// SND.NXT.
    pub snd_nxt: u64,
    /// RCV.NXT.
    pub rcv_nxt: u64,
    /// The right edge of the window offered; never moves back.
    pub rcv_edge: u64,
    /// Bytes that wait for a hole to be filled.
    pub out_of_order: u64,
    /// Data received beyond the window and thrown away, in segments.
    pub beyond_rcv_wnd: u64,
}

/// What is looked at most often of a [`Status`], and costs little to look at.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Pulse {
    /// Segments sent and not cumulatively acknowledged.
    pub unacked: u32,
    /// Of those, reported by SACK.
    pub sacked: u32,
    /// Of those, taken for lost.
    pub lost: u32,
    /// Of those, sent again.
    pub retrans: u32,
    /// Pipe: unacked - sacked - lost + retrans.
    pub in_flight: u32,
    /// Smoothed RTT.
    pub rtt: u64,
}

impl Connection {
    /// A few numbers of the present state.
    pub fn pulse(&self) -> Pulse {
        let (Sender { board, rtt, .. }, in_flight) = (self.halves().0, self.halves().0.in_flight());
        Pulse {
            unacked: board.packets_out(),
            sacked: board.packets_out() + board.retrans_out() - board.lost_out() - in_flight,
            lost: board.lost_out(),
            retrans: board.retrans_out(),
            in_flight,
            rtt: rtt.srtt().as_micros(),
        }
    }

    /// The present state, at `now`.
    pub fn status(&self, now: Instant) -> Status {
        let (sender, receiver, queue) = self.halves();
        let (board, rtt, totals) = (&sender.board, &sender.rtt, &sender.totals);
        let (busy, rwnd, sndbuf) = sender.times(now);
        let (snd_wscale, rcv_wscale) = self.shifts();
        let path = receiver.path();
        let Pulse { unacked, sacked, lost, retrans, in_flight, rtt: srtt } = self.pulse();
        Status {
            state: self.state(),
            ca_state: sender.episode.state,
            congestion: sender.congestion().name(),
            reduction: self.config().reduction,
            detection: self.config().detection,
            retransmits: sender.timer.retransmits,
            probes: sender.timer.probes_out,
            backoff: sender.timer.backoff,
            snd_wscale,
            rcv_wscale,
            rto: sender.rto().as_micros(),
            snd_mss: sender.mss,
            unacked,
            sacked,
            lost,
            retrans,
            in_flight,
            rtt: srtt,
            rttvar: (rtt.rttvar4() / 4).as_micros(),
            min_rtt: rtt.min().unwrap_or(Duration::ZERO).as_micros(),
            snd_ssthresh: sender.control.window.ssthresh,
            snd_cwnd: sender.control.window.cwnd,
            snd_wnd: sender.peer.snd_wnd,
            reordering: sender.reordering.distance,
            reord_seen: sender.reordering.seen,
            total_retrans: totals.segments_retransmitted,
            pacing_rate: sender.congestion().pacing_rate().unwrap_or(Rate::ZERO).as_bytes_per_sec(),
            bytes_acked: totals.bytes_acked,
            bytes_received: receiver.totals.bytes,
            bytes_sent: totals.bytes_sent,
            bytes_retrans: totals.bytes_retransmitted,
            data_segs_out: totals.segments_sent,
            data_segs_in: receiver.totals.segments,
            notsent_bytes: queue.end().saturating_sub(board.nxt()),
            delivered: sender.rate.delivered(),
            busy_time: busy.as_micros(),
            rwnd_limited: rwnd.as_micros(),
            sndbuf_limited: sndbuf.as_micros(),
            dsack_dups: totals.dsack_dups,
            rcv_ooopack: receiver.totals.out_of_order,
            total_rto: totals.timeouts,
            loss_probes: totals.probes,
            recoveries: totals.recoveries,
            stalled_recoveries: totals.stalled_recoveries,
            application_stalls: totals.stalls,
            undos: totals.undos,
            beyond_window: totals.beyond_window,
            hack1: totals.hack1,
            ecn: self.ecn_status().0,
            ecn_reductions: totals.ecn_reductions,
            received_ce: self.ecn_status().1,
            sndbuf: queue.size(),
            rcvbuf: receiver.buffer(),
            rcv_rtt: path.rtt.as_micros(),
            rcv_rtt_min: path.rtt_min.as_micros(),
            drwa_lambda_percent: path.lambda_percent,
            snd_una: board.una(),
            snd_nxt: board.nxt(),
            rcv_nxt: receiver.nxt,
            rcv_edge: receiver.edge(),
            out_of_order: receiver.out_of_order_bytes(),
            beyond_rcv_wnd: receiver.totals.beyond_window,
        }
    }
}
