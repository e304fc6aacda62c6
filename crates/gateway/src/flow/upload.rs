//! The windows of the server's ACKs on their way to a client that uploads, and what answers them ([`crate::upload`]).

use alloc::boxed::Box;

use paceline_wire::{Flags, Instant, Packet, Tcp};

use super::{Context, Flow};
use crate::config::QueueBoundMode;
use crate::upload::{FIRST_FLIGHT, FIRST_WINDOW, Own, Passed, UploadData, UploadReport, UploadWatch};

impl Flow {
    /// A packet of the client came. Returns what it says of the uplink.
    pub(super) fn watch_sent(&mut self, ctx: &Context<'_>, tcp: Tcp<'_>) -> Option<UploadReport> {
        if let Some((value, _)) = tcp.timestamps() {
            self.note_uplink(ctx.now, value);
        }
        self.watch_upload(ctx, tcp)
    }

    /// A packet of the client came with this timestamp.
    pub(super) fn note_uplink(&mut self, now: Instant, tsval: u32) {
        self.watch.uplink.on_timestamp(now, tsval, self.path.uploaded, self.path.uplink.of_late(now));
    }

    /// Only data that answers an ACK that is remembered says something.
    fn watch_upload(&mut self, ctx: &Context<'_>, tcp: Tcp<'_>) -> Option<UploadReport> {
        let len = u64::from(tcp.seq_len());
        if ctx.config.queue_bound.uploads == QueueBoundMode::None || len == 0 {
            return None;
        }
        let segment = self.segment();
        let uplink = self.upstream.uplink.as_ref()?;
        let end = tcp.seq().unwrap_near(uplink.sent()) + len;
        if self.upstream.upload.is_none() {
            let is_short = uplink.sent() - uplink.first() <= FIRST_FLIGHT * segment;
            if is_short || tcp.timestamps().is_none() || !self.has_room(ctx, UploadWatch::MEMORY) {
                return None;
            }
            let rtt = self.totals.rtt_min.unwrap_or_default();
            self.upstream.upload = Some(Box::new(UploadWatch::new(uplink.edge(), rtt)));
        }
        let data = UploadData {
            now: ctx.now,
            range: end - len..end,
            echo: tcp.timestamps().map(|(_, echo)| echo),
            segment,
            queue: self.watch.uplink.at_most(),
            handshake: self.totals.rtt_min,
        };
        self.upstream.upload.as_mut()?.report(&data)
    }

    /// What its subscriber knows of it.
    pub(crate) fn set_own_upload(&mut self, own: Own) {
        if let Some(upload) = &mut self.upstream.upload {
            upload.own = own;
        }
    }

    /// A packet of the server, as its client would read it, is to pass: its window lets the client have no more on its way than the uplink's bound
    /// says.
    /// The right edge never moves back by that (RFC 9293, Section 3.8.6).
    pub(super) fn lower_upload_window(&mut self, now: Instant, packet: &mut Packet) {
        let (segment, at_once, server_rtt) =
            (self.segment(), self.waiting() == 0, self.round_trips.of_server());
        let Some((uplink, upload)) = self.upstream.uplink.as_ref().zip(self.upstream.upload.as_mut()) else {
            return;
        };
        let Some(tcp) = packet.tcp().filter(|tcp| tcp.flags().contains(Flags::ACK)) else { return };
        let shift = if self.shifts.added { 0 } else { self.shifts.server };
        let (ack, field) = (tcp.ack().unwrap_near(uplink.acked()), tcp.window());
        let is_pure_ack = tcp.seq_len() == 0;
        // Without SACK what moves the window is no duplicate (RFC 5681, Section 2).
        let repeats = is_pure_ack && !self.handshake.sack() && upload.newest == (ack, field);
        upload.newest = (ack, field);
        let path = &self.path.upload;
        let wanted = match path.share(upload.own, segment) {
            // After a pause (BBR looks for its shortest round trip) no ACK comes that could move the edge until what it allowed has been to the
            // server. Without the wired side's part a path of 72 and 139 ms had a third of its rate for four seconds after each.
            Some(share) => {
                let on_wired = (uplink.sent().saturating_sub(ack)).max(path.carries(upload.own, server_rtt));
                (ack + on_wired).saturating_add(share)
            }
            // What slow start may have on its way from here: each byte that is acknowledged, selectively or not, brings two (RFC 5681, Section 3.1).
            // By the cumulative ACK alone the window ended in the first recovery, and what it had held back left at once behind it: CUBIC lost
            // once more, and had .82 of passing's throughput where the server is 170 ms away.
            None => {
                let blocks = tcp.sack_blocks().map(|(_, end)| end.unwrap_near(ack).min(uplink.sent()));
                let highest = blocks.max().unwrap_or(ack).max(ack);
                highest + (highest - uplink.first().min(highest)) + FIRST_WINDOW
            }
        };
        let wanted = if repeats { upload.edge } else { wanted.max(upload.edge) };
        // Rounded up (RFC 7323, Section 2.4), and never to nothing.
        let units = wanted.saturating_sub(ack).div_ceil(1 << shift).max(1).min(u64::from(field)) as u16;
        upload.edge = upload.edge.max(ack + (u64::from(units) << shift));
        let lowered = units < field;
        if lowered && let Some(mut tcp) = packet.tcp_mut() {
            tcp.set_window(units);
        }
        if is_pure_ack
            && at_once
            && let Some((stamp, _)) = packet.tcp().and_then(|tcp| tcp.timestamps())
        {
            upload.on_passed(Passed { stamp, at: now, edge: upload.edge, lowered, arrived: path.arrived });
        }
    }
}
