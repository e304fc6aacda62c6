//! The congestion window. The rate reduction moves it during an episode, the congestion control otherwise.

use alloc::boxed::Box;

use crate::config::Config;
use crate::congestion::{AckSample, AnyCongestion, CaState, CongestionEvent, SSTHRESH_INFINITE, Window};
use crate::reduction::{AnyReduction, Entry};

/// The window and the two algorithms that move it.
#[derive(Debug, serde::Serialize, serde::Deserialize)]
pub(crate) struct WindowControl {
    pub(crate) window: Window,
    pub(super) congestion: Box<dyn AnyCongestion>,
    pub(super) reduction: Box<dyn AnyReduction>,
}

impl WindowControl {
    pub(super) fn new(config: &Config, seed: u64) -> Self {
        WindowControl {
            window: Window::new(config.initial_cwnd.max(1), config.cwnd_clamp),
            congestion: config.congestion.build(config.hystart, seed),
            reduction: config.reduction.build(config.opportunistic),
        }
    }

    /// True if the congestion control sets the window in every state.
    pub(super) fn is_owned(&self) -> bool {
        self.congestion.owns_window()
    }

    /// True if packets leave at a pacing rate, not only by the ACK clock.
    #[inline]
    pub(crate) fn is_paced(&self) -> bool {
        self.congestion.pacing_rate().is_some()
    }

    /// The sender has changed its state.
    pub(super) fn on_state(&mut self, state: CaState, sample: &AckSample) {
        self.window = self.congestion.on_state(state, sample, self.window);
    }

    pub(super) fn on_event(&mut self, event: CongestionEvent, sample: &AckSample) {
        self.window = self.congestion.on_event(event, sample, self.window);
    }

    /// Lets both algorithms measure, before loss detection.
    pub(super) fn on_measurement(&mut self, sample: &AckSample) {
        self.window = self.congestion.on_measurement(sample, self.window);
        self.reduction.on_measurement(sample);
    }

    /// Lets the congestion control move the window, outside an episode.
    pub(super) fn on_ack(&mut self, sample: &AckSample) {
        self.window = self.congestion.on_ack(sample, self.window);
    }

    /// Lets the rate reduction move the window, in an episode.
    pub(super) fn reduce(&mut self, sample: &AckSample) {
        self.window.cwnd = self.reduction.on_ack(sample, &mut self.window).min(self.window.clamp);
    }

    /// Lowers the threshold after a loss.
    pub(super) fn lower_ssthresh(&mut self) {
        self.window.ssthresh = self.congestion.ssthresh(self.window);
    }

    /// Begins a reduction: sets the threshold, and the window from which the reduction starts.
    pub(super) fn begin_reduction(&mut self, entry: &Entry) {
        self.window.cwnd_cnt = 0;
        if self.reduction.lowers_ssthresh() || self.is_owned() {
            self.lower_ssthresh();
        } else {
            // Beta is 1 (OR, Eq. (21)). A timeout during this recovery does not lower ssthresh, so slow start then ends
            // here.
            self.window.ssthresh = self.window.ssthresh.max(self.window.cwnd);
        }
        if !self.is_owned() {
            self.window.cwnd = self.reduction.enter(entry, self.window);
        }
    }

    /// Ends a reduction. If `reduces`, sets the final window. True if the congestion control must be told.
    pub(super) fn end_reduction(&mut self, reduces: bool) -> bool {
        let lowers = self.reduction.lowers_ssthresh();
        if reduces && (self.window.ssthresh < SSTHRESH_INFINITE || !lowers) {
            self.window.cwnd = self.reduction.exit(self.window).max(1).min(self.window.clamp);
        }
        lowers
    }

    /// Applies the reduction for a loss at a window of `cwnd` packets, at once and without an episode.
    pub(super) fn reduce_at_once(&mut self, cwnd: u32) {
        self.window.ssthresh = self.congestion.ssthresh(Window { cwnd, ..self.window });
        self.window.cwnd = self.window.cwnd.min(self.window.ssthresh);
        self.window.cwnd_cnt = 0;
    }

    /// Restores window and threshold (tcp_undo_cwnd_reduction).
    pub(super) fn undo(&mut self, prior_cwnd: u32, prior_ssthresh: u32) {
        self.window.cwnd = self.congestion.undo(self.window, prior_cwnd).min(self.window.clamp);
        self.window.ssthresh = self.window.ssthresh.max(prior_ssthresh);
    }
}
