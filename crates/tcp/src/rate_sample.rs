//! The delivery rate (as in Linux; draft-cheng-iccrg-delivery-rate-estimation).

use paceline_wire::{Duration, Instant, Rate};

use crate::scoreboard::{Mark, Segment, SendStamp};

/// Counts of deliveries, from which each ACK takes a sample.
#[derive(Clone, Debug, Default, serde::Serialize, serde::Deserialize)]
pub(crate) struct DeliveryRate {
    delivered: u64,
    delivered_at: Instant,
    first_sent_at: Instant,
    /// `delivered` when the last packet of an application-limited phase will have arrived; zero outside one.
    app_limited: u64,
}

/// The delivery rate by one ACK.
#[derive(Clone, Copy, Debug, Default)]
pub struct RateSample {
    /// Packets delivered over the interval; `None` where there is no valid sample.
    pub delivered: Option<u64>,
    /// The longer of two times: the time to send these packets, and the time to acknowledge them.
    pub interval: Duration,
    /// Packets delivered when the newest delivered segment was sent.
    pub prior_delivered: u64,
    /// True if the sender had too little to send when that segment was sent.
    pub is_app_limited: bool,
    /// True if that segment was a retransmission.
    pub is_retransmitted: bool,
}

/// Gathers the sample of one ACK.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct RateGather {
    prior_delivered: u64,
    prior_at: Option<Instant>,
    sent_at: Instant,
    last_end: u64,
    send_interval: Duration,
    is_app_limited: bool,
    is_retransmitted: bool,
}

impl RateGather {
    /// A segment was delivered (tcp_rate_skb_delivered): the one sent last counts.
    pub(crate) fn on_delivered(&mut self, segment: &Segment) {
        if segment.delivered_at == Instant::ZERO {
            return;
        }
        if self.prior_at.is_some() && (segment.sent_at, segment.end) <= (self.sent_at, self.last_end) {
            return;
        }
        self.prior_delivered = segment.delivered;
        self.prior_at = Some(segment.delivered_at);
        self.sent_at = segment.sent_at;
        self.last_end = segment.end;
        self.send_interval = segment.sent_at.saturating_since(segment.first_sent_at);
        self.is_app_limited = segment.mark.contains(Mark::APP_LIMITED);
        self.is_retransmitted = segment.mark.contains(Mark::EVER_RETRANSMITTED);
    }

    /// Packets delivered when the newest of these segments was sent; `None` without any.
    pub(crate) fn prior_delivered(&self) -> Option<u64> {
        self.prior_at.map(|_| self.prior_delivered)
    }
}

impl DeliveryRate {
    /// The stamp of a packet that is sent now (tcp_rate_skb_sent). `idle`: nothing is in flight.
    pub(crate) fn stamp(&mut self, now: Instant, idle: bool) -> SendStamp {
        if idle {
            self.first_sent_at = now;
            self.delivered_at = now;
        }
        SendStamp {
            now,
            delivered: self.delivered,
            // Zero means "counted already"; a stamp at the epoch is moved by a nanosecond.
            delivered_at: self.delivered_at.max(Instant::from_nanos(1)),
            first_sent_at: self.first_sent_at,
            app_limited: self.app_limited != 0,
        }
    }

    /// Packets delivered so far.
    pub(crate) fn delivered(&self) -> u64 {
        self.delivered
    }

    /// Counts packets delivered.
    pub(crate) fn on_delivered(&mut self, packets: u32) {
        self.delivered += u64::from(packets);
    }

    /// The sender has run out of data with `in_flight` packets on their way (tcp_rate_check_app_limited).
    pub(crate) fn on_app_limited(&mut self, in_flight: u32) {
        self.app_limited = (self.delivered + u64::from(in_flight)).max(1);
    }

    /// True in an application-limited phase.
    pub(crate) fn is_app_limited(&self) -> bool {
        self.app_limited != 0
    }

    /// The sample of an ACK that delivered `newly` packets (tcp_rate_gen).
    pub(crate) fn sample(
        &mut self,
        now: Instant,
        newly: u32,
        gather: &RateGather,
        min_rtt: Duration,
    ) -> RateSample {
        if self.app_limited != 0 && self.delivered > self.app_limited {
            self.app_limited = 0;
        }
        if newly > 0 {
            self.delivered_at = now;
        }
        let Some(prior_at) = gather.prior_at else { return RateSample::default() };
        self.first_sent_at = gather.sent_at;
        let interval = gather.send_interval.max(now.saturating_since(prior_at));
        // An interval shorter than the shortest RTT is an artefact of a lost and retransmitted packet.
        let valid = interval >= min_rtt && !interval.is_zero();
        RateSample {
            delivered: valid.then_some(self.delivered - gather.prior_delivered),
            interval,
            prior_delivered: gather.prior_delivered,
            is_app_limited: gather.is_app_limited,
            is_retransmitted: gather.is_retransmitted,
        }
    }
}

impl RateSample {
    /// The rate for packets of this size.
    pub fn rate(&self, packet_bytes: u32) -> Option<Rate> {
        Some(Rate::from_bytes_in(self.delivered? * u64::from(packet_bytes), self.interval))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::scoreboard::Scoreboard;

    #[test]
    fn a_steady_stream_is_measured_at_its_rate() {
        let mut rate = DeliveryRate::default();
        let mut board = Scoreboard::new(0, 1_000);
        let ms = |n: u64| Instant::ZERO + Duration::from_millis(n);
        let mut last = None;
        // One packet a millisecond, 50 ms on the way.
        for n in 0..200u64 {
            if n >= 50 {
                let mut gather = RateGather::default();
                let newly = board.acknowledge((n - 49) * 1_000, |segment| gather.on_delivered(segment));
                rate.on_delivered(newly);
                last = Some(rate.sample(ms(n), newly, &gather, Duration::from_millis(50)));
            }
            let stamp = rate.stamp(ms(n), board.is_empty());
            board.push((n + 1) * 1_000, false, stamp);
        }
        let rate = last.and_then(|sample| sample.rate(1_000));
        assert_eq!(rate, Some(Rate::from_bytes_per_sec(1_000_000)));
    }
}
