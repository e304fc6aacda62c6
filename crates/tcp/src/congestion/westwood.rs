//! Westwood+ (Mascolo and Grieco, as in Linux).

use paceline_wire::{Duration, Instant};

use super::{AckSample, CongestionControl, CongestionEvent, CongestionName, Window, reno};

/// Reno whose window after a loss is the bandwidth times the shortest RTT. Fields as in Linux's struct westwood.
#[derive(Clone, Debug, serde::Serialize, serde::Deserialize)]
pub struct Westwood {
    /// Bytes per jiffy, filtered once.
    bw_ns_est: u64,
    /// Filtered twice.
    bw_est: u64,
    rtt_win_sx: u64,
    bk: u64,
    snd_una: u64,
    accounted: u64,
    rtt: u64,
    rtt_min: u64,
    reset_rtt_min: bool,
    first_ack: bool,
    mss: u64,
}

/// Linux counts time in jiffies here, so its estimates are coarse. Our choice: HZ = 250, as most distributions have.
const JIFFY: Duration = Duration::from_millis(4);
/// TCP_WESTWOOD_RTT_MIN: the shortest time over which bandwidth is measured, 50 ms.
const RTT_MIN: u64 = 12;
/// TCP_WESTWOOD_INIT_RTT: 20 s.
const INIT_RTT: u64 = 5_000;

impl Default for Westwood {
    fn default() -> Self {
        Westwood {
            bw_ns_est: 0,
            bw_est: 0,
            rtt_win_sx: 0,
            bk: 0,
            snd_una: 0,
            accounted: 0,
            rtt: INIT_RTT,
            rtt_min: INIT_RTT,
            reset_rtt_min: true,
            first_ack: true,
            mss: 0,
        }
    }
}

impl Westwood {
    /// Takes a bandwidth sample, at most once per RTT.
    fn update_window(&mut self, now: Instant, una: u64) {
        let now = now.as_nanos() / JIFFY.as_nanos();
        if self.first_ack {
            self.snd_una = una;
            self.rtt_win_sx = now;
            self.first_ack = false;
        }
        let delta = now.saturating_sub(self.rtt_win_sx);
        if self.rtt > 0 && delta > self.rtt.max(RTT_MIN) {
            self.filter(delta);
            self.bk = 0;
            self.rtt_win_sx = now;
        }
    }

    /// The filter, as Linux has it: seven parts old, one part new, twice.
    fn filter(&mut self, delta: u64) {
        let sample = self.bk / delta;
        if self.bw_ns_est == 0 && self.bw_est == 0 {
            self.bw_ns_est = sample;
            self.bw_est = sample;
        } else {
            self.bw_ns_est = (7 * self.bw_ns_est + sample) >> 3;
            self.bw_est = (7 * self.bw_est + self.bw_ns_est) >> 3;
        }
    }

    /// Bytes that left the network, each counted once. Duplicate ACKs are included.
    fn acked_count(&mut self, una: u64) -> u64 {
        let mut cumul_ack = una.saturating_sub(self.snd_una);
        if cumul_ack == 0 {
            self.accounted += self.mss;
            cumul_ack = self.mss;
        }
        if cumul_ack > self.mss {
            if self.accounted >= cumul_ack {
                self.accounted -= cumul_ack;
                cumul_ack = self.mss;
            } else {
                cumul_ack -= self.accounted;
                self.accounted = 0;
            }
        }
        self.snd_una = una;
        cumul_ack
    }

    /// The bandwidth-delay product in packets, with the shortest RTT; at least two.
    fn bw_rttmin(&self) -> u32 {
        let packets = self.bw_est * self.rtt_min / self.mss.max(1);
        u32::try_from(packets).unwrap_or(u32::MAX).max(2)
    }
}

impl CongestionControl for Westwood {
    fn name(&self) -> CongestionName {
        CongestionName::Westwood
    }

    fn on_measurement(&mut self, sample: &AckSample, window: Window) -> Window {
        self.mss = u64::from(sample.mss);
        self.update_window(sample.now, sample.una);
        self.bk += match sample.kind.slow_path {
            true => self.acked_count(sample.una),
            false => {
                let acked = sample.una.saturating_sub(self.snd_una);
                self.snd_una = sample.una;
                acked
            }
        };
        self.rtt_min = if self.reset_rtt_min { self.rtt } else { self.rtt.min(self.rtt_min) };
        self.reset_rtt_min = false;
        // The RTT of this ACK counts from the next one on: Linux learns it after it has updated the estimates.
        if let Some(rtt) = sample.rtt {
            self.rtt = rtt.as_nanos().div_ceil(JIFFY.as_nanos());
        }
        window
    }

    fn on_ack(&mut self, sample: &AckSample, window: Window) -> Window {
        reno::grow(sample, window)
    }

    fn ssthresh(&mut self, window: Window) -> u32 {
        reno::half(window)
    }

    fn on_event(&mut self, event: CongestionEvent, _sample: &AckSample, mut window: Window) -> Window {
        match event {
            CongestionEvent::ReductionComplete => {
                window.ssthresh = self.bw_rttmin();
                window.cwnd = window.ssthresh;
            }
            CongestionEvent::Timeout => {
                window.ssthresh = self.bw_rttmin();
                self.reset_rtt_min = true;
            }
            _ => {}
        }
        window
    }
}

#[cfg(test)]
mod tests {
    use super::super::testing::Rounds;
    use super::*;

    #[test]
    fn the_window_after_a_loss_is_what_the_path_holds() {
        let mut westwood = Westwood::default();
        let mut rounds = Rounds::new(100);
        rounds.window.ssthresh = 50;
        let rtt = Duration::from_millis(100);
        for _ in 0..40 {
            // 100 packets per round trip, whatever the window.
            rounds.window.cwnd = 100;
            rounds.round(&mut westwood, rtt, 2);
        }
        rounds.window.cwnd = 160;
        rounds.lose(&mut westwood);
        assert!((90..=105).contains(&rounds.window.cwnd), "{}", rounds.window.cwnd);
    }
}
