//! RTTmin of DRWA, which follows changes of the path.
//!
//! Algorithm 3 keeps the shortest RTT for ever. After a hand-over the new path's RTT alone may exceed lambda x RTTmin.
//! This would shrink the window round by round, whatever the link could carry. RTTmin would also stay too long in two
//! cases: the flow starts in another flow's queue, or its path becomes shorter behind its own queue. A receiver that
//! only observes cannot tell a longer path from a longer queue. So it probes: for a moment it offers half of the data
//! that fills one RTTmin at the present rate. If there was a queue, it drains. The RTT of data sent then is the path's.

use paceline_wire::{Duration, Instant};

/// RTTmin, and the probes that keep it true.
#[derive(Clone, Copy, Debug, serde::Serialize, serde::Deserialize)]
pub(super) struct BaseRtt {
    rtt_min: Duration,
    /// When an RTT as short as RTTmin, or nearly, was last seen.
    seen_at: Instant,
    /// Rounds in a row whose RTT was above lambda x RTTmin.
    above: u32,
    probe: Option<Probe>,
}

/// A probe: for a while the window is small.
#[derive(Clone, Copy, Debug, serde::Serialize, serde::Deserialize)]
struct Probe {
    /// The window that is offered.
    window: u64,
    /// When no more than that was outstanding.
    drained: Option<Instant>,
    shortest: Duration,
    /// The probe is given up then, because the peer may have nothing to send.
    give_up: Instant,
}

/// Our choice: RTTmin is trusted as long as BBR trusts its shortest RTT (draft-ietf-ccwg-bbr, MinRTTFilterLen). On long
/// paths it is trusted for this many RTTs. A probe leaves the link idle for about one RTT, so for a hundredth of the
/// time at most.
const TRUSTED: Duration = Duration::from_secs(10);
const TRUSTED_RTTS: u64 = 100;
/// Our choice: an RTT within an eighth of RTTmin confirms it.
const NEAR: u64 = 8;
/// Our choice: DRWA holds the RTT at lambda x RTTmin. More rounds above it than this show that DRWA cannot.
const ABOVE_MAX: u32 = 4;
/// Our choice: after this many RTTs without an answer none will come.
const PATIENCE: u64 = 8;

impl BaseRtt {
    pub(super) fn new() -> Self {
        BaseRtt { rtt_min: Duration::MAX, seen_at: Instant::ZERO, above: 0, probe: None }
    }

    /// RTTmin; [`Duration::MAX`] before the first sample.
    pub(super) fn get(&self) -> Duration {
        self.rtt_min
    }

    /// The window to offer during a probe.
    pub(super) fn probe_window(&self) -> Option<u64> {
        self.probe.map(|probe| probe.window)
    }

    /// Takes RTTest, once a round (Algorithm 3: if RTTest < RTTmin then RTTmin is RTTest).
    pub(super) fn on_round(&mut self, now: Instant, rtt_est: Duration, lambda_percent: u32) {
        if rtt_est <= self.rtt_min + self.rtt_min / NEAR {
            self.seen_at = now;
        }
        self.rtt_min = self.rtt_min.min(rtt_est);
        let target = self.rtt_min.mul_ratio(u64::from(lambda_percent), 100);
        self.above = if rtt_est > target { self.above + 1 } else { 0 };
    }

    /// True if a probe should check RTTmin.
    pub(super) fn is_doubtful(&self, now: Instant) -> bool {
        self.probe.is_none()
            && (self.above > ABOVE_MAX || now.saturating_since(self.seen_at) > self.trusted())
    }

    fn trusted(&self) -> Duration {
        if self.rtt_min == Duration::MAX { TRUSTED } else { TRUSTED.max(self.rtt_min * TRUSTED_RTTS) }
    }

    /// Starts a probe. `flight` is the data that arrives in one RTT.
    pub(super) fn probe(&mut self, now: Instant, rtt_est: Duration, flight: u64, floor: u64) {
        let one_rtt_min = ratio(flight, self.rtt_min, rtt_est);
        self.probe = Some(Probe {
            // Our choice: half, so that one probe corrects an RTTmin of up to twice the true one.
            window: (one_rtt_min / 2).max(floor),
            drained: None,
            shortest: Duration::MAX,
            give_up: now + rtt_est * PATIENCE,
        });
    }

    /// Takes an RTT sample. Returns true if it answers the probe.
    pub(super) fn on_sample(&mut self, now: Instant, rtt: Duration) -> bool {
        let Some(probe) = &mut self.probe else { return false };
        probe.shortest = probe.shortest.min(rtt);
        let answered = probe.drained.is_some_and(|drained| now - rtt >= drained);
        if answered {
            self.rtt_min = probe.shortest;
            self.end(now);
        }
        answered
    }

    /// `bytes` are outstanding at most. Returns true if the probe is given up.
    pub(super) fn on_outstanding(&mut self, now: Instant, bytes: u64) -> bool {
        let Some(probe) = &mut self.probe else { return false };
        if probe.drained.is_none() && bytes <= probe.window {
            probe.drained = Some(now);
        }
        let over = now > probe.give_up;
        if over {
            self.end(now);
        }
        over
    }

    fn end(&mut self, now: Instant) {
        self.probe = None;
        self.above = 0;
        self.seen_at = now;
    }
}

/// `bytes` x `part` / `whole`.
pub(super) fn ratio(bytes: u64, part: Duration, whole: Duration) -> u64 {
    let scaled = u128::from(bytes) * u128::from(part.as_nanos()) / u128::from(whole.as_nanos().max(1));
    u64::try_from(scaled).unwrap_or(u64::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(ms: u64) -> Instant {
        Instant::ZERO + Duration::from_millis(ms)
    }

    const fn ms(ms: u64) -> Duration {
        Duration::from_millis(ms)
    }

    /// Five rounds of four times the RTT start a probe. The RTT after the queue has drained shows whether there was a
    /// queue.
    #[test]
    fn a_longer_path_is_told_from_a_queue() {
        for (answer, expected) in [(400, 400), (101, 101)] {
            let mut base = BaseRtt::new();
            base.on_round(at(100), ms(100), 300);
            for round in 1..=4 {
                base.on_round(at(100 + 400 * round), ms(400), 300);
                assert!(!base.is_doubtful(at(100 + 400 * round)));
            }
            base.on_round(at(2_100), ms(400), 300);
            assert!(base.is_doubtful(at(2_100)));
            base.probe(at(2_100), ms(400), 100_000, 5_000);
            assert_eq!(base.probe_window(), Some(12_500));
            // Not drained yet: this data was sent before.
            assert!(!base.on_sample(at(2_200), ms(400)));
            assert!(!base.on_outstanding(at(2_300), 12_500));
            assert!(!base.on_sample(at(2_310), ms(400)));
            assert!(base.on_sample(at(2_700), ms(answer)));
            assert_eq!((base.get(), base.probe_window()), (ms(expected), None));
        }
    }

    #[test]
    fn a_peer_with_nothing_to_send_is_not_waited_for() {
        let mut base = BaseRtt::new();
        base.on_round(at(0), ms(100), 300);
        assert!(!base.is_doubtful(at(10_000)) && base.is_doubtful(at(10_001)));
        base.probe(at(10_001), ms(100), 10_000, 0);
        assert!(!base.on_outstanding(at(10_100), 0) && base.on_outstanding(at(10_900), 0));
        assert_eq!((base.get(), base.probe_window()), (ms(100), None));
    }
}
