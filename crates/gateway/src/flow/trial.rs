//! Finds out whether the server recovers from the radio's losses as well by itself.
//!
//! Losses that are repaired here stay hidden from the server, and meanwhile nothing is acknowledged for a round trip of
//! the radio. A sender that reduces its rate for each loss it hears of gains much by that. A sender that does not
//! (BBR's first version) only sees a longer path. With a hole in each round trip, and its window at twice what the path
//! holds, it has less than without help. Only a trial tells which of the two a server is. If the server is the limit
//! although holes are hidden all the time, the flow passes through. It goes on passing unless much less arrives.

use paceline_wire::{Duration, Instant, Rate};

/// Our choice: round trips before a trial, a cycle of BBR, in which the server was the limit and holes were hidden.
const ROUNDS: u32 = 8;
/// Our choice: round trips that do not count, until the server's own recovery has begun.
const SETTLE_ROUNDS: u32 = 4;
/// Our choice: less than three quarters of the rate with help is not worth it. Losses that the server hears of change
/// the rate by some percent (BBR), or halve it again and again (Reno, CUBIC).
const WORTH: (u64, u64) = (3, 4);
/// Our choice: a trial ends after two spans of eight round trips in a row with less than that. BBR sends next to
/// nothing for three round trips each ten seconds (draft-ietf-ccwg-bbr, Section 4.3.4). When one span with these ended
/// its trial, it had .87 to .93 of what it has without a gateway. With two spans it has .93 to .95 (100 Mbit/s, 200 ms,
/// 2 and 4 % loss). Less than half of the rate is no pause, and ends the trial after one span.
const POOR_SPANS: u32 = 2;
/// Our choice: a server that gave up its rate has its next trial after this time, which doubles each time.
const WAIT_MIN: Duration = Duration::from_secs(60);
const WAIT_MAX: Duration = Duration::from_secs(960);

/// What an ACK of the client shows.
#[derive(Clone, Copy, Debug)]
pub(super) struct Progress {
    pub(super) now: Instant,
    /// Acknowledged so far.
    pub(super) una: u64,
    /// Position after the newest byte from the server.
    pub(super) received: u64,
    /// Round trip of the radio, and that of the wired side.
    pub(super) rtt: Duration,
    pub(super) server_rtt: Duration,
    /// Right edge of the window shown to the server, and the length of the server's segments.
    pub(super) edge: u64,
    pub(super) segment: u64,
    /// Packets of the server wait here.
    pub(super) waits: bool,
    /// A hole is hidden from the server.
    pub(super) hides: bool,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
enum Phase {
    #[default]
    Watch,
    /// Data below this position is still repaired here.
    Closing(u64),
    Passing,
}

/// Some round trips, and in how many of their ACKs something was seen.
#[derive(Clone, Copy, Debug, Default, serde::Serialize, serde::Deserialize)]
struct Span {
    since: Instant,
    una: u64,
    rounds: u32,
    round_since: Instant,
    window_is_used: u32,
    waits: u32,
    hides: u32,
    acks: u32,
}

/// Right edge that the server had when it sent what comes now: it was shown a round trip of the wired side ago. Without
/// this, a server whose window moves with each departure never seemed to use it. CUBIC over 100 Mbit/s and 200 ms with
/// 1 % loss was taken for a server that recovers by itself. It gave up its rate, and had 34 of 49 Mbit/s.
#[derive(Clone, Copy, Debug, Default, serde::Serialize, serde::Deserialize)]
struct Edge {
    since: Instant,
    shown: u64,
    before: u64,
}

impl Edge {
    /// Returns an edge that is one or two of the server's round trips old.
    fn of_server(&mut self, progress: &Progress) -> u64 {
        if progress.now.saturating_since(self.since) >= progress.server_rtt {
            *self = Edge { since: progress.now, shown: progress.edge, before: self.shown };
        }
        self.before
    }
}

/// How a server sends, by its answers to ACKs for much data. A server that sends by the clock of ACKs (RFC 5681,
/// without pacing) answers with as much at once. A server that paces (draft-ietf-ccwg-bbr, Section 4.6.2) goes on as
/// before.
#[derive(Clone, Copy, Debug, Default, serde::Serialize, serde::Deserialize)]
struct Pacing {
    /// The newest such ACK.
    #[serde(default)]
    jump: Option<Jump>,
    paced: u32,
    bursts: u32,
}

/// An ACK for much data at once.
#[derive(Clone, Copy, Debug, serde::Serialize, serde::Deserialize)]
struct Jump {
    /// Begin and end of the time in which the answer comes if it comes at once.
    from: Instant,
    until: Instant,
    acked: u64,
    /// What had come before the answer.
    before: u64,
}

impl Pacing {
    /// Our choice: the answer is watched for an eighth of the radio's round trip. A server that paces then sends an
    /// eighth of a round trip's data, or a quarter more (BBR's gain). Only ACKs for four times that are watched: half
    /// of it is well above a pace. Data that comes in the server's round trip before the answer was sent earlier and is
    /// not counted. When it was counted, no ACK told anything where the wired side is as long as half of the radio. BBR
    /// had a quarter of its rate there.
    fn on_ack(&mut self, progress: &Progress, acked: u64, rate: Rate) {
        let Progress { now, received, rtt, server_rtt, .. } = *progress;
        match &mut self.jump {
            Some(jump) if now < jump.from => jump.before = received,
            Some(jump) if now >= jump.until => {
                let burst = received.saturating_sub(jump.before) >= jump.acked / 2;
                *(if burst { &mut self.bursts } else { &mut self.paced }) += 1;
                self.jump = None;
            }
            _ => {}
        }
        if acked > 0 && acked >= rate.bytes_in(rtt / 8) * 4 && !rate.is_zero() {
            let from = now + server_rtt;
            self.jump = Some(Jump { from, until: from + rtt / 8, acked, before: received });
        }
    }

    /// True if the server paces. Our choice: one answer may be chance, and one burst in five the end of a break.
    fn is_paced(&self) -> bool {
        self.paced > 4 * self.bursts && self.paced >= 2
    }
}

/// A trial of passing.
#[derive(Clone, Copy, Debug, Default, serde::Serialize, serde::Deserialize)]
pub(super) struct Trial {
    phase: Phase,
    span: Span,
    pacing: Pacing,
    /// Acknowledged by the ACK before.
    una: u64,
    /// The rate of the last round trips that were watched.
    rate: Rate,
    /// The rate with help.
    before: Rate,
    not_before: Instant,
    wait: Duration,
    #[serde(default)]
    edge: Edge,
    /// Spans in a row in which a server that passes had too little.
    #[serde(default)]
    poor: u32,
}

impl Trial {
    /// Returns the position from which on the server repairs.
    pub(super) fn repaired_to(&self) -> u64 {
        if let Phase::Closing(to) = self.phase { to } else { u64::MAX }
    }

    /// True if the flow is to pass.
    pub(super) fn passes(&self) -> bool {
        self.phase == Phase::Passing
    }

    pub(super) fn on_ack(&mut self, progress: &Progress) {
        let Progress { now, una, .. } = *progress;
        if let Phase::Closing(to) = self.phase {
            if una >= to {
                self.phase = Phase::Passing;
                self.restart(now, una);
            }
            return;
        }
        if self.una == 0 {
            self.una = una;
            self.restart(now, una);
        }
        let acked = una.saturating_sub(core::mem::replace(&mut self.una, una));
        self.pacing.on_ack(progress, acked, self.rate);
        let window_is_used = progress.received + 2 * progress.segment >= self.edge.of_server(progress);
        let span = &mut self.span;
        span.acks += 1;
        span.window_is_used += u32::from(window_is_used);
        span.waits += u32::from(progress.waits);
        span.hides += u32::from(progress.hides);
        if now.saturating_since(span.round_since) < progress.rtt + progress.server_rtt {
            return;
        }
        span.rounds += 1;
        span.round_since = now;
        match self.phase {
            Phase::Watch => self.watch(progress),
            _ => self.judge(now, una),
        }
    }

    fn watch(&mut self, progress: &Progress) {
        let Progress { now, una, received, .. } = *progress;
        let Span { since, una: from, rounds, window_is_used, waits, hides, acks, .. } = self.span;
        if rounds < ROUNDS {
            return;
        }
        self.rate = Rate::from_bytes_in(una.saturating_sub(from), now.saturating_since(since));
        // Our choice: a server is not the limit if it uses its whole window at three of four ACKs. Nor is it if its
        // packets wait here at half of them. A server that paces uses its whole window now and then, while a repair is
        // repeated.
        let is_limit = window_is_used * 4 <= acks * 3 && waits * 2 <= acks;
        let suits = is_limit && hides * 2 >= acks && self.pacing.is_paced();
        self.pacing = Pacing::default();
        if !suits || now < self.not_before {
            self.restart(now, una);
        } else {
            self.before = self.rate;
            self.phase = Phase::Closing(received);
        }
    }

    fn judge(&mut self, now: Instant, una: u64) {
        let Span { since, una: from, rounds, .. } = self.span;
        if rounds == SETTLE_ROUNDS {
            (self.span.since, self.span.una) = (now, una);
        } else if rounds >= SETTLE_ROUNDS + ROUNDS {
            let rate = Rate::from_bytes_in(una.saturating_sub(from), now.saturating_since(since));
            self.poor = if rate < self.before.mul_ratio(WORTH.0, WORTH.1) { self.poor + 1 } else { 0 };
            if self.poor >= POOR_SPANS || rate < self.before.mul_ratio(1, 2) {
                self.poor = 0;
                self.phase = Phase::Watch;
                self.wait = (self.wait * 2).clamp(WAIT_MIN, WAIT_MAX);
                self.not_before = now + self.wait;
            }
            self.restart(now, una);
            self.span.rounds = SETTLE_ROUNDS;
        }
    }

    fn restart(&mut self, now: Instant, una: u64) {
        self.span = Span { since: now, una, round_since: now, ..Span::default() };
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const RTT: Duration = Duration::from_millis(200);
    /// What the path holds, 20 Mbit/s x 200 ms.
    const BDP: u64 = 500_000;
    const SERVER_MS: u64 = 10;

    /// ACKs each millisecond from `from_ms` on, which stand still for a round trip and then jump, as with a hole in
    /// each. The server paces `rate` bytes a millisecond, or answers with as much at once when the ACK is there.
    fn run(trial: &mut Trial, from_ms: u64, to_ms: u64, paced: bool, rate: u64) {
        run_over(SERVER_MS, trial, from_ms, to_ms, paced, rate);
    }

    fn run_over(server_ms: u64, trial: &mut Trial, from_ms: u64, to_ms: u64, paced: bool, rate: u64) {
        for ms in from_ms..to_ms {
            let (jumps, left) = (ms / 200, ms % 200);
            let una = (1 + jumps) * rate * 200;
            let received =
                if paced { una + left * rate } else { una + rate * 200 * u64::from(left >= server_ms) };
            trial.on_ack(&progress(ms, server_ms, una, received));
        }
    }

    /// An ACK with a window that limits no server.
    fn progress(ms: u64, server_ms: u64, una: u64, received: u64) -> Progress {
        Progress {
            now: Instant::ZERO + Duration::from_millis(ms),
            una,
            received,
            rtt: RTT,
            server_rtt: Duration::from_millis(server_ms),
            edge: u64::MAX,
            segment: 1_448,
            waits: false,
            hides: true,
        }
    }

    #[test]
    fn a_server_that_paces_repairs_by_itself_after_eight_round_trips() {
        let mut trial = Trial::default();
        run(&mut trial, 1, 10_000, true, BDP / 200);
        assert!(trial.passes() && trial.repaired_to() == u64::MAX);
    }

    #[test]
    fn a_server_that_sends_by_the_clock_of_acks_does_not() {
        let mut trial = Trial::default();
        run(&mut trial, 1, 60_000, false, BDP / 200);
        assert!(!trial.passes());
    }

    #[test]
    fn both_are_known_behind_a_long_wired_side() {
        for paced in [true, false] {
            let mut trial = Trial::default();
            run_over(100, &mut trial, 1, 20_000, paced, BDP / 200);
            assert_eq!(trial.passes(), paced);
        }
    }

    #[test]
    fn one_that_gives_up_half_of_its_rate_has_help_again() {
        let mut trial = Trial::default();
        run(&mut trial, 1, 10_000, true, BDP / 200);
        let mut slower = trial;
        // The position goes on from where it was.
        run(&mut slower, 20_000, 30_000, true, BDP / 400);
        assert!(!slower.passes());
    }

    /// Whether a flow with a share of its rate still passes after 14 round trips (four to settle, one span) and 23
    /// (two).
    fn passes_with(share: f64) -> [bool; 2] {
        let mut trial = Trial::default();
        let (mut una, mut after) = (0, 0);
        let mut passed = [false; 2];
        for ms in 1..30_000 {
            after += u64::from(after > 0 || trial.passes());
            una += (BDP as f64 / 200.0 * if after > 0 { share } else { 1.0 }) as u64;
            trial.on_ack(&progress(ms, SERVER_MS, if after > 0 { una } else { una / BDP * BDP }, una));
            match after / (RTT.as_millis() + SERVER_MS) {
                14 => passed[0] = trial.passes(),
                23 => passed[1] = trial.passes(),
                _ => {}
            }
        }
        passed
    }

    #[test]
    fn less_than_three_quarters_ends_a_trial_after_two_spans_and_less_than_half_after_one() {
        assert_eq!(passes_with(0.9), [true, true]);
        assert_eq!(passes_with(0.6), [true, false]);
        assert_eq!(passes_with(0.4), [false, false]);
    }

    #[test]
    fn what_is_in_flight_at_the_change_is_still_repaired_here() {
        let mut trial = Trial { phase: Phase::Closing(1_000), ..Trial::default() };
        trial.on_ack(&progress(200, 200, 999, 5_000));
        assert!(!trial.passes() && trial.repaired_to() == 1_000);
        trial.on_ack(&progress(200, 200, 1_000, 5_000));
        assert!(trial.passes());
    }

    #[test]
    fn a_server_that_is_held_by_a_moving_window_does_not() {
        let mut trial = Trial::default();
        for ms in 1..20_000 {
            let una = (1 + ms / 200) * BDP;
            // It has sent all that it was shown when an ACK left for it; by now it is shown more.
            let received = BDP + ms * BDP / 200;
            let edge = received + SERVER_MS * BDP / 200;
            trial.on_ack(&Progress { edge, ..progress(ms, SERVER_MS, una, received) });
        }
        assert!(!trial.passes());
    }

    #[test]
    fn a_pause_of_three_round_trips_is_no_end() {
        let mut trial = Trial::default();
        let mut una = 0;
        for ms in 1..60_000 {
            let pauses = trial.passes() && ms % 10_000 < 600;
            una += if pauses { 0 } else { BDP / 200 };
            trial.on_ack(&progress(ms, SERVER_MS, una / BDP * BDP, una));
            assert!(ms < 10_000 || trial.passes(), "{ms}");
        }
    }
}
