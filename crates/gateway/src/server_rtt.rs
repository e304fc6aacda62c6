//! The round-trip time between server and gateway, from packets that pass anyway.

use paceline_wire::{Duration, Instant};

use crate::rtt_min::RttMin;

/// Measures the server's side of one flow.
#[derive(Clone, Debug)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
pub(crate) struct ServerRtt {
    minimum: RttMin,
    /// A SYN or a timestamped ACK that left for the server, and what its answer will echo.
    probe: Option<(Instant, Option<u32>)>,
}

/// Routes change seldom; RTT samples of a busy server are late, never early.
const WINDOW: Duration = Duration::from_secs(30);

impl ServerRtt {
    /// Knows nothing yet.
    pub(crate) fn new() -> Self {
        ServerRtt { minimum: RttMin::new(WINDOW), probe: None }
    }

    /// A SYN or SYN-ACK leaves for the server.
    pub(crate) fn on_handshake_sent(&mut self, now: Instant) {
        self.probe = Some((now, None));
    }

    /// The server's answer to it.
    pub(crate) fn on_handshake_answered(&mut self, now: Instant) {
        if let Some((sent_at, None)) = self.probe.take() {
            self.minimum.update(now, now.saturating_since(sent_at));
        }
    }

    /// A packet with timestamp `value` leaves for the server: one is watched at a time.
    pub(crate) fn on_sent(&mut self, now: Instant, value: u32) {
        let stale =
            self.probe.is_none_or(|(sent_at, _)| now.saturating_since(sent_at) > Duration::from_secs(1));
        if stale {
            self.probe = Some((now, Some(value)));
        }
    }

    /// New data of the server echoes timestamp `echo` (RFC 7323, Section 4).
    pub(crate) fn on_data(&mut self, now: Instant, echo: u32) {
        if let Some((sent_at, Some(value))) = self.probe
            && echo.wrapping_sub(value) as i32 >= 0
        {
            self.minimum.update(now, now.saturating_since(sent_at));
            self.probe = None;
        }
    }

    /// The shortest of late; zero while unknown.
    pub(crate) fn get(&self) -> Duration {
        self.minimum.get().unwrap_or(Duration::ZERO)
    }
}
