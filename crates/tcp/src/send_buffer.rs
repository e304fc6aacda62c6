//! The send buffer: its size, and when the application is woken.

use crate::names::named;

named! {
    /// A rule for the growth of the send buffer.
    SendBufferName {
        /// Twice the congestion window, in the memory that Linux counts.
        #[default]
        Linux = "linux",
        /// Twice the congestion window, in payload. (OR, Section V.C, describes Linux so.)
        Twice = "twice",
        /// Three times the congestion window (OR, Section V.C).
        Refined = "refined",
    }
}

impl SendBufferName {
    /// Builds a buffer. Sizes are in bytes of payload.
    pub(crate) fn build(self, initial: u64, max: u64) -> SendBuffer {
        let extent = Extent { size: initial.min(max), max };
        match self {
            SendBufferName::Linux => SendBuffer::Linux(extent),
            SendBufferName::Twice => SendBuffer::Twice(extent),
            SendBufferName::Refined => SendBuffer::Refined(extent),
        }
    }
}

/// The number of bytes that the application may queue. Sizes are in bytes of payload.
#[derive(Clone, Copy, Debug, serde::Serialize, serde::Deserialize)]
pub(crate) enum SendBuffer {
    /// Twice the window: one window in flight, and one to fill the next (Linux tcp_sndbuf_expand). Linux allows more
    /// memory for a segment than the segment takes ([`ALLOWED`], [`TAKEN`]).
    #[serde(rename = "LinuxGrowth")]
    Linux(Extent),
    /// Twice the window of payload. A CUBIC flow runs out of data in every recovery that takes a whole round trip.
    #[serde(rename = "TwiceGrowth")]
    Twice(Extent),
    /// Three times the window. This is the smallest size with which no recovery runs out of data while a third of it
    /// waits to be filled (OR, Theorem 11).
    #[serde(rename = "RefinedGrowth")]
    Refined(Extent),
}

/// The current and the largest size.
#[derive(Clone, Copy, Debug, serde::Serialize, serde::Deserialize)]
pub(crate) struct Extent {
    size: u64,
    max: u64,
}

impl SendBuffer {
    /// The current size.
    pub(crate) fn size(&self) -> u64 {
        let (SendBuffer::Linux(extent) | SendBuffer::Twice(extent) | SendBuffer::Refined(extent)) = self;
        extent.size
    }

    /// Grows the buffer with the window. `windows` is the factor that the congestion control requests.
    pub(crate) fn on_window(&mut self, window_bytes: u64, windows: Option<u32>) {
        let (extent, factor, allowed) = match self {
            SendBuffer::Linux(extent) => (extent, windows.unwrap_or(2), ALLOWED),
            SendBuffer::Twice(extent) => (extent, windows.unwrap_or(2), TAKEN),
            SendBuffer::Refined(extent) => (extent, windows.unwrap_or(3).max(3), TAKEN),
        };
        let wanted = window_bytes.saturating_mul(u64::from(factor)).saturating_mul(allowed) / TAKEN;
        extent.size = extent.size.max(wanted.min(extent.max));
    }

    /// True if a waiting application is woken with `queued` bytes in the buffer: when a third is free. (Linux
    /// sk_stream_is_writeable: the free space is at least half of the queued bytes.)
    pub(crate) fn wakes(&self, queued: u64) -> bool {
        self.size().saturating_sub(queued) >= queued / 2
    }
}

/// Bytes of memory that Linux allows for a segment of 1,448 bytes: the next power of two for data and headers, and the
/// descriptor. Measured with `ss -tmi` on kernels 6.1 (the virtual-time lab) and 6.18: `tb` is 2 x 2,304 for each
/// segment of cwnd.
const ALLOWED: u64 = 2_304;
/// Bytes that such a segment takes, because several share a super-packet. Measured there: `w` is 1.07 to 1.19 times the
/// queued bytes.
const TAKEN: u64 = 1_448 * 112 / 100;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_buffer_grows_with_the_window_and_never_shrinks() {
        for (name, factor) in [(SendBufferName::Twice, 2), (SendBufferName::Refined, 3)] {
            let mut buffer = name.build(16_384, 1_000_000);
            for (window, size) in
                [(100_000, factor * 100_000), (50_000, factor * 100_000), (900_000, 1_000_000)]
            {
                buffer.on_window(window, None);
                assert_eq!(buffer.size(), size);
            }
        }
    }

    /// With 38 segments of cwnd a kernel has queued up to 178,104 bytes (`tb` 175,104). It accepts a whole super-packet
    /// if any space is free.
    #[test]
    fn linux_allows_memory_and_not_payload() {
        let mut buffer = SendBufferName::Linux.build(16_384, 1_000_000);
        buffer.on_window(38 * 1_448, None);
        assert_eq!(buffer.size() / 1_000, 156);
        // In a recovery three quarters of a window are sent, besides the window that began it.
        assert!(buffer.wakes(38 * 1_448 * 7 / 4));
    }

    #[test]
    fn the_application_is_woken_when_a_third_is_free() {
        let mut buffer = SendBufferName::Refined.build(0, u64::MAX);
        buffer.on_window(100, None);
        assert!(!buffer.wakes(201));
        assert!(buffer.wakes(200));
    }
}
