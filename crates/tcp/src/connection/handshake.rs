//! Opening (RFC 9293, Section 3.5), simultaneous open included.

use paceline_wire::{Duration, Flags, Instant, Payload};

use super::{CloseReason, Connection, State};
use crate::segment::{Incoming, SHIFT_MAX};
use crate::sender;

impl Connection {
    /// Makes [`retransmit_syn`](Self::retransmit_syn) the only cause of SYN retransmissions. For a relay, which
    /// connects on behalf of another host.
    pub fn set_syn_on_demand(&mut self) {
        self.handshake.on_demand = true;
    }

    /// Retransmits the SYN if nothing has answered it.
    pub fn retransmit_syn(&mut self) {
        self.handshake.due |= self.state == State::SynSent;
    }

    /// Takes the options of the peer's SYN. An option is used if both ends have it.
    pub(super) fn take_syn_options(&mut self, now: Instant, incoming: &Incoming) {
        self.agreed.timestamps = self.config.timestamps && incoming.timestamps.is_some();
        self.agreed.sack = self.config.sack && incoming.sack_permitted;
        self.handshake.peer_mss = incoming.mss;
        self.take_syn_ecn(incoming);
        match incoming.window_scale {
            Some(shift) if self.config.window_scaling => {
                self.agreed.scaling = true;
                self.agreed.snd_shift = shift;
                self.agreed.rcv_shift = self.offered_shift();
            }
            _ => (self.agreed.snd_shift, self.agreed.rcv_shift) = (0, 0),
        }
        if let Some((value, _)) = incoming.timestamps {
            self.ts_recent = value;
            self.ts_recent_at = now;
        }
        self.sender.peer.snd_wnd = u64::from(incoming.window);
    }

    /// Returns the smallest shift with which the window can show the whole buffer (Linux tcp_select_initial_window).
    pub(super) fn offered_shift(&self) -> u8 {
        let max = self.config.receive_buffer.max();
        (0..SHIFT_MAX).find(|&shift| u64::from(max) >> shift <= 65_535).unwrap_or(SHIFT_MAX)
    }

    /// SYN-SENT (RFC 9293, Section 3.10.7.3).
    #[cold]
    pub(super) fn on_segment_in_syn_sent(&mut self, now: Instant, incoming: &Incoming, payload: &Payload) {
        let acks_syn = incoming.ack == self.snd_seq(self.iss + 1);
        if incoming.has(Flags::ACK) && !acks_syn {
            if !incoming.has(Flags::RST) {
                self.output.reset_at(incoming.ack);
            }
            return;
        }
        if incoming.has(Flags::RST) {
            if incoming.has(Flags::ACK) {
                self.finish(CloseReason::Refused);
            }
            return;
        }
        if !incoming.has(Flags::SYN) {
            return;
        }
        let irs = (1 << 32) + u64::from(incoming.seq.0);
        self.receiver.expect(irs + 1);
        self.receiver.take_syn_window();
        self.take_syn_options(now, incoming);
        if !incoming.has(Flags::ACK) {
            // Simultaneous open: our SYN is sent again, as a SYN-ACK.
            self.state = State::SynReceived;
            self.handshake.due = true;
            return;
        }
        self.establish(now, incoming, irs);
        self.receiver.acks.now();
        if !payload.is_empty() {
            // Data in a SYN-ACK (RFC 7413) is taken as the first data of the stream.
            self.take_data(now, irs + 1, payload, incoming.has(Flags::FIN));
        }
    }

    /// SYN-RECEIVED: the ACK that ends the handshake (RFC 9293, Section 3.10.7.4).
    #[cold]
    pub(super) fn complete_passive(&mut self, now: Instant, incoming: &Incoming, seq: u64) -> bool {
        if incoming.ack != self.snd_seq(self.iss + 1) {
            self.output.reset_at(incoming.ack);
            return false;
        }
        self.establish(now, incoming, seq);
        true
    }

    fn establish(&mut self, now: Instant, incoming: &Incoming, wl1: u64) {
        self.state = State::Established;
        // RFC 9293, Section 3.7.1: the default is 536. The length of options is subtracted.
        let peer = self.handshake.peer_mss.unwrap_or(536).max(64);
        let options = if self.agreed.timestamps { 12 } else { 0 };
        let mss = u32::from(self.config.mss.min(peer)) - options;
        let window = self.window_of(incoming);
        let agreed =
            sender::NegotiatedOptions { mss, sack: self.agreed.sack, timestamps: self.agreed.timestamps };
        self.sender.on_established(agreed, self.iss + 1, window, wl1);
        self.show_peer_clock(now, incoming);
        self.receiver.on_established(mss, self.agreed.rcv_shift);
        self.receiver.acks.on_established(self.receiver.buffer(), mss, self.agreed.sack);
        self.take_handshake_rtt(now, incoming);
        let windows = self.sender.congestion().send_buffer_windows();
        self.queue.on_window(u64::from(self.sender.control.window.cwnd) * u64::from(mss), windows);
        self.handshake.timer = None;
        self.handshake.due = false;
        if self.queue.is_closed() {
            self.state = State::FinWait1;
        }
        self.sender.wake();
    }

    /// Passes what the handshake shows of the peer's clock: the arrival of the SYN, and the answer to our own SYN.
    fn show_peer_clock(&mut self, now: Instant, incoming: &Incoming) {
        let Some((value, _)) = incoming.timestamps.filter(|_| self.agreed.timestamps) else { return };
        if self.passive {
            self.sender.on_peer_timestamp(self.ts_recent, None, self.ts_recent_at);
        }
        self.sender.on_peer_timestamp(value, self.handshake.first_sent, now);
    }

    /// Takes the RTT of the handshake, unless a SYN was sent twice (Karn; RFC 6298, Section 3; Linux
    /// tcp_synack_rtt_meas). After more than one timeout the first window is one segment. RFC 6298, Section 5.7 asks
    /// for a longer timeout, Linux tcp_init_transfer for a smaller window. The window stays if the echoed timestamp is
    /// that of the first SYN, because then no SYN was lost (tcp_try_undo_spurious_syn).
    fn take_handshake_rtt(&mut self, now: Instant, incoming: &Incoming) {
        let Some(first_sent) = self.handshake.first_sent else { return };
        if !self.handshake.resent {
            let rtt = now.saturating_since(first_sent).max(Duration::from_micros(1));
            let (una, nxt) = (self.sender.board.una(), self.sender.board.nxt());
            self.sender.rtt.on_min_sample(now, rtt);
            self.sender.rtt.on_sample(rtt, una, nxt);
            self.receiver.acks.set_rtt(rtt);
            return;
        }
        let echo = incoming.timestamps.map(|(_, echo)| echo).filter(|_| self.agreed.timestamps);
        let spurious = echo == Some(self.sender.timestamp(first_sent));
        self.handshake.answered_in =
            now.saturating_since(if spurious { first_sent } else { self.handshake.last_sent });
        if self.handshake.retransmissions > 1 && !spurious {
            self.sender.control.window.cwnd = 1;
        }
    }
}
