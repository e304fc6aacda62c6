//! Who the ends of a flow are: their first numbers, whether both are where their addresses say, and whether others go on in their place.

use alloc::boxed::Box;

use paceline_wire::{Instant, PortId, Seq, Tcp};

use super::resumption::Resumption;
use crate::WAN;

/// What the SYNs have shown, and SYNs that came later.
#[derive(Clone, Debug, Default, serde::Serialize, serde::Deserialize)]
pub(super) struct Proof {
    /// The end that opened it has answered the other's SYN: it is where its address says.
    #[serde(default = "yes")]
    is_proven: bool,
    client_isn: Option<u32>,
    server_isn: Option<u32>,
    /// Departure of the server's SYN, if it left once and is not answered.
    syn_sent_at: Option<Instant>,
    /// What acknowledges a SYN of the client that came while the flow was open: it is over if the server answers that.
    pending_syn: Option<Seq>,
    /// What acknowledges the server's answer to that.
    #[serde(default)]
    pending_answer: Option<Seq>,
    /// What the ends of a resumed flow have said, until it is believed.
    #[serde(default)]
    pub(super) resumption: Option<Box<Resumption>>,
}

fn yes() -> bool {
    true
}

impl Proof {
    /// The first number of the end at this side.
    pub(super) fn isn(&self, from: PortId) -> Option<u32> {
        if from == WAN { self.server_isn } else { self.client_isn }
    }

    /// A SYN of the client opens the flow.
    pub(super) fn on_client_syn(&mut self, seq: Seq) {
        self.client_isn = Some(seq.0);
    }

    /// A SYN of the server passes. True if its number is news.
    pub(super) fn on_server_syn(&mut self, now: Instant, seq: Seq) -> bool {
        let is_news = self.server_isn != Some(seq.0);
        self.server_isn = Some(seq.0);
        // The first RTT sample is that of the SYN-ACK.
        self.syn_sent_at = is_news.then_some(now);
        is_news
    }

    /// Something answers the server's SYN. When that left, if it did so once.
    pub(super) fn take_syn_sent_at(&mut self) -> Option<Instant> {
        self.syn_sent_at.take()
    }

    /// Both ends have shown that they are there.
    pub(super) fn is_proven(&self) -> bool {
        self.is_proven
    }

    /// An end has sent what only the ends of this flow can: it is open, and no other is in its place.
    pub(super) fn on_proof(&mut self) {
        self.is_proven = true;
        (self.pending_syn, self.pending_answer) = (None, None);
    }

    /// The client has sent a SYN of another number while the flow is open.
    pub(super) fn on_another_syn(&mut self, seq: Seq) {
        (self.pending_syn, self.pending_answer) = (Some(seq.add(1)), None);
    }

    /// True if a SYN of the server answers that one.
    pub(super) fn on_another_answer(&mut self, tcp: Tcp<'_>) -> bool {
        let answers = self.pending_syn == Some(tcp.ack());
        if answers {
            self.pending_answer = Some(tcp.seq().add(1));
        }
        answers
    }

    /// The client goes on with another flow of the same addresses and ports, which its server has answered: this one is over. One SYN, and an
    /// answer to it, could be anybody's, while both ends go on with this flow.
    pub(super) fn is_of_another(&self, tcp: Tcp<'_>) -> bool {
        self.pending_answer.is_some()
            && self.pending_syn == Some(tcp.seq())
            && self.pending_answer == Some(tcp.ack())
    }
}
