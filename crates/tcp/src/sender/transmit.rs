//! The whole send rule. In fast recovery the rate reduction sets the limit, else cwnd - pipe. No data goes beyond
//! SND.UNA + SND.WND and its extension. Retransmissions go before new data. No packet leaves before the pacer's
//! departure time.

use paceline_wire::{Duration, Instant};

use super::Sender;
use super::messages::{ForcedSegment, Supply, Transmission};
use super::timer::TimerKind;
use crate::congestion::CaState;
use crate::reduction::Holes;
use crate::scoreboard::Mark;

impl Sender {
    /// Returns the next segment to send at `now`, or `None` if none may leave. The order is: forced segments, lost
    /// segments, new data, segments not known to be lost.
    #[inline(always)]
    pub(crate) fn poll(&mut self, now: Instant, supply: Supply) -> Option<Transmission> {
        self.pacer.held = false;
        if let Some(forced) = self.forced.take()
            && let Some(transmission) = self.send_forced(now, forced, supply)
        {
            return Some(transmission);
        }
        if self.pacer.waits(now, &self.control) {
            self.probe_after_sending(now);
            return None;
        }
        if self.board.lost_out() > 0
            && let Some(transmission) = self.poll_retransmission(now, supply)
        {
            return Some(transmission);
        }
        if let Some((end, fin)) = self.poll_new(supply, self.config.nagle) {
            return Some(self.send_new(now, end, fin));
        }
        if let Some(transmission) = self.poll_early_retransmission(now) {
            return Some(transmission);
        }
        if self.pacer.held {
            self.pause_round(now);
        } else if self.usage.round_open {
            self.finish_round(now, supply);
        }
        None
    }

    /// After a new segment, returns another one, if the next [`poll`](Self::poll) would send it. After `None`, `poll`
    /// may send another kind of segment.
    pub(crate) fn poll_another(&mut self, now: Instant, supply: Supply) -> Option<Transmission> {
        let other = self.forced.is_some() || self.board.lost_out() > 0 || self.pacer.allowance == 0;
        if other || self.pacer.waits(now, &self.control) {
            return None;
        }
        self.poll_new(supply, self.config.nagle).map(|(end, fin)| self.send_new(now, end, fin))
    }

    /// Departure time of the next paced packet, if there is one to send.
    pub(crate) fn departure(&self, supply: Supply) -> Option<Instant> {
        let room = || self.in_flight() < self.control.window.cwnd;
        let something = || supply.end > self.board.nxt() || self.board.lost_out() > 0;
        (self.usage.round_open && !self.pacer.held && self.control.is_paced() && room() && something())
            .then_some(self.pacer.next_departure)
    }

    /// True if a poll certainly has nothing to send. A cheap check.
    pub(crate) fn is_idle(&self) -> bool {
        !self.usage.round_open && self.forced.is_none()
    }

    /// Reopens the round: the application wrote, or another limit was lifted.
    pub(crate) fn wake(&mut self) {
        self.usage.open_round();
    }

    pub(crate) fn times(&self, now: Instant) -> (Duration, Duration, Duration) {
        self.usage.times(now)
    }

    /// Returns a lost segment to retransmit. F-RTO sends new data first. Without new data, retransmissions continue
    /// (tcp_xmit_recovery).
    #[inline(never)]
    fn poll_retransmission(&mut self, now: Instant, supply: Supply) -> Option<Transmission> {
        if self.episode.state < CaState::Recovery && !self.owns_response {
            return None;
        }
        if self.episode.frto_new_data {
            if self.board.nxt() > self.episode.high_seq {
                return None;
            }
            if let Some((end, fin)) = self.poll_new(supply, false) {
                return Some(self.send_new(now, end, fin));
            }
            (self.episode.frto_new_data, self.episode.frto) = (false, false);
        }
        let bound = !self.owns_response
            || self.episode.state == CaState::Loss
            || !self.detection.retransmits_at_once();
        if bound && self.in_flight() >= self.control.window.cwnd {
            return None;
        }
        let number = self.board.next_lost()?;
        // The window also limits retransmissions, except the first segment (__tcp_retransmit_skb). Only
        // new data may use the extension of the window.
        let segment = self.board.get(number)?;
        if segment.end > self.peer.offered_end(self.board.una()) && segment.start != self.board.una() {
            return None;
        }
        if segment.start != self.board.una() && !self.pacer.allows() {
            return None;
        }
        self.next_seg.on_retransmitted(number);
        self.retransmit(now, number)
    }

    /// End of the peer's window, plus its extension for new data in recovery.
    pub(super) fn window_end(&self) -> u64 {
        let end = self.peer.offered_end(self.board.una());
        if self.episode.state != CaState::Recovery { end } else { end + self.extension() }
    }

    /// How far new data may exceed the window in recovery.
    #[inline(never)]
    fn extension(&self) -> u64 {
        if !self.hack1.may_exceed_window(self.board.una()) {
            return 0;
        }
        let span = self.board.highest_sack() - self.board.una();
        // Our choice: new data also waits for holes not yet marked lost. The text (Section IV) waits only for those
        // marked lost so far. The receiver discards data beyond the window until the lowest hole is filled, so a repair
        // that is almost due goes first.
        let waiting = self.board.has_open_holes();
        self.control.reduction.window_extension(&Holes { span, waiting })
    }

    /// Returns the end of the next new segment that may leave, and whether it has the FIN.
    #[inline]
    fn poll_new(&mut self, supply: Supply, nagle: bool) -> Option<(u64, bool)> {
        let start = self.board.nxt();
        if supply.end <= start {
            return None;
        }
        let (end, fin) = self.next_new(supply, self.window_end(), nagle)?;
        let in_flight = self.in_flight();
        // A FIN may leave at any time (tcp_cwnd_test).
        let only_fin = fin && end == start + 1;
        // With and without SACK, a duplicate ACK removes a segment from pipe. This is limited transmit (RFC 3042).
        if (in_flight >= self.control.window.cwnd && !only_fin) || !self.pacer.allows() {
            return None;
        }
        Some((end, fin))
    }

    /// Returns the end of the next new segment that the receive window, Nagle and silly window avoidance allow.
    pub(super) fn next_new(&self, supply: Supply, window_end: u64, nagle: bool) -> Option<(u64, bool)> {
        let start = self.board.nxt();
        let mss = u64::from(self.peer.segment_max(self.mss));
        let data_end = supply.end - u64::from(supply.fin);
        let mut end = data_end.min(start + mss).min(supply.piece);
        // The FIN leaves with the last data.
        let fin = supply.fin && end == data_end;
        end += u64::from(fin);
        if end > window_end {
            return None;
        }
        let full = end - start >= mss || fin || end == supply.piece;
        // Nagle as modified by Minshall: only a small segment in flight holds back the next one (tcp_nagle_check).
        let small_in_flight = self.peer.last_small > self.board.una();
        if !full && nagle && !self.board.is_empty() && small_in_flight {
            return None;
        }
        Some((end, fin))
    }

    #[inline(always)]
    pub(super) fn send_new(&mut self, now: Instant, end: u64, fin: bool) -> Transmission {
        let start = self.board.nxt();
        self.note_new(now, start, end, fin);
        Transmission { start, end, fin, retransmission: false }
    }

    #[inline(never)]
    fn note_new(&mut self, now: Instant, start: u64, end: u64, fin: bool) {
        let was_empty = self.board.is_empty();
        if was_empty {
            self.before_first(now);
        }
        let stamp = self.rate.stamp(now, was_empty);
        let number = self.board.numbers().1;
        self.board.push(end, fin, stamp);
        self.tell_sent(now, number, end, false);
        if end - start < u64::from(self.mss) {
            self.peer.last_small = end;
        }
        if end > self.board.una() + self.peer.snd_wnd {
            self.totals.beyond_window += 1;
        }
        self.on_sent(now, start, end);
        if was_empty || matches!(self.timer.due, Some((TimerKind::Probe | TimerKind::Persist, _)) | None) {
            if self.timer.is(TimerKind::Persist) {
                self.timer.due = None;
            }
            self.rearm_retransmission(now);
        }
    }

    #[inline(never)]
    pub(super) fn retransmit(&mut self, now: Instant, number: u32) -> Option<Transmission> {
        let idle = self.in_flight() == 0;
        let segment = self.board.get(number)?;
        let (start, end, fin) = (segment.start, segment.end, segment.mark.contains(Mark::FIN));
        let first = number == self.board.numbers().0;
        let stamp = self.rate.stamp(now, idle && self.board.packets_out() == 0);
        self.board.on_retransmitted(number, stamp);
        self.tell_sent(now, number, end, true);
        self.totals.segments_retransmitted += 1;
        self.totals.bytes_retransmitted += end - start;
        let tsval = self.timestamp(now);
        self.episode.undo.on_retransmitted(tsval);
        self.on_sent(now, start, end);
        // As Linux: retransmitting the first segment restarts the timer.
        if first && !self.timer.is(TimerKind::Reordering) {
            self.timer.set(TimerKind::Retransmission, now + self.rto());
        }
        Some(Transmission { start, end, fin, retransmission: true })
    }

    #[cold]
    fn send_forced(&mut self, now: Instant, forced: ForcedSegment, supply: Supply) -> Option<Transmission> {
        match forced {
            ForcedSegment::First => {
                let first = self.board.first()?;
                self.retransmit(now, first)
            }
            ForcedSegment::Lost => {
                let lost = self.board.next_lost()?;
                self.retransmit(now, lost)
            }
            ForcedSegment::Probe => self.send_probe(now, supply),
            ForcedSegment::Part => {
                let start = self.board.nxt();
                let data_end = supply.end - u64::from(supply.fin);
                let end = data_end.min(self.board.una() + self.peer.snd_wnd).min(start + u64::from(self.mss));
                (end > start).then(|| self.send_new(now, end, false))
            }
        }
    }

    fn on_sent(&mut self, now: Instant, start: u64, end: u64) {
        self.usage.on_sent();
        self.totals.segments_sent += 1;
        self.totals.bytes_sent += end - start;
        if self.episode.state.in_reduction() {
            self.control.reduction.on_sent(1);
        }
        let first = self.totals.segments_sent <= u64::from(self.config.initial_cwnd);
        self.pacer.on_sent(now, end - start, &mut self.control, first);
    }

    /// Returns a segment to retransmit that is not known to be lost.
    pub(super) fn poll_early_retransmission(&mut self, now: Instant) -> Option<Transmission> {
        if self.episode.state != CaState::Recovery { None } else { self.find_early_retransmission(now) }
    }

    #[inline(never)]
    fn find_early_retransmission(&mut self, now: Instant) -> Option<Transmission> {
        let may = self.detection.retransmits_early() && self.in_flight() < self.control.window.cwnd;
        if !may {
            return None;
        }
        let hole = self.next_seg.unreported_hole(&self.board);
        if hole.is_some() && !self.pacer.allows() {
            return None;
        }
        let number = match hole {
            Some(number) => number,
            None if self.pacer.allowance == 0 => return None,
            None => self.next_seg.rescue(&self.board, self.episode.high_seq)?,
        };
        self.retransmit(now, number)
    }
}
