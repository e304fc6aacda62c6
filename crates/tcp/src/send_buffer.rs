//! The send buffer: how much the application may queue, and when it is woken.

mod linux;
mod refined;

use alloc::boxed::Box;
use core::fmt::Debug;

use crate::names::named;
use crate::snapshot::{SendBufferState, Snapshot};

pub use linux::LinuxGrowth;
pub use refined::RefinedGrowth;

named! {
    /// A growth of the send buffer by name.
    SendBufferName {
        /// Twice the congestion window.
        #[default]
        Linux = "linux",
        /// Three times the congestion window (OR, Section V.C).
        Refined = "refined",
    }
}

impl SendBufferName {
    /// A new instance, in bytes of payload.
    pub fn build(self, initial: u64, max: u64) -> Box<dyn SendBuffer> {
        match self {
            SendBufferName::Linux => Box::new(LinuxGrowth::new(initial, max)),
            SendBufferName::Refined => Box::new(RefinedGrowth::new(initial, max)),
        }
    }
}

/// How much the application may queue. Sizes are in bytes of payload; Linux counts the memory that they take.
pub trait SendBuffer: Debug + Send + Snapshot<SendBufferState> {
    /// Which one it is.
    fn name(&self) -> SendBufferName;

    /// Its present size.
    fn size(&self) -> u64;

    /// The window may have grown. `windows` is the congestion control's own wish for the factor.
    fn on_window(&mut self, window_bytes: u64, windows: Option<u32>);

    /// Whether an application that found it full is woken with `queued` bytes in it: when a third is free (Linux
    /// sk_stream_is_writeable, as free space of at least half of what is queued).
    fn wakes(&self, queued: u64) -> bool {
        self.size().saturating_sub(queued) >= queued / 2
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_buffer_grows_with_the_window_and_never_shrinks() {
        for (name, factor) in [(SendBufferName::Linux, 2), (SendBufferName::Refined, 3)] {
            let mut buffer = name.build(16_384, 1_000_000);
            buffer.on_window(100_000, None);
            assert_eq!(buffer.size(), factor * 100_000);
            buffer.on_window(50_000, None);
            assert_eq!(buffer.size(), factor * 100_000);
            buffer.on_window(900_000, None);
            assert_eq!(buffer.size(), 1_000_000);
        }
    }

    #[test]
    fn the_application_is_woken_when_a_third_is_free() {
        let mut buffer = SendBufferName::Refined.build(0, u64::MAX);
        buffer.on_window(100, None);
        assert!(!buffer.wakes(201));
        assert!(buffer.wakes(200));
    }
}
