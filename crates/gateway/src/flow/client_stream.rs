//! The stream from the client to the server, which is not kept here.

use alloc::boxed::Box;

use paceline_wire::Seq;

use crate::upload::UploadWatch;

/// Our choice: no receive buffer in use is larger; Linux's grow to 6 MB. An unknown window is taken for this.
pub(super) const WINDOW_MAX: u64 = 64 << 20;

/// What the client sends.
#[derive(Default, serde::Serialize, serde::Deserialize)]
pub(super) struct ClientStream {
    /// None before its numbers are known.
    pub(super) uplink: Option<Uplink>,
    /// State of the upload, if it is one.
    #[serde(default)]
    pub(super) upload: Option<Box<UploadWatch>>,
    client_fin: Option<u64>,
    client_fin_acked: bool,
}

impl ClientStream {
    /// Notes the client's FIN, which ends at `end`.
    pub(super) fn on_fin(&mut self, end: Seq) {
        self.client_fin = Some(end.unwrap_near(1 << 32));
    }

    /// True if the client has sent its FIN.
    pub(super) fn has_fin(&self) -> bool {
        self.client_fin.is_some()
    }

    /// Takes the server's acknowledgement `ack`. True if it covers the FIN.
    pub(super) fn on_server_ack(&mut self, ack: Seq) -> bool {
        let acked = self.client_fin.is_some_and(|fin| Seq::from(fin).distance(ack) <= 0);
        self.client_fin_acked |= acked;
        acked
    }

    /// True if the server has acknowledged the client's FIN.
    pub(super) fn is_over(&self) -> bool {
        self.client_fin_acked
    }

    /// Bytes of memory that the watch of an upload takes.
    pub(super) fn memory(&self) -> u64 {
        self.upload.as_ref().map_or(0, |_| UploadWatch::MEMORY as u64)
    }
}

/// Positions of the client's stream.
#[derive(Clone, Copy, Debug, serde::Serialize, serde::Deserialize)]
pub(super) struct Uplink {
    /// The lowest position that can be acknowledged: that of the first byte, or where the flow was first seen.
    #[serde(default)]
    first: u64,
    /// Acknowledged by the server.
    acked: u64,
    /// Sent by the client.
    sent: u64,
    /// The largest window of the server, as the client reads it (MAX.SND.WND of RFC 5961, Section 5.2).
    #[serde(default)]
    window_max: u64,
    /// The furthest right edge that the server has shown; zero while it is not known.
    #[serde(default)]
    edge: u64,
}

impl Uplink {
    /// The stream of a flow that opens with the SYN `isn`. The SYN and its data take `len` positions.
    pub(super) fn opened(isn: Seq, len: u32) -> Self {
        let first = isn.add(1).unwrap_near(1 << 32);
        Uplink { sent: first - 1 + u64::from(len), ..Uplink::at(first) }
    }

    /// True if the positions are below `most` and in order.
    pub(super) fn is_sound(&self, most: u64) -> bool {
        self.acked <= self.sent
            && [self.first, self.sent, self.edge, self.window_max].into_iter().all(|one| one < most)
    }

    /// The stream of a flow that is first seen at `position`.
    pub(super) fn at(position: u64) -> Self {
        Uplink { first: position, acked: position, sent: position, window_max: 0, edge: 0 }
    }

    /// The first position.
    pub(super) fn first(&self) -> u64 {
        self.first
    }

    /// Acknowledged by the server.
    pub(super) fn acked(&self) -> u64 {
        self.acked
    }

    /// Position after the newest byte of the client.
    pub(super) fn sent(&self) -> u64 {
        self.sent
    }

    /// The furthest right edge that the server has shown.
    pub(super) fn edge(&self) -> u64 {
        self.edge
    }

    /// Takes the server's acknowledgement and window, which the client reads as `read` bytes.
    pub(super) fn on_server(&mut self, ack: u64, window: u64, read: u64) {
        self.acked = self.acked.max(ack);
        self.sent = self.sent.max(ack);
        self.window_max = self.window_max.max(read);
        self.edge = self.edge.max(ack + window);
    }

    /// Sets the state of a resumed flow: the end of what the client sent, and the server's acknowledgement and window.
    pub(super) fn goes_on(&mut self, sent: Seq, ack: Seq, window: u64) {
        self.sent = self.sent.max(sent.unwrap_near(self.acked));
        self.on_server(ack.unwrap_near(self.acked), window, window);
    }

    /// Takes the server's SYN-ACK. Its window is never scaled (RFC 7323, Section 2.2).
    pub(super) fn on_syn_ack(&mut self, ack: Seq, window: u16) {
        self.on_server(ack.unwrap_near(self.acked), u64::from(window), u64::from(window));
    }

    /// Notes that the client has sent data up to `end`.
    pub(super) fn on_client(&mut self, end: u64) {
        self.sent = self.sent.max(end);
    }

    /// True if the server may acknowledge `ack`. RFC 5961, Section 5.2: SND.UNA - MAX.SND.WND <= SEG.ACK <= SND.NXT. As
    /// in Linux (tcp_ack), nobody acknowledges less than the first byte.
    pub(super) fn takes(&self, ack: u64) -> bool {
        (self.acked.saturating_sub(self.window_max).max(self.first)..=self.sent).contains(&ack)
    }

    /// True if the client may send `start..end`: within the window, or a probe of one byte beyond it (RFC 9293, Section
    /// 3.8.6.1). The server ignores anything older than a window.
    pub(super) fn allows(&self, start: u64, end: u64) -> bool {
        let edge = if self.edge == 0 { self.acked + WINDOW_MAX } else { self.edge };
        start <= edge && end <= edge + 1 && end + self.window_max.max(1) >= self.acked
    }
}
