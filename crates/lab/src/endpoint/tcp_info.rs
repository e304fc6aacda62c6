//! The kernel's state of a TCP connection.

use std::io;
use std::os::fd::AsFd;

use paceline_wire::Instant;

/// A sample of a sender's TCP state.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TcpSample {
    /// Time of the sample.
    pub at: Instant,
    /// Smoothed round-trip time in microseconds.
    pub rtt_us: u32,
    /// Retransmission timeout in microseconds.
    pub rto_us: u32,
    /// Congestion window in segments.
    pub cwnd_segments: u32,
    /// Slow start threshold in segments.
    pub ssthresh_segments: u32,
    /// Window in bytes that the peer advertises, or the gateway in its place.
    pub peer_window_bytes: u32,
    /// Segments retransmitted so far.
    pub retransmitted_segments: u32,
    /// Data segments sent so far, retransmissions included.
    pub sent_segments: u32,
    /// Payload acknowledged so far, in bytes.
    pub acknowledged_bytes: u64,
    /// The connection is in the loss state, which begins at a retransmission timeout.
    pub in_loss_state: bool,
    /// Retransmission timeouts so far, on kernels that count them per connection (6.7).
    pub timeouts: Option<u32>,
}

impl TcpSample {
    /// Samples a socket.
    pub(super) fn take(socket: &impl AsFd, at: Instant) -> io::Result<TcpSample> {
        let info = Info::read(socket)?;
        Ok(TcpSample {
            at,
            rtt_us: info.u32(68),
            rto_us: info.u32(8),
            cwnd_segments: info.u32(80),
            ssthresh_segments: info.u32(76),
            peer_window_bytes: info.u32(228),
            retransmitted_segments: info.u32(100),
            sent_segments: info.u32(156),
            acknowledged_bytes: info.u64(120),
            in_loss_state: info.bytes[1] == CA_LOSS,
            timeouts: (info.length >= TOTAL_RTO + 2)
                .then(|| u32::from(u16::from_ne_bytes([info.bytes[TOTAL_RTO], info.bytes[TOTAL_RTO + 1]]))),
        })
    }
}

/// `struct tcp_info` of any kernel. The offsets are those of `include/uapi/linux/tcp.h`.
struct Info {
    bytes: [u8; 256],
    length: usize,
}

impl Info {
    fn read(socket: &impl AsFd) -> io::Result<Info> {
        let (bytes, length) = paceline_linux::tcp_info(socket)?;
        Ok(Info { bytes, length })
    }

    fn u32(&self, at: usize) -> u32 {
        self.array(at).map_or(0, u32::from_ne_bytes)
    }

    fn u64(&self, at: usize) -> u64 {
        self.array(at).map_or(0, u64::from_ne_bytes)
    }

    fn array<const N: usize>(&self, at: usize) -> Option<[u8; N]> {
        self.bytes.get(at..at + N)?.try_into().ok()
    }
}

const TOTAL_RTO: usize = 240;
const CA_LOSS: u8 = 4;
