//! The states of the sender and what takes it from one to another (Linux tcp_input.c:tcp_fastretrans_alert).

use paceline_wire::Instant;

use super::Sender;
use super::ack::{AckInput, Flags};
use super::transmit::Forced;
use crate::congestion::{CaState, CongestionEvent, SSTHRESH_INFINITE, current_ssthresh};
use crate::detection::LossSample;
use crate::event::Event;
use crate::reduction::Entry;
use crate::scoreboard::{Mark, Segment};

impl Sender {
    /// What loss detection sees.
    pub(super) fn loss_sample(&self, now: Instant, flags: Flags) -> LossSample {
        LossSample {
            now,
            state: self.state,
            duplicate: flags.duplicate(),
            sacked_news: flags.data_sacked,
            srtt: self.rtt.srtt(),
            min_rtt: self.rtt.min().unwrap_or_default(),
            timeout_min: self.config.timeout_min(),
            reordering: self.reordering,
            reordering_seen: self.reord_seen > 0,
            delivered: self.rate.delivered(),
            cwnd: self.window.cwnd,
            ..LossSample::default()
        }
    }

    /// A dubious ACK: a duplicate, a partial one (RFC 6582), or one with news of loss or congestion (RFC 5681). Returns
    /// packets that it delivered beyond those on the board (without SACK).
    #[inline(never)]
    pub(super) fn on_dubious_ack(&mut self, input: &AckInput<'_>, prior_una: u64, flags: &mut Flags) -> u32 {
        let now = input.now;
        if flags.ece {
            // What the network asked for is not taken back.
            self.prior_ssthresh = 0;
        }
        if self.check_reneging(now, *flags) {
            return 0;
        }
        if self.leave_episode(input) {
            return 0;
        }
        let mut extra = 0;
        match self.state {
            CaState::Recovery => {
                if !flags.una_advanced {
                    extra = u32::from(flags.duplicate() && self.newreno_duplicate());
                } else if self.try_undo_partial(now, prior_una, input.tsecr) {
                    return extra;
                }
                if self.try_undo_dsack(now) {
                    self.try_to_open(now, *flags);
                }
                self.identify_losses(now, flags);
                self.detect_discards(*flags);
                if self.state != CaState::Recovery && self.board.lost_out() > 0 && !self.owns_response {
                    self.enter_recovery(now);
                }
            }
            CaState::Loss => {
                extra = self.process_loss(input, *flags);
                self.identify_losses(now, flags);
                if self.state == CaState::Open || flags.lost_retransmission {
                    self.judge(now, *flags);
                }
            }
            CaState::Open | CaState::Disorder | CaState::Cwr => {
                if flags.una_advanced {
                    self.newreno_reset();
                } else {
                    extra = u32::from(flags.duplicate() && self.newreno_duplicate());
                }
                if self.state <= CaState::Disorder {
                    self.try_undo_dsack(now);
                }
                self.identify_losses(now, flags);
                self.judge(now, *flags);
            }
        }
        self.rate.on_delivered(extra);
        extra
    }

    /// Recovery if something is lost, else whatever state the board shows.
    fn judge(&mut self, now: Instant, flags: Flags) {
        if self.board.lost_out() > 0 && !self.owns_response {
            self.enter_recovery(now);
        } else if self.state != CaState::Recovery {
            self.try_to_open(now, flags);
        }
    }

    /// The data of the episode is acknowledged (step D). True if it goes on nevertheless, and nothing else is to be done.
    fn leave_episode(&mut self, input: &AckInput<'_>) -> bool {
        let una = self.board.una();
        if self.state == CaState::Open {
            self.undo.retrans_stamp = None;
        } else if una >= self.high_seq {
            match self.state {
                CaState::Cwr if una != self.high_seq => {
                    self.end_reduction(input.now);
                    self.set_state(input.now, CaState::Open);
                }
                CaState::Recovery => {
                    self.newreno_reset();
                    self.try_undo_recovery(input.now, input.tsecr);
                    if self.must_not_reopen() {
                        return true;
                    }
                    self.end_reduction(input.now);
                    self.set_state(input.now, CaState::Open);
                }
                _ => {}
            }
        }
        false
    }

    /// Without SACK an episode goes on until something above its data is acknowledged: duplicate ACKs may be answers to
    /// retransmissions that were not needed (RFC 6582, Section 3.2, step 2; tcp_is_non_sack_preventing_reopen).
    pub(super) fn must_not_reopen(&mut self) -> bool {
        let held = !self.sack_ok && self.board.una() == self.high_seq;
        if held && !self.any_retransmitted() {
            self.undo.retrans_stamp = None;
        }
        held
    }

    /// Asks the detection what is lost; without SACK, by duplicate ACKs.
    fn identify_losses(&mut self, now: Instant, flags: &mut Flags) {
        if self.board.is_empty() {
            return;
        }
        if !self.sack_ok && !self.owns_response {
            self.newreno_mark_lost(flags.una_advanced);
            return;
        }
        let sample = self.loss_sample(now, *flags);
        let outcome = self.detection.on_ack(&mut self.board, &sample);
        flags.lost_retransmission |= outcome.lost_retransmission;
        self.respond(now, outcome.response);
        if let Some(at) = outcome.timer {
            self.set_reordering_timer(at);
            flags.set_timer = false;
        }
    }

    /// Fast recovery begins: the reduction, unless one goes on already, and the marks by which it may be undone.
    #[cold]
    pub(super) fn enter_recovery(&mut self, now: Instant) {
        self.prior_ssthresh = 0;
        self.init_undo();
        if !self.state.in_reduction() {
            self.prior_ssthresh = current_ssthresh(self.state, self.window);
            self.suppressed = self.keeps_from_congestion();
            self.begin_reduction(now);
        }
        self.forget_strays();
        self.reset_high_rxt();
        self.totals.recoveries += 1;
        self.usage.on_recovery();
        self.forced = Some(Forced::Lost);
        self.set_state(now, CaState::Recovery);
    }

    /// A reduction begins: the new threshold, and the window from which it goes there.
    pub(super) fn begin_reduction(&mut self, now: Instant) {
        self.high_seq = self.board.nxt();
        self.tlp_high_seq = None;
        self.prior_cwnd = self.window.cwnd;
        if self.suppressed {
            return;
        }
        self.cwr_due = true;
        self.window.cwnd_cnt = 0;
        if self.reduction.lowers_ssthresh() || self.congestion.owns_window() {
            self.window.ssthresh = self.congestion.ssthresh(self.window);
        } else {
            // Beta is 1 (OR, Eq. (21)). A timeout during this recovery leaves ssthresh, so that slow start ends here.
            self.window.ssthresh = self.window.ssthresh.max(self.window.cwnd);
        }
        if self.congestion.owns_window() {
            return;
        }
        let in_flight = self.in_flight();
        let recover_fs = self.board.packets_out().saturating_sub(self.board.sacked_out()) + self.newly_sacked;
        let entry = Entry { now, recover_fs, in_flight, srtt: self.rtt.srtt() };
        self.window.cwnd = self.reduction.enter(&entry, self.window);
    }

    /// A reduction ends: what the window is from now on.
    pub(super) fn end_reduction(&mut self, now: Instant) {
        if self.congestion.owns_window() || self.suppressed {
            return;
        }
        let reduced = self.state == CaState::Cwr || self.undo.marker.is_some();
        if reduced && (self.window.ssthresh < SSTHRESH_INFINITE || !self.reduction.lowers_ssthresh()) {
            self.window.cwnd = self.reduction.exit(self.window).max(1).min(self.window.clamp);
        }
        if self.reduction.lowers_ssthresh() {
            self.congestion_event(now, CongestionEvent::ReductionComplete);
        }
    }

    /// Outside recovery: an ECN-Echo may begin a reduction, else the state follows what is known to be missing.
    fn try_to_open(&mut self, now: Instant, flags: Flags) {
        if !self.any_retransmitted() {
            self.undo.retrans_stamp = None;
        }
        if flags.ece {
            self.on_congestion_echo(now);
        }
        if self.state != CaState::Cwr {
            self.try_keep_open(now);
        }
    }

    /// Disorder while something is missing or was sent again, else open.
    pub(super) fn try_keep_open(&mut self, now: Instant) {
        let left_out = self.board.sacked_out() + self.board.lost_out() + self.newreno.sacked;
        let state = if left_out > 0 || self.any_retransmitted() { CaState::Disorder } else { CaState::Open };
        if self.state != state {
            self.set_state(now, state);
            self.high_seq = self.board.nxt();
        }
    }

    /// After a timeout: F-RTO (RFC 5682, Section 3.1, as tcp_process_loss), undo, and the end of the episode.
    fn process_loss(&mut self, input: &AckInput<'_>, flags: Flags) -> u32 {
        let now = input.now;
        let recovered = self.board.una() >= self.high_seq;
        if flags.una_advanced && self.try_undo_loss(now, false, input.tsecr) {
            return 0;
        }
        if self.frto {
            // Step 3.b: an original of before the timeout has arrived.
            if flags.original_delivered && self.try_undo_loss(now, true, input.tsecr) {
                return 0;
            }
            if self.board.nxt() > self.high_seq {
                // Step 3.a: the loss was real.
                if flags.data_sacked || flags.duplicate() {
                    self.frto = false;
                }
            } else if flags.una_advanced && !recovered {
                // Step 2.b: new data, to see what comes back for it. `transmit` falls back if there is none.
                self.high_seq = self.board.nxt();
                self.frto_new_data = true;
                return 0;
            }
        }
        if recovered {
            self.newreno_reset();
            self.try_undo_recovery(now, input.tsecr);
            if !self.must_not_reopen() {
                self.set_state(now, CaState::Open);
            }
            return 0;
        }
        u32::from(!self.sack_ok && flags.duplicate() && self.newreno_duplicate())
    }

    /// Step B: the receiver took back what it had reported (RFC 2018, Section 8; tcp_check_sack_reneging). Then a timeout
    /// will follow, soon.
    fn check_reneging(&mut self, now: Instant, flags: Flags) -> bool {
        let reneged =
            flags.una_advanced && self.board.iter().next().is_some_and(|s| s.mark.contains(Mark::SACKED));
        if reneged {
            let delay = (self.rtt.srtt() / 2).max(RENEGING_DELAY);
            self.set_timer(super::TimerKind::Retransmission, now + delay);
        }
        reneged
    }

    /// A timeout: everything that has not arrived is lost, and slow start begins (RFC 5681, Section 3.1; RFC 6298, Section 5).
    pub(super) fn enter_loss(&mut self, now: Instant) {
        let new_recovery = self.state < CaState::Recovery && !self.head_was_resent();
        let lost_before = self.board.lost_total();
        self.mark_expired(now);
        // Silence is no word of losses: a link that stood still has all of it, and F-RTO finds that out (RFC 5682). Whoever looks for full
        // buffers by losses is told of none.
        self.lost_reported += self.board.lost_total() - lost_before;
        if self.owns_response {
            self.detection.on_retransmission_timeout();
        }
        let answered = self.detection.answers_timeout(now);
        let first = self.state <= CaState::Disorder
            || self.high_seq <= self.board.una()
            || (self.state == CaState::Loss && self.retransmits == 0);
        if answered && first {
            self.prior_ssthresh = current_ssthresh(self.state, self.window);
            self.prior_cwnd = self.window.cwnd;
            self.window.ssthresh = self.congestion.ssthresh(self.window);
            self.congestion_event(now, CongestionEvent::Timeout);
            self.init_undo();
        }
        if answered {
            self.window.cwnd = self.in_flight() + 1;
            self.window.cwnd_cnt = 0;
        }
        if self.state <= CaState::Disorder && self.board.sacked_out() >= self.reordering {
            self.reordering = self.reordering.min(crate::detection::DUP_THRESH);
        }
        self.set_state(now, CaState::Loss);
        self.cwr_due = true;
        self.high_seq = self.board.nxt();
        // The timeout has answered what the probe of the tail was sent for (RFC 8985, Section 7.3; tcp_retransmit_timer).
        self.tlp_high_seq = None;
        self.frto = self.config.frto && (new_recovery || self.retransmits > 0);
        self.emit(now, Event::RetransmissionTimeout);
    }

    /// What is in flight in longer segments than the path takes is lost, and that says nothing of congestion, so the windows stay
    /// as they are (RFC 1191, Section 6.5; tcp_simple_retransmit).
    pub(super) fn resend_too_long(&mut self, now: Instant) {
        let (mut number, end) = self.board.numbers();
        let before = self.board.lost_total();
        while number != end {
            let too_long = |segment: &Segment| segment.end - segment.start > u64::from(self.mss);
            if self.board.get(number).is_some_and(too_long) {
                self.board.mark_lost(number);
            }
            number = number.wrapping_add(1);
        }
        if self.board.lost_total() == before {
            return;
        }
        if self.state != CaState::Loss {
            self.high_seq = self.board.nxt();
            self.window.ssthresh = current_ssthresh(self.state, self.window);
            self.prior_ssthresh = 0;
            self.undo.marker = None;
            self.frto = false;
            self.set_state(now, CaState::Loss);
        }
        self.wake();
    }

    /// At a timeout everything that has not arrived is lost, but for what a detection by time spares.
    fn mark_expired(&mut self, now: Instant) {
        if self.board.iter().next().is_some_and(|s| s.mark.contains(Mark::SACKED)) {
            self.board.forget_sacks();
        }
        self.newreno_reset();
        let sample = self.loss_sample(now, Flags::default());
        let (first, end) = self.board.numbers();
        let mut number = first;
        while number != end {
            let lost = number == first
                || self.board.get(number).is_some_and(|segment| self.detection.expires(segment, &sample));
            if lost {
                self.board.mark_lost(number);
            }
            number = number.wrapping_add(1);
        }
    }
}

/// As Linux: half an SRTT, at least 10 ms, for the receiver to think again.
const RENEGING_DELAY: paceline_wire::Duration = paceline_wire::Duration::from_millis(10);
