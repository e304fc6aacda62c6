//! Timers of the connection as a whole.

use paceline_wire::Instant;

use super::{CloseReason, Connection, State};

impl Connection {
    /// Handles the timers that have expired at `now`. Early or repeated calls do nothing.
    pub fn handle_timeout(&mut self, now: Instant) {
        match self.state {
            State::Closed => return,
            State::TimeWait => {
                if self.timers.time_wait.is_some_and(|at| at <= now) {
                    self.finish(CloseReason::Finished);
                }
            }
            State::SynSent | State::SynReceived => {
                if !self.handshake.on_timeout(now, self.config.syn_retries) {
                    self.finish(CloseReason::TimedOut);
                }
                return;
            }
            _ => self.on_sender_timeout(now),
        }
        self.receiver.acks.on_timeout(now);
        if self.keep_alive_at().is_some_and(|at| at <= now) {
            self.on_keep_alive(now);
        }
    }

    /// Time at which [`handle_timeout`](Self::handle_timeout) or [`poll_transmit`](Self::poll_transmit) has something
    /// to do next. `None` if only a packet or the application can change that.
    pub fn poll_timeout(&self) -> Option<Instant> {
        match self.state {
            State::Closed => None,
            State::SynSent | State::SynReceived => match self.handshake.due {
                true => Some(Instant::ZERO),
                false => self.handshake.timer,
            },
            State::TimeWait => self.timers.time_wait,
            _ => earliest([
                self.sender.timeout(),
                self.receiver.acks.timeout(),
                if self.sender.is_idle() { None } else { self.sender.departure(self.supply(false)) },
                self.keep_alive_at(),
            ]),
        }
    }

    /// The caller stops polling before nothing is left, because the device below has no room (Linux
    /// tcp_small_queue_check). Only what has left counts as use of the window.
    pub fn pause(&mut self, now: Instant) {
        let supply = self.supply(false);
        self.sender.pause(now, supply);
    }

    fn on_sender_timeout(&mut self, now: Instant) {
        let waiting = self.supply(false).end > self.sender.board.nxt();
        if !self.sender.on_timeout(now, waiting) {
            self.finish(CloseReason::TimedOut);
        }
    }

    /// Returns when to probe an idle peer (RFC 9293, Section 3.8.4; Linux tcp_keepalive_timer).
    fn keep_alive_at(&self) -> Option<Instant> {
        let config = self.config.keep_alive?;
        if !self.sender.board.is_empty() {
            return None;
        }
        Some(match self.timers.keep_alive_sent {
            Some(sent) => sent + config.interval,
            None => self.last_received + config.time,
        })
    }

    fn on_keep_alive(&mut self, now: Instant) {
        let Some(config) = self.config.keep_alive else { return };
        if self.timers.keep_alive_probes >= config.probes {
            self.output.abort();
            self.finish(CloseReason::TimedOut);
            return;
        }
        self.timers.keep_alive_probes += 1;
        self.timers.keep_alive_sent = Some(now);
        self.output.keep_alive = true;
    }
}

#[inline]
fn earliest<const N: usize>(times: [Option<Instant>; N]) -> Option<Instant> {
    // Without branches: the earliest timer changes with every packet, so a branch would be mispredicted.
    const NEVER: Instant = Instant::from_nanos(u64::MAX);
    let first = times.into_iter().fold(NEVER, |first, time| first.min(time.unwrap_or(NEVER)));
    (first != NEVER).then_some(first)
}
