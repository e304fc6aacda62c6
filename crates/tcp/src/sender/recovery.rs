//! The states of the sender and the transitions between them (Linux tcp_fastretrans_alert).

use paceline_wire::{Duration, Instant};

use super::Sender;
use super::messages::{AckInput, Flags, ForcedSegment};
use super::timer::TimerKind;
use crate::config::Hack1Changes;
use crate::congestion::{CaState, current_ssthresh};
use crate::detection::{DUP_THRESH, LossSample};
use crate::scoreboard::Mark;

/// Minimum delay before a timeout after reneging. As Linux: half an SRTT, at least 10 ms, in which the receiver may
/// report the data again.
const RENEGING_DELAY: Duration = Duration::from_millis(10);

impl Sender {
    /// Returns the input of loss detection.
    pub(super) fn loss_sample(&self, now: Instant, flags: Flags) -> LossSample {
        LossSample {
            now,
            state: self.episode.state,
            duplicate: flags.duplicate(),
            sacked_news: flags.data_sacked,
            srtt: self.rtt.srtt(),
            min_rtt: self.rtt.min().unwrap_or_default(),
            timeout_min: self.config.timeout_min(),
            reordering: self.reordering.distance,
            reordering_seen: self.reordering.seen > 0,
            delivered: self.rate.delivered(),
            cwnd: self.control.window.cwnd,
            ..LossSample::default()
        }
    }

    /// The threshold that the current state implies.
    pub(super) fn current_ssthresh(&self) -> u32 {
        current_ssthresh(self.episode.state, self.control.window)
    }

    /// Handles a dubious ACK: a duplicate, a partial one (RFC 6582), or one with news of loss or congestion (RFC 5681).
    /// Returns the number of packets that it delivered beyond those on the scoreboard (without SACK).
    #[inline(never)]
    pub(super) fn on_dubious_ack(&mut self, input: &AckInput<'_>, prior_una: u64, flags: &mut Flags) -> u32 {
        let now = input.now;
        if flags.ece {
            // A reduction that the network requested is not undone.
            self.episode.prior_ssthresh = 0;
        }
        if self.check_reneging(now, *flags) || self.leave_episode(input) {
            return 0;
        }
        let mut extra = 0;
        match self.episode.state {
            CaState::Recovery => {
                if !flags.una_advanced {
                    extra = self.left_by_duplicate(*flags);
                } else if self.try_undo_partial(now, prior_una, input.tsecr) {
                    return 0;
                }
                if self.try_undo_dsack() {
                    self.try_to_open(now, *flags);
                }
                self.identify_losses(now, flags);
                self.detect_discards(*flags);
                if self.episode.state != CaState::Recovery && self.has_losses_to_answer() {
                    self.enter_recovery(now);
                }
            }
            CaState::Loss => {
                extra = self.process_loss(input, *flags);
                self.identify_losses(now, flags);
                if self.episode.state == CaState::Open || flags.lost_retransmission {
                    self.judge(now, *flags);
                }
            }
            CaState::Open | CaState::Disorder | CaState::Cwr => {
                if flags.una_advanced {
                    self.newreno.reset();
                } else {
                    extra = self.left_by_duplicate(*flags);
                }
                if self.episode.state <= CaState::Disorder {
                    self.try_undo_dsack();
                }
                self.identify_losses(now, flags);
                self.judge(now, *flags);
            }
        }
        self.rate.on_delivered(extra);
        extra
    }

    /// Without SACK a duplicate ACK stands for a segment that has left the network.
    fn left_by_duplicate(&mut self, flags: Flags) -> u32 {
        u32::from(!self.sack_ok && flags.duplicate() && self.newreno.on_duplicate(&self.board))
    }

    fn has_losses_to_answer(&self) -> bool {
        self.board.lost_out() > 0 && !self.owns_response
    }

    /// Enters recovery if a segment is lost, else the state that the scoreboard implies.
    fn judge(&mut self, now: Instant, flags: Flags) {
        if self.has_losses_to_answer() {
            self.enter_recovery(now);
        } else if self.episode.state != CaState::Recovery {
            self.try_to_open(now, flags);
        }
    }

    /// Ends the episode if all its data is acknowledged (step D). True if it continues nevertheless and nothing else is
    /// to do.
    fn leave_episode(&mut self, input: &AckInput<'_>) -> bool {
        let una = self.board.una();
        match self.episode.state {
            CaState::Open => self.episode.undo.retrans_stamp = None,
            _ if una < self.episode.high_seq => {}
            CaState::Cwr if una != self.episode.high_seq => {
                self.end_reduction(input.now);
                self.set_state(input.now, CaState::Open);
            }
            CaState::Recovery => {
                self.newreno.reset();
                self.try_undo_recovery(input.tsecr);
                if self.must_not_reopen() {
                    return true;
                }
                self.end_reduction(input.now);
                self.set_state(input.now, CaState::Open);
            }
            _ => {}
        }
        false
    }

    /// True if the episode must continue. Without SACK it ends only when data above its own is acknowledged. Before
    /// that, duplicate ACKs may answer unnecessary retransmissions (RFC 6582, Section 3.2, step 2;
    /// tcp_is_non_sack_preventing_reopen).
    pub(super) fn must_not_reopen(&mut self) -> bool {
        let held = !self.sack_ok && self.board.una() == self.episode.high_seq;
        if held {
            self.episode.undo.check_stamp(&self.board);
        }
        held
    }

    /// Asks the loss detection for losses. Without SACK, duplicate ACKs decide.
    fn identify_losses(&mut self, now: Instant, flags: &mut Flags) {
        if self.board.is_empty() {
            return;
        }
        if !self.sack_ok && !self.owns_response {
            let enough = match self.episode.state {
                CaState::Recovery => flags.una_advanced,
                _ => self.newreno.sacked >= self.reordering.distance,
            };
            return self.newreno.mark_lost(&mut self.board, enough);
        }
        let sample = self.loss_sample(now, *flags);
        let outcome = self.detection.on_ack(&mut self.board, &sample);
        flags.lost_retransmission |= outcome.lost_retransmission;
        self.respond(now, outcome.response);
        if let Some(at) = outcome.timer {
            self.timer.set_reordering(at);
            flags.set_timer = false;
        }
    }

    /// Outside recovery: an ECN-Echo may begin a reduction. Otherwise the state follows the known missing segments.
    fn try_to_open(&mut self, now: Instant, flags: Flags) {
        self.episode.undo.check_stamp(&self.board);
        if flags.ece {
            self.on_congestion_echo(now);
        }
        if self.episode.state != CaState::Cwr {
            self.try_keep_open(now);
        }
    }

    /// Sets Disorder while a segment is missing or was retransmitted, else Open.
    pub(super) fn try_keep_open(&mut self, now: Instant) {
        let left_out = self.board.sacked_out() + self.board.lost_out() + self.newreno.sacked;
        let missing = left_out > 0 || self.board.any_retransmitted();
        let state = if missing { CaState::Disorder } else { CaState::Open };
        if self.episode.state != state {
            self.set_state(now, state);
            self.episode.high_seq = self.board.nxt();
        }
    }

    /// After a timeout: runs F-RTO (RFC 5682, Section 3.1, as tcp_process_loss), undo, and the end of the episode.
    fn process_loss(&mut self, input: &AckInput<'_>, flags: Flags) -> u32 {
        let now = input.now;
        let recovered = self.board.una() >= self.episode.high_seq;
        if flags.una_advanced && self.try_undo_loss(now, false, input.tsecr) {
            return 0;
        }
        if self.episode.frto {
            // Step 3.b: a segment sent only once, before the timeout, has arrived.
            if flags.original_delivered && self.try_undo_loss(now, true, input.tsecr) {
                return 0;
            }
            if self.board.nxt() > self.episode.high_seq {
                // Step 3.a: the loss was real.
                if flags.data_sacked || flags.duplicate() {
                    self.episode.frto = false;
                }
            } else if flags.una_advanced && !recovered {
                // Step 2.b: sends new data and waits for its ACKs. `transmit` returns to retransmissions if there is no
                // new data.
                self.episode.high_seq = self.board.nxt();
                self.episode.frto_new_data = true;
                return 0;
            }
        }
        if recovered {
            self.newreno.reset();
            self.try_undo_recovery(input.tsecr);
            if !self.must_not_reopen() {
                self.set_state(now, CaState::Open);
            }
            return 0;
        }
        self.left_by_duplicate(flags)
    }

    /// Step B: the receiver discarded data that it had reported by SACK (RFC 2018, Section 8; tcp_check_sack_reneging).
    /// A timeout will follow, so the timer is set to a short delay.
    fn check_reneging(&mut self, now: Instant, flags: Flags) -> bool {
        let head = self.board.head().filter(|_| flags.una_advanced);
        let reneged = head.is_some_and(|head| head.mark.contains(Mark::SACKED));
        if reneged {
            let delay = (self.rtt.srtt() / 2).max(RENEGING_DELAY);
            self.timer.set(TimerKind::Retransmission, now + delay);
        }
        reneged
    }

    /// OR, Section VIII, Hack 1. Duplicate ACKs without SACK news answer data beyond the window. So the retransmission
    /// that should have opened the window is lost. After DupThresh of them the first segment is retransmitted again.
    ///
    /// The printed form (`hack1_text`) does only that, and its count must exceed DupThresh. Each of our additions has a
    /// switch in [`Hack1Changes`]. docs/evidence/printed-forms.md reports their effect.
    pub(super) fn detect_discards(&mut self, flags: Flags) {
        let changes = match (self.config.hack1, self.config.hack1_text) {
            (_, true) => self.config.hack1_changes,
            (true, false) => Hack1Changes::ALL,
            (false, false) => return,
        };
        if flags.lost_retransmission && changes.holds {
            self.hack1.doubted_to = self.board.nxt();
        }
        if flags.una_advanced || flags.data_sacked {
            self.hack1.stray_duplicates = 0;
            return;
        }
        if flags.not_duplicate() {
            return;
        }
        self.hack1.stray_duplicates += 1;
        if changes.marks {
            let edge = self.board.una() + self.peer.snd_wnd;
            self.hack1.mark_discarded(&mut self.board, edge);
        }
        if self.hack1.stray_duplicates < DUP_THRESH + u32::from(!changes.at_third) {
            return;
        }
        if changes.holds {
            self.hack1.doubted_to = self.board.nxt();
        }
        self.hack1.stray_duplicates = 0;
        let Some(first) = self.board.first() else { return };
        let Some(segment) = self.board.get(first) else { return };
        // Our choice: at most once in a round trip, because the answer to the last retransmission cannot have come yet.
        let answered = segment.sent_at + self.rtt.srtt() <= self.peer.last_arrival;
        let lost_again = segment.mark.contains(Mark::RETRANSMITTED) && answered;
        if segment.is_lost_and_waiting() || (lost_again && self.board.mark_lost(first)) {
            self.totals.hack1 += 1;
            // A fast retransmit, whatever cwnd says: data beyond the window still counts as in flight.
            self.forced = Some(ForcedSegment::Lost);
        }
    }
}
