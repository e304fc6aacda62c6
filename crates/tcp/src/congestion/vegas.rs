//! Vegas (Brakmo and Peterson 1995, as in Linux).

use paceline_wire::Duration;

use super::{
    AckSample, CaState, CongestionControl, CongestionEvent, CongestionName, Window, current_ssthresh, reno,
};

/// Keeps two to four packets in the queue, judged once per round trip.
#[derive(Clone, Debug, serde::Serialize, serde::Deserialize)]
pub struct Vegas {
    doing_vegas_now: bool,
    beg_snd_nxt: u64,
    #[serde(flatten)]
    rtts: Rtts,
}

/// RTTs of a round, and the shortest of all (Linux cntRTT, minRTT, baseRTT). Veno uses them, too.
#[derive(Clone, Copy, Debug, serde::Serialize, serde::Deserialize)]
pub(super) struct Rtts {
    #[serde(rename = "cnt_rtt")]
    pub(super) count: u32,
    #[serde(rename = "min_rtt")]
    pub(super) min: Duration,
    #[serde(rename = "base_rtt")]
    pub(super) base: Duration,
}

impl Default for Rtts {
    fn default() -> Self {
        Rtts { count: 0, min: Duration::MAX, base: Duration::MAX }
    }
}

impl Rtts {
    pub(super) fn take(&mut self, sample: &AckSample) {
        if let Some(rtt) = sample.rtt {
            let rtt = rtt + Duration::from_micros(1);
            self.base = self.base.min(rtt);
            self.min = self.min.min(rtt);
            self.count += 1;
        }
    }

    /// The shortest RTT of the round and the shortest of all, in microseconds.
    pub(super) fn micros(&self) -> (u64, u64) {
        (self.min.as_micros().max(1), self.base.as_micros().max(1))
    }
}

/// With fewer packets than this in the queue, the window grows (Linux alpha).
const ALPHA: u64 = 2;
/// With more, it shrinks (Linux beta).
const BETA: u64 = 4;
/// With more, slow start ends (Linux gamma).
const GAMMA: u64 = 1;

impl Default for Vegas {
    fn default() -> Self {
        Vegas { doing_vegas_now: true, beg_snd_nxt: 0, rtts: Rtts::default() }
    }
}

impl Vegas {
    fn enable(&mut self, nxt: u64) {
        self.doing_vegas_now = true;
        self.beg_snd_nxt = nxt;
        self.next_round();
    }

    fn next_round(&mut self) {
        self.rtts = Rtts { base: self.rtts.base, ..Rtts::default() };
    }

    /// Once per round trip: compare the expected rate with the actual one.
    fn judge(&self, sample: &AckSample, mut window: Window) -> Window {
        let (rtt, base) = self.rtts.micros();
        let cwnd = u64::from(window.cwnd);
        let target_cwnd = (cwnd * base / rtt) as u32;
        let diff = cwnd * rtt.saturating_sub(base) / base;
        if window.in_slow_start() {
            if diff > GAMMA {
                window.cwnd = window.cwnd.min(target_cwnd + 1);
                window.ssthresh = window.ssthresh.min(window.cwnd);
            } else {
                window.slow_start(sample.delivered);
            }
        } else if diff > BETA {
            window.cwnd -= 1;
            window.ssthresh = window.ssthresh.min(window.cwnd);
        } else if diff < ALPHA {
            window.cwnd += 1;
        }
        window.cwnd = window.cwnd.max(2).min(window.clamp);
        window.ssthresh = current_ssthresh(sample.state, window);
        window
    }
}

impl CongestionControl for Vegas {
    fn name(&self) -> CongestionName {
        CongestionName::Vegas
    }

    fn on_measurement(&mut self, sample: &AckSample, window: Window) -> Window {
        self.rtts.take(sample);
        window
    }

    fn on_ack(&mut self, sample: &AckSample, mut window: Window) -> Window {
        if !self.doing_vegas_now {
            return reno::grow(sample, window);
        }
        if sample.una > self.beg_snd_nxt {
            self.beg_snd_nxt = sample.nxt;
            // Two samples may both be of delayed ACKs.
            window = match self.rtts.count <= 2 {
                true => reno::grow(sample, window),
                false => self.judge(sample, window),
            };
            self.next_round();
        } else if window.in_slow_start() {
            window.slow_start(sample.delivered);
        }
        window
    }

    fn ssthresh(&mut self, window: Window) -> u32 {
        reno::half(window)
    }

    fn on_state(&mut self, state: CaState, sample: &AckSample, window: Window) -> Window {
        match state {
            CaState::Open => self.enable(sample.nxt),
            _ => self.doing_vegas_now = false,
        }
        window
    }

    fn on_event(&mut self, event: CongestionEvent, sample: &AckSample, window: Window) -> Window {
        if matches!(event, CongestionEvent::WindowRestart | CongestionEvent::TransmissionStart) {
            self.rtts.base = Duration::MAX;
            self.enable(sample.nxt);
        }
        window
    }
}

#[cfg(test)]
mod tests {
    use super::super::testing::Rounds;
    use super::*;

    #[test]
    fn the_queue_is_kept_between_alpha_and_beta() {
        let mut vegas = Vegas::default();
        let mut rounds = Rounds::new(50);
        rounds.window.ssthresh = 40;
        // 100 packets fill the path; the others wait.
        for _ in 0..200 {
            let rtt = Duration::from_micros(1_000 * u64::from(rounds.window.cwnd.max(100)));
            rounds.round(&mut vegas, rtt, 2);
        }
        assert!((102..=105).contains(&rounds.window.cwnd), "{}", rounds.window.cwnd);
    }
}
