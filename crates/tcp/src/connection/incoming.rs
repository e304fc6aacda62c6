//! Segments that arrive in a synchronised state (RFC 9293, Section 3.10.7.4; Linux tcp_validate_incoming).

use paceline_wire::{Duration, Flags, Instant, Payload};

use super::{CloseReason, Connection, State, parts};
use crate::segment::Incoming;
use crate::sender::{AckInput, AckVerdict};

/// TS.Recent is out of date once the peer's clock may have advanced by half its range (RFC 7323, Section 5.5). A clock
/// with ticks of a microsecond does so in 2,147 s (Linux TCP_PAWS_WRAP), one with ticks of a millisecond in 24 days.
const PAWS_AGE: Duration = Duration::from_secs(2_147);

/// Older echoes are ignored.
const ECHO_RTT_MAX: Duration = Duration::from_millis(1 << 20);

impl Connection {
    pub(super) fn on_segment(&mut self, now: Instant, incoming: &Incoming, payload: &Payload) {
        self.timers.on_received();
        self.last_received = now;
        match self.state {
            State::Closed => {}
            State::SynSent => self.on_segment_in_syn_sent(now, incoming, payload),
            _ => self.on_synchronised(now, incoming, payload),
        }
    }

    fn on_synchronised(&mut self, now: Instant, incoming: &Incoming, payload: &Payload) {
        let seq = incoming.seq.unwrap_near(self.receiver.nxt);
        if self.state == State::SynReceived && self.passive && parts::opens(incoming) {
            if seq + 1 == self.receiver.nxt {
                // Our SYN-ACK was lost.
                self.handshake.due = true;
            }
            return;
        }
        if !self.is_acceptable(now, incoming, seq) {
            return;
        }
        if incoming.has(Flags::RST) {
            return self.on_reset(now, seq);
        }
        if incoming.has(Flags::SYN) && !self.is_crossing(incoming, seq) {
            // RFC 5961, Section 4.
            return self.output.challenge(now);
        }
        if !incoming.has(Flags::ACK) {
            return;
        }
        if self.state == State::SynReceived && !self.complete_passive(now, incoming, seq) {
            return;
        }
        if !self.take_ack(now, incoming, seq) {
            return;
        }
        // After the ACK check, as in Linux (tcp_ack). Otherwise an unacceptable acknowledgement could set TS.Recent.
        self.take_timestamp(now, incoming, seq);
        if incoming.len > 0 || incoming.has(Flags::FIN) {
            self.receiver.acks.set_wire_len(incoming.wire_len);
            self.take_marks(incoming);
            self.take_data(now, seq, payload, incoming.has(Flags::FIN));
        }
        self.advance(now);
    }

    /// True if this is the peer's SYN of a simultaneous open, sent again with an ACK. It must have the same sequence
    /// number and carry nothing else (Linux tcp_validate_incoming). Any other SYN would shift its data by one byte in
    /// the stream.
    fn is_crossing(&self, incoming: &Incoming, seq: u64) -> bool {
        self.state == State::SynReceived
            && !self.passive
            && incoming.has(Flags::ACK)
            && incoming.seq_len() == 1
            && seq + 1 == self.receiver.nxt
    }

    /// Checks PAWS and the window (RFC 7323, Section 5.3; RFC 9293, Section 3.10.7.4, first check). Refused segments
    /// are answered, except resets.
    fn is_acceptable(&mut self, now: Instant, incoming: &Incoming, seq: u64) -> bool {
        let end = seq + u64::from(incoming.seq_len());
        if self.agreed.timestamps
            && !incoming.has(Flags::RST)
            && let Some((value, _)) = incoming.timestamps
            && !self.is_paws_ok(now, value)
        {
            self.refuse(now, incoming, seq, end);
            return false;
        }
        if !self.receiver.accepts(seq, end) {
            if !incoming.has(Flags::RST) {
                self.refuse(now, incoming, seq, end);
            }
            return false;
        }
        true
    }

    /// Answers an unacceptable segment: at once if it has data, SYN or FIN, else at a limited rate (Linux
    /// tcp_oow_rate_limited). Without the limit two such ends would answer each other for ever.
    #[cold]
    fn refuse(&mut self, now: Instant, incoming: &Incoming, seq: u64, end: u64) {
        if incoming.seq_len() == 0 {
            return self.output.challenge(now);
        }
        if incoming.len > 0 && end <= self.receiver.nxt {
            self.receiver.on_old_duplicate(seq, end);
        }
        if self.state == State::TimeWait {
            self.timers.restart_time_wait(now, self.config.time_wait);
        }
        self.receiver.acks.now();
    }

    /// RFC 5961, Section 3: only the exact sequence number resets the connection. Others get a challenge ACK.
    #[cold]
    fn on_reset(&mut self, now: Instant, seq: u64) {
        if seq == self.receiver.nxt {
            let reason =
                if self.state == State::SynReceived { CloseReason::Refused } else { CloseReason::Reset };
            self.finish(reason);
        } else {
            self.output.challenge(now);
        }
    }

    /// RFC 7323, Section 4.3: takes TS.Recent from segments that begin at or before the last acknowledgement sent.
    fn take_timestamp(&mut self, now: Instant, incoming: &Incoming, seq: u64) {
        let Some((value, _)) = incoming.timestamps.filter(|_| self.agreed.timestamps) else { return };
        if seq <= self.receiver.acknowledged() && self.is_paws_ok(now, value) {
            self.ts_recent = value;
            self.ts_recent_at = now;
        }
    }

    /// True if the timestamp is not older than TS.Recent. Also true if TS.Recent says nothing: it is out of date, or
    /// the peer's SYN had a zero in place of its clock (Linux tcp_paws_check).
    fn is_paws_ok(&self, now: Instant, value: u32) -> bool {
        (value.wrapping_sub(self.ts_recent) as i32) >= 0
            || self.ts_recent == 0
            || now.saturating_since(self.ts_recent_at) >= PAWS_AGE
    }

    /// Processes the acknowledgement. False if the segment must be dropped.
    fn take_ack(&mut self, now: Instant, incoming: &Incoming, seq: u64) -> bool {
        let una = self.sender.board.una();
        let ack = incoming.ack.unwrap_near(una);
        let mut sacks = [(0, 0); 4];
        let count = if self.agreed.sack { incoming.sacks().len() } else { 0 };
        for (position, &(start, end)) in sacks.iter_mut().zip(&incoming.sacks()[..count]) {
            *position = (start.unwrap_near(una), end.unwrap_near(una));
        }
        let tsecr =
            incoming.timestamps.map(|(_, echo)| echo).filter(|&echo| self.agreed.timestamps && echo != 0);
        let echo_rtt = tsecr.and_then(|echo| self.echo_rtt(now, echo));
        if let (Some(echo), Some(rtt), true) = (tsecr, echo_rtt, incoming.len > 0) {
            self.receiver.on_rtt(now, echo, rtt);
        }
        let input = AckInput {
            now,
            seq,
            ack,
            window: self.window_of(incoming),
            sacks: &sacks[..count],
            tsval: incoming.timestamps.map(|(value, _)| value).filter(|_| self.agreed.timestamps),
            tsecr,
            echo_rtt,
            data: incoming.seq_len() > 0,
            ece: self.is_echo(incoming),
            accelerate: self.accelerate_echo(incoming),
        };
        match self.sender.on_ack(&input) {
            AckVerdict::Taken => self.on_acked(una),
            AckVerdict::Old => {}
            AckVerdict::TooOld => {
                self.output.challenge(now);
                return false;
            }
            AckVerdict::Unsent => {
                // RFC 9293: send an ACK and drop.
                self.output.challenge(now);
                return false;
            }
        }
        true
    }

    /// Returns the advertised window in bytes. The window of a SYN is never scaled (RFC 7323, Section 2.2).
    pub(super) fn window_of(&self, incoming: &Incoming) -> u64 {
        let shift = if incoming.has(Flags::SYN) { 0 } else { self.agreed.snd_shift };
        u64::from(incoming.window) << shift
    }

    fn on_acked(&mut self, prior_una: u64) {
        let una = self.sender.board.una();
        if una == prior_una {
            return;
        }
        self.queue.acknowledge(una);
        let bytes = u64::from(self.sender.control.window.cwnd) * u64::from(self.sender.mss);
        let windows = self.sender.congestion().send_buffer_windows();
        self.queue.on_window(bytes, windows);
        self.receiver.acks.set_rtt(self.sender.rtt.srtt());
    }

    /// Returns the time since our clock showed `echo`, at least one tick. `None` if it is implausibly long (Linux
    /// tcp_ack_update_rtt).
    fn echo_rtt(&self, now: Instant, echo: u32) -> Option<Duration> {
        let ticks = self.sender.timestamp(now).wrapping_sub(echo);
        let rtt = self.config.timestamp_clock.tick * u64::from(ticks.max(1));
        (rtt < ECHO_RTT_MAX).then_some(rtt)
    }

    pub(super) fn take_data(&mut self, now: Instant, start: u64, payload: &Payload, fin: bool) {
        if matches!(self.state, State::CloseWait | State::Closing | State::LastAck | State::TimeWait) {
            // The peer's FIN came before, so no data may follow (RFC 9293, seventh check). A repeated FIN is answered.
            self.receiver.acks.now();
            if self.state == State::TimeWait {
                self.timers.restart_time_wait(now, self.config.time_wait);
            }
            return;
        }
        self.receiver.on_data(now, start, payload, fin);
    }

    /// Makes the state changes that the segment causes.
    #[inline]
    fn advance(&mut self, now: Instant) {
        if self.state != State::Established || self.receiver.is_finished() {
            self.close_on(now);
        }
    }

    #[cold]
    fn close_on(&mut self, now: Instant) {
        let peer_closed = self.receiver.is_finished();
        let fin_acked = self.fin_acked();
        self.state = match self.state {
            State::Established if peer_closed => State::CloseWait,
            State::FinWait1 if fin_acked && peer_closed => self.enter_time_wait(now),
            State::FinWait1 if fin_acked => State::FinWait2,
            State::FinWait1 if peer_closed => State::Closing,
            State::FinWait2 if peer_closed => self.enter_time_wait(now),
            State::Closing if fin_acked => self.enter_time_wait(now),
            State::LastAck if fin_acked => {
                self.finish(CloseReason::Finished);
                State::Closed
            }
            state => state,
        };
    }

    fn enter_time_wait(&mut self, now: Instant) -> State {
        self.timers.restart_time_wait(now, self.config.time_wait);
        State::TimeWait
    }
}
