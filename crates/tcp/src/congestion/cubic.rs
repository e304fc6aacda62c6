//! CUBIC (RFC 9438) in the integers of Linux.

use paceline_wire::{Duration, Instant};

use super::{
    AckSample, CaState, CongestionControl, CongestionEvent, CongestionName, Hystart, HystartName, Window,
};

/// The window as a cubic function of the time since the last loss. Fields are named as in Linux's struct bictcp.
#[derive(Clone, Debug, serde::Serialize, serde::Deserialize)]
pub struct Cubic {
    cnt: u32,
    last_max_cwnd: u32,
    last_cwnd: u32,
    last_time: Instant,
    bic_origin_point: u32,
    /// K of RFC 9438, Section 4.2: time to the origin point, in 1/1024 s.
    #[serde(rename = "bic_k")]
    k: u64,
    delay_min: Option<Duration>,
    epoch_start: Option<Instant>,
    ack_cnt: u32,
    /// W_est of RFC 9438, Section 4.3.
    #[serde(rename = "tcp_cwnd")]
    w_est: u32,
    hystart: Hystart,
}

/// beta_cubic = 0.7 in 1/1024 (RFC 9438, Section 4.6).
const BETA: u64 = 717;
const SCALE: u64 = 1024;
/// C = 0.4 (RFC 9438, Section 5), as 410 / 1024.
const C_SCALED: u64 = 410;
/// 2^40 / C_SCALED: K = cubic root of this times the distance, in 1/1024 s.
const CUBE_FACTOR: u64 = (1 << 40) / C_SCALED;
/// Packets acknowledged per packet that Reno would add, times 8 / cwnd (RFC 9438, Section 4.3; Linux beta_scale).
const BETA_SCALE: u64 = 8 * (SCALE + BETA) / 3 / (SCALE - BETA);
/// Shortest time between two computations of the curve while cwnd does not change (HZ / 32).
const UPDATE_INTERVAL: Duration = Duration::from_micros(31_250);
/// RTTs of the first second after a loss contain its repair (cubictcp_acked).
const SETTLING: Duration = Duration::from_secs(1);

impl Cubic {
    /// A new instance.
    pub fn new(hystart: HystartName) -> Self {
        Cubic {
            cnt: 0,
            last_max_cwnd: 0,
            last_cwnd: 0,
            last_time: Instant::ZERO,
            bic_origin_point: 0,
            k: 0,
            delay_min: None,
            epoch_start: None,
            ack_cnt: 0,
            w_est: 0,
            hystart: Hystart::new(hystart),
        }
    }

    /// Resets the state, but keeps the choice of HyStart.
    fn reset(&mut self) {
        let mut hystart = core::mem::replace(&mut self.hystart, Hystart::Off);
        hystart.reset();
        *self = Cubic { hystart, ..Cubic::new(HystartName::Off) };
    }

    /// Updates `cnt`, the number of acknowledged packets for which cwnd grows by one.
    fn update(&mut self, now: Instant, cwnd: u32, acked: u32) {
        self.ack_cnt += acked;
        if self.last_cwnd == cwnd && now.saturating_since(self.last_time) <= UPDATE_INTERVAL {
            return;
        }
        self.last_cwnd = cwnd;
        self.last_time = now;
        let epoch_start = match self.epoch_start {
            Some(start) => start,
            None => {
                self.begin_epoch(now, cwnd, acked);
                now
            }
        };
        let target = self.target(now.saturating_since(epoch_start) + self.delay_min.unwrap_or_default());
        self.cnt = match target.checked_sub(cwnd) {
            Some(distance) if distance > 0 => cwnd / distance,
            // Nearly constant at the plateau.
            _ => cwnd.saturating_mul(100),
        };
        // Before the first loss the curve starts flat; do not wait for it.
        if self.last_max_cwnd == 0 && self.cnt > 20 {
            self.cnt = 20;
        }
        self.be_friendly(cwnd);
        self.cnt = self.cnt.max(2);
    }

    fn begin_epoch(&mut self, now: Instant, cwnd: u32, acked: u32) {
        self.epoch_start = Some(now);
        self.ack_cnt = acked;
        self.w_est = cwnd;
        if self.last_max_cwnd <= cwnd {
            self.k = 0;
            self.bic_origin_point = cwnd;
        } else {
            self.k = cubic_root(CUBE_FACTOR.saturating_mul(u64::from(self.last_max_cwnd - cwnd)));
            self.bic_origin_point = self.last_max_cwnd;
        }
    }

    /// W_cubic(t) (RFC 9438, Eq. (1)).
    fn target(&self, t: Duration) -> u32 {
        let t = t.as_micros() * 1_024 / 1_000_000;
        let offset = t.abs_diff(self.k);
        let cube = u128::from(offset) * u128::from(offset) * u128::from(offset);
        let delta = u32::try_from((u128::from(C_SCALED) * cube) >> 40).unwrap_or(u32::MAX);
        if t < self.k {
            self.bic_origin_point.saturating_sub(delta)
        } else {
            self.bic_origin_point.saturating_add(delta)
        }
    }

    /// Makes cwnd grow at least as fast as Reno's (RFC 9438, Section 4.3).
    fn be_friendly(&mut self, cwnd: u32) {
        let delta = ((u64::from(cwnd) * BETA_SCALE) >> 3).max(1) as u32;
        let steps = self.ack_cnt.saturating_sub(1) / delta;
        self.ack_cnt -= steps * delta;
        self.w_est = self.w_est.saturating_add(steps);
        if let Some(behind) = self.w_est.checked_sub(cwnd).filter(|&behind| behind > 0) {
            self.cnt = self.cnt.min(cwnd / behind);
        }
    }
}

impl CongestionControl for Cubic {
    fn name(&self) -> CongestionName {
        CongestionName::Cubic
    }

    fn on_measurement(&mut self, sample: &AckSample, window: Window) -> Window {
        let Some(rtt) = sample.rtt else { return window };
        if self.epoch_start.is_some_and(|start| sample.now.saturating_since(start) < SETTLING) {
            return window;
        }
        let base = self.delay_min.map_or(rtt, |base| base.min(rtt));
        self.delay_min = Some(base);
        if window.in_slow_start() { self.hystart.on_rtt(sample, rtt, base, window) } else { window }
    }

    fn on_ack(&mut self, sample: &AckSample, mut window: Window) -> Window {
        if !sample.cwnd_limited {
            return window;
        }
        let mut acked = sample.delivered;
        if window.in_slow_start() {
            acked = self.hystart.slow_start(&mut window, acked);
            if acked == 0 {
                return window;
            }
        }
        self.update(sample.now, window.cwnd, acked);
        window.additive_increase(self.cnt, acked);
        window
    }

    fn ssthresh(&mut self, window: Window) -> u32 {
        self.epoch_start = None;
        let cwnd = u64::from(window.cwnd);
        // Fast convergence (RFC 9438, Section 4.7).
        self.last_max_cwnd = match window.cwnd < self.last_max_cwnd {
            true => (cwnd * (SCALE + BETA) / (2 * SCALE)) as u32,
            false => window.cwnd,
        };
        ((cwnd * BETA / SCALE) as u32).max(2)
    }

    fn on_state(&mut self, state: CaState, _sample: &AckSample, window: Window) -> Window {
        if state == CaState::Loss {
            self.reset();
        }
        window
    }

    fn on_event(&mut self, event: CongestionEvent, sample: &AckSample, window: Window) -> Window {
        // Time in which the application sent nothing does not count (RFC 9438, Section 4.2, Eq. (1): t).
        if let (CongestionEvent::TransmissionStart, Some(start)) = (event, self.epoch_start) {
            let idle = sample.now.saturating_since(sample.sending.last_send);
            self.epoch_start = Some((start + idle).min(sample.now));
        }
        window
    }
}

/// The integer cubic root, rounded down.
fn cubic_root(n: u64) -> u64 {
    let mut root: u64 = 0;
    for bit in (0..22).rev() {
        let candidate = root | 1 << bit;
        if candidate * candidate * candidate <= n {
            root = candidate;
        }
    }
    root
}

#[cfg(test)]
mod tests {
    use super::super::testing::Rounds;
    use super::*;

    #[test]
    fn cubic_roots_are_exact() {
        for n in [0u64, 1, 7, 8, 26, 27, 1_000_000, 999_999, 1 << 60] {
            let root = cubic_root(n);
            assert!(root.pow(3) <= n && (root + 1).pow(3) > n, "{n}");
        }
    }

    #[test]
    fn the_window_returns_to_where_it_was_lost_after_k() {
        let mut cubic = Cubic::new(HystartName::Off);
        let mut rounds = Rounds::new(500);
        rounds.window.ssthresh = 400;
        rounds.lose(&mut cubic);
        assert_eq!(rounds.window.cwnd, 350);
        // K = cubic root of 500 * 0.3 / 0.4 = 7.2 s.
        let rtt = Duration::from_millis(100);
        let windows: alloc::vec::Vec<u32> = (0..144)
            .map(|_| {
                rounds.round(&mut cubic, rtt, 1);
                rounds.window.cwnd
            })
            .collect();
        assert!((450..=485).contains(&windows[30]), "{}", windows[30]);
        assert!((496..=502).contains(&windows[72]), "{}", windows[72]);
        assert!((610..=650).contains(&windows[143]), "{}", windows[143]);
    }

    #[test]
    fn a_small_window_grows_as_reno_would() {
        let mut cubic = Cubic::new(HystartName::Off);
        let mut rounds = Rounds::new(20);
        rounds.window.ssthresh = 10;
        rounds.lose(&mut cubic);
        let before = rounds.window.cwnd;
        for _ in 0..20 {
            rounds.round(&mut cubic, Duration::from_millis(10), 1);
        }
        // 3 (1 - beta) / (1 + beta) = 0.53 packets per round trip.
        let grown = rounds.window.cwnd - before;
        assert!((9..=12).contains(&grown), "{grown}");
    }

    #[test]
    fn slow_start_ends_when_the_delay_grows() {
        for hystart in [HystartName::Linux, HystartName::PlusPlus] {
            let mut cubic = Cubic::new(hystart);
            let mut rounds = Rounds::new(20);
            rounds.round(&mut cubic, Duration::from_millis(200), 1);
            rounds.round(&mut cubic, Duration::from_millis(200), 1);
            assert!(rounds.window.in_slow_start());
            for _ in 0..7 {
                rounds.round(&mut cubic, Duration::from_millis(220), 1);
            }
            assert!(!rounds.window.in_slow_start(), "{hystart}");
        }
    }

    /// The path delivers two packets every 100 ms and drops none. HyStart finds the delay in the first round that has
    /// had eight ACKs before. Rounds begin with the first ACK or, in older kernels, with a window of 16.
    #[test]
    fn rounds_of_slow_start_begin_early_or_late() {
        for (hystart, end) in [(HystartName::Linux, 36), (HystartName::Linux516, 48)] {
            let mut cubic = Cubic::new(hystart);
            let mut rounds = Rounds::new(10);
            let first = rounds.sample.una;
            let mut sent = alloc::vec![rounds.sample.now; 10];
            while rounds.window.in_slow_start() {
                let sample = &mut rounds.sample;
                sample.now += Duration::from_millis(100);
                sample.nxt = first + 1_000 * sent.len() as u64;
                sample.una += 2_000;
                sample.delivered = 2;
                let last = ((sample.una - first) / 1_000 - 1) as usize;
                sample.rtt = Some(sample.now.saturating_since(sent[last]));
                rounds.window = cubic.on_measurement(&rounds.sample, rounds.window);
                rounds.window = cubic.on_ack(&rounds.sample, rounds.window);
                sent.resize(last + 1 + rounds.window.cwnd as usize, rounds.sample.now);
            }
            assert_eq!(rounds.window.ssthresh, end, "{hystart}");
        }
    }
}
