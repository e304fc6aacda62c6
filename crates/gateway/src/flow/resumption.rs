//! A flow that was open before a restart: where its streams are, nobody here knows.
//!
//! A single packet could tell, and be anybody's. So nothing is believed before a packet of each end has come, and the two agree: what one
//! acknowledges is what the other sends. Until then all passes, as without a gateway. Whoever sees neither end has to guess two numbers,
//! and be heard on both sides.

use paceline_wire::{Flags, PortId, Seq, Tcp};

use super::client_stream::Uplink;
use super::{Context, Flow};
use crate::WAN;

/// The newest packet of each end.
#[derive(Clone, Copy, Debug, Default)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
pub(super) struct Resumption {
    server: Option<Said>,
    client: Option<Said>,
}

/// What a packet says of both streams.
#[derive(Clone, Copy, Debug)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
struct Said {
    /// The number behind it.
    end: Seq,
    ack: Seq,
    /// In bytes.
    window: u64,
}

/// Our choice: no window without scaling is larger, so a server's own may have been as large before.
const UPLINK_MIN: u64 = 65_535;

impl Flow {
    /// A packet came at this side. True if it tells, with what came at the other, where the streams are.
    pub(super) fn resumes(&mut self, ctx: &Context<'_>, from: PortId, tcp: Tcp<'_>) -> bool {
        if !tcp.flags().contains(Flags::ACK) || tcp.flags().intersects(Flags::RST | Flags::SYN) {
            return false;
        }
        let shift = if from == WAN { self.shifts.server } else { self.shifts.client };
        let said = Said { end: tcp.end_seq(), ack: tcp.ack(), window: u64::from(tcp.window()) << shift };
        let ends = &mut **self.proof.resumption.get_or_insert_default();
        *(if from == WAN { &mut ends.server } else { &mut ends.client }) = Some(said);
        let Some((server, client)) = ends.server.zip(ends.client) else { return false };
        let apart = |end: Seq, ack: Seq| u64::from(end.distance(ack).unsigned_abs());
        let downlink = ctx.config.virtual_window.max_bytes.max(client.window);
        if apart(server.end, client.ack) > downlink
            || apart(client.end, server.ack) > server.window.max(UPLINK_MIN)
        {
            return false;
        }
        self.proof.resumption = None;
        self.life.open();
        self.client.resume(ctx.now, client.window);
        self.start_stream(client.ack.unwrap_near(1 << 32));
        // It passed, and more may have before.
        self.stream.set_passed(server.end.unwrap_near(self.stream.received()));
        let uplink = self.upstream.uplink.insert(Uplink::at(server.ack.unwrap_near(1 << 32)));
        uplink.goes_on(client.end, server.ack, server.window);
        true
    }
}
