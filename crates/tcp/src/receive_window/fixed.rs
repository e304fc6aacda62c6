//! Always the same window.

use paceline_wire::{Duration, Instant};

use super::{Arrival, ReceiveWindow, ReceiveWindowName};
use crate::config::ReceiveBuffer;

/// The whole buffer, less the data that waits in it (RFC 9293, Section 3.8.6).
#[derive(Clone, Copy, Debug, serde::Serialize, serde::Deserialize)]
pub struct Fixed {
    size: u64,
}

impl Fixed {
    /// All of `buffer`.
    pub fn new(buffer: ReceiveBuffer) -> Self {
        Fixed { size: u64::from(buffer.max()) }
    }
}

impl ReceiveWindow for Fixed {
    fn name(&self) -> ReceiveWindowName {
        ReceiveWindowName::Fixed
    }

    fn start_at(&mut self, _copied: u64) {}

    fn on_segment(&mut self, _arrival: &Arrival) -> bool {
        false
    }

    fn on_rtt(&mut self, _now: Instant, _echo: u32, _rtt: Duration) {}

    fn on_read(&mut self, _now: Instant, _copied: u64) {}

    fn size(&self) -> u64 {
        self.size
    }

    fn free(&self, unread: u64) -> u64 {
        self.size.saturating_sub(unread)
    }
}
