//! The interface for a relay between two connections: how much may leave, what has arrived, and how much window to
//! offer.

use paceline_wire::Duration;

use super::{Connection, State};
use crate::delivery::Delivery;

/// Our choice: the bytes that five rounds of slow start from ten segments send. Short transfers need less.
const AT_ONCE: u64 = 524_288;
/// Our choice: a minimum demand is at most three times what the window sends in `time`. Data that is not here when a
/// burst of ACKs comes is here after `time`. Where ACKs wait on the uplink, the round trip is much longer than `time`.
/// A whole window would then only wait here. With 8 in place of 3, mixed flows waited for 512 ms in place of 442, at
/// the same throughput. (Mean of the 95th percentiles of 60 drawn points.)
const BURSTS: u64 = 3;

impl Connection {
    /// Allows the next `bytes` bytes to leave. The last segment may exceed them. `u64::MAX`, the initial value, means
    /// no bound. The first unacknowledged segment, when it was lost, and probes need no allowance, because everything
    /// waits for them.
    pub fn set_allowance(&mut self, bytes: u64) {
        self.sender.pacer.allowance = bytes;
        if bytes > 0 && self.sender.pacer.held {
            self.sender.wake();
        }
    }

    /// True if the last poll had data to send but no allowance. False after the end, when the connection is no longer
    /// polled.
    pub fn is_held(&self) -> bool {
        self.sender.pacer.held && !matches!(self.state, State::Closed | State::TimeWait)
    }

    /// Bytes in flight by loss detection (pipe of RFC 6675), counted in full segments.
    pub fn pipe(&self) -> u64 {
        u64::from(self.sender.in_flight()) * u64::from(self.sender.mss)
    }

    /// The position after the highest byte sent.
    pub fn sent(&self) -> u64 {
        self.sender.board.nxt()
    }

    /// The position after the last in-order byte received.
    pub fn received(&self) -> u64 {
        self.receiver.nxt
    }

    /// Bytes of payload received.
    pub fn bytes_received(&self) -> u64 {
        self.receiver.totals.bytes
    }

    /// The position after the highest byte received, in order or not.
    pub fn highest_received(&self) -> u64 {
        self.receiver.highest()
    }

    /// Payload of a full-sized segment that this end sends. ICMP messages of routers may have lowered it (RFC 1191).
    pub fn segment(&self) -> u64 {
        u64::from(self.sender.mss)
    }

    /// Payload of a full-sized segment of the peer, and the smallest window offered to it. Both follow from the
    /// handshake.
    pub fn peer_segment(&self) -> u64 {
        self.receiver.segment()
    }

    /// Length of the next super-packet if only the windows bound it: new data that is adjacent in memory, or zero if
    /// none may leave. One segment if losses wait for retransmission, or if a pacing rate is set.
    pub fn next_piece(&self) -> u64 {
        let sender = &self.sender;
        let segment = self.segment();
        if sender.board.lost_out() > 0 || sender.control.is_paced() {
            return segment;
        }
        let nxt = sender.board.nxt();
        let (_, piece_end) = self.queue.piece(nxt);
        let room = u64::from(sender.control.window.cwnd.saturating_sub(sender.in_flight())) * segment;
        piece_end
            .saturating_sub(nxt)
            .min(room)
            .min(sender.peer.offered_end(sender.board.una()).saturating_sub(nxt))
    }

    /// The remaining allowance in bytes; see [`set_allowance`](Self::set_allowance).
    pub fn allowance(&self) -> u64 {
        self.sender.pacer.allowance
    }

    /// Returns the deliveries reported since the last call.
    pub fn take_delivery(&mut self) -> Delivery {
        self.sender.report.take_delivery(self.sender.board.lost_total(), u64::from(self.sender.mss))
    }

    /// Number of retransmission timeouts since the start.
    pub fn timeouts(&self) -> u64 {
        self.sender.totals.timeouts
    }

    /// The last window that the peer advertised.
    pub fn peer_window(&self) -> u64 {
        self.sender.peer.snd_wnd
    }

    /// Limits the window offered to the peer, even if the receive buffer has more room. The right edge never moves
    /// back.
    pub fn limit_window(&mut self, bytes: u64) {
        self.receiver.limit(bytes);
    }

    /// Bytes that the peer may still send by the windows advertised to it.
    pub fn advertised(&self) -> u64 {
        self.receiver.edge().saturating_sub(self.receiver.nxt)
    }

    /// Bytes written and not yet sent.
    pub fn unsent(&self) -> u64 {
        self.queue.end().saturating_sub(self.sender.board.nxt())
    }

    /// Returns the bytes that this end would send within `time` with its present windows, if at most `most` may be in
    /// flight. The minimum is the smaller of the initial window and `burst`. In the first slow start ACKs come in
    /// bursts, so the minimum is what a whole round trip may send. With a pacing rate the window may be no measure,
    /// because RRE leaves it open. Then the demand is at most twice the paced bytes, because a pace may double within a
    /// round trip.
    pub fn demand(&self, time: Duration, most: u64, burst: u64) -> u64 {
        let sender = &self.sender;
        let mss = u64::from(sender.mss);
        let initial = u64::from(self.config.initial_cwnd) * mss;
        let cwnd = u64::from(sender.control.window.cwnd) * mss;
        let most = most.min(sender.peer.snd_wnd);
        let unhurt = sender.totals.recoveries == 0 && sender.totals.timeouts == 0;
        let doubles = unhurt && sender.control.window.in_slow_start() && cwnd < most;
        let window = if doubles { 2 * cwnd } else { cwnd }.min(most);
        // Before the first sample, for example after a repeated SYN, nothing is known of later windows.
        let srtt = if self.srtt().is_zero() { time } else { self.srtt() };
        let share = |window: u64| {
            let share = u128::from(window) * u128::from(time.as_nanos()) / u128::from(srtt.as_nanos().max(1));
            u64::try_from(share).unwrap_or(u64::MAX)
        };
        // Ten segments of each of four flows take 240 ms at 2 Mbit/s.
        let at_once = if doubles { window.min(AT_ONCE) } else { initial.min(burst) };
        let at_once = at_once.min(share(window.max(initial)).saturating_mul(BURSTS)).max(2 * mss);
        let paced = sender.congestion().pacing_rate().map_or(u64::MAX, |pace| 2 * pace.bytes_in(time));
        share(window).min(paced).max(at_once)
    }

    /// The smoothed RTT; zero before the first sample.
    pub fn srtt(&self) -> Duration {
        self.sender.rtt.srtt()
    }

    /// The smoothed RTT. Our choice before the first sample: the time from the last SYN to its answer. A peer that only
    /// sends gives no sample if the SYN was sent twice (Karn). With zero, two of ten seeds of `harm-cells` had .5 of 16
    /// Mbit/s. Zero if both are missing.
    pub fn round_trip(&self) -> Duration {
        let srtt = self.srtt();
        if srtt.is_zero() { self.handshake.answered_in } else { srtt }
    }

    /// The shortest RTT, `None` before the first sample.
    pub fn min_rtt(&self) -> Option<Duration> {
        self.sender.rtt.min()
    }

    /// True if packets leave at a pacing rate, not only by the ACK clock.
    pub fn is_paced(&self) -> bool {
        self.sender.control.is_paced()
    }
}
