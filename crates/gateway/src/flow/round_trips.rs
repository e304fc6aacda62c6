//! The round trips on both sides of the gateway.

use paceline_wire::{Duration, Instant};

use crate::rtt::RttEstimator;
use crate::server_rtt::ServerRtt;

/// Those of one flow.
#[derive(Clone, Debug, serde::Serialize, serde::Deserialize)]
pub(super) struct RoundTrips {
    /// To the client.
    rtt: RttEstimator,
    /// The newest of its samples, until an ACK leaves for the server.
    rtt_sample: Option<Duration>,
    #[serde(rename = "server_rtt")]
    pub(super) server: ServerRtt,
}

impl RoundTrips {
    pub(super) fn new() -> Self {
        RoundTrips { rtt: RttEstimator::default(), rtt_sample: None, server: ServerRtt::new() }
    }

    /// To the client, if one was measured.
    pub(super) fn smoothed(&self) -> Option<Duration> {
        self.rtt.smoothed()
    }

    /// Of those to the client.
    pub(super) fn deviation(&self) -> Duration {
        self.rtt.deviation()
    }

    /// To the server.
    pub(super) fn of_server(&self) -> Duration {
        self.server.get()
    }

    /// A SYN is answered that left at `sent_at`.
    pub(super) fn on_handshake(&mut self, sent_at: Instant, now: Instant) -> Duration {
        self.rtt.on_sample(sent_at, now)
    }

    /// The client reports what left once, at `sent_at`.
    pub(super) fn on_sample(&mut self, sent_at: Instant, now: Instant) -> Duration {
        let rtt = self.rtt.on_sample(sent_at, now);
        self.rtt_sample = Some(rtt);
        rtt
    }

    /// The newest sample of which the virtual window has not heard.
    pub(super) fn take_sample(&mut self) -> Option<Duration> {
        self.rtt_sample.take()
    }
}
