//! The refined growth of OR, Section V.C (Theorem 11).

use super::{SendBuffer, SendBufferName};

/// Three times the window: the least with which no recovery runs out of data while a third of it waits to be filled.
#[derive(Clone, Copy, Debug)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
pub struct RefinedGrowth {
    size: u64,
    max: u64,
}

const FACTOR: u64 = 3;

impl RefinedGrowth {
    /// A buffer of `initial` bytes.
    pub fn new(initial: u64, max: u64) -> Self {
        RefinedGrowth { size: initial.min(max), max }
    }
}

impl SendBuffer for RefinedGrowth {
    fn name(&self) -> SendBufferName {
        SendBufferName::Refined
    }

    fn size(&self) -> u64 {
        self.size
    }

    fn on_window(&mut self, window_bytes: u64, windows: Option<u32>) {
        let wanted = window_bytes.saturating_mul(FACTOR.max(windows.map_or(0, u64::from)));
        self.size = self.size.max(wanted.min(self.max));
    }
}
