//! Detection of policers. After two intervals of heavy loss at the same rate, BBR uses that rate for a while
//! (bbr_lt_bw_sampling).

use paceline_wire::Instant;

use super::{AckSample, BBR_SCALE, BBR_UNIT, BW_UNIT, Bbr};

/// Long-term bandwidth sampling.
#[derive(Clone, Debug, Default, serde::Serialize, serde::Deserialize)]
pub(super) struct LongTerm {
    is_sampling: bool,
    use_bw: bool,
    bw: u64,
    rtt_cnt: u32,
    last_stamp: Instant,
    last_delivered: u64,
    last_lost: u64,
}

const INTERVAL_MIN_RTTS: u32 = 4;
/// 50 / 256, about 20 %.
const LOSS_THRESH: u64 = 50;
/// Two intervals are alike if they differ by at most an eighth, or 4 kbit/s.
const BW_RATIO: u64 = BBR_UNIT / 8;
const BW_DIFF_BYTES_PER_SEC: u64 = 4_000 / 8;
const BW_MAX_RTTS: u32 = 48;

impl LongTerm {
    /// The long-term bandwidth; `None` while it is not in use.
    pub(super) fn bandwidth_in_use(&self) -> Option<u64> {
        self.use_bw.then_some(self.bw)
    }

    /// Stops using and sampling.
    pub(super) fn forget(&mut self) {
        self.is_sampling = false;
        self.use_bw = false;
        self.bw = 0;
        self.rtt_cnt = 0;
    }

    /// Begins anew from this ACK.
    pub(super) fn reset(&mut self, sample: &AckSample) {
        self.forget();
        self.begin_interval(sample);
    }

    /// Takes an ACK. Returns true when the bandwidth has been in use long enough and probing should begin again.
    pub(super) fn sample(&mut self, sample: &AckSample, round_start: bool, probing: bool) -> bool {
        if self.use_bw {
            if probing && round_start {
                self.rtt_cnt += 1;
                if self.rtt_cnt >= BW_MAX_RTTS {
                    self.reset(sample);
                    return true;
                }
            }
            return false;
        }
        if !self.is_sampling {
            if sample.lost == 0 {
                return false;
            }
            self.begin_interval(sample);
            self.is_sampling = true;
        }
        if sample.rate.is_app_limited {
            self.reset(sample);
            return false;
        }
        self.rtt_cnt += u32::from(round_start);
        if self.rtt_cnt > 4 * INTERVAL_MIN_RTTS {
            self.reset(sample);
        } else if self.rtt_cnt >= INTERVAL_MIN_RTTS && sample.lost > 0 {
            self.end_interval(sample);
        }
        false
    }

    fn begin_interval(&mut self, sample: &AckSample) {
        self.last_stamp = sample.now;
        self.last_delivered = sample.delivered_total;
        self.last_lost = sample.lost_total;
        self.rtt_cnt = 0;
    }

    fn end_interval(&mut self, sample: &AckSample) {
        let lost = sample.lost_total.saturating_sub(self.last_lost);
        let delivered = sample.delivered_total.saturating_sub(self.last_delivered);
        if delivered == 0 || lost << BBR_SCALE < LOSS_THRESH * delivered {
            return;
        }
        let ms = sample.now.saturating_since(self.last_stamp).as_millis();
        if ms == 0 {
            return;
        }
        let bw = delivered.saturating_mul(BW_UNIT) / (ms * 1_000);
        if self.bw > 0 {
            let diff = bw.abs_diff(self.bw);
            let rate = Bbr::bytes_per_sec(diff, BBR_UNIT, sample.mss, super::PACING_MARGIN_PERCENT);
            if diff * BBR_UNIT <= BW_RATIO * self.bw || rate.as_bytes_per_sec() <= BW_DIFF_BYTES_PER_SEC {
                self.bw = (bw + self.bw) / 2;
                self.use_bw = true;
                self.rtt_cnt = 0;
                return;
            }
        }
        self.bw = bw;
        self.begin_interval(sample);
    }
}
