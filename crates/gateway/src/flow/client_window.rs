//! The client's receive buffer as its ACKs show it: a_i, a_max, right edge and t_i of the schedule, and how fast it is
//! read.

use paceline_tcp::{ReceptionRate, Sampling};
use paceline_wire::{Duration, Instant};

use super::overshoot::Overshoot;

/// Our choice: after this many ACKs with the same window (two round trips of a small client) it is the largest one.
const SAME_WINDOWS: u32 = 64;

/// The client's buffer, by its newest ACKs.
#[derive(serde::Serialize, serde::Deserialize)]
pub(super) struct ClientWindow {
    rate: ReceptionRate,
    /// a_i and a_max.
    window: u64,
    window_max: u64,
    /// The window in the newest ACK that told of no hole.
    room: u64,
    /// ACKs in a row with the same window.
    same_window: u32,
    right_edge: u64,
    /// t_i: when an ACK moved the right edge.
    acked_at: Instant,
    /// Data that left before the client had room for it.
    #[serde(default)]
    pub(super) overshoot: Overshoot,
}

/// What a client's ACK says of its window.
#[derive(Clone, Copy, Debug)]
pub(super) struct WindowReport {
    pub(super) now: Instant,
    /// Acknowledged before this ACK.
    pub(super) una: u64,
    pub(super) ack: u64,
    pub(super) window: u64,
    /// True if it reports no hole and none is known.
    pub(super) is_whole: bool,
    /// Nothing was read steadily between ACKs that are further apart than this.
    pub(super) gap: Duration,
}

impl ClientWindow {
    pub(super) fn new(ack_interval: usize, now: Instant) -> Self {
        ClientWindow {
            rate: ReceptionRate::new(ack_interval),
            window: 0,
            window_max: 0,
            room: 0,
            same_window: 0,
            right_edge: 0,
            acked_at: now,
            overshoot: Overshoot::default(),
        }
    }

    /// Takes the client's first window.
    pub(super) fn on_first(&mut self, window: u64) {
        (self.window, self.window_max) = (window, window);
    }

    /// The stream starts at `position`. The client has everything below.
    pub(super) fn start(&mut self, position: u64) {
        self.right_edge = position + self.window;
    }

    /// The stream goes on after a restart, by an ACK that comes now.
    pub(super) fn resume(&mut self, now: Instant, window: u64) {
        self.on_first(window);
        self.acked_at = now;
    }

    /// Takes an ACK that is no older than the newest one.
    pub(super) fn on_ack(&mut self, report: &WindowReport) {
        let WindowReport { now, una, ack, window, is_whole, gap } = *report;
        if ack > una {
            self.overshoot.on_advance(ack + window, ack - una);
        }
        // A buffer that fills moves the window. A window that stays the same means that a larger one was taken back.
        self.same_window = if window == self.window { self.same_window + 1 } else { 0 };
        if self.same_window >= SAME_WINDOWS {
            self.window_max = window;
            self.same_window = 0;
        }
        self.window = window;
        self.window_max = self.window_max.max(window);
        let edge = ack + window;
        if edge <= self.right_edge && ack == una {
            return;
        }
        self.right_edge = self.right_edge.max(edge);
        self.acked_at = now;
        if is_whole {
            self.room = window;
        }
        if is_whole || self.reader_lags() {
            self.rate.on_ack(now, ack, edge, &sampling(gap));
        }
    }

    /// True if the application reads more slowly than data comes: half of the buffer was full while no hole was open.
    /// Then its reading moves the right edge, hole or not. Our choice: a slow reader's buffer settles at half.
    pub(super) fn reader_lags(&self) -> bool {
        self.room < self.window_max / 2
    }

    /// Holds R: a hole that the link made says nothing of the reader. If the buffer is full, R goes on.
    pub(super) fn on_hole(&mut self) {
        if !self.reader_lags() {
            self.rate.hold();
        }
    }

    /// R.
    pub(super) fn rate(&self) -> &ReceptionRate {
        &self.rate
    }

    /// a_i.
    pub(super) fn newest(&self) -> u64 {
        self.window
    }

    /// a_max.
    pub(super) fn largest(&self) -> u64 {
        self.window_max
    }

    /// True if the client takes nothing.
    pub(super) fn is_closed(&self) -> bool {
        self.window == 0
    }

    /// The furthest position that the client has had room for.
    pub(super) fn right_edge(&self) -> u64 {
        self.right_edge
    }

    /// t_i.
    pub(super) fn acked_at(&self) -> Instant {
        self.acked_at
    }

    /// The window as seen from `ack`: between ACKs the right edge stays where it was.
    pub(super) fn seen_from(&self, ack: u64) -> u64 {
        if self.is_closed() { 0 } else { self.right_edge.saturating_sub(ack) }
    }

    /// True if positions and windows are within these limits.
    pub(super) fn is_sound(&self, position_max: u64, window_max: u64) -> bool {
        let windows = [self.window, self.window_max, self.room];
        self.right_edge < position_max && windows.into_iter().all(|window| window <= window_max)
    }
}

/// How the gateway samples r and R.
fn sampling(gap: Duration) -> Sampling {
    Sampling {
        // 50 ms at 80,000 ACKs a second.
        points_max: 4096,
        // Our choice: so that a short flow has an estimate.
        early: true,
        // Idle time shows no rate.
        gap_max: gap,
    }
}
