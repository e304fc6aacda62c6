//! What a run shares with whoever watches it.

use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

/// Cancels a run and shows its progress, from any thread.
#[derive(Debug, Default)]
pub struct Control {
    cancelled: AtomicBool,
    received_bytes: AtomicU64,
}

impl Control {
    /// Nothing received, not cancelled.
    pub const fn new() -> Self {
        Control { cancelled: AtomicBool::new(false), received_bytes: AtomicU64::new(0) }
    }

    /// Ends the run within a tenth of a second; what is unfinished is reported so.
    pub fn cancel(&self) {
        self.cancelled.store(true, Ordering::Relaxed);
    }

    /// Whether [`Control::cancel`] was called.
    pub fn is_cancelled(&self) -> bool {
        self.cancelled.load(Ordering::Relaxed)
    }

    /// TCP payload that receiving applications have read so far, of all transfers.
    pub fn received_bytes(&self) -> u64 {
        self.received_bytes.load(Ordering::Relaxed)
    }

    pub(super) fn add_received(&self, bytes: u64) {
        self.received_bytes.fetch_add(bytes, Ordering::Relaxed);
    }
}
