//! What the server is shown of the client's acknowledgements (Section 5.2; design, the gateway, 4).
//!
//! A duplicate ACK is withheld, and SACK blocks are taken out, as far as they tell of holes that are repaired here.
//! Holes in what the server's packets brought here are its own to repair. As long as there is one, or the repair of one has not been
//! answered, all is shown as the client sent it: the server then answers a loss of its own path anyway.

use paceline_wire::{Flags, Packet, Seq, Tcp};

use super::{Context, Flow};

/// Answers to keep-alives and the like that may be outstanding; more are not waited for.
const REPLIES_MAX: u32 = 16;

/// What the server was told last.
#[derive(Clone, Copy, Debug, Default)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
pub(super) struct AckFilter {
    /// Highest acknowledgement passed.
    passed_ack: u64,
    /// Window shown with it, in bytes.
    shown_window: u64,
    /// ECN flags of the last ACK passed.
    ecn_flags: Flags,
    /// The server asked for an ACK (keep-alive, window probe, old data): so many duplicates pass.
    replies_expected: u32,
    /// What had come from the server when a duplicate ACK passed that tells of a gap: it has heard of all gaps below.
    #[cfg_attr(feature = "serde", serde(default))]
    told_to: u64,
}

impl AckFilter {
    pub(super) fn reset(&mut self, position: u64) {
        *self = AckFilter { passed_ack: position, ..AckFilter::default() };
    }

    pub(super) fn expect_reply(&mut self) {
        self.replies_expected = (self.replies_expected + 1).min(REPLIES_MAX);
    }

    /// The server has heard that something is missing below `end`.
    pub(super) fn has_told(&self, end: u64) -> bool {
        end <= self.told_to
    }

    pub(super) fn on_passed(&mut self, ack: u64, window: u64, flags: Flags) {
        self.passed_ack = self.passed_ack.max(ack);
        self.shown_window = window;
        self.ecn_flags = flags & ECN_FLAGS;
    }
}

/// ECE, CWR and AE: they must leave on the ACK that brought them (RFC 3168, RFC 9768).
pub(super) const ECN_FLAGS: Flags = Flags::ECE.union(Flags::CWR).union(Flags::AE);

impl Flow {
    /// True if `packet`, from the client, tells the server nothing but a hole that is repaired here.
    pub(super) fn withholds(&self, ctx: &Context<'_>, packet: &Packet, ack: u64) -> bool {
        let Some(tcp) = packet.tcp() else { return false };
        if !is_plain(tcp)
            || !self.is_duplicate(ack)
            || !self.repairs(ctx.config)
            || self.server_is_repairing()
            || !self.is_repaired_here(ack)
        {
            return false;
        }
        if tcp.flags() & ECN_FLAGS != self.filter.ecn_flags {
            return false;
        }
        // An opening window must be shown.
        if self.filter.shown_window < self.segment() && !self.client.is_closed() {
            return false;
        }
        true
    }

    /// The client's acknowledgement of `ack` passes.
    pub(super) fn note_told(&mut self, ack: u64) {
        if self.is_duplicate(ack) && self.buffer.has_gap(self.board.una(), self.stream.received()) {
            self.filter.told_to = self.stream.received();
        }
    }

    /// A duplicate ACK of a client without SACK tells of a gap of the server's by their number, and what moves the window is no duplicate
    /// (RFC 5681, Section 2; Linux: FLAG_WIN_UPDATE).
    pub(super) fn counts_for_server(&self, ctx: &Context<'_>) -> bool {
        !self.handshake.sack() && self.repairs(ctx.config) && self.server_is_repairing()
    }

    /// True if `packet`, from the client, answers what the server asked for: a duplicate ACK, or one with a D-SACK. Each answers once,
    /// whatever is done with it.
    pub(super) fn answers_server(&mut self, packet: &Packet, ack: u64) -> bool {
        let Some(tcp) = packet.tcp().filter(|_| self.filter.replies_expected > 0) else { return false };
        let duplicate = is_plain(tcp) && self.is_duplicate(ack);
        // RFC 2883: the first block, at or below the cumulative ACK, reports a duplicate.
        let answers = duplicate || tcp.sack_blocks().any(|(start, _)| start.unwrap_near(ack) < ack);
        self.filter.replies_expected -= u32::from(answers);
        answers
    }

    fn is_duplicate(&self, ack: u64) -> bool {
        ack == self.board.una() && ack <= self.filter.passed_ack
    }

    /// Something is missing here, or the server's repair of it is on its way to the client: what the client reports is about losses before
    /// the gateway, too, and a server that heard nothing of it for a round trip would stand still (BBR) or time out.
    pub(super) fn server_is_repairing(&self) -> bool {
        self.board.has_server_repairs() || self.buffer.has_gap(self.board.una(), self.stream.received())
    }

    /// The byte at `position` has left for the client and can be sent again.
    fn is_repaired_here(&self, position: u64) -> bool {
        position < self.board.sent() && self.buffer.at(position).is_some()
    }

    /// Takes out the SACK blocks above the lowest hole that is repaired here, and D-SACKs of the gateway's own copies.
    /// A D-SACK is shown where the packet `answers_server`.
    pub(super) fn hide_sacks(
        &mut self,
        ctx: &mut Context<'_>,
        packet: &mut Packet,
        ack: u64,
        answers_server: bool,
    ) {
        let has_blocks = packet.tcp().is_some_and(|tcp| tcp.sack_blocks().next().is_some());
        if !has_blocks || !self.repairs(ctx.config) {
            return;
        }
        let limit = if self.server_is_repairing() { None } else { self.lowest_repairable(ack) };
        let near = ack;
        let (mut removed, mut needless) = (0, false);
        let keep = |start: Seq, _end: Seq| {
            let start = start.unwrap_near(near);
            // RFC 2883: a block at or below the cumulative ACK reports a duplicate.
            let keeps = if start < near { answers_server } else { limit.is_none_or(|limit| start < limit) };
            removed += u64::from(!keeps);
            needless |= start < near && !keeps;
            keeps
        };
        if let Some(mut tcp) = packet.tcp_mut() {
            tcp.retain_sack_blocks(keep);
        }
        ctx.counters.sack_blocks_removed += removed;
        if needless {
            self.watch_duplicate();
        }
    }

    /// The lowest position, not reported by the client, that has left and is kept.
    fn lowest_repairable(&self, ack: u64) -> Option<u64> {
        let mut position = ack;
        // A step skips a gap of the buffer or a reported range; a client reports few.
        for _ in 0..8 {
            let chunk = self.buffer.from(position)?;
            position = position.max(chunk.start);
            if position >= self.board.sent() {
                return None;
            }
            match self.board.sacked_until(position) {
                Some(end) => position = end,
                None => return Some(position),
            }
        }
        Some(position)
    }
}

/// An ACK and nothing else.
fn is_plain(tcp: Tcp<'_>) -> bool {
    tcp.seq_len() == 0 && !tcp.flags().intersects(Flags::RST | Flags::URG)
}
