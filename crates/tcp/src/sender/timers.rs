//! The sender's one timer: retransmission, reordering, probe of the tail, or probe of the window (Linux tcp_timer.c and
//! icsk_pending).

use paceline_wire::{Duration, Instant};

use super::Sender;
use super::ack::Flags;
use super::transmit::Forced;
use crate::congestion::{AckSample, CaState};
use crate::detection::LossOutcome;
use crate::event::Event;
use crate::rtt::{RTO_INITIAL, RTO_MAX};

/// What the timer is set for.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
pub(super) enum TimerKind {
    /// RFC 6298.
    Retransmission,
    /// RFC 8985, Section 6.2, step 5.
    Reordering,
    /// RFC 8985, Section 7.
    Probe,
    /// RFC 9293, Section 3.8.6.1.
    Persist,
}

/// As Linux: how soon to try again what the machine itself kept back.
const RESOURCE_PROBE_INTERVAL: Duration = Duration::from_millis(500);

impl Sender {
    /// When the timer expires.
    pub(crate) fn timeout(&self) -> Option<Instant> {
        if self.owns_response {
            return self.timeout_of_both();
        }
        self.timer.map(|(_, at)| at)
    }

    /// The detection has one of its own.
    #[inline(never)]
    fn timeout_of_both(&self) -> Option<Instant> {
        self.timer.map(|(_, at)| at).into_iter().chain(self.detection.next_timeout()).min()
    }

    /// Does what is due. False when the peer has not answered for too long.
    pub(crate) fn on_timeout(&mut self, now: Instant, waiting: bool) -> bool {
        if self.owns_response {
            self.on_detection_timeout(now);
        }
        let Some((kind, _)) = self.timer.filter(|&(_, at)| at <= now) else { return true };
        self.timer = None;
        self.usage.open_round();
        match kind {
            TimerKind::Retransmission => return self.on_retransmission_timeout(now),
            TimerKind::Reordering => self.on_reordering_timeout(now),
            TimerKind::Probe => self.on_probe_timeout(now),
            TimerKind::Persist => return self.on_persist_timeout(now, waiting),
        }
        true
    }

    pub(super) fn set_timer(&mut self, kind: TimerKind, at: Instant) {
        // No longer than the application waits (tcp_clamp_rto_to_user_timeout).
        let end = match self.user_timeout {
            Some(limit) if self.retransmits > 0 => self.unanswered_since + limit,
            _ => at,
        };
        self.timer = Some((kind, at.min(end)));
    }

    pub(super) fn set_reordering_timer(&mut self, at: Instant) {
        self.timer = Some((TimerKind::Reordering, at));
    }

    /// The probe if there is to be one, else the retransmission timeout.
    pub(super) fn set_timer_after_ack(&mut self, now: Instant) {
        if !self.schedule_probe(now, true) {
            self.rearm_retransmission(now);
        }
    }

    /// The timeout anew (RFC 6298, Section 5.3). What replaces a shorter timer counts from when the first segment was sent.
    pub(super) fn rearm_retransmission(&mut self, now: Instant) {
        if self.board.is_empty() {
            self.timer = self.timer.filter(|&(kind, _)| kind == TimerKind::Persist);
            return;
        }
        let from_head = matches!(self.timer, Some((TimerKind::Reordering | TimerKind::Probe, _)));
        let at = match from_head {
            true => self.retransmission_deadline().max(now + Duration::from_micros(1)),
            false => now + self.rto(),
        };
        self.set_timer(TimerKind::Retransmission, at);
    }

    /// When the first segment times out, counted from when it was sent (tcp_rto_delta_us).
    fn retransmission_deadline(&self) -> Instant {
        self.board.iter().next().map_or(Instant::ZERO, |segment| segment.sent_at) + self.rto()
    }

    /// When to probe for a lost tail (RFC 8985, Section 7.2). `advancing`: the timeout would start anew now.
    pub(super) fn schedule_probe(&mut self, now: Instant, advancing: bool) -> bool {
        if !self.detection.probes_tail()
            || !self.sack_ok
            || self.board.is_empty()
            || !matches!(self.state, CaState::Open | CaState::Cwr)
        {
            return false;
        }
        let mut delay = match self.rtt.has_sample() {
            // Twice the RTT, and the receiver's delay of an ACK for a single segment.
            true if self.board.packets_out() == 1 => self.rtt.srtt() * 2 + self.config.rto_min,
            true => self.rtt.srtt() * 2 + self.config.timeout_min(),
            false => RTO_INITIAL,
        };
        let rto_in = match advancing {
            true => self.rto(),
            false => self.retransmission_deadline().saturating_since(now),
        };
        if !rto_in.is_zero() {
            delay = delay.min(rto_in);
        }
        self.set_timer(TimerKind::Probe, now + delay);
        true
    }

    /// The probe (RFC 8985, Section 7.3): a new segment if there is one, else the last one again.
    fn on_probe_timeout(&mut self, now: Instant) {
        if self.tlp_high_seq.is_none() && !self.board.is_empty() {
            self.note_unanswered(now);
            self.forced = Some(Forced::Probe);
            self.tlp_retransmitted = false;
            self.totals.probes += 1;
            self.emit(now, Event::TailLossProbe);
        }
        self.rearm_retransmission(now);
    }

    /// What an ACK says of the probe (RFC 8985, Section 7.4).
    #[inline]
    pub(super) fn take_probe_ack(&mut self, now: Instant, ack: u64, flags: Flags) {
        if let Some(high_seq) = self.tlp_high_seq.filter(|&high_seq| ack >= high_seq) {
            self.on_probe_ack(now, ack, high_seq, flags);
        }
    }

    #[cold]
    fn on_probe_ack(&mut self, now: Instant, ack: u64, high_seq: u64, flags: Flags) {
        if !self.tlp_retransmitted || flags.dsack_of_probe {
            self.tlp_high_seq = None;
        } else if ack > high_seq {
            // The probe repaired a loss: answer it as one.
            self.suppressed = self.keeps_from_congestion();
            self.begin_reduction(now);
            self.set_state(now, CaState::Cwr);
            self.end_reduction(now);
            self.try_keep_open(now);
        } else if !flags.una_advanced && !flags.not_duplicate() && !flags.data_sacked {
            self.tlp_high_seq = None;
        }
    }

    /// The reordering window has passed (RFC 8985, Section 6.3): what it marks lost begins a recovery.
    fn on_reordering_timeout(&mut self, now: Instant) {
        let prior_lost = self.board.lost_total();
        let prior_in_flight = self.in_flight();
        let sample = self.loss_sample(now, Flags::default());
        let LossOutcome { marked, timer, .. } = self.detection.on_timeout(&mut self.board, &sample);
        if marked && self.in_flight() != prior_in_flight && self.state != CaState::Recovery {
            self.enter_recovery(now);
            if !self.congestion.owns_window() && !self.suppressed {
                let lost = (self.board.lost_total() - prior_lost) as u32;
                let sample = AckSample { delivered: 1, lost, ..self.base_sample(now) };
                self.window.cwnd = self.reduction.on_ack(&sample, &mut self.window).min(self.window.clamp);
            }
        }
        match timer {
            Some(at) => self.set_reordering_timer(at),
            None => {
                let at = self.retransmission_deadline().max(now + self.config.timeout_min());
                self.set_timer(TimerKind::Retransmission, at);
            }
        }
    }

    /// The retransmission timeout (RFC 6298, Section 5, rules 5.4 to 5.7).
    fn on_retransmission_timeout(&mut self, now: Instant) -> bool {
        if self.board.is_empty() {
            return true;
        }
        if self.snd_wnd == 0 {
            return self.on_closed_window(now);
        }
        if self.retransmits == 0 && self.tlp_high_seq.is_none() {
            self.note_unanswered(now);
        }
        if self.gives_up(now, self.retransmits) {
            return false;
        }
        self.totals.timeouts += 1;
        self.enter_loss(now);
        self.retransmits += 1;
        self.forced = Some(Forced::First);
        self.backoff += 1;
        let at = now + self.rto();
        self.set_timer(TimerKind::Retransmission, at);
        true
    }

    /// The first segment is about to be sent again.
    fn note_unanswered(&mut self, now: Instant) {
        self.unanswered_since = self.board.iter().next().map_or(now, |segment| segment.sent_at);
    }

    /// After so many tries, or after as long as the application has said.
    fn gives_up(&self, now: Instant, tries: u32) -> bool {
        let waited = now.saturating_since(self.unanswered_since);
        tries >= self.config.retries || self.user_timeout.is_some_and(|limit| tries > 0 && waited >= limit)
    }

    /// The peer has taken back its window, and what is in flight lies beyond it: sending it again probes the window (the first
    /// case of tcp_retransmit_timer). No timeout is counted, and each expiry lowers ssthresh anew, because `retransmits` stays 0.
    fn on_closed_window(&mut self, now: Instant) -> bool {
        if self.probes_out >= self.config.retries {
            return false;
        }
        self.probes_out += 1;
        self.enter_loss(now);
        self.forced = Some(Forced::First);
        self.backoff += 1;
        let at = now + self.rto();
        self.set_timer(TimerKind::Retransmission, at);
        true
    }

    /// A closed window is asked whether it has opened.
    fn on_persist_timeout(&mut self, now: Instant, waiting: bool) -> bool {
        if !waiting || !self.board.is_empty() {
            return true;
        }
        if self.probes_out == 0 {
            self.unanswered_since = now;
        }
        if self.gives_up(now, self.probes_out) {
            return false;
        }
        self.probes_out += 1;
        self.backoff += 1;
        if self.snd_wnd > 0 {
            // What fits goes, however little (RFC 9293, Section 3.8.6.2.1, condition (4); tcp_write_wakeup).
            self.forced = Some(Forced::Part);
        } else {
            self.window_probe = true;
        }
        self.emit(now, Event::WindowProbe);
        self.set_timer(TimerKind::Persist, now + self.persist_delay());
        true
    }

    /// How long until the next probe of a closed window: the timeout, within its bounds (RFC 9293, Section 3.8.6.1).
    fn persist_delay(&self) -> Duration {
        self.rto().max(self.config.rto_min).min(RTO_MAX)
    }

    /// Data waits, nothing is in flight, and the window does not let it go (tcp_check_probe_timer).
    #[cold]
    pub(super) fn check_persist(&mut self, now: Instant) {
        if self.timer.is_none() {
            self.set_timer(TimerKind::Persist, now + self.persist_delay());
        }
    }

    /// Data waits, nothing is in flight, and the device takes nothing. What was given to TCP is lost to its application if it is not
    /// delivered in time, sent or not (RFC 9293, Section 3.9.1.1): the persist timer counts. A probe that did not leave says nothing of the
    /// peer, so the timer does not back off (tcp_send_probe0).
    #[cold]
    pub(super) fn wait_for_device(&mut self, now: Instant) {
        if self.forced == Some(Forced::Part) {
            self.forced = None;
            self.backoff = self.backoff.saturating_sub(1);
            self.set_timer(TimerKind::Persist, now + RESOURCE_PROBE_INTERVAL);
        }
        self.check_persist(now);
    }

    /// An ACK while nothing was in flight (tcp_ack_probe).
    #[inline]
    pub(super) fn on_probe_answered(&mut self, now: Instant) {
        if matches!(self.timer, Some((TimerKind::Persist, _))) {
            self.stop_probing(now);
        }
    }

    #[cold]
    fn stop_probing(&mut self, now: Instant) {
        if self.snd_wnd >= u64::from(self.effective_mss()) {
            self.backoff = 0;
            self.timer = None;
        } else {
            self.set_timer(TimerKind::Persist, now + self.persist_delay());
        }
    }
}
