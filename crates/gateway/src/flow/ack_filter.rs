//! Decides what the server sees of the client's acknowledgements (Section 5.2; design, the gateway, 4).
//!
//! Duplicate ACKs are withheld and SACK blocks removed, as far as they report holes that the gateway repairs. Data that
//! is missing at the gateway is the server's to repair. While any is missing, or its repair is unanswered, the server
//! sees all ACKs as the client sent them. It then responds to a loss on its own path anyway.

use core::ops::Range;

use paceline_wire::{Duration, Flags, Instant, Packet, Rate, Seq, Tcp};

use super::missing::MissingData;

/// The most answers to keep-alives and the like that are expected at a time.
const REPLIES_MAX: u32 = 16;

/// What the server was told last.
#[derive(Clone, Copy, Debug, Default, serde::Serialize, serde::Deserialize)]
pub(super) struct AckFilter {
    /// Highest acknowledgement passed.
    passed_ack: u64,
    /// Window shown with it, in bytes.
    shown_window: u64,
    /// ECN flags of the last ACK passed.
    ecn_flags: Flags,
    /// Duplicate ACKs that may pass because the server asked for an ACK (keep-alive, window probe, old data).
    replies_expected: u32,
    /// D-SACKs that may pass: one for each second copy of which the server is to hear. A server that goes back after a
    /// timeout sends a whole window of copies. With at most 16 expected, the rest were taken for answers to repairs
    /// from here. The flow was left to the server, and Reno had 2.6 of 6.4 Mbit/s.
    #[serde(default)]
    duplicates_expected: u32,
    /// Range of the stream in which these copies lie.
    #[serde(default)]
    duplicates: (u64, u64),
    /// Position below which the server has heard of all gaps. It had sent this much when the newest duplicate ACK about
    /// a gap passed.
    #[serde(default)]
    told_to: u64,
    /// When the newest acknowledgement passed.
    #[serde(default)]
    passed_at: Instant,
    /// Acknowledgement that passed at least a round trip to the server ago. `mark` holds the next one and its time.
    #[serde(default)]
    heard: u64,
    #[serde(default)]
    mark: (Instant, u64),
    /// Acknowledgements withheld since the last one passed.
    #[serde(default)]
    withheld: WithheldAcks,
}

/// Acknowledgements that the server was not shown.
#[derive(Clone, Copy, Debug, Default, serde::Serialize, serde::Deserialize)]
#[serde(default)]
pub(super) struct WithheldAcks {
    /// Bytes that they reported.
    pub(super) bytes: u64,
    /// Arrival of the first and of the last.
    since: Instant,
    until: Instant,
}

impl WithheldAcks {
    fn add(&mut self, now: Instant, bytes: u64) {
        if self.bytes == 0 {
            self.since = now;
        }
        self.bytes = self.bytes.saturating_add(bytes);
        self.until = now;
    }

    /// Returns the rate at which they reported bytes.
    pub(super) fn rate(&self) -> Rate {
        Rate::from_bytes_in(self.bytes, self.until.saturating_since(self.since))
    }
}

impl AckFilter {
    pub(super) fn reset(&mut self, position: u64) {
        *self = AckFilter { passed_ack: position, ..AckFilter::default() };
    }

    pub(super) fn expect_reply(&mut self) {
        self.replies_expected = (self.replies_expected + 1).min(REPLIES_MAX);
    }

    /// Notes that a second copy of `data` passes. The server is to hear of it by a D-SACK (RFC 2883).
    pub(super) fn expect_duplicate(&mut self, data: Range<u64>) {
        self.duplicates = match self.duplicates_expected {
            0 => (data.start, data.end),
            _ => (self.duplicates.0.min(data.start), self.duplicates.1.max(data.end)),
        };
        self.duplicates_expected = self.duplicates_expected.saturating_add(1);
    }

    /// True if the server has heard that something is missing below `end`.
    pub(super) fn has_told(&self, end: u64) -> bool {
        end <= self.told_to
    }

    pub(super) fn on_passed(
        &mut self,
        now: Instant,
        round_trip: Duration,
        ack: u64,
        window: u64,
        flags: Flags,
    ) {
        if now.saturating_since(self.mark.0) >= round_trip {
            self.heard = core::mem::replace(&mut self.mark, (now, self.passed_ack)).1;
        }
        self.passed_at = now;
        self.passed_ack = self.passed_ack.max(ack);
        self.shown_window = window;
        self.ecn_flags = flags & ECN_FLAGS;
    }

    /// True if the server sent data up to `end` again before it could hear that the client has it. The acknowledgement
    /// still waits here (Eq. 17), or passed less than a `round_trip` to the server ago.
    pub(super) fn is_on_its_way(&self, now: Instant, round_trip: Duration, end: u64) -> bool {
        let is_over = |since: Instant| now.saturating_since(since) >= round_trip;
        let heard = if is_over(self.mark.0) { self.mark.1 } else { self.heard };
        let waits_here = end > self.passed_ack;
        heard < end && (waits_here || !is_over(self.passed_at))
    }

    /// True if `packet`, from the client, tells the server of nothing but a hole that is repaired here.
    pub(super) fn withholds(&self, packet: &Packet, ack: u64, missing: &MissingData<'_>) -> bool {
        packet.tcp().is_some_and(|tcp| is_plain(tcp) && tcp.flags() & ECN_FLAGS == self.ecn_flags)
            && self.is_duplicate(ack, missing)
            && !missing.server_is_repairing()
            && missing.is_repaired_here(ack)
    }

    /// Notes that an acknowledgement that reports `delivered` bytes is withheld.
    pub(super) fn on_withheld(&mut self, now: Instant, delivered: u64) {
        self.withheld.add(now, delivered);
    }

    /// Returns the acknowledgements withheld before one of `advance` bytes, which is about to pass. Bytes that they
    /// reported beyond `advance` stay noted.
    pub(super) fn take_withheld(&mut self, advance: u64) -> WithheldAcks {
        let left = WithheldAcks { bytes: self.withheld.bytes.saturating_sub(advance), ..self.withheld };
        core::mem::replace(&mut self.withheld, left)
    }

    /// True if the server was shown less than a segment, so that it waits for more.
    pub(super) fn was_closed(&self, segment: u64) -> bool {
        self.shown_window < segment
    }

    /// Notes that the client's acknowledgement of `ack` passes.
    pub(super) fn note_told(&mut self, ack: u64, missing: &MissingData<'_>) {
        if self.is_duplicate(ack, missing) && missing.has_gap() {
            self.told_to = missing.received();
        }
    }

    /// True if `packet`, from the client, answers what the server asked for: a duplicate ACK, or one with a D-SACK.
    /// Each uses up one expected answer, whether it passes or not.
    pub(super) fn answers_server(&mut self, packet: &Packet, ack: u64, missing: &MissingData<'_>) -> bool {
        let Some(tcp) = packet.tcp() else { return false };
        let take = |expected: &mut u32| {
            let some = *expected > 0;
            *expected -= u32::from(some);
            some
        };
        if let Some(told) = duplicate_told(tcp, ack) {
            let known = self.duplicates.0 <= told.start && told.end <= self.duplicates.1;
            return (known && take(&mut self.duplicates_expected)) || take(&mut self.replies_expected);
        }
        is_plain(tcp) && self.is_duplicate(ack, missing) && take(&mut self.replies_expected)
    }

    fn is_duplicate(&self, ack: u64, missing: &MissingData<'_>) -> bool {
        ack == missing.una() && ack <= self.passed_ack
    }
}

/// ECE, CWR and AE: they must leave on the ACK that brought them (RFC 3168, RFC 9768).
pub(super) const ECN_FLAGS: Flags = Flags::ECE.union(Flags::CWR).union(Flags::AE);

/// What was removed from an ACK.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct HiddenSacks {
    pub(super) blocks: u64,
    /// True if a D-SACK was among them: a copy from here was needless.
    pub(super) needless: bool,
}

/// Removes the SACK blocks above the lowest hole that is repaired here, and D-SACKs of the gateway's own copies.
/// D-SACKs stay in a packet that `answers_server`.
pub(super) fn hide_sacks(
    packet: &mut Packet,
    ack: u64,
    answers_server: bool,
    missing: &MissingData<'_>,
) -> HiddenSacks {
    let limit = if missing.server_is_repairing() { None } else { missing.lowest_repairable(ack) };
    retain_sacks(packet, ack, |is_duplicate, block| match is_duplicate {
        true => answers_server,
        false => limit.is_none_or(|limit| block.start < limit),
    })
}

/// Removes the D-SACKs of copies from here, all below `end`, after the server has taken over repair. A server that
/// hears of more duplicates than it has retransmitted ignores all D-SACKs (Linux: tcp_dsack_seen). On a path with
/// reordering it then never undid a reduction, and had .43 of passing's throughput.
pub(super) fn hide_own_duplicates(packet: &mut Packet, ack: u64, end: u64) -> HiddenSacks {
    retain_sacks(packet, ack, |is_duplicate, block| !is_duplicate || block.end > end)
}

/// Removes the SACK blocks that `keeps` refuses. It is told whether a block is a D-SACK.
fn retain_sacks(packet: &mut Packet, ack: u64, keeps: impl Fn(bool, Range<u64>) -> bool) -> HiddenSacks {
    let mut hidden = HiddenSacks::default();
    let Some(tcp) = packet.tcp() else { return hidden };
    let mut tells_duplicate = duplicate_told(tcp, ack).is_some();
    let keep = |start: Seq, end: Seq| {
        let block = start.unwrap_near(ack)..end.unwrap_near(ack);
        // `tells_duplicate` is about the first block only.
        let is_duplicate = core::mem::take(&mut tells_duplicate) || block.start < ack;
        let keeps = keeps(is_duplicate, block);
        hidden.blocks += u64::from(!keeps);
        hidden.needless |= is_duplicate && !keeps;
        keeps
    };
    if let Some(mut tcp) = packet.tcp_mut() {
        tcp.retain_sack_blocks(keep);
    }
    hidden
}

/// Returns the first SACK block if it reports a duplicate (RFC 2883, Section 4): it lies below the cumulative ACK, or
/// within the second block. The client reports copies from here behind a gap of the server's in the second way. A BBR
/// server took these for needless repairs of its own, and waited longer with each (RFC 8985, Section 6.2). It had .90
/// and .96 of passing's throughput on two drawn paths whose radio lost nothing.
pub(super) fn duplicate_told(tcp: Tcp<'_>, ack: u64) -> Option<Range<u64>> {
    let mut blocks = tcp.sack_blocks().map(|(start, end)| start.unwrap_near(ack)..end.unwrap_near(ack));
    let (first, second) = (blocks.next()?, blocks.next());
    let is_duplicate = first.start < ack
        || second.is_some_and(|second| second.start <= first.start && first.end <= second.end);
    is_duplicate.then_some(first)
}

/// True if it is an ACK and nothing else.
fn is_plain(tcp: Tcp<'_>) -> bool {
    tcp.seq_len() == 0 && !tcp.flags().intersects(Flags::RST | Flags::URG)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Modulation held an acknowledgement for half a second. A server in a recovery of 10 MB then sent each segment
    /// again, and half of a link's traffic was copies (long seed 100071).
    #[test]
    fn a_server_has_not_heard_of_what_waits_here() {
        let (mut filter, round_trip) = (AckFilter::default(), Duration::from_millis(40));
        let at = |ms: u64| Instant::ZERO + Duration::from_millis(ms);
        filter.on_passed(at(50), round_trip, 2_000, 0, Flags::ACK);
        let sent_too_soon = |ms: u64, end: u64| filter.is_on_its_way(at(ms), round_trip, end);
        assert!(sent_too_soon(60, 2_000) && !sent_too_soon(90, 2_000));
        assert!(sent_too_soon(90, 2_001));
    }
}
