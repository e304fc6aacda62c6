//! Input and output of the sender: ACKs and data in, segments out.

use paceline_wire::{Duration, Instant};

/// An ACK from the connection, with unwrapped positions and the window in bytes.
#[derive(Clone, Copy, Debug)]
pub(crate) struct AckInput<'a> {
    pub(crate) now: Instant,
    pub(crate) seq: u64,
    pub(crate) ack: u64,
    pub(crate) window: u64,
    /// SACK blocks in wire order.
    pub(crate) sacks: &'a [(u64, u64)],
    pub(crate) tsval: Option<u32>,
    pub(crate) tsecr: Option<u32>,
    /// The time since `tsecr` was sent, if the peer echoes timestamps.
    pub(crate) echo_rtt: Option<Duration>,
    /// The segment has data or a FIN.
    pub(crate) data: bool,
    /// It echoes a congestion mark (ECN).
    pub(crate) ece: bool,
    /// The echoed accelerate (true) or brake (false) of ABC.
    pub(crate) accelerate: Option<bool>,
}

/// Result of processing an ACK.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum AckVerdict {
    /// The ACK was processed.
    Taken,
    /// It is below SND.UNA, so only its SACK blocks count.
    Old,
    /// Older than any window: an attack or a mistake (RFC 5961, Section 5).
    TooOld,
    /// It acknowledges data that was never sent.
    Unsent,
}

/// Properties of an ACK (Linux FLAG_*).
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Flags {
    pub(super) una_advanced: bool,
    pub(super) data_sacked: bool,
    pub(super) original_delivered: bool,
    pub(super) dsack: bool,
    pub(super) dsack_of_probe: bool,
    pub(super) dsack_of_reordering: bool,
    pub(super) window_update: bool,
    pub(super) data: bool,
    /// Below SND.UNA: it came late, so only its SACK blocks count (RFC 5681, Section 2: a duplicate ACK has SND.UNA).
    pub(super) old: bool,
    /// It echoes congestion.
    pub(super) ece: bool,
    pub(super) set_timer: bool,
    pub(super) lost_retransmission: bool,
}

impl Flags {
    /// True if it acknowledges, has data or updates the window (FLAG_NOT_DUP).
    pub(super) fn not_duplicate(self) -> bool {
        self.una_advanced || self.data || self.window_update
    }

    /// True if it is a pure duplicate ACK.
    pub(super) fn duplicate(self) -> bool {
        !self.not_duplicate() && !self.dsack && !self.old
    }

    /// True if it may have news of loss or congestion.
    pub(super) fn is_dubious(self) -> bool {
        !self.not_duplicate() || self.data_sacked || self.dsack || self.ece
    }
}

/// A segment to send whatever cwnd says.
#[derive(Clone, Copy, PartialEq, Eq, Debug, serde::Serialize, serde::Deserialize)]
pub(super) enum ForcedSegment {
    /// The tail loss probe.
    Probe,
    /// The first unacknowledged segment, after a timeout.
    First,
    /// The first retransmission of fast recovery (RFC 6675, Section 5, step 4.3).
    Lost,
    /// The part of the next segment that fits into the receive window.
    Part,
}

/// A segment to send.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Transmission {
    pub(crate) start: u64,
    pub(crate) end: u64,
    /// Its last position is the FIN.
    pub(crate) fin: bool,
    pub(crate) retransmission: bool,
}

/// Data that the application has supplied.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Supply {
    /// The position after its last byte, or after the FIN.
    pub(crate) end: u64,
    /// The last position is a FIN.
    pub(crate) fin: bool,
    /// The application has more, but found the send buffer full.
    pub(crate) blocked: bool,
    /// No new segment may extend beyond this position.
    pub(crate) piece: u64,
}
