//! State that a run shares with its observers.

use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

/// Cancels a run and shows its progress, from any thread.
#[derive(Debug, Default)]
pub struct Control {
    cancelled: AtomicBool,
    received_bytes: AtomicU64,
}

impl Control {
    /// Nothing received, and not cancelled.
    pub const fn new() -> Self {
        Control { cancelled: AtomicBool::new(false), received_bytes: AtomicU64::new(0) }
    }

    /// Ends the run within a tenth of a second. Reports show which transfers are unfinished.
    pub fn cancel(&self) {
        self.cancelled.store(true, Ordering::Relaxed);
    }

    /// True if [`Control::cancel`] was called.
    pub fn is_cancelled(&self) -> bool {
        self.cancelled.load(Ordering::Relaxed)
    }

    /// Returns the TCP payload that receiving applications of all transfers have read so far.
    pub fn received_bytes(&self) -> u64 {
        self.received_bytes.load(Ordering::Relaxed)
    }

    pub(super) fn add_received(&self, bytes: u64) {
        self.received_bytes.fetch_add(bytes, Ordering::Relaxed);
    }
}
