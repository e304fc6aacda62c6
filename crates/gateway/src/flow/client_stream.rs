//! The stream from the client to the server, which is not kept here.

use alloc::boxed::Box;

use paceline_wire::Seq;

use crate::upload::UploadWatch;

/// Our choice: no receive buffer in use is larger; Linux's grow to 6 MB by themselves. What is not known is taken for this.
pub(super) const WINDOW_MAX: u64 = 64 << 20;

/// What the client sends.
#[derive(Default, serde::Serialize, serde::Deserialize)]
pub(super) struct ClientStream {
    /// None before its numbers are known.
    pub(super) uplink: Option<Uplink>,
    /// What is kept of it if it is an upload.
    #[serde(default)]
    pub(super) upload: Option<Box<UploadWatch>>,
    client_fin: Option<u64>,
    client_fin_acked: bool,
}

impl ClientStream {
    /// The client's FIN, which ends at `end`.
    pub(super) fn on_fin(&mut self, end: Seq) {
        self.client_fin = Some(end.unwrap_near(1 << 32));
    }

    /// The client has sent its FIN.
    pub(super) fn has_fin(&self) -> bool {
        self.client_fin.is_some()
    }

    /// The server acknowledges `ack`. True if that is the FIN.
    pub(super) fn on_server_ack(&mut self, ack: Seq) -> bool {
        let acked = self.client_fin.is_some_and(|fin| Seq::from(fin).distance(ack) <= 0);
        self.client_fin_acked |= acked;
        acked
    }

    /// The server has the client's FIN.
    pub(super) fn is_over(&self) -> bool {
        self.client_fin_acked
    }

    /// Bytes of memory that the watch of an upload takes.
    pub(super) fn memory(&self) -> u64 {
        self.upload.as_ref().map_or(0, |_| UploadWatch::MEMORY as u64)
    }
}

/// Its positions.
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
    /// Of a flow that opens with a SYN of this number, behind which `len` positions follow.
    pub(super) fn opened(isn: Seq, len: u32) -> Self {
        let first = isn.add(1).unwrap_near(1 << 32);
        Uplink { sent: first - 1 + u64::from(len), ..Uplink::at(first) }
    }

    /// Positions below `most`, in their order.
    pub(super) fn is_sound(&self, most: u64) -> bool {
        self.acked <= self.sent
            && [self.first, self.sent, self.edge, self.window_max].into_iter().all(|one| one < most)
    }

    /// Of a flow that goes on here.
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

    /// The server acknowledges `ack`, and shows a window of so many bytes, of which the client reads so many.
    pub(super) fn on_server(&mut self, ack: u64, window: u64, read: u64) {
        self.acked = self.acked.max(ack);
        self.sent = self.sent.max(ack);
        self.window_max = self.window_max.max(read);
        self.edge = self.edge.max(ack + window);
    }

    /// Where a resumed flow was found: so far the client had sent, and the server shows this window.
    pub(super) fn goes_on(&mut self, sent: Seq, ack: Seq, window: u64) {
        self.sent = self.sent.max(sent.unwrap_near(self.acked));
        self.on_server(ack.unwrap_near(self.acked), window, window);
    }

    /// The server's SYN, whose window is never scaled (RFC 7323, Section 2.2).
    pub(super) fn on_syn_ack(&mut self, ack: Seq, window: u16) {
        self.on_server(ack.unwrap_near(self.acked), u64::from(window), u64::from(window));
    }

    /// The client has sent what ends at `end`.
    pub(super) fn on_client(&mut self, end: u64) {
        self.sent = self.sent.max(end);
    }

    /// RFC 5961, Section 5.2: SND.UNA - MAX.SND.WND <= SEG.ACK <= SND.NXT. As in Linux (tcp_ack), nothing below the first byte is
    /// acknowledged by anybody.
    pub(super) fn takes(&self, ack: u64) -> bool {
        (self.acked.saturating_sub(self.window_max).max(self.first)..=self.sent).contains(&ack)
    }

    /// The client sends `start..end`: within the window, or a probe of one byte beyond it (RFC 9293, Section 3.8.6.1). What is older than
    /// a window is nothing that its server would look at.
    pub(super) fn allows(&self, start: u64, end: u64) -> bool {
        let edge = if self.edge == 0 { self.acked + WINDOW_MAX } else { self.edge };
        start <= edge && end <= edge + 1 && end + self.window_max.max(1) >= self.acked
    }
}
