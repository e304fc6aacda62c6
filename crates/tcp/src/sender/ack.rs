//! One ACK, from acceptance to the new window (Linux tcp_ack).

use paceline_wire::{Duration, Instant};

use super::Sender;
use super::accounting::{Accounting, Rtts};
use super::messages::{AckInput, AckVerdict, Flags};
use crate::config::ValidationName;
use crate::congestion::{AckKind, AckSample, CaState};
use crate::detection::{DUP_THRESH, LossSample};
use crate::schedule::AckContent;
use crate::scoreboard::Mark;

/// Deliveries by one ACK, as the scoreboard counts them.
#[derive(Clone, Copy, Debug)]
struct AckDeliveries {
    /// Segments delivered by SACK, D-SACK or cumulatively.
    newly: u32,
    /// Newly acknowledged segments that duplicate ACKs had already counted (without SACK).
    told: u32,
    /// Segments acknowledged cumulatively.
    acked: u32,
    /// The receiver may have waited with this ACK for a second segment.
    delayed: bool,
}

impl Sender {
    /// Takes an ACK: checks it, takes its window, and processes its news of data in flight.
    pub(crate) fn on_ack(&mut self, input: &AckInput<'_>) -> AckVerdict {
        let prior_una = self.board.una();
        if input.ack > self.board.nxt() {
            return AckVerdict::Unsent;
        }
        // RFC 5961, Section 5.2, and no ACK below the start of the stream (Linux tcp_ack).
        if input.ack + self.peer.max_window.min(self.totals.bytes_acked) < prior_una {
            return AckVerdict::TooOld;
        }
        let old = input.ack < prior_una;
        if old && input.sacks.is_empty() {
            return AckVerdict::Old;
        }
        let mut flags =
            Flags { una_advanced: input.ack > prior_una, data: input.data, old, ..Flags::default() };
        flags.ece = input.ece && !old;
        if flags.una_advanced {
            self.timer.retransmits = 0;
        }
        if !old {
            flags.window_update = self.peer.update(input, prior_una);
            self.timer.probes_out = 0;
        }
        self.peer.last_arrival = input.now;
        self.episode.frto_new_data = false;
        if self.board.is_empty() {
            self.on_ack_of_nothing(input, prior_una, flags);
        } else {
            self.usage.open_round();
            self.on_ack_of_flight(input, prior_una, flags);
        }
        if old { AckVerdict::Old } else { AckVerdict::Taken }
    }

    /// Processes an ACK while data is in flight, in this order: deliveries, measurements, losses and the state that
    /// follows, timer, window.
    fn on_ack_of_flight(&mut self, input: &AckInput<'_>, prior_una: u64, mut flags: Flags) {
        let now = input.now;
        let prior_in_flight = self.in_flight();
        let mut account = self.open_account(now);

        let arrived = self.deliver(input, prior_una, &mut account, &mut flags);
        let rtts = account.rtts();
        self.rate.on_delivered(arrived.newly);
        let updated = self.update_rtt(input, rtts, &arrived);
        self.report.on_delivered(&account, rtts, u64::from(arrived.told) * u64::from(self.mss));
        flags.set_timer |= !flags.una_advanced && updated && self.head_was_sent_after(now, rtts);

        // Written in place: a copy would cost a tenth of the ACK's processing time.
        let mut sample = self.base_sample(now);
        sample.delivered = arrived.newly;
        sample.delivered_bytes = account.delivered_bytes;
        sample.prior_in_flight = prior_in_flight;
        sample.una_advanced = flags.una_advanced;
        sample.sent_at = account.newest_sent();
        sample.rtt = updated.then_some(rtts.latest.or(input.echo_rtt)).flatten().or(rtts.latest);
        sample.kind = AckKind {
            // An ACK that fills a hole advertises another window, because its data is unread. So header prediction
            // fails for it.
            slow_path: !flags.una_advanced || !input.sacks.is_empty() || account.had_sacked || flags.ece,
            delayed: arrived.delayed,
            repeated: arrived.newly == 0 && !flags.not_duplicate() && !flags.old,
            tsval: input.tsval,
            echo_rtt: input.echo_rtt,
            accelerate: input.accelerate,
        };
        self.measure(&sample, &account, flags);
        sample.rate = self.rate.sample(now, arrived.newly, &account.rate, self.rtt.min().unwrap_or_default());
        self.take_schedule(now, flags.una_advanced);

        self.take_probe_ack(now, input.ack, flags);
        if flags.is_dubious() || self.episode.state != CaState::Open {
            let extra = self.on_dubious_ack(input, prior_una, &mut flags);
            sample.delivered += extra;
            self.report.on_told(u64::from(extra) * u64::from(self.mss));
        }
        if flags.set_timer {
            self.set_timer_after_ack(now);
        }

        let lost_total = self.board.lost_total();
        sample.lost = (lost_total - account.prior_lost) as u32;
        sample.lost_total = lost_total;
        sample.state = self.episode.state;
        sample.in_flight = self.in_flight();
        sample.cwnd_limited = self.was_cwnd_limited(prior_in_flight);
        sample.prior_cwnd = self.episode.prior_cwnd;
        self.move_window(&sample, flags);
    }

    /// Processes an ACK while nothing is in flight. A pure receiver of data gets only these, and they change nothing
    /// for its sender.
    fn on_ack_of_nothing(&mut self, input: &AckInput<'_>, prior_una: u64, mut flags: Flags) {
        if flags.window_update {
            self.usage.open_round();
        }
        if !input.sacks.is_empty() {
            self.take_late_sacks(input, prior_una, &mut flags);
        }
        self.take_probe_ack(input.now, input.ack, flags);
        self.on_probe_answered(input.now);
        self.take_schedule(input.now, false);
    }

    #[cold]
    fn take_late_sacks(&mut self, input: &AckInput<'_>, prior_una: u64, flags: &mut Flags) {
        self.usage.open_round();
        let mut account = self.open_account(input.now);
        self.take_sacks(input, prior_una, &mut account, flags);
        if flags.dsack {
            let dsack = flags.dsack_of_reordering;
            let loss = LossSample { dsack, ..self.loss_sample(input.now, *flags) };
            self.detection.on_measurement(&loss);
            self.on_dubious_ack(input, prior_una, flags);
        }
    }

    #[inline(always)]
    fn open_account(&self, now: Instant) -> Accounting {
        let min_rtt = self.rtt.min().unwrap_or(Duration::MAX);
        Accounting::new(now, min_rtt, self.episode.high_seq, &self.board)
    }

    /// Records the ACK on the scoreboard: SACK blocks first, then the cumulative acknowledgement.
    #[inline]
    fn deliver(
        &mut self,
        input: &AckInput<'_>,
        prior_una: u64,
        account: &mut Accounting,
        flags: &mut Flags,
    ) -> AckDeliveries {
        let ack = input.ack.max(prior_una);
        let dsack_delivered = match input.sacks {
            [] => 0,
            _ => self.take_sacks(input, prior_una, account, flags),
        };
        self.episode.newly_sacked = account.newly_sacked;
        let acked = self.take_cumulative(input.now, ack, account);
        self.totals.bytes_acked += ack - prior_una;
        // Without SACK an ACK that covers a retransmission does not tell when the originals beside it arrived. The
        // receiver may have held them before (tcp_clean_rtx_queue).
        flags.original_delivered |=
            account.original_delivered && (self.sack_ok || !account.retransmission_acked);
        let mut told = 0;
        if flags.una_advanced {
            flags.set_timer = acked > 0;
            told = self.newreno.on_advance(acked, &self.board);
        }
        if account.reord_ack < account.prior_fack {
            self.reordering.note(account.reord_ack, self.board.highest_sack(), self.mss);
        }
        let newly = (account.newly_acked + account.newly_sacked + dsack_delivered).saturating_sub(told);
        let delayed = acked == 1
            && !account.acked_were_sacked
            && !account.had_sacked
            && ack - prior_una < u64::from(self.mss)
            && account.rate.prior_delivered().is_some_and(|p| p == self.rate.delivered());
        AckDeliveries { newly, told, acked, delayed }
    }

    /// Takes the cumulative acknowledgement and returns the number of segments.
    fn take_cumulative(&mut self, now: Instant, ack: u64, account: &mut Accounting) -> u32 {
        let Sender { board, detection, owns_response, .. } = self;
        board.acknowledge(ack, |segment| {
            account.on_acked(segment);
            if *owns_response && !segment.mark.contains(Mark::SACKED) {
                detection.on_delivered(now, segment);
            }
        })
    }

    /// Feeds the RTT estimator (RFC 6298, Section 2; RFC 7323, Section 4). True if there was a sample for the timeout.
    fn update_rtt(&mut self, input: &AckInput<'_>, rtts: Rtts, arrived: &AckDeliveries) -> bool {
        let seq = rtts.seq.or(input.echo_rtt.filter(|_| arrived.acked > 0));
        let Some(seq) = seq else { return false };
        let latest = rtts.latest.unwrap_or(seq);
        if !(arrived.delayed && self.rtt.min().is_some_and(|min| latest > min)) {
            self.rtt.on_min_sample(input.now, latest);
        }
        self.rtt.on_sample(seq, self.board.una(), self.board.nxt());
        // RFC 6298: only a valid sample ends the backoff.
        self.timer.backoff = 0;
        true
    }

    /// True if the first segment was last sent after the newly reported ones, so that the timer may restart. If any
    /// later arrival restarted it, it would never expire (tcp_clean_rtx_queue).
    fn head_was_sent_after(&self, now: Instant, rtts: Rtts) -> bool {
        let head = self.board.head().map(|segment| now.saturating_since(segment.sent_at));
        matches!((rtts.sack, head), (Some(sack), Some(age)) if sack > age)
    }

    /// Passes the ACK to all algorithms that measure.
    fn measure(&mut self, sample: &AckSample, account: &Accounting, flags: Flags) {
        if sample.delivered > 0 || flags.una_advanced {
            self.control.on_measurement(sample);
        }
        let loss = LossSample {
            newest: account.newest,
            reordered_by: self.reordering.take_longest(),
            dsack: flags.dsack_of_reordering,
            prior_delivered: account.rate.prior_delivered(),
            ..self.loss_sample(sample.now, flags)
        };
        self.detection.on_measurement(&loss);
    }

    #[inline]
    fn take_schedule(&mut self, now: Instant, advanced: bool) {
        if self.peer.schedule.is_some() {
            self.answer_schedule(now, advanced);
        }
    }

    #[inline(never)]
    fn answer_schedule(&mut self, now: Instant, advanced: bool) {
        let Some(schedule) = &mut self.peer.schedule else { return };
        schedule.on_ack(&AckContent {
            now,
            ack: self.board.una(),
            advanced,
            window: self.peer.snd_wnd,
            hole: self.board.sacked_out() > 0,
            rtt: self.rtt.min(),
        });
    }

    /// True if cwnd limited the sender.
    fn was_cwnd_limited(&self, prior_in_flight: u32) -> bool {
        match self.config.validation {
            ValidationName::Linux => self.usage.is_cwnd_limited(self.control.window),
            // As Linux 3.10: cwnd counts as used if at most three packets are missing.
            ValidationName::Linux310 => prior_in_flight + 3 >= self.control.window.cwnd,
        }
    }

    /// Has the responsible algorithm move the window.
    pub(super) fn move_window(&mut self, sample: &AckSample, flags: Flags) {
        if self.control.is_owned() {
            self.control.on_ack(sample);
            if self.control.congestion.limits_application() {
                self.rate.on_app_limited(sample.in_flight);
            }
        } else if self.episode.state.in_reduction() {
            if sample.delivered > 0 && !self.episode.suppressed {
                self.control.reduce(sample);
            }
        } else if self.may_raise_window(flags) {
            self.control.on_ack(sample);
        }
    }

    /// True if the window may grow (as Linux). With much reordering any progress is enough, else SND.UNA must advance.
    /// Any progress is also enough if a hole is no sign of congestion: TCP-NCL also counts a packet reported by SACK as
    /// acknowledged.
    fn may_raise_window(&self, flags: Flags) -> bool {
        let any_progress = self.owns_response || self.reordering.distance > DUP_THRESH;
        flags.una_advanced || (any_progress && flags.data_sacked)
    }
}
