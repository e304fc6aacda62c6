//! Packets from the server.

use core::ops::Range;

use paceline_wire::{Duration, Flags, Packet};

use super::passed_on::timestamp_of;
use super::stale_promise::Backlog;
use super::{Context, Flow, Phase};
use crate::WAN;
use crate::config::VirtualWindowMode;
use crate::counters::PassReason;
use crate::flight::{TRANSMISSION_BYTES, Transmission};
use crate::retransmit_buffer::cost;
use crate::scoreboard::{RANGE_BYTES, Retransmission};
use crate::status::FlowStage;

/// Our choice: no server's timestamp clock (RFC 7323, Section 5.4) is coarser; Linux has 1 ms.
const TICK: Duration = Duration::from_millis(10);

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
        if self.life.phase() == Phase::Resumed && !self.resumes(ctx, WAN, tcp) {
            ctx.counters.pass(PassReason::MidFlow);
            self.rescale(&mut packet);
            return ctx.pass_to_client(packet);
        }
        let start = seq.unwrap_near(self.stream.received());
        let accepted = self.is_of_server(ctx.now, tcp, start, start + len);
        if let Some((_, echo)) = tcp.timestamps()
            && len > 0
            && accepted
        {
            self.round_trips.server.on_data(ctx.now, echo);
        }
        let ack = tcp.ack();
        self.rescale(&mut packet);
        if flags.contains(Flags::ACK) && accepted {
            self.note_server_ack(ctx, ack);
            self.lower_upload_window(ctx.now, &mut packet);
            self.passed_on.note_newest(&packet);
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
        if start < self.stream.received() && !is_reset {
            self.filter.expect_reply();
            self.passed_on.note_passed(self.board.una(), start, timestamp_of(&packet));
            return ctx.pass_to_client(packet);
        }
        if self.board.sent() >= start || self.buffer.is_empty() {
            ctx.pass_to_client(packet);
        } else if let Some(packet) = self.pure_acks.push(ctx, &self.account, start, packet) {
            self.pass_in_front(ctx, start..start, packet);
        }
        if is_reset {
            self.close(ctx, FlowStage::Reset);
        }
    }

    fn on_data(&mut self, ctx: &mut Context<'_>, start: u64, end: u64, mut packet: Packet) {
        if end <= self.board.una() {
            return self.on_old_data(ctx, start, end, packet);
        }
        if packet.tcp().is_some_and(|tcp| tcp.flags().contains(Flags::FIN)) {
            self.stream.on_fin(end);
        }
        if let Some(reason) = self.cannot_keep(ctx, start, end) {
            self.stream.on_passed(end);
            if start < self.stream.received() {
                self.passed_on.note_passed(self.board.una(), end, timestamp_of(&packet));
            }
            ctx.counters.pass(reason);
            return self.pass_in_front(ctx, start..end, packet);
        }
        if self.is_passive(ctx.config) || (!self.repairs(ctx.config) && start < self.board.sent()) {
            if start < self.stream.received() {
                self.passed_on.note_passed(self.board.una(), end, timestamp_of(&packet));
            }
            self.stream.on_received(end);
            self.log_copy(ctx, start.max(self.board.una())..end.min(self.board.sent()));
            if self.board.sent() < end {
                let first = start.max(self.board.sent());
                self.totals.on_departure(Duration::ZERO);
                // The log alone is all that is kept of these.
                let has_room = self.has_room(ctx, size_of::<Transmission>());
                self.flight.push_first(first, end, ctx.now, has_room);
                self.timers.on_sent(ctx.now);
                self.board.on_sent(end);
            }
            return self.pass_in_front(ctx, start..end, packet);
        }
        if !self.refuses(ctx, start, &mut packet) {
            self.keep(ctx, start, end, packet);
        }
    }

    /// The server's own later copy of `data` leaves. Its answer tells nothing of the first copy's way (RFC 6298, Section 3), and all that left before
    /// it and is not answered by then is gone. Taken for answers of first copies, they made a round trip of twelve seconds: one flow that passed held all others
    /// of its subscriber for as long.
    fn log_copy(&mut self, ctx: &Context<'_>, data: Range<u64>) {
        if data.is_empty() || !self.has_room(ctx, TRANSMISSION_BYTES + RANGE_BYTES) {
            return;
        }
        let older = self.board.copy_in_flight(data.start, &self.flight);
        let order = self.flight.push(data.start, data.end, ctx.now, false);
        self.board.on_retransmitted(data, Retransmission { order, sent_at: ctx.now, older });
    }

    /// The client has all of it, so the ACK was lost on the way to the server, and the client answers; or it is on its way, and nothing is needed.
    /// Our choice, for clients without SACK, whose answer would be a duplicate ACK. In a recovery their server sends a segment for each partial
    /// ACK (RFC 6582). On two drawn paths it then went from one recovery to the next by the answers, for seconds: .71 and .83 of passing's
    /// throughput, without the answers 1.08 and 1.09. With SACK the answer tells the server that it was needless (RFC 2883).
    fn on_old_data(&mut self, ctx: &mut Context<'_>, start: u64, end: u64, mut packet: Packet) {
        self.totals.server_retransmissions += 1;
        let hears = self.filter.is_on_its_way(ctx.now, self.round_trips.of_server(), end);
        if hears && !self.handshake.sack() && self.repairs(ctx.config) {
            ctx.counters.server_retransmissions_absorbed += 1;
            return;
        }
        ctx.counters.server_retransmissions_passed += 1;
        match self.handshake.sack() {
            true => self.filter.expect_duplicate(start..end),
            false => self.filter.expect_reply(),
        }
        self.passed_on.note_passed(self.board.una(), end, timestamp_of(&packet));
        self.tell_no_newer(&mut packet);
        ctx.pass_to_client(packet);
    }

    /// A packet with `data` is not kept and passes in front of what waits.
    fn pass_in_front(&mut self, ctx: &mut Context<'_>, data: Range<u64>, packet: Packet) {
        self.passed_on.note_told(self.may_take(), data, &packet);
        ctx.pass_to_client(packet);
    }

    /// New data of the server comes, which may be marked here. True if it is not taken in.
    fn refuses(&mut self, ctx: &mut Context<'_>, start: u64, packet: &mut Packet) -> bool {
        let is_sized = ctx.config.virtual_window.mode == VirtualWindowMode::Sized;
        if start < self.stream.received() || self.needs_no_room() || !is_sized {
            return false;
        }
        let backlog = Backlog {
            waiting: self.waiting(),
            segment: self.segment(),
            advertised: self.shown.edge().saturating_sub(self.stream.received()),
            round_trip: self.shortest_rtt() + self.round_trips.of_server(),
            buffer: &self.buffer,
            sent: self.board.sent(),
        };
        self.stream.stale_promise.refuses(ctx, &backlog, packet)
    }

    fn cannot_keep(&self, ctx: &Context<'_>, start: u64, end: u64) -> Option<PassReason> {
        (!self.has_room(ctx, cost(start, end) as usize)).then_some(PassReason::BufferFull)
    }

    fn keep(&mut self, ctx: &mut Context<'_>, start: u64, end: u64, packet: Packet) {
        let (is_old, stamp) = (start < self.stream.received(), timestamp_of(&packet));
        let mut gaps = core::mem::take(&mut self.recovery.newly);
        gaps.clear();
        if start < self.board.sent() {
            self.buffer.gaps(start..end, &mut gaps);
        }
        let inserted = self.buffer.insert(start, end, packet, ctx.now);
        ctx.counters.differing_copies += u64::from(inserted.differs);
        if inserted.is_new {
            if is_old {
                if self.was_sent_again(ctx, end, stamp) {
                    self.stream.on_lost_before(ctx.now);
                }
                self.passed_on.note_passed(self.board.una(), end, stamp);
            }
            for gap in &gaps {
                self.on_gap_filled(ctx, gap, stamp);
            }
            self.stream.on_received(end);
        } else {
            self.totals.server_retransmissions += 1;
            let overtaken = self.was_overtaken(start, stamp);
            self.renew_refused(start, end, stamp);
            self.on_absorbed(ctx, start);
            if end == self.stream.received() || overtaken {
                ctx.counters.server_retransmissions_passed += 1;
                if overtaken {
                    self.filter.expect_duplicate(start..end);
                }
                self.on_tail_probe(ctx, start..end);
            } else {
                ctx.counters.server_retransmissions_absorbed += 1;
            }
        }
        self.recovery.newly = gaps;
    }

    /// The server sent again, with the timestamp `stamp`, what is kept here. A packet that was overtaken by a later retransmission has a timestamp
    /// that the client refuses (PAWS), however often it leaves. Then it gets that of the server's newest copy. In no other case: by the older
    /// one the server sees that its retransmission was not needed (RFC 3522).
    fn renew_refused(&mut self, start: u64, end: u64, stamp: Option<u32>) {
        let kept = self.buffer.at(start).and_then(|chunk| timestamp_of(chunk.whole()));
        if kept.is_some_and(|value| self.clocks.client_refuses(self.passed_on.leaves_with(value))) {
            self.passed_on.note_passed(self.board.una(), end, stamp);
        }
    }

    /// What came just now, with the timestamp `stamp`, left the server before what is kept, its repair. That was not needed, of which only a D-SACK
    /// tells (RFC 3708), so both reach the client. Where the wired side reorders by more than a round trip, a CUBIC server had .87 of
    /// its rate without this.
    fn was_overtaken(&self, start: u64, stamp: Option<u32>) -> bool {
        let kept = self.buffer.at(start).and_then(|chunk| timestamp_of(chunk.whole()));
        stamp.zip(kept).is_some_and(|(stamp, kept)| (stamp.wrapping_sub(kept) as i32) < 0)
    }

    /// What filled a gap of the server's stream goes before new data.
    fn on_gap_filled(&mut self, ctx: &Context<'_>, gap: &Range<u64>, stamp: Option<u32>) {
        let (una, sent) = (self.board.una(), self.board.sent());
        if gap.start < sent {
            let repaired = self.was_sent_again(ctx, gap.end, stamp);
            self.board.mark_unsent(gap.start.max(una)..gap.end.min(sent), repaired);
        }
    }

    /// What came just now and ends at `end` was lost before, rather than overtaken: its timestamp `stamp` is later than that of the packet behind.
    /// Timestamps do not tell where there are none, or where a server is so near that it sends again within a tick. Then the server has heard of the
    /// gap, or had the time to hear of it since the packet behind came, a round trip.
    /// (RFC 8985, Section 6.2, takes what comes sooner for reordering, too.)
    fn was_sent_again(&self, ctx: &Context<'_>, end: u64, stamp: Option<u32>) -> bool {
        let Some(behind) = self.buffer.from(end) else { return true };
        let later =
            stamp.zip(timestamp_of(behind.whole())).map(|(own, behind)| own.wrapping_sub(behind) as i32);
        let server_rtt = self.round_trips.of_server();
        match later {
            Some(ticks) if ticks != 0 || server_rtt >= TICK => ticks > 0,
            _ => {
                let round_trip = self.shortest_rtt() + server_rtt;
                self.filter.has_told(end) || ctx.now.saturating_since(behind.arrival) >= round_trip
            }
        }
    }

    fn note_server_ack(&mut self, ctx: &mut Context<'_>, ack: paceline_wire::Seq) {
        if self.upstream.on_server_ack(ack) {
            self.close_if_done(ctx);
        }
    }
}
