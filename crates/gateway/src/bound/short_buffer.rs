//! Pacing before a buffer that is, or may be, too short for the bound: how much leaves at once, and how fast.

use paceline_wire::{Duration, Instant, Rate};

use super::{MIN_QUEUE, QueueBound, UNNOTICED};

/// Longest burst of a flow before a buffer known to be short, as in Linux's pacing (tcp_tso_autosize: a millisecond).
const SHORT_BURST: Duration = Duration::from_millis(1);

/// A quarter faster than the link, so that the rate can grow, as BBR probes (draft-ietf-ccwg-bbr, Section 4.3.3). With
/// a tenth or a half there were more drops and longer waits (docs/design/queue-bound.md).
const GAIN: (u64, u64) = (5, 4);
/// Slow start has twice what a round trip carried, and twice that again next. BBR starts with 2.77 (Section 4.3.1).
/// With a gain of 2.5 it was held at a tenth of a link that loses by chance, and had .25 of passing's throughput.
const GROWTH: (u64, u64) = (4, 1);

impl QueueBound {
    /// True if the link's buffer was found twice in a row, and is short.
    pub fn has_short_buffer(&self, now: Instant) -> bool {
        self.short && self.loss_test.is_buffer(now)
    }

    /// Returns rate and longest burst before a buffer that may be short, after recent losses. A server that gets many
    /// bytes acknowledged at once sends as many, and a short buffer loses most of them. Our choice: a burst takes half
    /// of the longest queue. Before a buffer known to be short, bursts are shorter. Of 300 drawn split paths 12 in
    /// place of 16 then had storms, and a third fewer packets were dropped. Each flow has a burst of its own. With one
    /// for all, four flows before 15 KB at 20 Mbit/s waited for 53 ms in place of 25 (p95). 778 in place of 583 of
    /// their packets were dropped.
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

    /// Returns the link's rate, and the factor by which packets may leave faster. While servers are the limit, or the
    /// rate grows, arrivals in a round trip show the servers' rate. A train then shows the link's.
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

    /// True if a buffer is short that overflowed with `outstanding` bytes in flight. The path holds `path` bytes
    /// without a queue. The longest queue of a varying link is that of its worst moment. So what fits at its usual rate
    /// counts too.
    pub(super) fn is_short(&self, rtt_min: Duration, path: u64, outstanding: u64) -> bool {
        let fits = path + self.known_rate().bytes_in(short_queue(rtt_min));
        self.may_be_short(rtt_min) || outstanding <= fits
    }

    /// True if no recent queue was longer than a short one.
    fn may_be_short(&self, rtt_min: Duration) -> bool {
        self.backoff.longest_queue(rtt_min) <= short_queue(rtt_min)
    }
}

/// Our choice of a short queue: half of a round trip, or a wait that users do not notice.
fn short_queue(rtt_min: Duration) -> Duration {
    (rtt_min / 2).max(UNNOTICED)
}

#[cfg(test)]
mod tests {
    use super::super::QueueBoundConfig;
    use super::super::tests::{PACKET, packet};
    use super::*;

    const RTT: Duration = Duration::from_millis(200);

    /// Sends flights of ten packets every fourth round trip over 40 Mbit/s and 200 ms. They come to the link at the
    /// rate `apart`; the last flight loses one. Returns the pace.
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
