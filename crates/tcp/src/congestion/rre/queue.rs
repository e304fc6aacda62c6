//! The bottleneck queue: its length (Section II-A), and its target length (Sections II-B and II-E).

use paceline_wire::{Duration, Instant, Rate};

use super::peer_clock::PeerTime;
use crate::congestion::AckSample;

/// RD, the relative one-way delay: a segment's arrival by the peer's clock minus its departure by ours.
#[derive(Clone, Debug, Default, serde::Serialize, serde::Deserialize)]
pub(super) struct OneWayDelay {
    now: i64,
    min: Option<i64>,
    tick: Duration,
}

impl OneWayDelay {
    /// A segment sent at `sent` came at `time`. Returns its RD.
    pub(super) fn on_segment(&mut self, time: PeerTime, sent: Instant) -> i64 {
        let delay = time.ns - sent.as_nanos() as i64;
        self.now = delay;
        self.min = Some(self.min.map_or(delay, |min| min.min(delay)));
        self.tick = time.tick;
        delay
    }

    /// t_buff = RD - RDmin.
    pub(super) fn buffering(&self) -> Duration {
        Duration::from_nanos(self.min.map_or(0, |min| (self.now - min).max(0) as u64))
    }

    /// RDmin := RD (Section II-C).
    pub(super) fn restart(&mut self, delay: i64) {
        self.min = Some(delay);
    }

    /// The tick of the peer's clock.
    pub(super) fn tick(&self) -> Duration {
        self.tick
    }
}

/// The target of the queue, in bytes.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) struct QueueTarget {
    /// T.
    pub(super) t: u64,
    /// Half a BDP, which is Bmax - T and T - Bmin.
    pub(super) swing: u64,
    /// The least swing.
    pub(super) swing_min: u64,
}

/// Time until the sender sees the effect of its rate (Section II-B: t_buff + RTT).
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) struct Feedback {
    /// RTT.
    pub(super) rtt: Duration,
    /// t_buff + RTT.
    pub(super) whole: Duration,
}

/// The least T (Section II-E).
const T_MIN_PACKETS: u64 = 30;
/// The least Bmax - T and T - Bmin (Section II-E).
const SWING_MIN_PACKETS: u64 = 10;
/// Our choice: the largest RTTmin that counts for T. It is the longest that the paper met without load (Section III-A).
/// The paper does not limit T. If the uplink is full from the start, RTTmin is seconds, and T would exceed any buffer.
const RTT_MIN_MAX: Duration = Duration::from_millis(200);

impl QueueTarget {
    /// T = rho x RTTmin, Bmax and Bmin half of that above and below (Section II-E).
    pub(super) fn new(rho: Rate, rtt_min: Duration, mss: u32) -> QueueTarget {
        let bdp = rho.bytes_in(rtt_min.min(RTT_MIN_MAX));
        let mss = u64::from(mss);
        QueueTarget { t: bdp.max(T_MIN_PACKETS * mss), swing: bdp / 2, swing_min: SWING_MIN_PACKETS * mss }
    }

    /// sigma = rho + (Bmax - T) x MSS / RTT: Eq. (4) solved for sigma. Eq. (5) as printed divides by MSS.
    pub(super) fn fill_rate(&self, rho: Rate, feedback: Feedback) -> Rate {
        Rate::from_bytes_per_sec(rho.as_bytes_per_sec() + self.correction(feedback))
    }

    /// sigma = rho - (T - Bmin) x MSS / RTT, from Eq. (6) in the same way. Our choice: at least half of rho, the
    /// strongest reduction of the paper. Ten packets a round trip can exceed a slow link's rate.
    pub(super) fn drain_rate(&self, rho: Rate, feedback: Feedback) -> Rate {
        let rho = rho.as_bytes_per_sec();
        Rate::from_bytes_per_sec(rho.saturating_sub(self.correction(feedback)).max(rho / 2))
    }

    /// Our choice: the least sigma is a packet per RTT, or per second if the RTT is shorter, so that sigma can recover.
    pub(super) fn least_rate(sample: &AckSample) -> Rate {
        Rate::from_bytes_in(u64::from(sample.mss), sample.srtt.max(Duration::from_secs(1)))
    }

    /// (Bmax - T) x MSS / RTT. Our choice: the least swing of ten packets counts per t_buff + RTT, the time until the
    /// sender sees the growth. On slow links t_buff of thirty packets is far longer than RTT. Per RTT, the queue would
    /// grow by several T.
    fn correction(&self, feedback: Feedback) -> u64 {
        let over = |bytes, time: Duration| {
            Rate::from_bytes_in(bytes, time.max(Duration::from_millis(1))).as_bytes_per_sec()
        };
        let least = over(self.swing_min, feedback.whole);
        if self.swing > self.swing_min { over(self.swing, feedback.rtt).max(least) } else { least }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const RTT: Duration = Duration::from_millis(100);

    #[test]
    fn the_aim_is_a_bandwidth_delay_product_and_not_too_small() {
        // 8 Mbit/s x 100 ms = 100,000 bytes.
        assert_eq!(
            QueueTarget::new(Rate::from_mbps(8.0), RTT, 1_448),
            QueueTarget { t: 100_000, swing: 50_000, swing_min: 14_480 }
        );
        assert_eq!(
            QueueTarget::new(Rate::from_mbps(0.5), RTT, 1_448),
            QueueTarget { t: 43_440, swing: 3_125, swing_min: 14_480 }
        );
        // An uplink that was full from the start.
        let full = QueueTarget::new(Rate::from_mbps(8.0), Duration::from_secs(20), 1_448);
        assert_eq!(full, QueueTarget { t: 200_000, swing: 100_000, swing_min: 14_480 });
    }

    #[test]
    fn rates_follow_from_eq_4() {
        let (rho, aim) = (Rate::from_mbps(8.0), QueueTarget { t: 100_000, swing: 50_000, swing_min: 14_480 });
        let feedback = |ms, whole_ms| Feedback {
            rtt: Duration::from_millis(ms),
            whole: Duration::from_millis(whole_ms),
        };
        // Half a BDP more in one RTT, whatever the queue.
        assert_eq!(aim.fill_rate(rho, feedback(100, 200)), Rate::from_mbps(12.0));
        assert_eq!(aim.drain_rate(rho, feedback(200, 300)), Rate::from_mbps(6.0));
        // Ten packets per RTT and queueing delay of a slow link are 0.58 Mbit/s. Drain takes off half of rho at most.
        let slow = Rate::from_mbps(1.0);
        let aim = QueueTarget::new(slow, RTT, 1_448);
        assert_eq!(aim.fill_rate(slow, feedback(100, 200)).as_bytes_per_sec(), 125_000 + 72_400);
        assert_eq!(aim.drain_rate(slow, feedback(100, 200)), Rate::from_mbps(0.5));
    }

    #[test]
    fn offsets_of_clocks_cancel() {
        for offset in [-5_000_000_000, 0, 7_000_000_000] {
            let mut delay = OneWayDelay::default();
            for wait in [3, 0, 20] {
                let time = PeerTime {
                    ns: offset + 1_000_000_000 + wait * 1_000_000,
                    tick: Duration::from_millis(1),
                };
                delay.on_segment(time, Instant::ZERO + Duration::from_secs(1));
            }
            assert_eq!(delay.buffering(), Duration::from_millis(20));
        }
    }
}
