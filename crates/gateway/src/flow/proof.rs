//! The ends of a flow: first sequence numbers, whether both are at their addresses, and whether another flow took over.

use alloc::boxed::Box;

use paceline_wire::{Instant, PortId, Seq, Tcp};

use super::resumption::Resumption;
use crate::WAN;

/// What the SYNs have shown, and SYNs that came later.
#[derive(Clone, Debug, Default, serde::Serialize, serde::Deserialize)]
pub(super) struct HandshakeProof {
    /// True if the end that opened the flow has answered the other's SYN: it is at its address.
    #[serde(default = "default_true")]
    is_proven: bool,
    client_isn: Option<u32>,
    server_isn: Option<u32>,
    /// Departure of the server's SYN, if it left once and is not answered.
    syn_sent_at: Option<Instant>,
    /// Acknowledgement of a client's SYN that came on the open flow. If the server sends it, another flow may begin.
    pending_syn: Option<Seq>,
    /// Acknowledgement of the server's answer to that SYN.
    #[serde(default)]
    pending_answer: Option<Seq>,
    /// What the ends of a resumed flow have said, until they agree.
    #[serde(default)]
    pub(super) resumption: Option<Box<Resumption>>,
}

fn default_true() -> bool {
    true
}

impl HandshakeProof {
    /// Returns the first sequence number of the end at this side.
    pub(super) fn isn(&self, from: PortId) -> Option<u32> {
        if from == WAN { self.server_isn } else { self.client_isn }
    }

    /// Takes the client's SYN that opens the flow.
    pub(super) fn on_client_syn(&mut self, seq: Seq) {
        self.client_isn = Some(seq.0);
    }

    /// Takes a SYN of the server. True if its number is new.
    pub(super) fn on_server_syn(&mut self, now: Instant, seq: Seq) -> bool {
        let is_news = self.server_isn != Some(seq.0);
        self.server_isn = Some(seq.0);
        // The first RTT sample is that of the SYN-ACK.
        self.syn_sent_at = is_news.then_some(now);
        is_news
    }

    /// Takes the departure of the server's SYN, which is answered now. `None` unless it left once.
    pub(super) fn take_syn_sent_at(&mut self) -> Option<Instant> {
        self.syn_sent_at.take()
    }

    /// True if both ends have shown that they are there.
    pub(super) fn is_proven(&self) -> bool {
        self.is_proven
    }

    /// Notes a packet that only the ends of this flow can send: the flow is open, and no other has replaced it.
    pub(super) fn on_proof(&mut self) {
        self.is_proven = true;
        (self.pending_syn, self.pending_answer) = (None, None);
    }

    /// Notes a client's SYN with another number on the open flow.
    pub(super) fn on_another_syn(&mut self, seq: Seq) {
        (self.pending_syn, self.pending_answer) = (Some(seq.add(1)), None);
    }

    /// True if the server's SYN answers that one.
    pub(super) fn on_another_answer(&mut self, tcp: Tcp<'_>) -> bool {
        let answers = self.pending_syn == Some(tcp.ack());
        if answers {
            self.pending_answer = Some(tcp.seq().add(1));
        }
        answers
    }

    /// True if the client goes on with another flow of the same addresses and ports, which the server has answered.
    /// Then this flow is over. A SYN and an answer alone could be anybody's, while both ends go on with this flow.
    pub(super) fn is_of_another(&self, tcp: Tcp<'_>) -> bool {
        self.pending_answer.is_some()
            && self.pending_syn == Some(tcp.seq())
            && self.pending_answer == Some(tcp.ack())
    }
}
