//! Uploads of a split flow. The window that its client is shown stays within the uplink's bound ([`crate::upload`]).
//!
//! The gateway itself acknowledges the client's data. So the loop from an ACK to its answer has no wired part.

use alloc::boxed::Box;

use paceline_wire::{Flags, Instant, Packet};

use super::split_flow::SplitFlow;
use crate::config::QueueBoundMode;
use crate::context::SplitContext as Context;
use crate::pool::{MemoryUse, PIECE_MIN, may_keep};
use crate::upload::{
    FIRST_FLIGHT, FIRST_WINDOW, ForwardedAck, UploadData, UploadPath, UploadReport, UploadState, UploadWatch,
};

/// State of a split flow whose client uploads.
#[derive(Debug, serde::Serialize, serde::Deserialize)]
pub(super) struct SplitUpload {
    watch: UploadWatch,
    /// The most bytes that the client may have in flight.
    limit: u64,
    /// The report of its newest data, until it is taken.
    #[serde(skip)]
    report: Option<UploadReport>,
}

impl SplitUpload {
    /// Bytes of memory of this state.
    pub(super) const MEMORY: u64 = (size_of::<SplitUpload>() + UploadWatch::MEMORY) as u64;
}

impl SplitFlow {
    /// Watches a packet of the client, before its connection reads it. Data outside of the window is ignored.
    pub(super) fn watch_upload(&mut self, ctx: &Context<'_>, subscriber: MemoryUse, packet: &Packet) {
        if ctx.config.queue_bound.uploads == QueueBoundMode::None {
            return;
        }
        let queue = self.uplink.at_most();
        let Some((client, tcp)) = self.client.as_ref().zip(packet.tcp()) else { return };
        let client = &client.connection;
        let handshake = client.min_rtt();
        let (from, edge) = (client.received(), client.received() + client.advertised());
        let start = tcp.seq().unwrap_near(from);
        let range = start..start + packet.payload().len() as u64;
        if range.is_empty() || start < from || range.end > edge {
            return;
        }
        if self.upload.is_none() {
            let pool = ctx.config.limits.max_buffer_bytes as u64;
            // The packet is kept as well, and is not counted yet.
            let needed = SplitUpload::MEMORY + PIECE_MIN.max(range.end - range.start);
            if client.bytes_received() <= FIRST_FLIGHT * client.peer_segment()
                || tcp.timestamps().is_none()
                || !may_keep(pool, *ctx.buffered, subscriber, needed)
            {
                return;
            }
            let watch = UploadWatch::new(edge, handshake.unwrap_or_default());
            self.upload = Some(Box::new(SplitUpload { watch, limit: u64::MAX, report: None }));
        }
        let segment = client.peer_segment();
        let echo = tcp.timestamps().map(|(_, echo)| echo);
        if let Some(upload) = &mut self.upload {
            upload.report =
                upload.watch.report(&UploadData { now: ctx.now, range, echo, segment, queue, handshake });
        }
    }

    /// Takes the newest report about the client's uplink.
    pub(super) fn take_upload_report(&mut self) -> Option<UploadReport> {
        self.upload.as_mut().and_then(|upload| upload.report.take())
    }

    /// Limits the bytes that its client may have in flight, by the estimate of its subscriber.
    pub(super) fn limit_upload(&mut self, path: &UploadPath, own: UploadState) {
        let Some((upload, client)) = self.upload.as_mut().zip(self.client.as_mut()) else { return };
        let client = &mut client.connection;
        upload.watch.own = own;
        // Before there is a limit: the bytes that slow start may have in flight. Each acknowledged byte brings two (RFC
        // 5681, Section 3.1).
        let share =
            path.share(own, client.peer_segment()).unwrap_or_else(|| client.bytes_received() + FIRST_WINDOW);
        // Data behind a hole has arrived, so it is no longer in flight.
        upload.limit = share + client.highest_received().saturating_sub(client.received());
        client.limit_window(upload.limit);
    }

    /// Notes a pure ACK that leaves for the client. `path` has the bytes that uploads had brought by then.
    pub(super) fn on_ack_to_client(&mut self, now: Instant, packet: &Packet, path: &UploadPath) {
        let Some((upload, client)) = self.upload.as_mut().zip(self.client.as_ref()) else { return };
        let Some(tcp) = packet.tcp().filter(|tcp| tcp.flags() == Flags::ACK) else { return };
        let Some((stamp, _)) = tcp.timestamps() else { return };
        let client = &client.connection;
        upload.watch.on_passed(ForwardedAck {
            stamp,
            at: now,
            edge: client.received() + client.advertised(),
            lowered: client.advertised() + client.peer_segment() > upload.limit,
            arrived: path.arrived,
        });
    }
}
