//! Bytes acknowledged to the server whose resulting new data has not arrived yet.

use paceline_wire::{Duration, Instant};

/// An acknowledgement sent to the server.
#[derive(Clone, Copy, Debug, serde::Serialize, serde::Deserialize)]
struct SentAck {
    at: Instant,
    ack: u64,
}

/// Watches one flow. The server answers an ACK within the round trip between it and the gateway. The path may at times
/// be slower than its shortest round trip. So acknowledged bytes count for one to three round trips.
#[derive(Clone, Copy, Debug, serde::Serialize, serde::Deserialize)]
pub(crate) struct UnansweredAcks {
    /// The newest acknowledgement sent.
    last: SentAck,
    /// Start of the present span, and the position acknowledged before it. This position is the next to count as
    /// answered.
    span: SentAck,
    /// The position up to which the server is taken to have answered.
    answered: u64,
}

impl UnansweredAcks {
    /// For a stream that starts at `position`.
    pub(crate) fn new(position: u64) -> Self {
        let told = SentAck { at: Instant::ZERO, ack: position };
        UnansweredAcks { last: told, span: told, answered: position }
    }

    /// Notes that bytes up to `ack` are acknowledged to the server, which is `server_rtt` away. Returns the bytes that
    /// are not answered yet.
    pub(crate) fn on_ack(&mut self, now: Instant, ack: u64, server_rtt: Duration) -> u64 {
        if now.saturating_since(self.last.at) >= server_rtt {
            self.answered = self.last.ack;
            self.span = SentAck { at: now, ack: self.last.ack };
        } else if now.saturating_since(self.span.at) >= server_rtt {
            self.answered = self.span.ack;
            self.span = SentAck { at: now, ack: self.last.ack };
        }
        self.last = SentAck { at: now, ack: self.last.ack.max(ack) };
        self.last.ack - self.answered
    }
}

#[cfg(test)]
mod tests {
    use alloc::vec;

    use proptest::prelude::*;

    use super::*;

    const RTT: Duration = Duration::from_millis(20);

    fn at(ms: u64) -> Instant {
        Instant::ZERO + Duration::from_millis(1_000 + ms)
    }

    #[test]
    fn a_flight_that_is_acknowledged_at_once_is_unanswered_as_a_whole() {
        let mut unanswered = UnansweredAcks::new(0);
        let flight = |unanswered: &mut UnansweredAcks, start, from: u64, count| {
            (1..=count).map(|n| unanswered.on_ack(at(start + n), from + 1_000 * n, RTT)).last()
        };
        assert_eq!(flight(&mut unanswered, 0, 0, 10), Some(10_000));
        assert_eq!(flight(&mut unanswered, 100, 10_000, 18), Some(18_000));
    }

    proptest! {
        /// It is at least the bytes acknowledged in the last round trip, and at most those of the last three.
        #[test]
        fn it_lies_between_one_round_trip_and_three(steps in prop::collection::vec((0u64..30, 0u64..5_000), 1..200)) {
            let mut unanswered = UnansweredAcks::new(0);
            let (mut now, mut ack, mut told) = (at(0), 0, vec![(Instant::ZERO, 0)]);
            for (gap, bytes) in steps {
                now += Duration::from_millis(gap);
                ack += bytes;
                let found = unanswered.on_ack(now, ack, RTT);
                told.push((now, ack));
                let since = |age: Duration| {
                    ack - told.iter().rev().find(|(at, _)| now.saturating_since(*at) >= age).map_or(0, |told| told.1)
                };
                prop_assert!(found >= since(RTT) && found <= since(RTT * 3), "{found} at {now:?}");
            }
        }
    }
}
