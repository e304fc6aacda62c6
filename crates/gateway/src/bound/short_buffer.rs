//! What a buffer that is, or may be, too short for the bound changes: how much leaves at once, and how fast.

use paceline_wire::{Duration, Instant, Rate};

use super::{MIN_QUEUE, QueueBound, UNNOTICED};

/// Before a buffer that was found to be short no more of a flow leaves at once than what Linux's pacing sends as one super-packet (tcp_tso_autosize: a
/// millisecond).
const SHORT_BURST: Duration = Duration::from_millis(1);

/// A quarter faster than the link, so that the rate can grow, as BBR probes (draft-ietf-ccwg-bbr, Section 4.3.3). A tenth or a half in place of it
/// left more drops and longer waits (docs/design/queue-bound.md).
const GAIN: (u64, u64) = (5, 4);
/// Twice what a round trip carried is what slow start has now, and twice that again what it has next. 2.5 times held BBR, which starts with 2.77
/// (Section 4.3.1), at a tenth of a link that loses by chance: it had .25 of what it has without a gateway.
const GROWTH: (u64, u64) = (4, 1);

impl QueueBound {
    /// The link's buffer overflows, and is so short that a bound is no help: whoever sends may as well fill it.
    pub fn has_short_buffer(&self, now: Instant) -> bool {
        self.short && self.loss_test.is_buffer(now)
    }

    /// Rate and longest burst of what leaves before a buffer that may be short: something was lost of late. A server that hears of many
    /// bytes at once sends as many, and in front of a short buffer most of them are lost. Our choice: the burst takes half of the longest
    /// queue. Before a buffer that was found to be short bursts are shorter: of 300 drawn paths that are split 12 in place of 16 had storms,
    /// and a third less of what was sent was dropped. Each of several flows has a burst of its own: with one for all, four waited for 53 ms in place of 25
    /// (p95) before 15 KB at 20 Mbit/s, and 778 in place of 583 of their packets were dropped.
    pub fn pace(&self, now: Instant) -> Option<(Rate, Duration)> {
        let rtt_min = self.baseline.rtt_min()?;
        let half = self.backoff.half_full(now, rtt_min)?;
        if self.release.longest().is_some() || !self.may_be_short(rtt_min) {
            return None;
        }
        let (rate, (gain, parts)) = self.pace_rate()?;
        let burst = match self.has_short_buffer(now) {
            true => half.min(SHORT_BURST * u64::from(self.flows)).max(SHORT_BURST),
            false => half.max(rate.time_for(MIN_QUEUE)),
        };
        Some((rate.mul_ratio(gain, parts), burst))
    }

    /// The link's rate, and how much faster packets may leave. While servers are the limit, or the rate grows, what arrived in a round trip is
    /// their rate, and a train tells of the link's.
    fn pace_rate(&self) -> Option<(Rate, (u64, u64))> {
        let (known, train) = (self.known_rate(), self.policed.cap(self.train.rate()));
        let (unknown, grows) = (self.forecast().is_zero(), self.loss_test.grows());
        let (rate, gain) = match train {
            Rate::ZERO => (known, if grows { GROWTH } else { GAIN }),
            _ if unknown || grows => (known.max(train), GAIN),
            _ => (known, GAIN),
        };
        (!rate.is_zero()).then_some((rate, gain))
    }

    /// A buffer that overflowed with `outstanding` bytes on their way is short, where the path holds `path` without a queue. Where the link varies the longest
    /// queue is that of its worst moment: then what fits counts, at the rate that it has at other times.
    pub(super) fn is_short(&self, rtt_min: Duration, path: u64, outstanding: u64) -> bool {
        let fits = path + self.known_rate().bytes_in(short_queue(rtt_min));
        self.may_be_short(rtt_min) || outstanding <= fits
    }

    /// No queue was longer of late.
    fn may_be_short(&self, rtt_min: Duration) -> bool {
        self.backoff.longest_queue(rtt_min) <= short_queue(rtt_min)
    }
}

/// Our choice of short: half of a round trip, or what nobody waits for.
fn short_queue(rtt_min: Duration) -> Duration {
    (rtt_min / 2).max(UNNOTICED)
}

#[cfg(test)]
mod tests {
    use super::super::QueueBoundConfig;
    use super::super::tests::{PACKET, packet};
    use super::*;

    const RTT: Duration = Duration::from_millis(200);

    /// Flights of ten packets in each fourth round trip over 40 Mbit/s and 200 ms, so far `apart` when they come to the link; the last loses one.
    fn paced_to(apart: Rate) -> f64 {
        let mut bound = QueueBound::new(QueueBoundConfig::default());
        let link = Rate::from_mbps(40.0);
        let mut now = Instant::ZERO;
        for flight in 1..=20 {
            let mut left = Instant::ZERO;
            for n in 0..10 {
                let sent = Instant::ZERO + RTT * 4 * flight + apart.time_for(PACKET) * n;
                left = left.max(sent) + link.time_for(PACKET);
                now = left + RTT;
                let rtt = now.saturating_since(sent);
                bound.on_ack(&packet(now, rtt, (9 - n) * PACKET));
            }
        }
        bound.on_loss(now, PACKET, None);
        bound.pace(now).unwrap().0.as_mbps()
    }

    #[test]
    fn a_burst_tells_of_the_link_though_its_server_sends_little() {
        let rate = paced_to(Rate::from_mbps(1_000.0));
        assert!((45.0..55.0).contains(&rate), "{rate}");
    }

    #[test]
    fn where_nothing_waits_only_the_server_s_rate_is_known() {
        let rate = paced_to(Rate::from_mbps(30.0));
        assert!(rate < 5.0, "{rate}");
    }
}
