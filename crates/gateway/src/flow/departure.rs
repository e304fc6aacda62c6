//! Which packet of a flow leaves next for the client.

use core::ops::Range;

use paceline_wire::{Duration, Ecn, Instant, Packet, Rate, Seq};

use super::{Context, Flow};
use crate::config::{RetransmissionMode, ScheduleMode};
use crate::flight::TRANSMISSION_BYTES;
use crate::observe::Event;
use crate::retransmit_buffer::Chunk;
use crate::schedule::{Departure, Receiver, allowance, departure};
use crate::scoreboard::Retransmission;

impl Flow {
    /// Returns when the receiver allows the flow's next packet to leave. `None` if the flow has nothing to send.
    pub(crate) fn next_departure(&self, ctx_mode: ScheduleMode, now: Instant) -> Option<Departure> {
        if let Some(lost) = self.board.first_lost() {
            // After a timeout only the head leaves until the client is heard again. Into a closed window only the probe
            // leaves, which asks whether it is still closed.
            let is_head = lost.start == self.board.una();
            let blocked = if self.client.is_closed() {
                !is_head || !self.recovery.is_asking()
            } else {
                (self.timers.is_probing() || self.recovery.may_retransmit() == 0) && !is_head
            };
            if blocked || self.awaits_server(lost.start) {
                return Some(Departure::AfterAck);
            }
            // Eq. (10) counts retransmissions as in flight. The head leaves at once in any case: nothing else brings an
            // ACK that advances.
            return Some(match ctx_mode {
                ScheduleMode::ReceptionRate if !is_head => self.scheduled(now, lost),
                _ => Departure::Now,
            });
        }
        let chunk = self.buffer.from(self.board.sent())?;
        if self.timers.is_probing() {
            return Some(Departure::AfterAck);
        }
        if ctx_mode == ScheduleMode::OnArrival {
            return Some(Departure::Now);
        }
        let start = self.board.sent().max(chunk.start);
        let end = start + self.path_mtu.segment_of(chunk).min(chunk.end - start);
        if self.edge_behind_hole().is_some_and(|edge| end > edge) {
            return Some(Departure::AfterAck);
        }
        Some(self.scheduled(now, start..end))
    }

    /// Returns the end of the client's window while a hole is open, unless Eq. (12) repeats what the client discards
    /// behind it. Our choice: nothing new leaves beyond it then. Discarded data is known to be lost only when the hole
    /// is repaired. So new data leaves before it, finds no room, and makes the next hole. One loss led to ten seconds
    /// with a hole in each round trip: 5.96 in place of 7.21 Mbit/s (64 KB, 173 ms, 0.01 %).
    fn edge_behind_hole(&self) -> Option<u64> {
        let una = self.board.una();
        let is_open = !self.board.is_whole() || self.board.retransmission_at(una).is_some();
        (self.recovery.only_reported && is_open).then(|| self.client.right_edge())
    }

    /// True if the segment at `position` waits for the server, which alone can repair the head: the head is not kept
    /// here. Until then the client discards the segment, which lies beyond its window or across the edge. Each copy
    /// would bring a duplicate ACK, and that the next copy, for ever and in the way of the server's repair.
    fn awaits_server(&self, position: u64) -> bool {
        position + self.segment() > self.client.right_edge() && self.buffer.at(self.board.una()).is_none()
    }

    /// Returns the client's window as it may be when a packet arrives, if the client has taken all that left before.
    pub(super) fn may_take(&self) -> Range<u64> {
        let end = self.board.sent() + self.client.largest();
        self.board.una()..end.max(self.client.right_edge())
    }

    /// Returns when the first segment of `data` may leave.
    fn scheduled(&self, now: Instant, data: Range<u64>) -> Departure {
        let bytes = (data.end - data.start).min(self.segment());
        if let Some((edge, rate)) = self.slow_reader_edge(now)
            && data.start + bytes > edge
        {
            // Rounding may put the time a nanosecond early.
            return Departure::At(now + rate.time_for(data.start + bytes - edge) + Duration::from_nanos(1));
        }
        departure(&self.receiver(now), now, self.board.outstanding(), bytes)
    }

    /// Returns up to where a slow reader will have room behind a repaired hole, and R. Our choice: R counts from when
    /// the repair left. Eq. (7) counts on a reader that always has something to read. Behind a hole it has nothing
    /// until the repair brings it a full buffer. Without this rule data left in one burst, found no room, and was the
    /// next hole. A reader of 20 Mbit/s with 81 KB discarded 76 of 95 MB (41 Mbit/s, 217 ms).
    fn slow_reader_edge(&self, now: Instant) -> Option<(u64, Rate)> {
        self.recovery.hole.as_ref().filter(|_| self.client.reader_lags())?;
        let (una, rate) = (self.board.una(), self.client.rate().rate()?);
        let repair = self.board.retransmission_at(una)?;
        let read = rate.bytes_in(now.saturating_since(repair.sent_at));
        Some(((una + self.client.largest()).saturating_add(read), rate))
    }

    fn receiver(&self, now: Instant) -> Receiver {
        Receiver {
            window: self.client.newest(),
            window_max: self.client.largest(),
            acked_at: self.client.acked_at(),
            rtt: self.path.rtt,
            rate: self.client.rate().rate().filter(|_| !self.client.overshoot.is_on(now)),
        }
    }

    /// Bytes of the packet that leaves next, if it is cut after `quantum`.
    pub(crate) fn next_bytes(&self, quantum: u64) -> u64 {
        let (position, end) =
            self.board.first_lost().map_or((self.board.sent(), u64::MAX), |lost| (lost.start, lost.end));
        self.buffer.from(position).map_or(0, |chunk| {
            let start = position.max(chunk.start);
            self.path_mtu.piece_end(chunk, start, quantum).min(end).saturating_sub(start)
        })
    }

    /// Takes the next packet, of at most `limit` bytes but at least one segment.
    pub(crate) fn take_next(&mut self, ctx: &mut Context<'_>, limit: u64) -> Option<Packet> {
        while let Some(lost) = self.board.first_lost() {
            let kept = self.buffer.from(lost.start).filter(|chunk| chunk.start < lost.end);
            let Some(chunk) = kept else {
                // It is not kept here: the server's retransmission passes.
                self.board.remove_lost(lost);
                continue;
            };
            if chunk.start > lost.start {
                let gap = lost.start..chunk.start;
                self.board.remove_lost(gap);
                continue;
            }
            let limit = limit.min(self.recovery.may_retransmit());
            let end = self.path_mtu.piece_end(chunk, lost.start, limit).min(lost.end);
            let mut packet = chunk.packet(lost.start, end);
            self.tell_no_newer(&mut packet);
            self.passed_on.leave(self.may_take(), lost.start..end, &mut packet);
            // RFC 3168, Section 6.1.5: a retransmission must not be ECN-capable. A CE mark of the server's path stays.
            if matches!(packet.ecn(), Some(Ecn::Ect0 | Ecn::Ect1)) {
                packet.set_ecn(Ecn::NotEct);
            }
            let sojourn = ctx.now.saturating_since(chunk.arrival);
            let retransmission = !self.board.is_unsent_repair(lost.start);
            let older = self.board.copy_in_flight(lost.start, &self.flight);
            if !self.has_room(ctx, TRANSMISSION_BYTES) {
                self.flight.forget_copy(lost.start, end);
            }
            let order = self.flight.push(lost.start, end, ctx.now, false);
            self.board.on_retransmitted(lost.start..end, Retransmission { order, sent_at: ctx.now, older });
            self.recovery.on_retransmitted(ctx.now, lost.start..end);
            self.timers.on_sent(ctx.now);
            let bytes = self.stream.payload_in(lost.start, end);
            if retransmission {
                ctx.counters.local_retransmissions += 1;
                self.totals.on_retransmission(bytes);
            } else {
                self.totals.on_departure(sojourn);
            }
            let event = Event::Sent { bytes, sojourn, retransmission };
            ctx.observer.on_event(ctx.now, &self.key, &event);
            return Some(packet);
        }
        self.take_new(ctx, limit)
    }

    /// Gives a packet that leaves before waiting ones no newer acknowledgement and window than theirs.
    pub(super) fn tell_no_newer(&self, packet: &mut Packet) {
        let data = self.buffer.from(self.board.sent()).map(Chunk::whole);
        let told = self.passed_on.told_before([data, self.pure_acks.front()]);
        if let Some((ack, window)) = told
            && let Some(mut tcp) = packet.tcp_mut()
        {
            tcp.set_ack(ack);
            tcp.set_window(window);
        }
    }

    /// Takes a message of a router in front of the client: packet `seq` was too big, and `mtu` bytes of IP fit. It is
    /// believed only about data that the client has not acknowledged (RFC 5927, Section 7.2).
    pub(crate) fn on_path_mtu(&mut self, ctx: &mut Context<'_>, seq: Seq, mtu: u64) {
        let position = seq.unwrap_near(self.stream.received());
        if !(self.board.una()..=self.stream.received()).contains(&position)
            || !self.path_mtu.on_message(ctx.now, mtu)
        {
            return;
        }
        let Some(too_big) = self.buffer.at(position) else { return };
        let fits = self.path_mtu.fits(too_big);
        if fits < too_big.segment_len() {
            // From here on segments are no longer than this.
            self.handshake.mss = self.handshake.mss.min(fits.clamp(64, 9_000) as u16);
            ctx.counters.path_mtus_lowered += 1;
        }
    }

    fn take_new(&mut self, ctx: &mut Context<'_>, limit: u64) -> Option<Packet> {
        let sent = self.board.sent();
        let chunk = self.buffer.from(sent)?;
        let start = sent.max(chunk.start);
        let limit = match ctx.config.schedule.mode {
            ScheduleMode::OnArrival => limit,
            // A super-packet may not run past what the receiver takes.
            ScheduleMode::ReceptionRate => limit
                .min(allowance(&self.receiver(ctx.now), ctx.now).saturating_sub(self.board.outstanding()))
                .min(self.slow_reader_edge(ctx.now).map_or(u64::MAX, |(edge, _)| edge.saturating_sub(start)))
                .min(self.edge_behind_hole().map_or(u64::MAX, |edge| edge.saturating_sub(start))),
        };
        let end = self.path_mtu.piece_end(chunk, start, limit);
        let mut packet = chunk.packet(start, end);
        let sojourn = ctx.now.saturating_since(chunk.arrival);
        if start > sent {
            // Pure ACKs that came behind the gap before this packet leave after it.
            self.tell_no_newer(&mut packet);
        }
        self.passed_on.leave(self.may_take(), start..end, &mut packet);
        self.flight.push(start, end, ctx.now, true);
        self.board.on_sent(end);
        self.timers.on_sent(ctx.now);
        let bytes = self.stream.payload_in(start, end);
        self.totals.on_departure(sojourn);
        let event = Event::Sent { bytes, sojourn, retransmission: false };
        ctx.observer.on_event(ctx.now, &self.key, &event);
        if ctx.config.retransmission.mode == RetransmissionMode::None {
            self.buffer.release_below(end);
        }
        self.pure_acks.release(ctx, self.board.sent());
        self.release_tail_probe(ctx);
        Some(packet)
    }
}
