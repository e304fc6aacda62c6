//! Reno (RFC 5681, as in Linux).

use super::{AckSample, CongestionControl, CongestionName, Window};

/// Slow start, then one packet per round trip; half the window after a loss.
#[derive(Clone, Copy, Debug, Default, serde::Serialize, serde::Deserialize)]
pub struct Reno;

impl CongestionControl for Reno {
    fn name(&self) -> CongestionName {
        CongestionName::Reno
    }

    fn on_ack(&mut self, sample: &AckSample, window: Window) -> Window {
        grow(sample, window)
    }

    fn ssthresh(&mut self, window: Window) -> u32 {
        half(window)
    }
}

/// Linux tcp_reno_cong_avoid. An unused window does not grow (RFC 7661, Section 4.3).
pub(super) fn grow(sample: &AckSample, mut window: Window) -> Window {
    if !sample.cwnd_limited {
        return window;
    }
    let mut acked = sample.delivered;
    if window.in_slow_start() {
        acked = window.slow_start(acked);
        if acked == 0 {
            return window;
        }
    }
    window.additive_increase(window.cwnd, acked);
    window
}

/// Linux tcp_reno_ssthresh (RFC 5681, Section 3.1, Eq. (4)).
pub(super) fn half(window: Window) -> u32 {
    (window.cwnd >> 1).max(2)
}

#[cfg(test)]
mod tests {
    use super::super::testing::Rounds;
    use super::*;
    use paceline_wire::Duration;

    #[test]
    fn slow_start_doubles_and_avoidance_adds_one() {
        let mut rounds = Rounds::new(10);
        let rtt = Duration::from_millis(100);
        rounds.round(&mut Reno, rtt, 2);
        assert_eq!(rounds.window.cwnd, 20);
        rounds.lose(&mut Reno);
        assert_eq!((rounds.window.cwnd, rounds.window.ssthresh), (10, 10));
        rounds.round(&mut Reno, rtt, 2);
        assert_eq!(rounds.window.cwnd, 11);
    }

    #[test]
    fn a_window_that_is_not_used_does_not_grow() {
        let mut rounds = Rounds::new(10);
        rounds.sample.cwnd_limited = false;
        rounds.round(&mut Reno, Duration::from_millis(100), 2);
        assert_eq!(rounds.window.cwnd, 10);
    }
}
