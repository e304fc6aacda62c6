//! Packets from the server.

use core::ops::Range;

use paceline_wire::{Duration, Flags, Packet};

use super::ack_filter::ECN_FLAGS;
use super::{Context, Flow, PURE_ACKS_MAX, Phase};
use crate::WAN;
use crate::counters::PassReason;
use crate::flight::Transmission;
use crate::retransmit_buffer::cost;
use crate::status::FlowStage;

impl Flow {
    /// A packet without SYN from the server.
    pub(crate) fn on_server_packet(&mut self, ctx: &mut Context<'_>, mut packet: Packet) {
        let Some(tcp) = packet.tcp() else { return ctx.pass_to_client(packet) };
        if !packet.verify_checksum() {
            // RFC 9293, Section 3.1: the client discards it, so nothing in it is so. The edit keeps the checksum wrong.
            ctx.counters.pass(PassReason::BadChecksum);
            self.rescale(&mut packet);
            return ctx.pass_to_client(packet);
        }
        let (flags, seq, len) = (tcp.flags(), tcp.seq(), u64::from(tcp.seq_len()));
        if self.phase == Phase::Resumed && !self.resumes(ctx, WAN, tcp) {
            ctx.counters.pass(PassReason::MidFlow);
            self.rescale(&mut packet);
            return ctx.pass_to_client(packet);
        }
        let start = seq.unwrap_near(self.received);
        let accepted = self.is_of_server(ctx.now, tcp, start, start + len);
        if let Some((_, echo)) = tcp.timestamps()
            && len > 0
            && accepted
        {
            self.server_rtt.on_data(ctx.now, echo);
        }
        let ack = tcp.ack();
        self.rescale(&mut packet);
        if flags.contains(Flags::ACK) && accepted {
            self.note_server_ack(ctx, ack);
            self.lower_upload_window(ctx.now, &mut packet);
            self.note_newest(&packet);
        }
        if !accepted {
            ctx.counters.pass(PassReason::Unacceptable);
            return ctx.pass_to_client(packet);
        }
        if flags.contains(Flags::RST) || len == 0 {
            return self.on_pure_ack(ctx, flags, start, packet);
        }
        self.on_data(ctx, start, start + len, packet);
    }

    /// The client reads the server's window without the shift that was added for it.
    fn rescale(&self, packet: &mut Packet) {
        let Some(tcp) = packet.tcp().filter(|_| self.shifts.added) else { return };
        let field = self.shifts.server_field(tcp.window());
        if let Some(mut tcp) = packet.tcp_mut() {
            tcp.set_window(field);
        }
    }

    /// No data: keep-alives and window probes go at once, having an old sequence number; anything else keeps its
    /// place behind the data that waits.
    fn on_pure_ack(&mut self, ctx: &mut Context<'_>, flags: Flags, start: u64, packet: Packet) {
        let is_reset = flags.contains(Flags::RST);
        if start < self.received && !is_reset {
            self.filter.expect_reply();
            self.note_passed(start, stamp_of(&packet));
            return ctx.pass_to_client(packet);
        }
        if self.board.sent() >= start || self.buffer.is_empty() {
            ctx.pass_to_client(packet);
        } else if self.pure_acks.len() < PURE_ACKS_MAX && self.has_room(ctx, size_of::<(u64, Packet)>()) {
            self.pure_acks.push_back((start, packet));
        } else {
            self.replace_pure_ack(ctx, start, packet);
        }
        if is_reset {
            self.close(ctx, FlowStage::Reset);
        }
    }

    /// No room to wait: the packet takes the place of the one that came before it, since it says all that one said (RFC 9293, Section 3.4:
    /// acknowledgements are cumulative; RFC 2018, Section 4: SACK blocks come again). Not if that one brought ECN marks of its own, or
    /// there is none.
    fn replace_pure_ack(&mut self, ctx: &mut Context<'_>, start: u64, packet: Packet) {
        let marks = |packet: &Packet| packet.tcp().map(|tcp| tcp.flags() & ECN_FLAGS);
        match self.pure_acks.back_mut() {
            Some(back) if marks(&back.1) == marks(&packet) => *back = (start, packet),
            _ => ctx.pass_to_client(packet),
        }
    }

    pub(super) fn flush_pure_acks(&mut self, ctx: &mut Context<'_>) {
        while let Some((_, packet)) = self.pure_acks.pop_front() {
            ctx.pass_to_client(packet);
        }
    }

    /// Lets packets without data go that no longer have data in front of them.
    pub(super) fn release_pure_acks(&mut self, ctx: &mut Context<'_>) {
        while let Some((position, _)) = self.pure_acks.front()
            && *position <= self.board.sent()
        {
            if let Some((_, packet)) = self.pure_acks.pop_front() {
                ctx.pass_to_client(packet);
            }
        }
    }

    fn on_data(&mut self, ctx: &mut Context<'_>, start: u64, end: u64, mut packet: Packet) {
        if end <= self.board.una() {
            // The client has it, so the ACK was lost on the way to the server, or is on its way: the client answers.
            self.filter.expect_reply();
            self.note_passed(end, stamp_of(&packet));
            ctx.counters.server_retransmissions_passed += 1;
            self.totals.server_retransmissions += 1;
            return ctx.pass_to_client(packet);
        }
        if packet.tcp().is_some_and(|tcp| tcp.flags().contains(Flags::FIN)) {
            self.server_fin = Some(end);
        }
        if let Some(reason) = self.cannot_keep(ctx, start, end) {
            self.passed = self.passed.max(end);
            if start < self.received {
                self.note_passed(end, stamp_of(&packet));
            }
            ctx.counters.pass(reason);
            return ctx.pass_to_client(packet);
        }
        if self.is_passive(ctx.config) || (!self.repairs(ctx.config) && start < self.board.sent()) {
            if start < self.received {
                self.note_passed(end, stamp_of(&packet));
            }
            self.received = self.received.max(end);
            if self.board.sent() < end {
                let first = start.max(self.board.sent());
                self.totals.on_departure(Duration::ZERO);
                // The log alone is all that is kept of these.
                let has_room = self.has_room(ctx, size_of::<Transmission>());
                self.flight.push_first(first, end, ctx.now, has_room);
                self.timers.on_sent(ctx.now);
                self.board.on_sent(end);
            }
            return ctx.pass_to_client(packet);
        }
        if !self.refuses(ctx, start, &mut packet) {
            self.keep(ctx, start, end, packet);
        }
    }

    fn cannot_keep(&self, ctx: &Context<'_>, start: u64, end: u64) -> Option<PassReason> {
        (!self.has_room(ctx, cost(start, end) as usize)).then_some(PassReason::BufferFull)
    }

    fn keep(&mut self, ctx: &mut Context<'_>, start: u64, end: u64, packet: Packet) {
        let (is_old, stamp) = (start < self.received, stamp_of(&packet));
        let mut gaps = core::mem::take(&mut self.recovery.newly);
        gaps.clear();
        if start < self.board.sent() {
            self.buffer.gaps(start..end, &mut gaps);
        }
        let inserted = self.buffer.insert(start, end, packet, ctx.now);
        ctx.counters.differing_copies += u64::from(inserted.differs);
        if inserted.is_new {
            if is_old {
                self.note_passed(end, stamp);
            }
            for gap in &gaps {
                self.on_gap_filled(ctx, gap, stamp);
            }
            self.received = self.received.max(end);
        } else {
            self.totals.server_retransmissions += 1;
            self.on_absorbed(ctx, start);
            if end == self.received {
                ctx.counters.server_retransmissions_passed += 1;
                self.on_tail_probe(ctx, start..end);
            } else {
                ctx.counters.server_retransmissions_absorbed += 1;
            }
        }
        self.recovery.newly = gaps;
    }

    /// What filled a gap of the server's stream goes before new data.
    fn on_gap_filled(&mut self, ctx: &Context<'_>, gap: &Range<u64>, stamp: Option<u32>) {
        let (una, sent) = (self.board.una(), self.board.sent());
        if gap.start < sent {
            let repaired = self.was_sent_again(ctx, gap.end, stamp);
            self.board.mark_unsent(gap.start.max(una)..gap.end.min(sent), repaired);
        }
    }

    /// What came just now and ends at `end` was lost before, rather than overtaken: the server has heard of the gap, or its timestamp `stamp`
    /// is later than that of the packet behind. Where they do not tell: since that came there was the time to hear of the gap, a round trip.
    /// (RFC 8985, Section 6.2, takes what comes sooner for reordering, too.)
    fn was_sent_again(&self, ctx: &Context<'_>, end: u64, stamp: Option<u32>) -> bool {
        let Some(behind) = self.buffer.from(end).filter(|_| !self.filter.has_told(end)) else { return true };
        let later = stamp.zip(stamp_of(behind.whole())).map(|(own, behind)| own.wrapping_sub(behind) as i32);
        match later {
            Some(ticks) if ticks != 0 => ticks > 0,
            _ => ctx.now.saturating_since(behind.arrival) >= self.shortest_rtt() + self.server_rtt.get(),
        }
    }

    /// A packet with an old sequence number, which ends at `end`, will be in front of older ones that wait here, and the client takes
    /// over its timestamp. Not that of one wholly below what it has acknowledged: that is outside its window, and TS.Recent stays
    /// (RFC 7323, Section 5.3, R2 before R3; Linux: tcp_sequence). Such a number may be a guess of somebody who does not see the flow.
    fn note_passed(&mut self, end: u64, stamp: Option<u32>) {
        if let Some(value) = stamp
            && end >= self.board.una()
            && self.passed_tsval.is_none_or(|passed| value.wrapping_sub(passed) as i32 > 0)
        {
            self.passed_tsval = Some(value);
        }
    }

    /// Data that is older than what has passed is given its timestamp: by its own the client would take it for an old
    /// duplicate and never accept it (PAWS, RFC 7323, Section 5.3).
    pub(super) fn refresh_timestamp(&self, packet: &mut Packet) {
        let Some(passed) = self.passed_tsval else { return };
        if let Some((value, echo)) = packet.tcp().and_then(|tcp| tcp.timestamps())
            && passed.wrapping_sub(value) as i32 > 0
            && let Some(mut tcp) = packet.tcp_mut()
        {
            tcp.set_timestamps(passed, echo);
        }
    }

    /// What the server last told the client of the uplink, as the client reads it, for packets that leave a second time.
    fn note_newest(&mut self, packet: &Packet) {
        let Some(tcp) = packet.tcp() else { return };
        if self.newest.is_none_or(|(ack, _)| tcp.ack().distance(ack) >= 0) {
            self.newest = Some((tcp.ack(), tcp.window()));
        }
    }

    fn note_server_ack(&mut self, ctx: &mut Context<'_>, ack: paceline_wire::Seq) {
        if let Some(fin) = self.client_fin
            && paceline_wire::Seq::from(fin).distance(ack) <= 0
        {
            self.client_fin_acked = true;
            self.close_if_done(ctx);
        }
    }
}

fn stamp_of(packet: &Packet) -> Option<u32> {
    packet.tcp()?.timestamps().map(|(value, _)| value)
}
