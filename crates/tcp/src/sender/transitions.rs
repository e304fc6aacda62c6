//! Episodes of loss or congestion: their begin, their end, and the window at both.

use paceline_wire::Instant;

use super::Sender;
use super::messages::{Flags, ForcedSegment};
use crate::congestion::{CaState, CongestionEvent};
use crate::reduction::Entry;
use crate::scoreboard::{Mark, Segment};

impl Sender {
    /// Changes the state and tells the congestion control.
    pub(super) fn set_state(&mut self, now: Instant, state: CaState) {
        if self.episode.state == state {
            return;
        }
        self.episode.state = state;
        let sample = self.base_sample(now);
        self.control.on_state(state, &sample);
    }

    /// Begins fast recovery. Begins the reduction, unless one is running, and notes the data for undo.
    #[cold]
    pub(super) fn enter_recovery(&mut self, now: Instant) {
        self.episode.prior_ssthresh = 0;
        self.episode.undo.begin(&self.board);
        if !self.episode.state.in_reduction() {
            self.episode.prior_ssthresh = self.current_ssthresh();
            self.episode.suppressed = self.keeps_from_congestion();
            self.begin_reduction(now);
        }
        self.hack1.forget_strays();
        self.next_seg.begin(&self.board);
        self.totals.recoveries += 1;
        self.usage.on_recovery();
        self.forced = Some(ForcedSegment::Lost);
        self.set_state(now, CaState::Recovery);
    }

    /// An ACK echoes a congestion mark. The window is reduced as after a loss, once for each window of data, without
    /// retransmission (RFC 3168, Section 6.1.2; Linux tcp_enter_cwr). During a reduction the echo only confirms it, so
    /// that it is not undone.
    #[cold]
    pub(super) fn on_congestion_echo(&mut self, now: Instant) {
        self.episode.prior_ssthresh = 0;
        if self.episode.state < CaState::Cwr {
            self.episode.undo.marker = None;
            // A mark is no loss: the router that marks requests a response.
            self.episode.suppressed = false;
            self.begin_reduction(now);
            self.totals.ecn_reductions += 1;
            self.set_state(now, CaState::Cwr);
        }
    }

    /// Begins a reduction.
    pub(super) fn begin_reduction(&mut self, now: Instant) {
        self.episode.high_seq = self.board.nxt();
        self.tail_probe.high_seq = None;
        self.episode.prior_cwnd = self.control.window.cwnd;
        if self.episode.suppressed {
            return;
        }
        self.episode.cwr_due = true;
        let left = self.board.packets_out().saturating_sub(self.board.sacked_out());
        self.control.begin_reduction(&Entry {
            now,
            recover_fs: left + self.episode.newly_sacked,
            in_flight: self.in_flight(),
            srtt: self.rtt.srtt(),
        });
    }

    /// Ends a reduction and sets the window.
    pub(super) fn end_reduction(&mut self, now: Instant) {
        if self.control.is_owned() || self.episode.suppressed {
            return;
        }
        let reduces = self.episode.state == CaState::Cwr || self.episode.undo.marker.is_some();
        if self.control.end_reduction(reduces) {
            self.congestion_event(now, CongestionEvent::ReductionComplete);
        }
    }

    /// Reduces the window to ssthresh without an episode, as after a loss with a window of `cwnd`.
    pub(super) fn reduce_at_once(&mut self, now: Instant, cwnd: u32) {
        self.totals.recoveries += 1;
        if self.control.is_owned() {
            return;
        }
        self.episode.cwr_due = true;
        self.episode.prior_cwnd = self.control.window.cwnd;
        self.control.reduce_at_once(cwnd);
        self.congestion_event(now, CongestionEvent::ReductionComplete);
    }

    /// Handles a timeout: all data that has not arrived is lost, and slow start begins (RFC 5681, Section 3.1; RFC
    /// 6298, Section 5).
    pub(super) fn enter_loss(&mut self, now: Instant) {
        let state = self.episode.state;
        let new_recovery = state < CaState::Recovery && !self.head_was_resent();
        let lost_before = self.board.lost_total();
        self.mark_expired(now);
        // A timeout does not prove losses: a stalled link may deliver the data later, and F-RTO finds that out (RFC
        // 5682). So these losses are not reported to a relay that infers full buffers from losses.
        self.report.conceal_losses(self.board.lost_total() - lost_before);
        if self.owns_response {
            self.detection.on_retransmission_timeout();
        }
        let answered = self.detection.answers_timeout(now);
        let first = state <= CaState::Disorder
            || self.episode.high_seq <= self.board.una()
            || (state == CaState::Loss && self.timer.retransmits == 0);
        if answered && first {
            self.episode.prior_ssthresh = self.current_ssthresh();
            self.episode.prior_cwnd = self.control.window.cwnd;
            self.control.lower_ssthresh();
            self.congestion_event(now, CongestionEvent::Timeout);
            self.episode.undo.begin(&self.board);
        }
        if answered {
            self.control.window.cwnd = self.in_flight() + 1;
            self.control.window.cwnd_cnt = 0;
        }
        if state <= CaState::Disorder {
            self.reordering.on_timeout(self.board.sacked_out());
        }
        self.set_state(now, CaState::Loss);
        self.episode.cwr_due = true;
        self.episode.high_seq = self.board.nxt();
        // The timeout has replaced the tail loss probe (RFC 8985, Section 7.3; tcp_retransmit_timer).
        self.tail_probe.high_seq = None;
        self.episode.frto = self.config.frto && (new_recovery || self.timer.retransmits > 0);
    }

    /// At a timeout all data that has not arrived is lost, except the segments that a time-based detection spares.
    fn mark_expired(&mut self, now: Instant) {
        if self.board.head().is_some_and(|head| head.mark.contains(Mark::SACKED)) {
            self.board.forget_sacks();
        }
        self.newreno.reset();
        let sample = self.loss_sample(now, Flags::default());
        let first = self.board.numbers().0;
        let detection = &*self.detection;
        self.board.mark_lost_where(|number, segment| number == first || detection.expires(segment, &sample));
    }

    /// Marks segments lost that are longer than the path MTU allows. This is no sign of congestion, so the windows stay
    /// as they are (RFC 1191, Section 6.5; tcp_simple_retransmit).
    pub(super) fn resend_too_long(&mut self, now: Instant) {
        let before = self.board.lost_total();
        let longest = u64::from(self.mss);
        self.board.mark_lost_where(|_, segment: &Segment| segment.end - segment.start > longest);
        if self.board.lost_total() == before {
            return;
        }
        if self.episode.state != CaState::Loss {
            self.episode.high_seq = self.board.nxt();
            self.control.window.ssthresh = self.current_ssthresh();
            self.episode.prior_ssthresh = 0;
            self.episode.undo.marker = None;
            self.episode.frto = false;
            self.set_state(now, CaState::Loss);
        }
        self.wake();
    }
}
