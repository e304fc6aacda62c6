//! Packets from the server.

use core::ops::Range;

use paceline_wire::{Duration, Flags, Packet};

use super::forwarded_headers::timestamp_of;
use super::stale_promise::Backlog;
use super::{Context, Flow, Phase};
use crate::WAN;
use crate::config::VirtualWindowMode;
use crate::counters::PassReason;
use crate::flight::{TRANSMISSION_BYTES, Transmission};
use crate::retransmit_buffer::cost;
use crate::scoreboard::{RANGE_BYTES, Retransmission};
use crate::status::FlowStage;

/// Our choice: the coarsest timestamp clock of a server (RFC 7323, Section 5.4); Linux has 1 ms.
const TICK: Duration = Duration::from_millis(10);

impl Flow {
    /// Handles a packet without SYN from the server.
    pub(crate) fn on_server_packet(&mut self, ctx: &mut Context<'_>, mut packet: Packet) {
        let Some(tcp) = packet.tcp() else { return ctx.pass_to_client(packet) };
        if !packet.verify_checksum() {
            // RFC 9293, Section 3.1: the client discards it, so the gateway uses nothing from it. The checksum stays
            // wrong.
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

    /// Unscales the server's window for a client whose SYN had no window scale: the gateway added the option there.
    fn rescale(&self, packet: &mut Packet) {
        let Some(tcp) = packet.tcp().filter(|_| self.shifts.added) else { return };
        let field = self.shifts.server_field(tcp.window());
        if let Some(mut tcp) = packet.tcp_mut() {
            tcp.set_window(field);
        }
    }

    /// Handles a packet without data. Keep-alives and window probes have an old sequence number and leave at once.
    /// Anything else keeps its place behind the data that waits.
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
                // Only the log is kept of these.
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

    /// Logs the server's own retransmission of `data`. Its answer gives no RTT sample (RFC 6298, Section 3), and all
    /// that left before it and is unanswered by then is gone. Without this, such answers counted for first copies and
    /// made a round trip of twelve seconds. One flow that passed held all others of its subscriber for as long.
    fn log_copy(&mut self, ctx: &Context<'_>, data: Range<u64>) {
        if data.is_empty() || !self.has_room(ctx, TRANSMISSION_BYTES + RANGE_BYTES) {
            return;
        }
        let older = self.board.copy_in_flight(data.start, &self.flight);
        let order = self.flight.push(data.start, data.end, ctx.now, false);
        self.board.on_retransmitted(data, Retransmission { order, sent_at: ctx.now, older });
    }

    /// Handles data that the client has. If its ACK was lost on the way to the server, the data passes, and the client
    /// answers. If the ACK is still on its way, nothing is needed. Our choice: then the data is dropped for clients
    /// without SACK, whose answer would be a duplicate ACK. In a recovery their server sends a segment for each partial
    /// ACK (RFC 6582). On two drawn paths the answers led from one recovery to the next for seconds: .71 and .83 of
    /// passing's throughput. Without them it was 1.08 and 1.09. With SACK the answer tells the server that the data was
    /// needless (RFC 2883).
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

    /// Passes a packet with `data` in front of what waits. It is not kept.
    fn pass_in_front(&mut self, ctx: &mut Context<'_>, data: Range<u64>, packet: Packet) {
        self.passed_on.note_told(self.may_take(), data, &packet);
        ctx.pass_to_client(packet);
    }

    /// Checks new data of the server, which may be marked here. True if it is not taken in.
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
            // Without SACK each hole takes a round trip (RFC 6582). What waits meanwhile leaves when they are repaired,
            // however much the window promised. A refused segment behind 43 holes reached the client after six seconds.
            // TCP-PR then took three of these round trips for its timeout, and the client waited for 14 s.
            behind_holes: !self.handshake.sack() && self.recovery.hole.is_some(),
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

    /// Handles data that is kept here and that the server sent again with timestamp `stamp`. Kept data has a timestamp
    /// that the client refuses (PAWS) if a later retransmission overtook it, however often it leaves. Then it gets that
    /// of the server's newest copy. Otherwise it keeps its own, which shows the server that its retransmission was
    /// needless (RFC 3522).
    fn renew_refused(&mut self, start: u64, end: u64, stamp: Option<u32>) {
        let kept = self.buffer.at(start).and_then(|chunk| timestamp_of(chunk.whole()));
        if kept.is_some_and(|value| self.clocks.client_refuses(self.passed_on.leaves_with(value))) {
            self.passed_on.note_passed(self.board.una(), end, stamp);
        }
    }

    /// True if the packet with timestamp `stamp`, which came now, left the server before the kept one, its repair. The
    /// repair was needless. Only a D-SACK tells the server so (RFC 3708), so both packets reach the client. Without
    /// this a CUBIC server had .87 of its rate where the wired side reorders by more than a round trip.
    fn was_overtaken(&self, start: u64, stamp: Option<u32>) -> bool {
        let kept = self.buffer.at(start).and_then(|chunk| timestamp_of(chunk.whole()));
        stamp.zip(kept).is_some_and(|(stamp, kept)| (stamp.wrapping_sub(kept) as i32) < 0)
    }

    /// Marks data that filled a gap of the server's stream, so that it leaves before new data.
    fn on_gap_filled(&mut self, ctx: &Context<'_>, gap: &Range<u64>, stamp: Option<u32>) {
        let (una, sent) = (self.board.una(), self.board.sent());
        if gap.start < sent {
            let repaired = self.was_sent_again(ctx, gap.end, stamp);
            self.board.mark_unsent(gap.start.max(una)..gap.end.min(sent), repaired);
        }
    }

    /// True if the data that came now and ends at `end` had been lost, rather than overtaken. Then its timestamp
    /// `stamp` is later than that of the next kept packet. Timestamps do not tell if there are none, or if the server
    /// is so near that it sends again within a tick. Then the server must have heard of the gap, or have had a round
    /// trip's time since the next packet came. (RFC 8985, Section 6.2, takes what comes sooner for reordering, too.)
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
