//! The interface of receive windows: what a window is told, what it answers.

use core::fmt::Debug;

use paceline_wire::{Duration, Instant};

use crate::names::named;

named! {
    /// How the advertised window is sized, by name.
    ReceiveWindowName {
        /// As Linux tunes it today (tcp_rcv_space_adjust, tcp_grow_window).
        #[default]
        DrsLinux = "drs-linux",
        /// The whole buffer, always.
        Fixed = "fixed",
        /// Dynamic right-sizing (DRWA, Algorithm 1).
        Drs = "drs",
        /// As `drs`, with an upper limit, `tcp_rmem_max` (DRWA, Algorithm 2): what phones did.
        DrsClamped = "drs-clamped",
        /// Dynamic receive window adjustment (DRWA, Algorithm 3), RTT from timestamps if there are any.
        Drwa = "drwa",
        /// DRWA as printed, without our changes: no probe of RTTmin, and a round with a silence counts like any other.
        DrwaText = "drwa-text",
        /// As `drwa`, with the RTT always from windows of data.
        DrwaWindow = "drwa-window",
        /// As `drwa`, with a lambda that follows the variation of the link.
        DrwaAdaptive = "drwa-adaptive",
    }
}

/// Decides how much may be advertised. The receiver ensures that the right edge never moves back, and moves by whole
/// segments.
pub trait ReceiveWindow: Debug + Send {
    /// Name of the algorithm.
    fn name(&self) -> ReceiveWindowName;

    /// The application starts to read at this position.
    fn start_at(&mut self, copied: u64);

    /// Data within the window has arrived. Returns true if the window has grown; the peer is told at once.
    fn on_segment(&mut self, arrival: &Arrival) -> bool;

    /// The peer's data echoed a timestamp that left `rtt` ago.
    fn on_rtt(&mut self, now: Instant, echo: u32, rtt: Duration);

    /// The application has read up to `copied`.
    fn on_read(&mut self, now: Instant, copied: u64);

    /// The window while nothing waits to be read. For Linux it is the buffer, into which the window grows.
    fn size(&self) -> u64;

    /// The window to advertise while `unread` bytes wait.
    fn free(&self, unread: u64) -> u64;

    /// The receiver's view of the path.
    fn path(&self) -> PathView {
        PathView::default()
    }
}

/// Data that has arrived.
#[derive(Clone, Copy, Debug)]
pub struct Arrival {
    /// Arrival time.
    pub now: Instant,
    /// Bytes within the window.
    pub len: u64,
    /// Bytes that wait to be read, without these.
    pub unread: u64,
    /// RCV.NXT before it.
    pub nxt: u64,
    /// The right edge of the window last advertised.
    pub edge: u64,
}

/// What the receiver knows of the path; zero where it knows nothing.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct PathView {
    /// RTTest.
    pub rtt: Duration,
    /// RTTmin.
    pub rtt_min: Duration,
    /// Lambda in hundredths.
    pub lambda_percent: u32,
}
