//! The gateway's own timers: probe of a lost tail, retransmission timeout, probe of a closed window. Where the server
//! repairs, a timer limits how long data in flight counts.

use paceline_wire::{Duration, Instant};

use super::round_trips::{RoundTrips, VARIATION_MIN};
use crate::config::LINEAR_TIMEOUTS;

/// Before the first RTT sample (RFC 6298, Section 2.1).
const INITIAL: Duration = Duration::from_secs(1);
/// The delayed ACK of a Linux client takes 40 ms at least: a last segment is not late before that.
const DELAYED_ACK: Duration = Duration::from_millis(50);
/// The shortest timeout of RFC 6298, Section 2.4. Where the gateway repairs, [`VARIATION_MIN`] is enough. Where it does
/// not, the timer sends nothing, and there is no hurry.
const TIMEOUT_MIN: Duration = Duration::from_secs(1);
/// RFC 9293, Section 3.8.6.1, leaves the interval of window probes open. RFC 6298, Section 2.5, bounds a timeout at 60
/// s or more.
const INTERVAL_MAX: Duration = Duration::from_secs(60);

/// One flow's retransmission timer.
#[derive(Clone, Copy, Debug, Default, serde::Serialize, serde::Deserialize)]
pub(super) struct Timers {
    /// Last departure, or report of the client: the timer runs from here.
    since: Instant,
    /// The tail probe of this flight has left.
    probed: bool,
    /// Timeouts in a row.
    timeouts: u32,
    /// How often the interval has doubled: by timeouts beyond [`LINEAR_TIMEOUTS`], and by ACKs after timeouts. The next
    /// measured RTT resets it, not the next ACK (RFC 6298, Section 5; Karn and Partridge 1987, Section 4). If a path
    /// has become longer than the timer, each segment is retransmitted before it is acknowledged, and no ACK would ever
    /// tell the RTT.
    #[serde(default)]
    backoff: u32,
    /// After a timeout: only the first segment is sent until the client is heard.
    probing: bool,
    /// Probes of a closed window in a row.
    window_probes: u32,
    /// Where the server repairs: bytes in flight without an answer in time. They count again when the client is heard.
    #[serde(default)]
    unanswered: u64,
}

impl Timers {
    /// Notes a departure to the client. The timer runs from the last departure, as a tail probe does (RFC 8985). In RFC
    /// 6298, 5.1, a departure starts it only if it is not running.
    pub(super) fn on_sent(&mut self, now: Instant) {
        self.since = now;
    }

    /// The cumulative ACK advanced.
    pub(super) fn on_progress(&mut self, now: Instant) {
        let backoff = self.backoff + u32::from(self.timeouts > 0);
        *self = Timers { since: now, backoff, ..Timers::default() };
    }

    /// The client reported an arrival.
    pub(super) fn on_evidence(&mut self, now: Instant) {
        self.since = now;
        self.probing = false;
        self.probed = false;
        self.unanswered = 0;
    }

    /// An RTT was measured.
    pub(super) fn on_rtt(&mut self) {
        self.backoff = 0;
    }

    /// True if one packet at a time leaves.
    pub(super) fn is_probing(&self) -> bool {
        self.probing
    }

    /// True if the client has reported no arrival for a timeout.
    pub(super) fn is_silent(&self, window: u64) -> bool {
        self.probing || (window == 0 && self.window_probes > 0)
    }

    /// Returns how many of the bytes in flight count.
    pub(super) fn counted(&self, in_flight: u64) -> u64 {
        in_flight.saturating_sub(self.unanswered)
    }

    /// Allows a tail probe again before the next timeout.
    pub(super) fn allow_probe(&mut self) {
        self.probed = false;
    }

    /// Returns when the head is to be sent again, first as a probe of a lost tail.
    pub(super) fn retransmission_deadline(&self, round_trips: &RoundTrips) -> Instant {
        let Some(rtt) = round_trips.smoothed() else {
            return self.since + backed_off(INITIAL, self.backoff);
        };
        let deviation = round_trips.deviation() * 4;
        if !self.probed && self.backoff == 0 {
            return self.since + (rtt + deviation.max(DELAYED_ACK)).min(INTERVAL_MAX);
        }
        self.since + backed_off(rtt + round_trips.variation(), self.backoff)
    }

    /// When the bytes in flight no longer count, where the server repairs: after the timeout of RFC 6298, Section 2.
    pub(super) fn silence_deadline(&self, in_flight: u64, round_trips: &RoundTrips) -> Option<Instant> {
        if self.counted(in_flight) == 0 {
            return None;
        }
        let timeout = round_trips.smoothed().map_or(INITIAL, |rtt| rtt + round_trips.deviation() * 4);
        Some(self.since + timeout.clamp(TIMEOUT_MIN, INTERVAL_MAX))
    }

    /// The timer runs from here.
    pub(super) fn since(&self) -> Instant {
        self.since
    }

    /// Returns how long a probe of a closed window waits, by the round trip and its deviation.
    pub(super) fn window_probe_interval(&self, rtt: Duration, deviation: Duration) -> Duration {
        backed_off(rtt + (deviation * 4).max(VARIATION_MIN * 2), self.window_probes)
    }

    /// Notes that the client or the path is silent: what is in flight no longer counts.
    pub(super) fn on_silence(&mut self, in_flight: u64) {
        self.unanswered = in_flight;
    }

    /// A probe of a closed window leaves.
    pub(super) fn on_window_probe(&mut self, now: Instant) {
        self.since = now;
        self.window_probes += 1;
    }

    /// Handles the expiry, with or without a measured RTT. Returns timeouts in a row; `None` for a tail probe.
    pub(super) fn on_expiry(&mut self, now: Instant, is_measured: bool) -> Option<u32> {
        self.since = now;
        if !self.probed && self.backoff == 0 && is_measured {
            self.probed = true;
            return None;
        }
        self.timeouts += 1;
        self.backoff += u32::from(self.timeouts > LINEAR_TIMEOUTS);
        self.probing = true;
        Some(self.timeouts)
    }
}

fn backed_off(interval: Duration, doublings: u32) -> Duration {
    (interval * (1 << doublings.min(16))).min(INTERVAL_MAX)
}
