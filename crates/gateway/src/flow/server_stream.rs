//! The stream from the server to the client, in positions: how far it has come, and where it ends.

use core::ops::Range;

use paceline_wire::{Duration, Instant};

use super::stale_promise::StalePromise;

/// How long a loss before the gateway counts: as long as losses behind it (bound/backoff.rs).
const OF_LATE: Duration = Duration::from_secs(30);

/// What the server has sent.
#[derive(Clone, Debug, Default, serde::Serialize, serde::Deserialize)]
pub(super) struct ServerStream {
    /// Position after its newest byte.
    received: u64,
    /// Position after the newest byte that passed to the client without being kept.
    #[serde(default)]
    passed: u64,
    server_fin: Option<u64>,
    /// When the server last repaired a loss before the gateway.
    #[serde(default)]
    lost_at: Option<Instant>,
    /// The server's newest bytes, which it sent again before they had left.
    #[serde(default)]
    pub(super) tail_probe: Option<Range<u64>>,
    #[serde(default)]
    pub(super) stale_promise: StalePromise,
}

impl ServerStream {
    /// Starts the stream at `position`, where it begins or is first seen.
    pub(super) fn start(&mut self, position: u64) {
        self.received = position;
    }

    /// Notes that data up to `end` has come.
    pub(super) fn on_received(&mut self, end: u64) {
        self.received = self.received.max(end);
    }

    /// Notes that data up to `end` passed without being kept.
    pub(super) fn on_passed(&mut self, end: u64) {
        self.passed = self.passed.max(end);
    }

    /// Sets how far data had passed when a resumed flow was found.
    pub(super) fn set_passed(&mut self, end: u64) {
        self.passed = end;
    }

    /// Notes that the server repaired a loss before the gateway.
    pub(super) fn on_lost_before(&mut self, now: Instant) {
        self.lost_at = Some(now);
    }

    /// True if something was lost before the gateway of late.
    pub(super) fn lost_of_late(&self, now: Instant) -> bool {
        self.lost_at.is_some_and(|at| now.saturating_since(at) <= OF_LATE)
    }

    /// Notes the server's FIN, which ends at `end`.
    pub(super) fn on_fin(&mut self, end: u64) {
        self.server_fin = Some(end);
    }

    /// Position after its newest byte.
    pub(super) fn received(&self) -> u64 {
        self.received
    }

    /// Position after the newest byte that passed to the client without being kept.
    pub(super) fn passed(&self) -> u64 {
        self.passed
    }

    /// True if the client, which has all below `una`, has the FIN, too.
    pub(super) fn is_over(&self, una: u64) -> bool {
        self.server_fin.is_some_and(|fin| una >= fin)
    }

    /// Returns the bytes of payload between these positions. The server's FIN takes a position (RFC 9293, Section 3.4),
    /// but is no payload.
    pub(super) fn payload_in(&self, start: u64, end: u64) -> u64 {
        let has_fin = self.server_fin.is_some_and(|fin| start < fin && fin <= end);
        end - start - u64::from(has_fin)
    }
}
