//! Veno (Fu and Liew 2003, as in Linux).

use paceline_wire::Duration;

use super::vegas::Rtts;
use super::{AckSample, CaState, CongestionControl, CongestionEvent, CongestionName, Window, reno};

/// Reno that treats a loss as random if the queue was short.
#[derive(Clone, Debug, serde::Serialize, serde::Deserialize)]
pub struct Veno {
    doing_veno_now: bool,
    #[serde(flatten)]
    rtts: Rtts,
    /// True if the next full window of ACKs raises cwnd.
    inc: bool,
    /// The queue in half packets.
    diff: u64,
}

/// Three packets, in halves (Linux beta, V_PARAM_SHIFT).
const BETA: u64 = 3 << V_PARAM_SHIFT;
const V_PARAM_SHIFT: u32 = 1;

impl Default for Veno {
    fn default() -> Self {
        Veno { doing_veno_now: true, rtts: Rtts::default(), inc: true, diff: 0 }
    }
}

impl Veno {
    fn grow(&mut self, sample: &AckSample, mut window: Window) -> Window {
        let (rtt, base) = self.rtts.micros();
        let cwnd = u64::from(window.cwnd) << V_PARAM_SHIFT;
        self.diff = cwnd - (cwnd * base / rtt).min(cwnd);
        let mut acked = sample.delivered;
        if window.in_slow_start() {
            acked = window.slow_start(acked);
        }
        if acked == 0 {
            return window;
        }
        if self.diff < BETA {
            window.additive_increase(window.cwnd, acked);
        } else if window.cwnd_cnt >= window.cwnd {
            // The path is full: grow every other round trip.
            if self.inc && window.cwnd < window.clamp {
                window.cwnd += 1;
            }
            self.inc = !self.inc;
            window.cwnd_cnt = 0;
        } else {
            window.cwnd_cnt += acked;
        }
        window.cwnd = window.cwnd.max(2).min(window.clamp);
        window
    }
}

impl CongestionControl for Veno {
    fn name(&self) -> CongestionName {
        CongestionName::Veno
    }

    fn on_measurement(&mut self, sample: &AckSample, window: Window) -> Window {
        self.rtts.take(sample);
        window
    }

    fn on_ack(&mut self, sample: &AckSample, window: Window) -> Window {
        if !self.doing_veno_now {
            return reno::grow(sample, window);
        }
        if !sample.cwnd_limited {
            return window;
        }
        let window = match self.rtts.count <= 2 || self.rtts.min == Duration::MAX {
            true => reno::grow(sample, window),
            false => self.grow(sample, window),
        };
        // Linux forgets the shortest RTT with every ACK, but not the number of samples.
        self.rtts.min = Duration::MAX;
        window
    }

    fn ssthresh(&mut self, window: Window) -> u32 {
        match self.diff < BETA {
            true => ((u64::from(window.cwnd) * 4 / 5) as u32).max(2),
            false => reno::half(window),
        }
    }

    fn on_state(&mut self, state: CaState, _sample: &AckSample, window: Window) -> Window {
        self.doing_veno_now = state == CaState::Open;
        if self.doing_veno_now {
            self.rtts.min = Duration::MAX;
        }
        window
    }

    fn on_event(&mut self, event: CongestionEvent, _sample: &AckSample, window: Window) -> Window {
        if matches!(event, CongestionEvent::WindowRestart | CongestionEvent::TransmissionStart) {
            // tcp_veno_init leaves cntrtt and diff as they are.
            let rtts = Rtts { count: self.rtts.count, ..Rtts::default() };
            *self = Veno { rtts, diff: self.diff, ..Veno::default() };
        }
        window
    }
}

#[cfg(test)]
mod tests {
    use super::super::testing::Rounds;
    use super::*;

    #[test]
    fn a_loss_with_a_short_queue_costs_a_fifth() {
        let mut veno = Veno::default();
        let mut rounds = Rounds::new(100);
        rounds.window.ssthresh = 50;
        rounds.round(&mut veno, Duration::from_millis(100), 1);
        rounds.lose(&mut veno);
        assert_eq!(rounds.window.cwnd, 80);
    }

    #[test]
    fn a_loss_with_a_long_queue_costs_half() {
        let mut veno = Veno::default();
        let mut rounds = Rounds::new(100);
        rounds.window.ssthresh = 50;
        rounds.round(&mut veno, Duration::from_millis(100), 1);
        rounds.round(&mut veno, Duration::from_millis(120), 1);
        let cwnd = rounds.window.cwnd;
        rounds.lose(&mut veno);
        assert_eq!(rounds.window.cwnd, cwnd / 2);
    }
}
