//! Retransmission timeout as in Linux (`tcp_rtt_estimator`): RFC 6298 with a lower bound on the variance. So the
//! timeout is SRTT plus at least `rto_min`.

use paceline_wire::{Duration, Instant};

/// Linux's `TCP_TIMEOUT_INIT`.
pub const RTO_INIT: Duration = Duration::from_secs(1);
/// Linux's `TCP_RTO_MAX`.
pub const RTO_MAX: Duration = Duration::from_secs(120);

/// Smoothed round-trip time and its derived values in nanoseconds: SRTT times 8, deviation times 4.
#[derive(Clone, Debug)]
pub struct RttEstimator {
    rto_min: u64,
    srtt8: u64,
    mdev4: u64,
    mdev4_max: u64,
    var4: u64,
    window_end: u64,
    min: Option<Duration>,
    latest: Duration,
}

impl RttEstimator {
    pub fn new(rto_min: Duration) -> Self {
        RttEstimator {
            rto_min: rto_min.as_nanos(),
            srtt8: 0,
            mdev4: 0,
            mdev4_max: 0,
            var4: 0,
            window_end: 0,
            min: None,
            latest: Duration::ZERO,
        }
    }

    /// Takes a sample. `una` and `nxt` delimit the round trip over which the largest deviation counts.
    pub fn update(&mut self, rtt: Duration, una: u64, nxt: u64) {
        self.latest = rtt;
        self.min = Some(self.min.map_or(rtt, |min| min.min(rtt)));
        let m = rtt.as_nanos().max(1);
        if self.srtt8 == 0 {
            self.srtt8 = m * 8;
            self.mdev4 = m * 2;
            self.var4 = self.mdev4.max(self.rto_min);
            self.mdev4_max = self.var4;
            self.window_end = nxt;
            return;
        }
        let error = m as i64 - (self.srtt8 / 8) as i64;
        self.srtt8 = self.srtt8.saturating_add_signed(error).max(8);
        let mut deviation = error.abs() - (self.mdev4 / 4) as i64;
        if error < 0 && deviation > 0 {
            // A sudden decrease of the RTT must raise the timeout only a little.
            deviation /= 8;
        }
        self.mdev4 = self.mdev4.saturating_add_signed(deviation);
        if self.mdev4 > self.mdev4_max {
            self.mdev4_max = self.mdev4;
            self.var4 = self.var4.max(self.mdev4_max);
        }
        if una > self.window_end {
            if self.mdev4_max < self.var4 {
                self.var4 -= (self.var4 - self.mdev4_max) / 4;
            }
            self.window_end = nxt;
            self.mdev4_max = self.rto_min;
        }
    }

    pub fn srtt(&self) -> Option<Duration> {
        (self.srtt8 > 0).then(|| Duration::from_nanos(self.srtt8 / 8))
    }

    pub fn min(&self) -> Option<Duration> {
        self.min
    }

    pub fn latest(&self) -> Duration {
        self.latest
    }

    pub fn rto_min(&self) -> Duration {
        Duration::from_nanos(self.rto_min)
    }

    /// Returns the timeout after `backoff` doublings.
    pub fn rto(&self, backoff: u32) -> Duration {
        let base = match self.srtt() {
            None => RTO_INIT,
            Some(srtt) => srtt + Duration::from_nanos(self.var4.max(self.rto_min)),
        };
        (base * (1u64 << backoff.min(10))).min(RTO_MAX)
    }
}

/// Returns the earliest of deadlines that may be unset.
pub fn earliest(deadlines: &[Option<Instant>]) -> Option<Instant> {
    deadlines.iter().flatten().min().copied()
}
