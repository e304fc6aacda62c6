//! The round-trip time between server and gateway, from packets that pass anyway.

use paceline_wire::{Duration, Instant};

use crate::rtt_min::RttMin;

/// Measures the server's side of one flow.
#[derive(Clone, Debug, serde::Serialize, serde::Deserialize)]
pub(crate) struct ServerRtt {
    minimum: RttMin,
    /// How much longer than the shortest the round trips are on average.
    #[serde(default)]
    jitter: Duration,
    /// Departure of a SYN or a timestamped ACK to the server, and the timestamp that its answer will echo.
    probe: Option<(Instant, Option<u32>)>,
    /// The newest timestamp that left for the server.
    newest: Option<u32>,
}

/// Routes seldom change. RTT samples of a busy server may be too long, never too short.
const WINDOW: Duration = Duration::from_secs(30);

/// Our choice: a longer excess is a pause of the server, as when its window is full while the radio fades.
const JITTER_MAX: Duration = Duration::from_millis(40);

impl ServerRtt {
    /// Starts without samples.
    pub(crate) fn new() -> Self {
        ServerRtt { minimum: RttMin::new(WINDOW), jitter: Duration::ZERO, probe: None, newest: None }
    }

    /// Notes that a SYN or SYN-ACK leaves for the server.
    pub(crate) fn on_handshake_sent(&mut self, now: Instant) {
        self.probe = Some((now, None));
    }

    /// Takes the server's answer to it.
    pub(crate) fn on_handshake_answered(&mut self, now: Instant) {
        if let Some((sent_at, None)) = self.probe.take() {
            self.minimum.update(now, now.saturating_since(sent_at));
        }
    }

    /// Notes that a packet with timestamp `value` leaves for the server. One is watched at a time, and only the first
    /// of a tick. The answer to the first counts for all of the tick, but acknowledgements may leave much later: they
    /// wait here, window updates do not.
    pub(crate) fn on_sent(&mut self, now: Instant, value: u32) {
        let is_first = self.newest.is_none_or(|newest| value.wrapping_sub(newest) as i32 > 0);
        if !is_first {
            return;
        }
        self.newest = Some(value);
        let stale =
            self.probe.is_none_or(|(sent_at, _)| now.saturating_since(sent_at) > Duration::from_secs(1));
        if stale {
            self.probe = Some((now, Some(value)));
        }
    }

    /// Takes new data of the server, which echoes timestamp `echo` (RFC 7323, Section 4).
    pub(crate) fn on_data(&mut self, now: Instant, echo: u32) {
        if let Some((sent_at, Some(value))) = self.probe
            && echo.wrapping_sub(value) as i32 >= 0
        {
            let sample = now.saturating_since(sent_at);
            self.minimum.update(now, sample);
            let excess = sample.saturating_sub(self.get());
            if excess <= JITTER_MAX {
                // The gain of RFC 6298, Section 2.3.
                self.jitter = self.jitter.mul_ratio(7, 8) + excess / 8;
            }
            self.probe = None;
        }
    }

    /// How much longer than [`Self::get`] the round trips are on average.
    pub(crate) fn jitter(&self) -> Duration {
        self.jitter
    }

    /// The shortest round trip of late; zero while unknown.
    pub(crate) fn get(&self) -> Duration {
        self.minimum.get().unwrap_or(Duration::ZERO)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn jitter_is_the_mean_excess_over_the_shortest() {
        let mut rtt = ServerRtt::new();
        for n in 0..100u32 {
            let sent_at = Instant::ZERO + Duration::from_millis(5_000 + 100 * u64::from(n));
            rtt.on_sent(sent_at, n);
            rtt.on_data(sent_at + Duration::from_millis(if n % 2 == 0 { 10 } else { 50 }), n);
        }
        assert_eq!(rtt.get(), Duration::from_millis(10));
        let jitter = rtt.jitter();
        assert!((17..23).contains(&jitter.as_millis()), "{jitter:?}");
        // A pause of the server.
        let sent_at = Instant::ZERO + Duration::from_secs(16);
        rtt.on_sent(sent_at, 100);
        rtt.on_data(sent_at + Duration::from_millis(300), 100);
        assert_eq!(rtt.jitter(), jitter);
    }

    #[test]
    fn only_the_first_packet_of_a_tick_is_watched() {
        let at = |ms: u64| Instant::ZERO + Duration::from_millis(5_000 + ms);
        let mut rtt = ServerRtt::new();
        rtt.on_sent(at(0), 100);
        rtt.on_data(at(30), 100);
        // A window update leaves at once, the acknowledgement of the same tick 19 ms later.
        rtt.on_sent(at(40), 107);
        rtt.on_data(at(70), 107);
        rtt.on_sent(at(71), 108);
        rtt.on_sent(at(90), 108);
        rtt.on_data(at(101), 108);
        rtt.on_sent(at(102), 108);
        rtt.on_data(at(103), 108);
        assert_eq!(rtt.get(), Duration::from_millis(30));
    }
}
