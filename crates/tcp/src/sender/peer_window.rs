//! The window that the peer advertises: its value, how far data may go, and how it limits the segment length.

use paceline_wire::Instant;

use super::messages::AckInput;
use crate::config::Config;
use crate::schedule::SendSchedule;

/// The peer's window.
#[derive(Debug, Default, serde::Serialize, serde::Deserialize)]
pub(crate) struct PeerWindow {
    /// SND.WND in bytes, and its largest value so far (RFC 9293, Section 3.8.6.2.1).
    pub(crate) snd_wnd: u64,
    pub(super) max_window: u64,
    snd_wl1: u64,
    snd_wl2: u64,
    /// The end of the last segment shorter than the MSS.
    pub(super) last_small: u64,
    pub(super) schedule: Option<SendSchedule>,
    /// Arrival time of the last ACK.
    pub(super) last_arrival: Instant,
}

impl PeerWindow {
    /// The state before the first window.
    pub(super) fn new(config: &Config) -> Self {
        PeerWindow { schedule: config.schedule.build(), ..PeerWindow::default() }
    }

    /// Takes the first window, from the segment at `wl1`. Data starts at `start`.
    pub(super) fn open(&mut self, window: u64, wl1: u64, start: u64) {
        (self.snd_wnd, self.max_window) = (window, window);
        (self.snd_wl1, self.snd_wl2) = (wl1, start);
    }

    /// Takes the window from a segment that is new enough (RFC 9293, Section 3.10.7.4). With equal numbers the window
    /// may also close (tcp_may_update_window). True if the window changed.
    pub(super) fn update(&mut self, input: &AckInput<'_>, una: u64) -> bool {
        let newer = input.ack > una
            || input.seq > self.snd_wl1
            || (input.seq == self.snd_wl1 && (input.window > self.snd_wnd || input.window == 0))
            || input.ack > self.snd_wl2;
        if !newer {
            return false;
        }
        self.snd_wl1 = input.seq;
        self.snd_wl2 = input.ack;
        let changed = self.snd_wnd != input.window;
        self.snd_wnd = input.window;
        self.max_window = self.max_window.max(input.window);
        changed
    }

    /// Returns the end of the window, including the growth expected before the data arrives.
    pub(crate) fn offered_end(&self, una: u64) -> u64 {
        let extension = self.schedule.as_ref().map_or(0, |schedule| schedule.extension());
        una + self.snd_wnd + extension
    }

    /// Returns the longest segment: at most half of the peer's largest window (RFC 9293, Section 3.8.6.2.1;
    /// tcp_bound_to_half_wnd).
    pub(super) fn segment_max(&self, mss: u32) -> u32 {
        let half = if self.max_window > 536 { self.max_window / 2 } else { self.max_window };
        match u32::try_from(half) {
            Ok(half) if half > 0 => mss.min(half.max(28)),
            _ => mss,
        }
    }
}
