//! The interface of receive windows: what one is told, what it answers.

use core::fmt::Debug;

use paceline_wire::{Duration, Instant};

use crate::names::named;

named! {
    /// How the advertised window is sized, by name.
    ReceiveWindowName {
        /// As Linux tunes it today (tcp_input.c:tcp_rcv_space_adjust, tcp_grow_window).
        #[default]
        DrsLinux = "drs-linux",
        /// The whole buffer, always.
        Fixed = "fixed",
        /// Dynamic right-sizing (DRWA, Algorithm 1).
        Drs = "drs",
        /// The same with an upper end, `tcp_rmem_max` (DRWA, Algorithm 2): what phones did.
        DrsClamped = "drs-clamped",
        /// Dynamic receive window adjustment (DRWA, Algorithm 3), RTT from timestamps where there are any.
        Drwa = "drwa",
        /// The same as printed, without what is ours: RTTmin is never asked for again, and a silence is a round like any other.
        DrwaText = "drwa-text",
        /// The same, RTT always from windows of data.
        DrwaWindow = "drwa-window",
        /// The same, with a lambda that follows the variation of the link.
        DrwaAdaptive = "drwa-adaptive",
    }
}

/// How much may be advertised. The receiver sees to it that the right edge never moves back and moves by whole segments.
pub trait ReceiveWindow: Debug + Send {
    /// Which one it is.
    fn name(&self) -> ReceiveWindowName;

    /// The application starts to read here.
    fn start_at(&mut self, copied: u64);

    /// Data came that the window holds. Returns whether the window has grown, which the peer is told at once.
    fn on_segment(&mut self, arrival: &Arrival) -> bool;

    /// The peer's data echoed a timestamp that left `rtt` ago.
    fn on_rtt(&mut self, now: Instant, echo: u32, rtt: Duration);

    /// The application has read up to `copied`.
    fn on_read(&mut self, now: Instant, copied: u64);

    /// What is advertised while nothing waits to be read, but for Linux, whose window grows into its buffer.
    fn size(&self) -> u64;

    /// How much may be advertised while `unread` bytes wait.
    fn free(&self, unread: u64) -> u64;

    /// What it knows of the path.
    fn path(&self) -> PathView {
        PathView::default()
    }
}

/// Data that came.
#[derive(Clone, Copy, Debug)]
pub struct Arrival {
    /// When.
    pub now: Instant,
    /// Bytes that the window holds.
    pub len: u64,
    /// Bytes that wait to be read, without these.
    pub unread: u64,
    /// RCV.NXT before.
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
