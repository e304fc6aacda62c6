//! Segments that leave.

use paceline_wire::{Duration, Flags, Instant, Packet, Payload, SackBlocks, Seq, TcpOptionsRepr, TcpRepr};

use super::{Connection, State};
use crate::sender::Transmission;

/// What waits to be sent beside data and ACKs.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Pending {
    /// A reset at this number.
    reset: Option<Seq>,
    /// A reset of the connection.
    abort: bool,
    challenge: bool,
    last_challenge: Option<Instant>,
    /// A segment that the peer must answer: a probe of an idle peer.
    pub(super) keep_alive: bool,
}

/// Linux net.ipv4.tcp_invalid_ratelimit.
const CHALLENGE_INTERVAL: Duration = Duration::from_millis(500);

impl Pending {
    /// Refuses a segment (RFC 9293, Section 3.5.2).
    pub(super) fn reset_at(&mut self, seq: Seq) {
        self.reset = Some(seq);
    }

    /// Tells the peer that all is over.
    pub(super) fn abort(&mut self) {
        self.abort = true;
    }

    /// A challenge ACK, not too often (RFC 5961, Section 10).
    pub(super) fn challenge(&mut self, now: Instant) {
        if self.last_challenge.is_none_or(|last| now.saturating_since(last) >= CHALLENGE_INTERVAL) {
            self.last_challenge = Some(now);
            self.challenge = true;
        }
    }
}

impl Connection {
    /// The next packet to send; `None` when there is nothing to send at `now`.
    pub fn poll_transmit(&mut self, now: Instant) -> Option<Packet> {
        if let Some(seq) = self.output.reset.take() {
            return Some(self.build_reset(seq, false));
        }
        if core::mem::take(&mut self.output.abort) {
            return Some(self.build_reset(self.snd_seq(self.sender.board.nxt()), true));
        }
        match self.state {
            State::Closed if !self.receiver.acks.is_due() => return None,
            State::SynSent | State::SynReceived => return self.poll_handshake(now),
            State::Closed | State::TimeWait => {}
            _ => {
                if self.receiver.acks.is_due() && self.receiver.has_blocks() {
                    // SACK blocks find no room beside a full segment.
                    return Some(self.build_ack(now));
                }
                if !self.sender.is_idle() {
                    let supply = self.supply();
                    if let Some(transmission) = self.sender.poll(now, supply) {
                        return Some(self.build_data(now, transmission));
                    }
                }
                if core::mem::take(&mut self.sender.window_probe)
                    | core::mem::take(&mut self.output.keep_alive)
                {
                    return Some(self.build_probe(now));
                }
            }
        }
        if self.receiver.acks.is_due() || core::mem::take(&mut self.output.challenge) {
            return Some(self.build_ack(now));
        }
        None
    }

    fn poll_handshake(&mut self, now: Instant) -> Option<Packet> {
        if core::mem::take(&mut self.output.challenge) && self.state == State::SynReceived {
            return Some(self.build_ack(now));
        }
        if !self.handshake.due {
            return None;
        }
        self.handshake.on_sent(now);
        Some(self.build_syn(now))
    }

    fn build_syn(&mut self, now: Instant) -> Packet {
        let answering = self.state == State::SynReceived;
        let (timestamps, sack) = match answering {
            true => (self.agreed.timestamps, self.agreed.sack),
            false => (self.config.timestamps, self.config.sack),
        };
        let scaling = self.config.window_scaling && (!answering || self.agreed.scaling);
        let echo = if answering { self.ts_recent } else { 0 };
        let options = TcpOptionsRepr {
            mss: Some(self.config.mss),
            window_scale: scaling.then(|| self.offered_shift()),
            sack_permitted: sack,
            timestamps: timestamps.then(|| (self.sender.timestamp(now), echo)),
            ..TcpOptionsRepr::default()
        };
        let flags = if answering { Flags::SYN | Flags::ACK } else { Flags::SYN };
        let repr = TcpRepr {
            seq: self.snd_seq(self.iss),
            ack: if answering { self.snd_seq(self.receiver.nxt) } else { Seq(0) },
            flags,
            window: self.receiver.take_syn_window(),
            options,
            ..TcpRepr::default()
        };
        Packet::build_tcp(self.key, &repr, Payload::Length(0))
    }

    fn build_data(&mut self, now: Instant, transmission: Transmission) -> Packet {
        let Transmission { start, end, fin, .. } = transmission;
        let data_end = end - u64::from(fin);
        let payload = self.queue.payload(start, data_end);
        let mut flags = Flags::ACK;
        if fin {
            flags |= Flags::FIN;
        }
        if data_end == self.queue.end() {
            flags |= Flags::PSH;
        }
        self.receiver.acks.on_data_sent(now);
        self.build(now, start, flags, TcpOptionsRepr::default(), payload)
    }

    /// A pure ACK, with SACK blocks: three beside timestamps, four without (RFC 2018, Section 3).
    fn build_ack(&mut self, now: Instant) -> Packet {
        let mut sack_blocks = SackBlocks::default();
        if self.agreed.sack && self.receiver.has_blocks() {
            let room = if self.agreed.timestamps { 3 } else { 4 };
            self.receiver.take_blocks(room, |start, end| {
                sack_blocks.push(Seq::from(start), Seq::from(end));
            });
        }
        let options = TcpOptionsRepr { sack_blocks, ..TcpOptionsRepr::default() };
        self.build(now, self.sender.board.nxt(), Flags::ACK, options, Payload::Length(0))
    }

    /// A segment from before the window, which must be answered (Linux tcp_xmit_probe_skb).
    fn build_probe(&mut self, now: Instant) -> Packet {
        let seq = self.sender.board.una() - 1;
        self.build(now, seq, Flags::ACK, TcpOptionsRepr::default(), Payload::Length(0))
    }

    fn build(
        &mut self,
        now: Instant,
        position: u64,
        flags: Flags,
        mut options: TcpOptionsRepr,
        payload: Payload,
    ) -> Packet {
        if self.agreed.timestamps {
            options.timestamps = Some((self.sender.timestamp(now), self.ts_recent));
        }
        let repr = TcpRepr {
            seq: self.snd_seq(position),
            ack: self.snd_seq(self.receiver.nxt),
            flags,
            window: self.receiver.take_window(self.agreed.rcv_shift),
            options,
            ..TcpRepr::default()
        };
        self.receiver.acks.on_ack_sent();
        Packet::build_tcp(self.key, &repr, payload)
    }

    fn build_reset(&self, seq: Seq, acks: bool) -> Packet {
        let flags = if acks { Flags::RST | Flags::ACK } else { Flags::RST };
        let ack = if acks { self.snd_seq(self.receiver.nxt) } else { Seq(0) };
        let repr = TcpRepr { seq, ack, flags, ..TcpRepr::default() };
        Packet::build_tcp(self.key, &repr, Payload::Length(0))
    }
}
