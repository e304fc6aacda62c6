//! The sender's one timer: retransmission, reordering, tail loss probe, or window probe (as Linux
//! icsk_pending).

use paceline_wire::{Duration, Instant};

use super::Sender;
use super::messages::{Flags, ForcedSegment};
use super::timer::TimerKind;
use crate::congestion::{AckSample, CaState};
use crate::detection::LossOutcome;
use crate::rtt::RTO_MAX;

/// As Linux: delay before the next try after the local device refused a packet.
const RESOURCE_PROBE_INTERVAL: Duration = Duration::from_millis(500);

impl Sender {
    /// When the timer expires.
    pub(crate) fn timeout(&self) -> Option<Instant> {
        if self.owns_response {
            return self.timeout_of_both();
        }
        self.timer.due.map(|(_, at)| at)
    }

    /// The earlier of the sender's timer and the detection's own one.
    #[inline(never)]
    fn timeout_of_both(&self) -> Option<Instant> {
        self.timer.due.map(|(_, at)| at).into_iter().chain(self.detection.next_timeout()).min()
    }

    /// Handles expired timers. False if the peer has not answered for too long.
    pub(crate) fn on_timeout(&mut self, now: Instant, waiting: bool) -> bool {
        if self.owns_response {
            self.on_detection_timeout(now);
        }
        let Some((kind, _)) = self.timer.due.filter(|&(_, at)| at <= now) else { return true };
        self.timer.due = None;
        self.usage.open_round();
        match kind {
            TimerKind::Retransmission => return self.on_retransmission_timeout(now),
            TimerKind::Reordering => self.on_reordering_timeout(now),
            TimerKind::Probe => self.on_probe_timeout(now),
            TimerKind::Persist => return self.on_persist_timeout(now, waiting),
        }
        true
    }

    /// Schedules the tail loss probe if allowed, else restarts the retransmission timeout.
    pub(super) fn set_timer_after_ack(&mut self, now: Instant) {
        if !self.schedule_probe(now, true) {
            self.rearm_retransmission(now);
        }
    }

    /// Restarts the retransmission timeout (RFC 6298, Section 5.3). If it replaces a shorter timer, it counts from the
    /// departure of the first segment.
    pub(super) fn rearm_retransmission(&mut self, now: Instant) {
        if self.board.is_empty() {
            if !self.timer.is(TimerKind::Persist) {
                self.timer.due = None;
            }
            return;
        }
        let from_head = matches!(self.timer.due, Some((TimerKind::Reordering | TimerKind::Probe, _)));
        let at = match from_head {
            true => self.retransmission_deadline().max(now + Duration::from_micros(1)),
            false => now + self.rto(),
        };
        self.timer.set(TimerKind::Retransmission, at);
    }

    /// Timeout of the first segment, counted from its departure (tcp_rto_delta_us).
    pub(super) fn retransmission_deadline(&self) -> Instant {
        self.board.head().map_or(Instant::ZERO, |segment| segment.sent_at) + self.rto()
    }

    /// The reordering window has passed (RFC 8985, Section 6.3). Segments marked lost begin a recovery.
    fn on_reordering_timeout(&mut self, now: Instant) {
        let prior_lost = self.board.lost_total();
        let prior_in_flight = self.in_flight();
        let sample = self.loss_sample(now, Flags::default());
        let LossOutcome { marked, timer, .. } = self.detection.on_timeout(&mut self.board, &sample);
        if marked && self.in_flight() != prior_in_flight && self.episode.state != CaState::Recovery {
            self.enter_recovery(now);
            if !self.control.is_owned() && !self.episode.suppressed {
                let lost = (self.board.lost_total() - prior_lost) as u32;
                let sample = AckSample { delivered: 1, lost, ..self.base_sample(now) };
                self.control.reduce(&sample);
            }
        }
        match timer {
            Some(at) => self.timer.set_reordering(at),
            None => {
                let at = self.retransmission_deadline().max(now + self.config.timeout_min());
                self.timer.set(TimerKind::Retransmission, at);
            }
        }
    }

    /// The retransmission timeout (RFC 6298, Section 5, rules 5.4 to 5.7).
    fn on_retransmission_timeout(&mut self, now: Instant) -> bool {
        if self.board.is_empty() {
            return true;
        }
        if self.peer.snd_wnd == 0 {
            return self.on_closed_window(now);
        }
        if self.timer.retransmits == 0 && self.tail_probe.high_seq.is_none() {
            self.timer.note_unanswered(now, &self.board);
        }
        if self.timer.gives_up(now, self.timer.retransmits, self.config.retries) {
            return false;
        }
        self.totals.timeouts += 1;
        self.enter_loss(now);
        self.timer.retransmits += 1;
        self.resend_first(now, self.timer.retransmits > self.config.linear_timeouts);
        true
    }

    /// Retransmits the first segment. If it `backs_off`, the timeout grows (RFC 6298, Section 5.5).
    fn resend_first(&mut self, now: Instant, backs_off: bool) {
        self.forced = Some(ForcedSegment::First);
        self.timer.backoff += u32::from(backs_off);
        self.timer.set(TimerKind::Retransmission, now + self.rto());
    }

    /// The peer has shrunk its window to zero, and the data in flight lies beyond it. Retransmitting it probes the
    /// window (the first case of tcp_retransmit_timer). No timeout is counted. Each expiry lowers ssthresh again,
    /// because `retransmits` stays 0.
    fn on_closed_window(&mut self, now: Instant) -> bool {
        if self.timer.probes_out >= self.config.retries {
            return false;
        }
        self.timer.probes_out += 1;
        self.enter_loss(now);
        self.resend_first(now, true);
        true
    }

    /// Probes a closed window.
    fn on_persist_timeout(&mut self, now: Instant, waiting: bool) -> bool {
        if !waiting || !self.board.is_empty() {
            return true;
        }
        if self.timer.probes_out == 0 {
            self.timer.unanswered_since = now;
        }
        if self.timer.gives_up(now, self.timer.probes_out, self.config.retries) {
            return false;
        }
        self.timer.probes_out += 1;
        self.timer.backoff += 1;
        if self.peer.snd_wnd > 0 {
            // Data that fits into the window leaves, however little it is (RFC 9293, Section 3.8.6.2.1, condition (4);
            // tcp_write_wakeup).
            self.forced = Some(ForcedSegment::Part);
        } else {
            self.timer.window_probe = true;
        }
        self.timer.set(TimerKind::Persist, now + self.persist_delay());
        true
    }

    /// Delay until the next probe of a closed window: the timeout, within its bounds (RFC 9293, Section 3.8.6.1).
    fn persist_delay(&self) -> Duration {
        self.rto().max(self.config.rto_min).min(RTO_MAX)
    }

    /// Starts the persist timer: data waits, and nothing is in flight (tcp_check_probe_timer).
    #[cold]
    pub(super) fn check_persist(&mut self, now: Instant) {
        if self.timer.due.is_none() {
            self.timer.set(TimerKind::Persist, now + self.persist_delay());
        }
    }

    /// Data waits, nothing is in flight, and the device accepts no packets. The persist timer runs, because the user
    /// timeout covers all data given to TCP, sent or not (RFC 9293, Section 3.9.1.1). A probe that did not leave says
    /// nothing about the peer, so the timer does not back off (tcp_send_probe0).
    #[cold]
    pub(super) fn wait_for_device(&mut self, now: Instant) {
        if self.forced == Some(ForcedSegment::Part) {
            self.forced = None;
            self.timer.backoff = self.timer.backoff.saturating_sub(1);
            self.timer.set(TimerKind::Persist, now + RESOURCE_PROBE_INTERVAL);
        }
        self.check_persist(now);
    }

    /// Handles an ACK while nothing is in flight (tcp_ack_probe).
    #[inline]
    pub(super) fn on_probe_answered(&mut self, now: Instant) {
        if self.timer.is(TimerKind::Persist) {
            self.stop_probing(now);
        }
    }

    #[cold]
    fn stop_probing(&mut self, now: Instant) {
        if self.peer.snd_wnd >= u64::from(self.peer.segment_max(self.mss)) {
            self.timer.backoff = 0;
            self.timer.due = None;
        } else {
            self.timer.set(TimerKind::Persist, now + self.persist_delay());
        }
    }
}
