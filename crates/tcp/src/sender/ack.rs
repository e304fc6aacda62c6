//! One ACK, from acceptance to the new window (Linux net/ipv4/tcp_input.c:tcp_ack).

use paceline_wire::{Duration, Instant};

use super::Sender;
use super::accounting::{Accounting, Rtts};
use crate::config::ValidationName;
use crate::congestion::{AckSample, CaState};
use crate::detection::LossSample;
use crate::event::Event;
use crate::schedule::Answer;
use crate::scoreboard::Mark;

/// An ACK as the connection hands it over, positions unwrapped, the window in bytes.
#[derive(Clone, Copy, Debug)]
pub(crate) struct AckInput<'a> {
    pub(crate) now: Instant,
    pub(crate) seq: u64,
    pub(crate) ack: u64,
    pub(crate) window: u64,
    /// SACK blocks in wire order.
    pub(crate) sacks: &'a [(u64, u64)],
    pub(crate) tsval: Option<u32>,
    pub(crate) tsecr: Option<u32>,
    /// The time since `tsecr` was sent, if the peer echoes timestamps.
    pub(crate) echo_rtt: Option<Duration>,
    /// The segment brings data or a FIN.
    pub(crate) data: bool,
    /// It echoes that a packet met congestion (ECN).
    pub(crate) ece: bool,
    /// It echoes an accelerate, or a brake (ABC).
    pub(crate) accelerate: Option<bool>,
}

/// Whether it could be taken.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum AckVerdict {
    /// It was.
    Taken,
    /// It is old, and so says nothing but by SACK.
    Old,
    /// Older than any window: an attack or a mistake (RFC 5961, Section 5).
    TooOld,
    /// It acknowledges what was never sent.
    Unsent,
}

/// What an ACK turned out to be (Linux FLAG_*).
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Flags {
    pub(super) una_advanced: bool,
    pub(super) data_sacked: bool,
    pub(super) original_delivered: bool,
    pub(super) dsack: bool,
    pub(super) dsack_of_probe: bool,
    pub(super) dsack_of_reordering: bool,
    pub(super) window_update: bool,
    pub(super) data: bool,
    /// Below SND.UNA: it came late, and says nothing but by SACK (RFC 5681, Section 2: a duplicate ACK has SND.UNA).
    pub(super) old: bool,
    /// It echoes congestion.
    pub(super) ece: bool,
    pub(super) set_timer: bool,
    pub(super) lost_retransmission: bool,
}

impl Flags {
    /// It acknowledges, brings data or opens the window (FLAG_NOT_DUP).
    pub(super) fn not_duplicate(self) -> bool {
        self.una_advanced || self.data || self.window_update
    }

    /// A pure duplicate ACK.
    pub(super) fn duplicate(self) -> bool {
        !self.not_duplicate() && !self.dsack && !self.old
    }
}

impl Sender {
    /// Takes an ACK.
    pub(crate) fn on_ack(&mut self, input: &AckInput<'_>) -> AckVerdict {
        let prior_una = self.board.una();
        if input.ack > self.board.nxt() {
            return AckVerdict::Unsent;
        }
        // RFC 5961, Section 5.2, and nothing below what was ever acknowledged (Linux tcp_ack).
        if input.ack + self.max_window.min(self.totals.bytes_acked) < prior_una {
            return AckVerdict::TooOld;
        }
        let old = input.ack < prior_una;
        if old && input.sacks.is_empty() {
            return AckVerdict::Old;
        }
        let ack = input.ack.max(prior_una);
        let mut flags = Flags { una_advanced: ack > prior_una, data: input.data, old, ..Flags::default() };
        flags.ece = input.ece && !old;
        if flags.una_advanced {
            self.retransmits = 0;
        }
        if !old {
            flags.window_update = self.update_window(input);
            self.probes_out = 0;
        }
        self.last_arrival = input.now;
        self.frto_new_data = false;
        if self.board.is_empty() {
            self.on_ack_of_nothing(input, prior_una, flags);
        } else {
            self.usage.open_round();
            self.account(input, ack, prior_una, flags);
        }
        if old { AckVerdict::Old } else { AckVerdict::Taken }
    }

    /// Nothing is in flight, as with every segment that a mere receiver of data gets: it changes nothing for its sending half.
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
        let min_rtt = self.rtt.min().unwrap_or(Duration::MAX);
        let mut account = Accounting::new(input.now, min_rtt, self.high_seq, self.board.highest_sack());
        self.take_sacks(input, prior_una, &mut account, flags);
        if flags.dsack {
            let dsack = flags.dsack_of_reordering;
            let loss = LossSample { dsack, ..self.loss_sample(input.now, *flags) };
            self.detection.on_measurement(&loss);
            self.on_dubious_ack(input, prior_una, flags);
        }
    }

    #[inline]
    fn take_schedule(&mut self, now: Instant, advanced: bool) {
        if self.schedule.is_some() {
            self.answer_schedule(now, advanced);
        }
    }

    #[inline(never)]
    fn answer_schedule(&mut self, now: Instant, advanced: bool) {
        let Some(schedule) = &mut self.schedule else { return };
        schedule.on_ack(&Answer {
            now,
            ack: self.board.una(),
            advanced,
            window: self.snd_wnd,
            hole: self.board.sacked_out() > 0,
            rtt: self.rtt.min(),
        });
    }

    /// Whether the window may be taken over from this segment (RFC 9293, Section 3.10.7.4; that a window may close by the same
    /// numbers: tcp_may_update_window), and takes it. True if it changed.
    fn update_window(&mut self, input: &AckInput<'_>) -> bool {
        let newer = input.ack > self.board.una()
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

    /// Enters the ACK on the board, and acts on it.
    fn account(&mut self, input: &AckInput<'_>, ack: u64, prior_una: u64, mut flags: Flags) {
        let min_rtt = self.rtt.min().unwrap_or(Duration::MAX);
        let prior_fack = self.board.highest_sack();
        let prior_in_flight = self.in_flight();
        let prior_lost = self.board.lost_total();
        let had_sacked = self.board.sacked_out() > 0;
        let mut account = Accounting::new(input.now, min_rtt, self.high_seq, prior_fack);
        let dsack_delivered = match input.sacks {
            [] => 0,
            _ => self.take_sacks(input, prior_una, &mut account, &mut flags),
        };
        self.newly_sacked = account.newly_sacked;
        let acked = self.take_cumulative(input.now, ack, &mut account);
        self.totals.bytes_acked += ack - prior_una;
        // Without SACK an ACK that covers a retransmission says nothing of the originals beside it, which the receiver may
        // have held all along (tcp_clean_rtx_queue).
        flags.original_delivered |=
            account.original_delivered && (self.sack_ok || !account.retransmission_acked);
        let mut told = 0;
        if flags.una_advanced {
            flags.set_timer = acked > 0;
            told = self.newreno_advanced(acked);
        }
        if account.reord_ack < prior_fack {
            self.check_reordering(account.reord_ack);
        }
        let rtts = account.rtts();
        let newly = (account.newly_acked + account.newly_sacked + dsack_delivered).saturating_sub(told);
        let ack_delayed = acked == 1
            && !account.acked_were_sacked
            && !had_sacked
            && ack - prior_una < u64::from(self.mss)
            && account.rate.prior_delivered().is_some_and(|p| p == self.rate.delivered());
        self.rate.on_delivered(newly);
        let updated = self.update_rtt(input, rtts, acked > 0, ack_delayed);
        self.delivery.delivered += account.delivered_bytes;
        self.delivery.rtt = rtts.latest.or(self.delivery.rtt);
        self.delivery.sent_at = account.newest.map(|newest| newest.sent_at).max(self.delivery.sent_at);
        flags.set_timer |= !flags.una_advanced && updated && self.head_was_sent_after(input.now, rtts);
        // Written where it stays: a copy would cost a tenth of the ACK.
        let mut sample = self.base_sample(input.now);
        sample.delivered = newly;
        sample.delivered_bytes = account.delivered_bytes;
        sample.prior_in_flight = prior_in_flight;
        sample.una_advanced = flags.una_advanced;
        // The ACK that fills a hole shows another window, because its data was not read yet, and so is not predicted.
        sample.slow_path = !flags.una_advanced || !input.sacks.is_empty() || had_sacked || flags.ece;
        sample.rtt = updated.then_some(rtts.latest.or(input.echo_rtt)).flatten().or(rtts.latest);
        sample.echo_rtt = input.echo_rtt;
        sample.ack_delayed = ack_delayed;
        sample.tsval = input.tsval;
        sample.accelerate = input.accelerate;
        sample.sent_at = account.newest_sent();
        sample.repeated = newly == 0 && !flags.not_duplicate() && !flags.old;
        self.measure(&sample, &account, flags);
        // `lost_total` holds the total before loss detection until `react` has run it.
        sample.lost_total = prior_lost;
        sample.rate = self.rate.sample(input.now, newly, &account.rate, min_rtt_or_zero(self.rtt.min()));
        self.take_schedule(input.now, flags.una_advanced);
        self.react(input, prior_una, &mut sample, flags);
    }

    /// What is acknowledged cumulatively. Returns how many segments.
    fn take_cumulative(&mut self, now: Instant, ack: u64, account: &mut Accounting) -> u32 {
        let Sender { board, detection, owns_response, .. } = self;
        board.acknowledge(ack, |segment| {
            account.on_acked(segment);
            if *owns_response && !segment.mark.contains(Mark::SACKED) {
                detection.on_delivered(now, segment);
            }
        })
    }

    /// SACK blocks, lowest first, D-SACK taken apart. Returns how many retransmissions a D-SACK reports as delivered.
    #[inline(never)]
    fn take_sacks(
        &mut self,
        input: &AckInput<'_>,
        prior_una: u64,
        account: &mut Accounting,
        flags: &mut Flags,
    ) -> u32 {
        let [first, rest @ ..] = input.sacks else { return 0 };
        if !self.sack_ok {
            return 0;
        }
        // RFC 2883, Section 4: below the ACK, or within the second block.
        let within = rest.first().is_some_and(|second| first.0 >= second.0 && first.1 <= second.1);
        let duplicate = first.1 <= input.ack || first.0 < input.ack || within;
        let dups = if duplicate { self.take_dsack(*first, prior_una, flags) } else { 0 };
        let mut blocks = [(0, 0); 4];
        let mut count = 0;
        for &block in input.sacks.iter().skip(usize::from(duplicate)).take(blocks.len()) {
            // What was never sent cannot have arrived.
            if block.0 < block.1 && block.1 <= self.board.nxt() && block.1 > input.ack {
                blocks[count] = block;
                count += 1;
            }
        }
        blocks[..count].sort_unstable();
        for &(start, end) in &blocks[..count] {
            let Sender { board, detection, owns_response, .. } = self;
            let newly = board.sack(start, end, |segment| {
                account.on_sacked(segment);
                if *owns_response {
                    detection.on_delivered(input.now, segment);
                }
            });
            flags.data_sacked |= newly > 0;
        }
        if self.state != CaState::Loss || self.undo.marker.is_some() {
            self.check_reordering(account.reord_sack);
        }
        dups
    }

    /// A D-SACK (RFC 2883): a retransmission was not needed (tcp_dsack_seen).
    fn take_dsack(&mut self, block: (u64, u64), prior_una: u64, flags: &mut Flags) -> u32 {
        let len = block.1.saturating_sub(block.0);
        // Blocks below anything in the window are a peer's mistake.
        if len == 0 || len > self.max_window || block.1 > self.board.nxt() {
            return 0;
        }
        let dups = u32::try_from(len.div_ceil(u64::from(self.mss))).unwrap_or(1).max(1);
        self.totals.dsack_dups += u64::from(dups);
        if self.totals.dsack_dups > self.totals.segments_retransmitted {
            // The network duplicated it.
            return 0;
        }
        flags.dsack = true;
        flags.dsack_of_probe = self.tlp_retransmitted && self.tlp_high_seq == Some(block.1);
        flags.dsack_of_reordering = self.reord_seen > 0 && !flags.dsack_of_probe;
        self.answer_retransmissions(block, prior_una, dups);
        dups
    }

    /// Retransmissions of the episode that a D-SACK answers: below SND.UNA by its length (tcp_check_dsack), above it those that it covers
    /// (tcp_sacktag_one).
    fn answer_retransmissions(&mut self, block: (u64, u64), prior_una: u64, dups: u32) {
        let Some(marker) = self.undo.marker.filter(|&marker| block.1 > marker) else { return };
        let answered = match block.1 <= prior_una {
            true => dups,
            false => self.retransmitted_within(block, marker),
        };
        if let Some(retrans) = &mut self.undo.retrans {
            *retrans = retrans.saturating_sub(answered);
        }
    }

    fn retransmitted_within(&self, block: (u64, u64), marker: u64) -> u32 {
        let (mut number, end) = (self.board.number_at(block.0), self.board.numbers().1);
        let mut count = 0;
        while number != end {
            let Some(segment) = self.board.get(number).filter(|segment| segment.end <= block.1) else {
                break;
            };
            let again = segment.mark.contains(Mark::EVER_RETRANSMITTED);
            count += u32::from(again && segment.start >= block.0 && segment.end > marker);
            number = number.wrapping_add(1);
        }
        count
    }

    /// Reordering: something arrived below what had arrived before, and was not sent again.
    #[inline(never)]
    pub(super) fn check_reordering(&mut self, low: u64) {
        let fack = self.board.highest_sack();
        if low >= fack {
            return;
        }
        let distance = (fack - low).div_ceil(u64::from(self.mss));
        if distance > u64::from(self.reordering) {
            self.reordering = (distance as u32).min(REORDERING_MAX);
        }
        self.reord_seen += 1;
        self.reordered_by = self.reordered_by.max(distance as u32);
    }

    /// Feeds the estimator (RFC 6298, Section 2; RFC 7323, Section 4). True if there was a sample for the timeout.
    fn update_rtt(&mut self, input: &AckInput<'_>, rtts: Rtts, acked: bool, ack_delayed: bool) -> bool {
        let seq = rtts.seq.or(input.echo_rtt.filter(|_| acked));
        let Some(seq) = seq else { return false };
        let latest = rtts.latest.unwrap_or(seq);
        if !(ack_delayed && self.rtt.min().is_some_and(|min| latest > min)) {
            self.rtt.on_min_sample(input.now, latest);
        }
        self.rtt.on_sample(seq, self.board.una(), self.board.nxt());
        // RFC 6298: only a valid sample ends the backoff.
        self.backoff = 0;
        true
    }

    /// Whether the first segment was last sent after what has arrived now: then the timer may start anew. Otherwise it would never
    /// expire while later data arrives (tcp_clean_rtx_queue).
    fn head_was_sent_after(&self, now: Instant, rtts: Rtts) -> bool {
        let head = self.board.iter().next().map(|segment| now.saturating_since(segment.sent_at));
        matches!((rtts.sack, head), (Some(sack), Some(age)) if sack > age)
    }

    /// Everything that measures.
    fn measure(&mut self, sample: &AckSample, account: &Accounting, flags: Flags) {
        if sample.delivered > 0 || flags.una_advanced {
            self.window = self.congestion.on_measurement(sample, self.window);
            self.reduction.on_measurement(sample);
        }
        let loss = LossSample {
            newest: account.newest,
            reordered_by: core::mem::take(&mut self.reordered_by),
            dsack: flags.dsack_of_reordering,
            prior_delivered: account.rate.prior_delivered(),
            ..self.loss_sample(sample.now, flags)
        };
        self.detection.on_measurement(&loss);
    }

    /// State, window, timers.
    fn react(&mut self, input: &AckInput<'_>, prior_una: u64, sample: &mut AckSample, mut flags: Flags) {
        let now = input.now;
        self.take_probe_ack(now, input.ack, flags);
        let dubious = !flags.not_duplicate()
            || flags.data_sacked
            || flags.dsack
            || flags.ece
            || self.state != CaState::Open;
        if dubious {
            sample.delivered += self.on_dubious_ack(input, prior_una, &mut flags);
        }
        if flags.set_timer {
            self.set_timer_after_ack(now);
        }
        let before = self.board.lost_total();
        sample.lost = (before - sample.lost_total) as u32;
        sample.lost_total = before;
        sample.state = self.state;
        sample.in_flight = self.in_flight();
        sample.cwnd_limited = self.was_cwnd_limited(sample.prior_in_flight);
        sample.prior_cwnd = self.prior_cwnd;
        let window = self.window;
        self.control(sample, flags);
        self.report(sample, window != self.window);
    }

    /// Whether the window was used.
    fn was_cwnd_limited(&self, prior_in_flight: u32) -> bool {
        match self.config.validation {
            ValidationName::Linux => self.usage.is_cwnd_limited(self.window),
            // As Linux 3.10: the window is used when no more than so many packets are missing.
            ValidationName::Linux310 => prior_in_flight + 3 >= self.window.cwnd,
        }
    }

    /// Who moves the window.
    fn control(&mut self, sample: &AckSample, flags: Flags) {
        if self.congestion.owns_window() {
            self.window = self.congestion.on_ack(sample, self.window);
            if self.congestion.limits_application() {
                self.rate.on_app_limited(sample.in_flight);
            }
        } else if self.state.in_reduction() {
            if sample.delivered > 0 && !self.suppressed {
                self.window.cwnd = self.reduction.on_ack(sample, &mut self.window).min(self.window.clamp);
            }
        } else if self.may_raise_window(flags) {
            self.window = self.congestion.on_ack(sample, self.window);
        }
    }

    /// Whether the window may grow, as Linux has it: with much reordering any progress will do, else SND.UNA must move. So will it where a hole is no
    /// sign of congestion: TCP-NCL counts a packet as acknowledged by SACK, too.
    fn may_raise_window(&self, flags: Flags) -> bool {
        let progress = flags.una_advanced || flags.data_sacked;
        if self.owns_response || self.reordering > crate::detection::DUP_THRESH {
            progress
        } else {
            flags.una_advanced
        }
    }

    #[inline]
    fn report(&mut self, sample: &AckSample, moved: bool) {
        if self.observer.is_some() {
            self.tell(sample, moved);
        }
    }

    #[inline(never)]
    fn tell(&mut self, sample: &AckSample, moved: bool) {
        if sample.delivered > 0 {
            let (una, packets, rtt) = (sample.una, sample.delivered, sample.rtt);
            self.emit(sample.now, Event::Delivered { una, packets, rtt });
        }
        if sample.lost > 0 {
            self.emit(sample.now, Event::Lost { packets: sample.lost });
        }
        if moved {
            let (cwnd, ssthresh) = (self.window.cwnd, self.window.ssthresh);
            self.emit(sample.now, Event::Window { cwnd, ssthresh, in_flight: sample.in_flight });
        }
    }
}

/// Linux net.ipv4.tcp_max_reordering.
const REORDERING_MAX: u32 = 300;

fn min_rtt_or_zero(min: Option<Duration>) -> Duration {
    min.unwrap_or_default()
}
