//! Rounds of sending: how much of the windows is used, what limits the sender, and when the tail loss probe is
//! scheduled.

use paceline_wire::{Duration, Instant};

use super::Sender;
use super::messages::Supply;
use super::usage::Limit;
use crate::congestion::{CaState, CongestionEvent};

impl Sender {
    /// Schedules the tail loss probe after a round of sending. The pacer may end a round, too.
    pub(super) fn probe_after_sending(&mut self, now: Instant) {
        if core::mem::take(&mut self.usage.unprobed) {
            self.schedule_probe(now, false);
        }
    }

    /// The allowance stops the sender although the windows have room. The round continues when there is allowance
    /// again.
    #[cold]
    pub(super) fn pause_round(&mut self, now: Instant) {
        self.probe_after_sending(now);
        if core::mem::take(&mut self.usage.sent_in_round) {
            // Our choice: cwnd may grow to twice the used window, as in slow start (tcp_is_cwnd_limited). So cwnd does
            // not bind when the link gets faster. It grows no further, so that it binds when nothing else does (RFC
            // 7661).
            let packets_out = self.board.packets_out();
            let limited = self.control.window.cwnd < packets_out.saturating_mul(2);
            if limited || self.board.una() >= self.usage.cwnd_usage_seq {
                self.usage.note(limited, packets_out, self.board.nxt());
            }
            self.usage.cwnd_used = 0;
            self.usage.stamp = now;
        }
    }

    /// The caller stops polling although more data may leave.
    pub(crate) fn pause(&mut self, now: Instant, supply: Supply) {
        if core::mem::take(&mut self.usage.sent_in_round) {
            self.validate_window(now, self.in_flight() >= self.control.window.cwnd, supply);
        }
        if supply.end > self.board.nxt() && self.board.is_empty() {
            self.wait_for_device(now);
        }
    }

    /// Ends a round of sending: notes whether the window was used and what limited the sender.
    #[inline(never)]
    pub(super) fn finish_round(&mut self, now: Instant, supply: Supply) {
        self.usage.round_open = false;
        let sent = core::mem::take(&mut self.usage.sent_in_round);
        let in_flight = self.in_flight();
        let cwnd_limited = in_flight >= self.control.window.cwnd;
        if sent || cwnd_limited {
            self.validate_window(now, cwnd_limited, supply);
        }
        self.probe_after_sending(now);
        let unsent = supply.end > self.board.nxt();
        let window_limited = unsent && !cwnd_limited && self.next_full_exceeds_window(supply);
        if unsent && self.board.is_empty() {
            self.check_persist(now);
        }
        let starved = !unsent && supply.blocked && !cwnd_limited;
        let repaired = self.board.lost_out() <= self.board.retrans_out();
        if !unsent && !cwnd_limited && !supply.fin && repaired {
            self.rate.on_app_limited(in_flight);
        }
        let limit = match (self.board.is_empty() && !unsent, window_limited, starved) {
            (_, true, _) => Some(Limit::ReceiveWindow),
            (_, _, true) => Some(Limit::SendBuffer),
            (true, ..) => None,
            _ => Some(Limit::Busy),
        };
        self.usage.set_limit(now, limit);
        self.note_stall(starved && self.has_room());
    }

    fn next_full_exceeds_window(&self, supply: Supply) -> bool {
        let next = supply.end.min(self.board.nxt() + u64::from(self.peer.segment_max(self.mss)));
        next > self.window_end()
    }

    /// True if the windows have room for another full segment.
    fn has_room(&self) -> bool {
        self.board.nxt() + u64::from(self.mss) <= self.window_end()
    }

    /// Notes an application stall (OR, Definition 1): the windows have room, no data is unsent, and the application was
    /// not woken.
    fn note_stall(&mut self, stalled: bool) {
        if stalled && !self.usage.stalled {
            self.totals.stalls += 1;
        }
        self.usage.stalled = stalled;
        if stalled && self.episode.state == CaState::Recovery && !self.usage.recovery_stalled {
            self.usage.recovery_stalled = true;
            self.totals.stalled_recoveries += 1;
        }
    }

    /// Notes how much of the window was used (Linux tcp_cwnd_validate, its form of RFC 7661).
    fn validate_window(&mut self, now: Instant, limited: bool, supply: Supply) {
        let packets_out = self.board.packets_out();
        let usage = &mut self.usage;
        if self.board.una() >= usage.cwnd_usage_seq
            || limited
            || (!usage.is_cwnd_limited && packets_out > usage.max_packets_out)
        {
            usage.note(limited, packets_out, self.board.nxt());
        }
        if usage.is_cwnd_limited(self.control.window) {
            usage.cwnd_used = 0;
            usage.stamp = now;
            return;
        }
        usage.cwnd_used = usage.cwnd_used.max(packets_out);
        let idle = now.saturating_since(usage.stamp) >= self.rto();
        if self.config.slow_start_after_idle && idle && !self.control.is_owned() {
            self.application_limited(now, supply);
        }
    }

    /// As Linux, when the application is the limit: moves cwnd half way down to the used window.
    #[cold]
    fn application_limited(&mut self, now: Instant, supply: Supply) {
        if self.episode.state == CaState::Open && !supply.blocked {
            let used = self.usage.cwnd_used.max(self.config.initial_cwnd);
            if used < self.control.window.cwnd {
                self.control.window.ssthresh = self.current_ssthresh();
                self.control.window.cwnd = (self.control.window.cwnd + used) / 2;
            }
            self.usage.cwnd_used = 0;
        }
        self.usage.stamp = now;
    }

    /// Prepares the first packet after an idle time (tcp_event_data_sent, tcp_slow_start_after_idle_check).
    #[cold]
    pub(super) fn before_first(&mut self, now: Instant) {
        let idle = now.saturating_since(self.pacer.last_send);
        if self.config.slow_start_after_idle
            && self.totals.segments_sent > 0
            && !self.control.is_owned()
            && idle > self.rto()
        {
            self.restart_window(now, idle);
        }
        self.congestion_event(now, CongestionEvent::TransmissionStart);
    }

    /// Restarts after idle (RFC 5681, Section 4.1). As Linux tcp_cwnd_restart: halves cwnd for every timeout that has
    /// passed.
    fn restart_window(&mut self, now: Instant, idle: Duration) {
        let restart = self.config.initial_cwnd.min(self.control.window.cwnd);
        self.congestion_event(now, CongestionEvent::WindowRestart);
        self.control.window.ssthresh = self.current_ssthresh();
        let (mut left, rto) = (idle, self.rto());
        while left > rto && self.control.window.cwnd > restart {
            left -= rto;
            self.control.window.cwnd >>= 1;
        }
        self.control.window.cwnd = self.control.window.cwnd.max(restart);
        self.usage.stamp = now;
        self.usage.cwnd_used = 0;
    }
}
