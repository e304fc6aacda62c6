//! The windows in the server's ACKs to a client that uploads, and the data that answers these ACKs ([`crate::upload`]).

use alloc::boxed::Box;

use paceline_wire::{Flags, Instant, Packet, Tcp};

use super::{Context, Flow};
use crate::config::QueueBoundMode;
use crate::upload::{
    FIRST_FLIGHT, FIRST_WINDOW, ForwardedAck, UploadData, UploadReport, UploadState, UploadWatch,
};

impl Flow {
    /// Handles a packet of the client. Returns what it says of the uplink.
    pub(super) fn watch_sent(&mut self, ctx: &Context<'_>, tcp: Tcp<'_>) -> Option<UploadReport> {
        if let Some((value, _)) = tcp.timestamps() {
            self.note_uplink(ctx.now, value);
        }
        self.watch_upload(ctx, tcp)
    }

    /// Notes the timestamp of a packet from the client.
    pub(super) fn note_uplink(&mut self, now: Instant, tsval: u32) {
        self.watch.uplink.on_timestamp(now, tsval, self.path.uploaded, self.path.uplink.of_late(now));
    }

    /// Returns what data of the client says of the uplink, if it answers an ACK that is remembered.
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

    /// Sets what its subscriber knows of the upload.
    pub(crate) fn set_own_upload(&mut self, own: UploadState) {
        if let Some(upload) = &mut self.upstream.upload {
            upload.own = own;
        }
    }

    /// Lowers the window of a server's packet, as its client would read it, so that no more is in flight than the
    /// uplink's bound allows. The right edge never moves back by that (RFC 9293, Section 3.8.6).
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
        // Without SACK a duplicate ACK must not move the window (RFC 5681, Section 2).
        let repeats = is_pure_ack && !self.handshake.sack() && upload.newest == (ack, field);
        upload.newest = (ack, field);
        let path = &self.path.upload;
        let wanted = match path.share(upload.own, segment) {
            // The bound, and what is on the wired side. After a pause (BBR looks for its shortest round trip) no ACK
            // moves the edge until the allowed data has been to the server. Without the wired side's part a path of 72
            // and 139 ms had a third of its rate for four seconds after each pause.
            Some(share) => {
                let on_wired = (uplink.sent().saturating_sub(ack)).max(path.carries(upload.own, server_rtt));
                (ack + on_wired).saturating_add(share)
            }
            // What slow start may have in flight: each acknowledged byte, selectively or not, brings two (RFC 5681,
            // Section 3.1). By the cumulative ACK alone the window ended in the first recovery, and the data held back
            // left in one burst after it. CUBIC lost once more, and had .82 of passing's throughput where the server is
            // 170 ms away.
            None => {
                let blocks = tcp.sack_blocks().map(|(_, end)| end.unwrap_near(ack).min(uplink.sent()));
                let highest = blocks.max().unwrap_or(ack).max(ack);
                highest + (highest - uplink.first().min(highest)) + FIRST_WINDOW
            }
        };
        let wanted = if repeats { upload.edge } else { wanted.max(upload.edge) };
        // Rounded up (RFC 7323, Section 2.4), and never zero.
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
            upload.on_passed(ForwardedAck {
                stamp,
                at: now,
                edge: upload.edge,
                lowered,
                arrived: path.arrived,
            });
        }
    }
}
