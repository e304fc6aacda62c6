//! The number of packets acknowledged beyond what the bandwidth explains (bbr_update_ack_aggregation).

use paceline_wire::{Duration, Instant};

use super::{AckSample, BW_SCALE};

/// The largest excess in two windows of five round trips each.
#[derive(Clone, Debug, Default, serde::Serialize, serde::Deserialize)]
pub(super) struct Aggregation {
    extra_acked: [u32; 2],
    win_rtts: u32,
    win_idx: usize,
    epoch_start: Instant,
    epoch_acked: u64,
}

const WIN_RTTS: u32 = 5;
const EPOCH_ACKED_RESET: u64 = 1 << 20;
const EXTRA_ACKED_MAX: Duration = Duration::from_millis(100);

impl Aggregation {
    /// Begins a new epoch.
    pub(super) fn restart(&mut self, now: Instant) {
        self.epoch_start = now;
        self.epoch_acked = 0;
    }

    /// Takes an ACK.
    pub(super) fn update(&mut self, sample: &AckSample, round_start: bool, bw: u64, cwnd: u32) {
        if round_start {
            self.win_rtts += 1;
            if self.win_rtts >= WIN_RTTS {
                self.win_rtts = 0;
                self.win_idx ^= 1;
                self.extra_acked[self.win_idx] = 0;
            }
        }
        let acked = u64::from(sample.delivered);
        let mut expected = packets(bw, sample.now.saturating_since(self.epoch_start));
        if self.epoch_acked <= expected || self.epoch_acked + acked >= EPOCH_ACKED_RESET {
            self.restart(sample.now);
            expected = 0;
        }
        self.epoch_acked += acked;
        let extra = (self.epoch_acked - expected).min(u64::from(cwnd)) as u32;
        self.extra_acked[self.win_idx] = self.extra_acked[self.win_idx].max(extra);
    }

    /// Packets to add to cwnd.
    pub(super) fn cwnd(&self, bw: u64) -> u32 {
        let max = packets(bw, EXTRA_ACKED_MAX);
        u64::from(self.extra_acked[0].max(self.extra_acked[1])).min(max) as u32
    }
}

fn packets(bw: u64, time: Duration) -> u64 {
    ((u128::from(bw) * u128::from(time.as_micros())) >> BW_SCALE) as u64
}
