//! As Linux (net/ipv4/tcp_input.c:tcp_sndbuf_expand).

use super::{SendBuffer, SendBufferName};

/// Twice the window: one that is in flight and one to fill the next.
#[derive(Clone, Copy, Debug)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
pub struct LinuxGrowth {
    size: u64,
    max: u64,
}

const FACTOR: u32 = 2;

impl LinuxGrowth {
    /// A buffer of `initial` bytes.
    pub fn new(initial: u64, max: u64) -> Self {
        LinuxGrowth { size: initial.min(max), max }
    }
}

impl SendBuffer for LinuxGrowth {
    fn name(&self) -> SendBufferName {
        SendBufferName::Linux
    }

    fn size(&self) -> u64 {
        self.size
    }

    fn on_window(&mut self, window_bytes: u64, windows: Option<u32>) {
        let wanted = window_bytes.saturating_mul(u64::from(windows.unwrap_or(FACTOR)));
        self.size = self.size.max(wanted.min(self.max));
    }
}
