//! The round trips on both sides of the gateway.

use paceline_wire::{Duration, Instant};

use crate::rtt::RttEstimator;
use crate::server_rtt::ServerRtt;

/// Our choice: the least time that a timeout waits beyond the RTT. It is less than a server's 200 ms, so that the
/// gateway is first. It is more than a radio scheduler holds back (some tens of ms).
pub(super) const VARIATION_MIN: Duration = Duration::from_millis(100);

/// The shortest timeout of RFC 6298, Section 2.4.
const STANDSTILL_MIN: Duration = Duration::from_secs(1);

/// The round trips of one flow.
#[derive(Clone, Debug, serde::Serialize, serde::Deserialize)]
pub(super) struct RoundTrips {
    /// To the client.
    rtt: RttEstimator,
    /// The newest of its samples, until an ACK leaves for the server.
    rtt_sample: Option<Duration>,
    /// When the client was heard last.
    #[serde(default)]
    heard_at: Instant,
    /// Begin and end of the newest standstill, to be compared with departures.
    #[serde(default)]
    stood: (Instant, Instant),
    #[serde(rename = "server_rtt")]
    pub(super) server: ServerRtt,
}

impl RoundTrips {
    pub(super) fn new() -> Self {
        RoundTrips {
            rtt: RttEstimator::default(),
            rtt_sample: None,
            heard_at: Instant::ZERO,
            stood: (Instant::ZERO, Instant::ZERO),
            server: ServerRtt::new(),
        }
    }

    /// The smoothed RTT to the client, if one was measured.
    pub(super) fn smoothed(&self) -> Option<Duration> {
        self.rtt.smoothed()
    }

    /// The deviation of the RTT to the client.
    pub(super) fn deviation(&self) -> Duration {
        self.rtt.deviation()
    }

    /// How much longer than the shortest the round trips to the server are on average.
    pub(super) fn server_jitter(&self) -> Duration {
        self.server.jitter()
    }

    /// The round trip to the server.
    pub(super) fn of_server(&self) -> Duration {
        self.server.get()
    }

    /// Takes the round trip of a SYN that left at `sent_at` and is answered now.
    pub(super) fn on_handshake(&mut self, sent_at: Instant, now: Instant) -> Duration {
        self.rtt.on_sample(sent_at, now)
    }

    /// Takes the round trip of data that left once, at `sent_at`, and is reported now.
    pub(super) fn on_sample(&mut self, sent_at: Instant, now: Instant) -> Duration {
        let rtt = now.saturating_since(sent_at);
        self.rtt_sample = Some(rtt);
        self.rtt.on_sample(sent_at + self.stood_for(sent_at), now);
        rtt
    }

    /// Notes that the client is heard. The oldest packet in flight left at `oldest`. Our choice: the time in which the
    /// link stood still is no part of a round trip. A standstill is a silence longer than a timeout and than a second
    /// (RFC 6298, Section 2.4). All of it but the last round trip is taken off. Without this the next timeout was as
    /// long as the standstill. If everything that left at its end was lost, nothing else told of that. BBR stood still
    /// for seven more seconds after an outage of 2.8 s. A second silence within two round trips of the first is a
    /// longer path. A silence of less than a second is as often another flow's queue.
    pub(super) fn on_report(&mut self, now: Instant, oldest: Option<Instant>) {
        let heard_at = core::mem::replace(&mut self.heard_at, now);
        let (Some(oldest), Some(rtt)) = (oldest, self.smoothed()) else { return };
        let since = heard_at.max(oldest);
        let is_silence = now.saturating_since(since) > (rtt + self.variation()).max(STANDSTILL_MIN);
        if is_silence && heard_at.saturating_since(self.stood.1) > rtt * 2 {
            self.stood = (since, now - rtt);
        }
    }

    /// Returns how long the link stood still after `sent_at`.
    fn stood_for(&self, sent_at: Instant) -> Duration {
        self.stood.1.saturating_since(self.stood.0.max(sent_at))
    }

    /// Returns how long a timeout waits beyond the round trip.
    pub(super) fn variation(&self) -> Duration {
        (self.deviation() * 4).max(VARIATION_MIN)
    }

    /// Takes the newest sample that the virtual window has not seen.
    pub(super) fn take_sample(&mut self) -> Option<Duration> {
        self.rtt_sample.take()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn how_long_a_link_stood_still_is_no_part_of_a_round_trip() {
        let at = |ms| Instant::ZERO + Duration::from_millis(ms);
        let mut round_trips = RoundTrips::new();
        let mut ack = |sent: u64, now: u64| {
            round_trips.on_report(at(now), Some(at(sent)));
            (round_trips.on_sample(at(sent), at(now)), round_trips.smoothed())
        };
        let usual = Duration::from_millis(80);
        (0..50).for_each(|n| assert_eq!(ack(1_000 + 10 * n, 1_080 + 10 * n).1, Some(usual)));
        // Nothing for two seconds, then the data that waited.
        for n in 0..20 {
            let (sample, smoothed) = ack(1_500 + n, 3_500 + n);
            assert_eq!(sample, Duration::from_secs(2));
            assert!(smoothed.unwrap() < usual * 2, "{smoothed:?}");
        }
    }

    #[test]
    fn a_longer_path_is_learnt_by_the_second_flight() {
        let at = |ms| Instant::ZERO + Duration::from_millis(ms);
        let mut round_trips = RoundTrips::new();
        // One flight per round trip, which is 80 ms and then 1,400 ms.
        let mut flight = |sent: u64, rtt: u64| {
            for n in 0..3 {
                round_trips.on_report(at(sent + rtt + n), Some(at(sent)));
                round_trips.on_sample(at(sent), at(sent + rtt + n));
            }
            round_trips.smoothed().unwrap_or_default()
        };
        (1..20).for_each(|n| assert!(flight(80 * n, 80) < Duration::from_millis(82)));
        assert!(flight(1_602, 1_400) < Duration::from_millis(82));
        assert!(flight(3_004, 1_400) > Duration::from_millis(240));
    }

    #[test]
    fn a_pause_of_the_server_is_no_standstill() {
        let at = |ms| Instant::ZERO + Duration::from_millis(ms);
        let mut round_trips = RoundTrips::new();
        for (sent, now) in [(1_000, 1_080), (9_000, 9_160)] {
            round_trips.on_report(at(now), Some(at(sent)));
            round_trips.on_sample(at(sent), at(now));
        }
        assert_eq!(round_trips.smoothed(), Some(Duration::from_millis(90)));
    }
}
