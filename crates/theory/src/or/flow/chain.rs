//! The window at which a loss is found, as a Markov chain: whole flows with RFC 6675, RH or PRR.

use alloc::vec;
use alloc::vec::Vec;

use super::growth::ROUNDS_MAX;
use super::{FlowPath, FlowPolicy, Growth};
use crate::or::RateReduction;

/// Our choice: 192 windows in geometric steps; twice as many change no result by more than 0.002.
const STATES: usize = 192;
/// The smallest window, packets.
const WINDOW_MIN: f64 = 2.0;
/// Below this, a chance counts as none.
const NEGLIGIBLE: f64 = 1e-9;
const STEPS_MAX: u32 = 10_000;

/// From one loss to the next: where it ends, the packets sent and the time taken, on average.
struct Cycle {
    next: Vec<f64>,
    sent: f64,
    time_s: f64,
}

struct Chain<'a> {
    path: &'a FlowPath,
    policy: &'a FlowPolicy,
    windows: Vec<f64>,
}

/// Delivered packets divided by the packets that the bottleneck could send.
pub(super) fn utilization(path: &FlowPath, policy: &FlowPolicy) -> f64 {
    let chain = Chain { path, policy, windows: windows(path.aw_packets) };
    let cycles: Vec<Cycle> = chain.windows.iter().map(|&window| chain.cycle(window)).collect();
    let share = stationary(&cycles);
    let mean = |of: fn(&Cycle) -> f64| -> f64 { share.iter().zip(&cycles).map(|(s, c)| s * of(c)).sum() };
    let possible = path.c_packets_per_s * mean(|cycle| cycle.time_s);
    (1.0 - path.loss) * mean(|cycle| cycle.sent) / possible
}

fn windows(aw: f64) -> Vec<f64> {
    let step = libm::log(aw / WINDOW_MIN) / (STATES - 1) as f64;
    (0..STATES).map(|i| if i + 1 == STATES { aw } else { WINDOW_MIN * libm::exp(step * i as f64) }).collect()
}

fn stationary(cycles: &[Cycle]) -> Vec<f64> {
    let mut share = vec![1.0 / cycles.len() as f64; cycles.len()];
    for _ in 0..STEPS_MAX {
        let mut next = vec![0.0; share.len()];
        for (part, cycle) in share.iter().zip(cycles) {
            for (to, chance) in next.iter_mut().zip(&cycle.next) {
                *to += part * chance;
            }
        }
        let moved: f64 = share.iter().zip(&next).map(|(a, b)| (a - b).abs()).sum();
        share = next;
        if moved < NEGLIGIBLE {
            break;
        }
    }
    share
}

impl Chain<'_> {
    /// The cycle that begins when a loss is found at `window`.
    fn cycle(&self, window: f64) -> Cycle {
        let FlowPath { u_s, aw_packets, loss, .. } = *self.path;
        let mut cycle = Cycle { next: vec![0.0; self.windows.len()], sent: 0.0, time_s: u_s };
        let after = (self.beta() * window).max(WINDOW_MIN);
        cycle.sent = self.sent_in_recovery(window, after);
        let mut survival = libm::exp(-loss * cycle.sent);
        let mut current = after;
        cycle.end_at(&self.windows, 1.0 - survival, current, self.round(current));
        let mut t_s = 0.0;
        for _ in 0..ROUNDS_MAX {
            if survival < NEGLIGIBLE {
                break;
            }
            let (sent, round_s) = self.round(current);
            if current >= aw_packets {
                // The window stays: rounds follow until a loss, 1 / (1 - q) of them on average.
                let rounds = 1.0 / (1.0 - libm::exp(-loss * sent));
                cycle.sent += survival * rounds * sent;
                cycle.time_s += survival * rounds * round_s;
                cycle.end_at(&self.windows, survival, aw_packets, (sent, round_s));
                return cycle;
            }
            cycle.sent += survival * sent;
            cycle.time_s += survival * round_s;
            t_s += round_s;
            current = self.policy.growth.window(window, after, t_s, u_s).clamp(current, aw_packets);
            let still = survival * libm::exp(-loss * sent);
            cycle.end_at(&self.windows, survival - still, current, self.round(current));
            survival = still;
        }
        cycle
    }

    fn beta(&self) -> f64 {
        match self.policy.reduction {
            // RFC 6675 halves, whatever the law of growth. So does Theorem 1.
            RateReduction::Standard => Growth::Reno.beta(),
            _ => self.policy.growth.beta(),
        }
    }

    /// Packets sent in the one round of recovery.
    fn sent_in_recovery(&self, window: f64, after: f64) -> f64 {
        let repairs = 1.0 + (window - 1.0) * self.path.loss;
        let room = repairs - 1.0 + self.path.aw_packets - window;
        let sent = if self.policy.opportunistic { after } else { after.min(room) };
        sent.min(self.path.bdp_packets())
    }

    /// Packets and seconds of a round. Packets beyond the bandwidth-delay product wait in the queue and lengthen the
    /// round.
    fn round(&self, window: f64) -> (f64, f64) {
        (window, self.path.u_s.max(window / self.path.c_packets_per_s))
    }
}

impl Cycle {
    /// `chance` is the probability that a packet of the round before was lost. The loss is found a round after the
    /// packet was sent. On average this is in the middle of a round at `window`.
    fn end_at(&mut self, windows: &[f64], chance: f64, window: f64, (sent, round_s): (f64, f64)) {
        self.sent += chance * sent / 2.0;
        self.time_s += chance * round_s / 2.0;
        let above = windows.partition_point(|&w| w < window).clamp(1, windows.len() - 1);
        let (low, high) = (windows[above - 1], windows[above]);
        let part = ((window - low) / (high - low)).clamp(0.0, 1.0);
        self.next[above] += chance * part;
        self.next[above - 1] += chance * (1.0 - part);
    }
}
