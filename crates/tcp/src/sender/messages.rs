//! What the sender is given, and what it gives: ACKs and data in, segments out.

use paceline_wire::{Duration, Instant};

/// An ACK as the connection hands it over, positions unwrapped, the window in bytes.
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
    /// The segment brings data or a FIN.
    pub(crate) data: bool,
    /// It echoes that a packet met congestion (ECN).
    pub(crate) ece: bool,
    /// It echoes an accelerate, or a brake (ABC).
    pub(crate) accelerate: Option<bool>,
}

/// Whether it could be taken.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum AckVerdict {
    /// It was.
    Taken,
    /// It is old, and so says nothing but by SACK.
    Old,
    /// Older than any window: an attack or a mistake (RFC 5961, Section 5).
    TooOld,
    /// It acknowledges what was never sent.
    Unsent,
}

/// What an ACK turned out to be (Linux FLAG_*).
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
    /// Below SND.UNA: it came late, and says nothing but by SACK (RFC 5681, Section 2: a duplicate ACK has SND.UNA).
    pub(super) old: bool,
    /// It echoes congestion.
    pub(super) ece: bool,
    pub(super) set_timer: bool,
    pub(super) lost_retransmission: bool,
}

impl Flags {
    /// It acknowledges, brings data or opens the window (FLAG_NOT_DUP).
    pub(super) fn not_duplicate(self) -> bool {
        self.una_advanced || self.data || self.window_update
    }

    /// A pure duplicate ACK.
    pub(super) fn duplicate(self) -> bool {
        !self.not_duplicate() && !self.dsack && !self.old
    }

    /// It may have news of loss or congestion.
    pub(super) fn is_dubious(self) -> bool {
        !self.not_duplicate() || self.data_sacked || self.dsack || self.ece
    }
}

/// What must be sent whatever cwnd says.
#[derive(Clone, Copy, PartialEq, Eq, Debug, serde::Serialize, serde::Deserialize)]
pub(super) enum Forced {
    /// A probe of the tail.
    Probe,
    /// The first segment, after a timeout.
    First,
    /// The segment that fast recovery begins with (RFC 6675, Section 5, step 4.3).
    Lost,
    /// As much of the next segment as the window holds.
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

/// What the application has given.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Supply {
    /// The position after its last byte, or after the FIN.
    pub(crate) end: u64,
    /// The last position is a FIN.
    pub(crate) fin: bool,
    /// The application has more, but found the send buffer full.
    pub(crate) blocked: bool,
    /// New segments end here at the latest.
    pub(crate) piece: u64,
}
