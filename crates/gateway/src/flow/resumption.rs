//! Finds the stream positions of a flow that was open before a restart.
//!
//! A single packet could tell them, but anybody may have sent it. So nothing is believed before a packet of each end
//! has come, and one acknowledges what the other sends. Until then all packets pass, as without a gateway. Whoever sees
//! neither end has to guess two numbers, and send packets on both sides.

use paceline_wire::{PortId, Seq, Tcp};

use crate::WAN;

/// The newest packet of each end.
#[derive(Clone, Copy, Debug, Default, serde::Serialize, serde::Deserialize)]
pub(super) struct Resumption {
    server: Option<StreamPositions>,
    client: Option<StreamPositions>,
}

/// What a packet says of both streams.
#[derive(Clone, Copy, Debug, serde::Serialize, serde::Deserialize)]
pub(super) struct StreamPositions {
    /// Sequence number after the packet.
    pub(super) end: Seq,
    pub(super) ack: Seq,
    /// In bytes.
    pub(super) window: u64,
}

/// Our choice: the largest window without scaling, so the server's window may have been this large before.
const UPLINK_MIN: u64 = 65_535;

impl StreamPositions {
    /// Reads a packet whose window has this shift.
    pub(super) fn by(tcp: Tcp<'_>, shift: u8) -> Self {
        StreamPositions { end: tcp.end_seq(), ack: tcp.ack(), window: u64::from(tcp.window()) << shift }
    }
}

impl Resumption {
    /// Notes what a packet at this side says. Returns what the server and the client have said if they agree on the
    /// positions. At most `window` bytes are then in flight to the client.
    pub(super) fn on_packet(
        &mut self,
        from: PortId,
        said: StreamPositions,
        window: u64,
    ) -> Option<(StreamPositions, StreamPositions)> {
        *(if from == WAN { &mut self.server } else { &mut self.client }) = Some(said);
        let (server, client) = self.server.zip(self.client)?;
        let apart = |end: Seq, ack: Seq| u64::from(end.distance(ack).unsigned_abs());
        let agree = apart(server.end, client.ack) <= window.max(client.window)
            && apart(client.end, server.ack) <= server.window.max(UPLINK_MIN);
        agree.then_some((server, client))
    }
}
