//! Round-trip time and retransmission timeout (RFC 6298, mostly with Linux's variance).

use paceline_wire::{Duration, Instant};

use crate::config::RtoName;
use crate::filter::WindowedMin;

/// SRTT, its variance, the timeout that follows, and the shortest RTT of a window.
///
/// As in Linux tcp_rtt_estimator: the variance is the largest mean deviation of a round trip, and
/// decays by a quarter per round trip. It is never below the minimum timeout, so RTO >= SRTT + 200 ms. Or as in RFC
/// 6298 itself.
#[derive(Clone, Debug, serde::Serialize, serde::Deserialize)]
pub(crate) struct RttEstimator {
    name: RtoName,
    /// In eighths of a microsecond; zero before the first sample.
    srtt_us8: u64,
    /// In quarters of a microsecond.
    mdev_us4: u64,
    mdev_max_us4: u64,
    rttvar_us4: u64,
    /// SND.NXT when the current round trip began.
    rtt_seq: u64,
    rto_min: Duration,
    min: WindowedMin,
}

/// RFC 6298, Section 2.1.
pub(crate) const RTO_INITIAL: Duration = Duration::from_secs(1);
/// Linux TCP_RTO_MAX; RFC 6298, Section 2.5 asks for at least 60 s.
pub(crate) const RTO_MAX: Duration = Duration::from_secs(120);
/// G of RFC 6298, Section 2.2. Our choice: ns-2's tcpTick_, because only reproductions that used ns-2 ask for this estimator.
const GRANULARITY: Duration = Duration::from_millis(10);
/// Linux net.ipv4.tcp_min_rtt_wlen.
const MIN_RTT_WINDOW: Duration = Duration::from_secs(300);

impl RttEstimator {
    /// An estimator without samples.
    pub(crate) fn new(name: RtoName, rto_min: Duration) -> Self {
        RttEstimator {
            name,
            srtt_us8: 0,
            mdev_us4: 0,
            mdev_max_us4: 0,
            rttvar_us4: 0,
            rtt_seq: 0,
            rto_min,
            min: WindowedMin::new(0, u64::MAX),
        }
    }

    /// Takes a sample of a segment that was sent once (Karn's rule is the caller's). `una` and `nxt` delimit round trips.
    pub(crate) fn on_sample(&mut self, rtt: Duration, una: u64, nxt: u64) {
        let m = rtt.as_micros().max(1);
        if self.name == RtoName::Rfc6298 {
            return self.on_sample_rfc6298(m, una, nxt);
        }
        let rto_min_us4 = self.rto_min.as_micros();
        if self.srtt_us8 == 0 {
            self.srtt_us8 = m << 3;
            self.mdev_us4 = m << 1;
            self.rttvar_us4 = self.mdev_us4.max(rto_min_us4);
            self.mdev_max_us4 = self.rttvar_us4;
            self.rtt_seq = nxt;
            return;
        }
        let error = m as i64 - (self.srtt_us8 >> 3) as i64;
        self.srtt_us8 = self.srtt_us8.saturating_add_signed(error).max(1);
        let mut deviation = error.abs() - (self.mdev_us4 >> 2) as i64;
        // A shorter RTT raises the variance eight times slower, because falling RTTs are no reason for a longer
        // timeout.
        if error < 0 && deviation > 0 {
            deviation >>= 3;
        }
        self.mdev_us4 = self.mdev_us4.saturating_add_signed(deviation);
        if self.mdev_us4 > self.mdev_max_us4 {
            self.mdev_max_us4 = self.mdev_us4;
            self.rttvar_us4 = self.rttvar_us4.max(self.mdev_max_us4);
        }
        if una > self.rtt_seq {
            if self.mdev_max_us4 < self.rttvar_us4 {
                self.rttvar_us4 -= (self.rttvar_us4 - self.mdev_max_us4) >> 2;
            }
            self.rtt_seq = nxt;
            self.mdev_max_us4 = rto_min_us4;
        }
    }

    /// RFC 6298, Sections 2.2 and 2.3, once per round trip, for which its gains are meant (Section 3).
    fn on_sample_rfc6298(&mut self, m: u64, una: u64, nxt: u64) {
        if self.srtt_us8 == 0 {
            self.srtt_us8 = m << 3;
            self.rttvar_us4 = m << 1;
            self.rtt_seq = nxt;
        } else if una > self.rtt_seq {
            let error = m as i64 - (self.srtt_us8 >> 3) as i64;
            self.rttvar_us4 += error.unsigned_abs();
            self.rttvar_us4 -= (self.rttvar_us4 - error.unsigned_abs()) >> 2;
            self.srtt_us8 = self.srtt_us8.saturating_add_signed(error).max(1);
            self.rtt_seq = nxt;
        }
    }

    /// Takes a sample for the shortest RTT only.
    pub(crate) fn on_min_sample(&mut self, now: Instant, rtt: Duration) {
        self.min.update(MIN_RTT_WINDOW.as_micros(), now.as_nanos() / 1_000, rtt.as_micros().max(1));
    }

    /// SRTT; zero before the first sample.
    pub(crate) fn srtt(&self) -> Duration {
        Duration::from_nanos(self.srtt_us8 * 125)
    }

    /// The variance, in the scale of RFC 6298's 4 * RTTVAR.
    pub(crate) fn rttvar4(&self) -> Duration {
        Duration::from_micros(self.rttvar_us4)
    }

    /// The shortest RTT of the last five minutes; `None` before the first sample.
    pub(crate) fn min(&self) -> Option<Duration> {
        let us = self.min.get();
        (us != u64::MAX).then(|| Duration::from_micros(us))
    }

    /// True once there is a sample.
    pub(crate) fn has_sample(&self) -> bool {
        self.srtt_us8 != 0
    }

    /// The timeout without backoff (RFC 6298, Section 2; Linux __tcp_set_rto).
    pub(crate) fn rto(&self) -> Duration {
        if self.srtt_us8 == 0 {
            return RTO_INITIAL;
        }
        let rto = match self.name {
            RtoName::Linux => self.srtt() + self.rttvar4(),
            RtoName::Rfc6298 => (self.srtt() + self.rttvar4().max(GRANULARITY)).max(self.rto_min),
        };
        rto.min(RTO_MAX)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn ms(n: u64) -> Duration {
        Duration::from_millis(n)
    }

    #[test]
    fn the_timeout_is_one_second_before_the_first_sample() {
        assert_eq!(RttEstimator::new(RtoName::Linux, ms(200)).rto(), Duration::from_secs(1));
    }

    #[test]
    fn a_steady_rtt_leaves_the_minimum_as_margin() {
        let mut rtt = RttEstimator::new(RtoName::Linux, ms(200));
        for n in 0..1_000 {
            rtt.on_sample(ms(100), n * 1_000, n * 1_000 + 10);
        }
        assert_eq!(rtt.srtt(), ms(100));
        assert_eq!(rtt.rto(), ms(300));
    }

    #[test]
    fn as_rfc_6298_has_it_the_minimum_is_of_the_whole() {
        let mut rtt = RttEstimator::new(RtoName::Rfc6298, ms(200));
        rtt.on_sample(ms(100), 0, 10);
        // SRTT + 4 * R / 2.
        assert_eq!(rtt.rto(), ms(300));
        // Another sample of the same round trip does not count.
        rtt.on_sample(ms(900), 5, 20);
        assert_eq!(rtt.rto(), ms(300));
        for n in 1..100 {
            rtt.on_sample(ms(100), n * 1_000, n * 1_000 + 10);
        }
        assert_eq!(rtt.rto(), ms(200));
        rtt.on_sample(ms(500), 200_000, 200_010);
        // SRTT 150 ms, RTTVAR 100 ms.
        assert_eq!(rtt.rto().as_millis(), 550);
    }

    #[test]
    fn a_longer_rtt_raises_the_timeout_at_once() {
        let mut rtt = RttEstimator::new(RtoName::Linux, ms(200));
        for n in 0..100 {
            rtt.on_sample(ms(100), n * 1_000, n * 1_000 + 10);
        }
        for n in 100..104 {
            rtt.on_sample(ms(600), n * 1_000, n * 1_000 + 10);
        }
        assert!(rtt.rto() > ms(600), "{:?}", rtt.rto());
    }

    #[test]
    fn the_shortest_rtt_survives_longer_ones() {
        let mut rtt = RttEstimator::new(RtoName::Linux, ms(200));
        rtt.on_min_sample(Instant::ZERO, ms(80));
        rtt.on_min_sample(Instant::ZERO + ms(1_000), ms(180));
        assert_eq!(rtt.min(), Some(ms(80)));
    }
}
