//! Outgoing segments.

use paceline_wire::{Flags, Instant, Packet, Payload, SackBlocks, Seq, TcpFields, TcpOptionsRepr, TcpRepr};

use super::{Connection, State};
use crate::sender::{Supply, Transmission};

/// Longest headers of a packet: IPv6, and TCP with all options.
const HEADERS_MAX: u64 = 100;

impl Connection {
    /// Returns the next packet to send, or `None` if there is nothing to send at `now`.
    pub fn poll_transmit(&mut self, now: Instant) -> Option<Packet> {
        let mut packet = Packet::default();
        self.transmit_into(now, &mut packet).then_some(packet)
    }

    /// As [`poll_transmit`](Self::poll_transmit), but up to `most` new segments leave as one super-packet, if their
    /// bytes are adjacent in memory. A segment ends where a long piece of memory ends. Cutting the super-packet gives
    /// the packets that the same number of polls for single segments would have returned.
    pub fn poll_super_packet(&mut self, now: Instant, most: u32) -> Option<Packet> {
        let mut packet = Packet::default();
        self.transmit(now, most.max(1), &mut packet).then_some(packet)
    }

    /// As [`poll_transmit`](Self::poll_transmit), into a packet whose memory is reused. Returns false if there is
    /// nothing to send.
    #[inline]
    pub fn transmit_into(&mut self, now: Instant, packet: &mut Packet) -> bool {
        !self.is_quiet() && self.transmit(now, 0, packet)
    }

    /// True if nothing to send can have appeared since the last poll that found nothing. This holds at every second
    /// poll.
    #[inline]
    fn is_quiet(&self) -> bool {
        self.sender.is_idle()
            && !self.receiver.acks.is_due()
            && self.output.is_empty()
            && !self.sender.timer.window_probe
            && !self.handshake.due
    }

    /// `most` is zero if the position of data in memory does not matter.
    fn transmit(&mut self, now: Instant, most: u32, packet: &mut Packet) -> bool {
        if self.output.resets() {
            self.poll_reset(now, packet);
            return true;
        }
        match self.state {
            State::Closed if !self.receiver.acks.is_due() => return false,
            State::SynSent | State::SynReceived => return self.poll_handshake(now, packet),
            State::Closed | State::TimeWait => {}
            _ => {
                // SACK blocks do not fit beside a full segment.
                let blocks_first = self.receiver.acks.is_due() && self.receiver.has_blocks();
                if !blocks_first && self.poll_data(now, most, packet) {
                    return true;
                }
            }
        }
        let due = self.receiver.acks.is_due() || core::mem::take(&mut self.output.challenge);
        if due {
            self.build_ack(now, packet);
        }
        due
    }

    #[cold]
    fn poll_reset(&mut self, now: Instant, packet: &mut Packet) {
        match self.output.reset.take() {
            Some(seq) => self.build_reset(now, seq, false, packet),
            None => {
                self.output.abort = false;
                self.build_reset(now, self.snd_seq(self.sender.board.nxt()), true, packet);
            }
        }
    }

    fn poll_data(&mut self, now: Instant, most: u32, packet: &mut Packet) -> bool {
        if !self.sender.is_idle() {
            let supply = self.supply(most > 0);
            if let Some(mut transmission) = self.sender.poll(now, supply) {
                if most > 1 {
                    self.extend(now, supply, most, &mut transmission);
                }
                self.build_data(now, transmission, packet);
                return true;
            }
        }
        let probe = self.sender.timer.window_probe | self.output.keep_alive;
        if probe {
            self.build_probe(now, packet);
        }
        probe
    }

    /// Appends to a full new segment the segments that the next polls would send, while they are adjacent in memory.
    fn extend(&mut self, now: Instant, supply: Supply, most: u32, first: &mut Transmission) {
        let mss = u64::from(self.sender.mss);
        let most = u64::from(most).min((u64::from(u16::MAX) - HEADERS_MAX) / mss);
        let longest = first.start + most * mss;
        let data_end = (supply.end - u64::from(supply.fin)).min(supply.piece);
        let (_, together) = self.queue.piece(first.start);
        let together = together.min(longest);
        let full = |sent: &Transmission| (sent.end - sent.start).is_multiple_of(mss);
        while !first.retransmission && !first.fin && full(first) {
            let next_end = data_end.min(first.end + mss);
            if next_end > together || next_end == first.end {
                break;
            }
            let Some(next) = self.sender.poll_another(now, supply) else { break };
            (first.end, first.fin) = (next.end, next.fin);
        }
    }

    #[cold]
    fn poll_handshake(&mut self, now: Instant, packet: &mut Packet) -> bool {
        if core::mem::take(&mut self.output.challenge) && self.state == State::SynReceived {
            self.build_ack(now, packet);
            return true;
        }
        if !self.handshake.due {
            return false;
        }
        self.handshake.on_sent(now);
        self.build_syn(now, packet);
        true
    }

    #[cold]
    fn build_syn(&mut self, now: Instant, packet: &mut Packet) {
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
            flags: flags | self.ecn_of_syn(),
            window: self.receiver.take_syn_window(),
            options,
            ..TcpRepr::default()
        };
        packet.become_tcp(&self.template, &repr, Payload::Length(0));
    }

    fn build_data(&mut self, now: Instant, transmission: Transmission, packet: &mut Packet) {
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
        flags |= self.cwr_flag(transmission, !payload.is_empty());
        self.receiver.acks.on_data_sent(now);
        let too_long = payload.len() > self.sender.mss as usize;
        self.build(now, start, flags, payload, packet);
        self.mark_capable(transmission, packet);
        if too_long {
            // This segment was cut for a larger path MTU.
            packet.set_gso_size(u16::try_from(self.sender.mss).ok());
        }
    }

    /// A pure ACK.
    fn build_ack(&mut self, now: Instant, packet: &mut Packet) {
        if self.agreed.sack && self.receiver.has_blocks() {
            self.build_sack(now, packet);
        } else {
            self.build(now, self.sender.board.nxt(), Flags::ACK, Payload::Length(0), packet);
        }
    }

    /// An ACK with SACK blocks: at most three beside timestamps, else four (RFC 2018, Section 3).
    fn build_sack(&mut self, now: Instant, packet: &mut Packet) {
        let mut sack_blocks = SackBlocks::default();
        let room = if self.agreed.timestamps { 3 } else { 4 };
        self.receiver.take_blocks(room, |start, end| {
            sack_blocks.push(Seq::from(start), Seq::from(end));
        });
        let timestamps = self.agreed.timestamps.then(|| (self.sender.timestamp(now), self.ts_recent));
        let repr = TcpRepr {
            seq: self.snd_seq(self.sender.board.nxt()),
            ack: self.snd_seq(self.receiver.nxt),
            flags: Flags::ACK | self.echo_flag(),
            window: self.receiver.take_window(self.agreed.rcv_shift),
            options: TcpOptionsRepr { timestamps, sack_blocks, ..TcpOptionsRepr::default() },
            ..TcpRepr::default()
        };
        self.receiver.acks.on_ack_sent();
        packet.become_tcp(&self.template, &repr, Payload::Length(0));
    }

    /// A segment below the window, which the peer must answer (Linux tcp_xmit_probe_skb).
    #[cold]
    fn build_probe(&mut self, now: Instant, packet: &mut Packet) {
        self.sender.timer.window_probe = false;
        self.output.keep_alive = false;
        let seq = self.sender.board.una() - 1;
        self.build(now, seq, Flags::ACK, Payload::Length(0), packet);
    }

    fn build(&mut self, now: Instant, position: u64, flags: Flags, payload: Payload, packet: &mut Packet) {
        let timestamps = self.agreed.timestamps.then(|| (self.sender.timestamp(now), self.ts_recent));
        let fields = TcpFields {
            seq: self.snd_seq(position),
            ack: self.snd_seq(self.receiver.nxt),
            flags: flags | self.echo_flag(),
            window: self.receiver.take_window(self.agreed.rcv_shift),
            timestamps,
        };
        self.receiver.acks.on_ack_sent();
        packet.become_plain_tcp(&self.template, &fields, payload);
    }

    #[cold]
    fn build_reset(&self, now: Instant, seq: Seq, acks: bool, packet: &mut Packet) {
        // RFC 7323, Section 3.2: a reset should have timestamps, too.
        let timestamps = self.agreed.timestamps.then(|| (self.sender.timestamp(now), self.ts_recent));
        let options = TcpOptionsRepr { timestamps, ..TcpOptionsRepr::default() };
        let flags = if acks { Flags::RST | Flags::ACK } else { Flags::RST };
        let ack = if acks { self.snd_seq(self.receiver.nxt) } else { Seq(0) };
        let repr = TcpRepr { seq, ack, flags, options, ..TcpRepr::default() };
        packet.become_tcp(&self.template, &repr, Payload::Length(0));
    }
}
