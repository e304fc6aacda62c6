//! Connection state that belongs neither to the sender nor to the receiver.

use paceline_wire::{Duration, Flags, Instant, Seq};

use crate::rtt::{RTO_INITIAL, RTO_MAX};
use crate::segment::Incoming;

/// The SYN or SYN-ACK, until it is acknowledged.
#[derive(Clone, Copy, Debug, Default, serde::Serialize, serde::Deserialize)]
pub(super) struct Handshake {
    /// It waits to be sent.
    pub(super) due: bool,
    /// When it was first sent.
    pub(super) first_sent: Option<Instant>,
    /// When it was sent last.
    #[serde(default)]
    pub(super) last_sent: Instant,
    /// Time from its last transmission to the answer, if it was sent more than once. This is no RTT sample (Karn), but
    /// the only measurement for a peer that only sends.
    #[serde(default)]
    pub(super) answered_in: Duration,
    /// Time of the next retransmission.
    pub(super) timer: Option<Instant>,
    pub(super) retransmissions: u32,
    /// It was sent more than once, because its timer expired or because the peer repeated its SYN.
    #[serde(default)]
    pub(super) resent: bool,
    /// It is retransmitted only on request.
    #[serde(default)]
    pub(super) on_demand: bool,
    pub(super) peer_mss: Option<u16>,
}

impl Handshake {
    pub(super) fn start(&mut self) {
        self.due = true;
    }

    /// Notes its transmission. The timeout is one second at first (RFC 6298, Section 2.1), then doubles.
    pub(super) fn on_sent(&mut self, now: Instant) {
        self.due = false;
        self.resent |= self.first_sent.is_some();
        self.first_sent.get_or_insert(now);
        self.last_sent = now;
        let delay = match self.on_demand {
            true => DEMAND_MAX,
            false => (RTO_INITIAL * (1 << self.retransmissions.min(10))).min(RTO_MAX),
        };
        self.timer = Some(now + delay);
    }

    /// Retransmits it if its timer has expired. False if it was sent too often.
    pub(super) fn on_timeout(&mut self, now: Instant, retries: u32) -> bool {
        if self.timer.is_none_or(|at| at > now) {
            return true;
        }
        self.timer = None;
        if self.on_demand {
            return false;
        }
        self.retransmissions += 1;
        self.due = true;
        self.retransmissions <= retries
    }
}

/// Linux waits this long after its last but one SYN (net.ipv4.tcp_syn_retries). A host that has not repeated its SYN by
/// then has given up.
const DEMAND_MAX: Duration = Duration::from_secs(64);

/// True if a segment requests a connection.
pub(super) fn opens(incoming: &Incoming) -> bool {
    incoming.has(Flags::SYN) && !incoming.flags.intersects(Flags::ACK | Flags::RST | Flags::FIN)
}

/// Timers that belong neither to the sender nor to the receiver.
#[derive(Clone, Copy, Debug, Default, serde::Serialize, serde::Deserialize)]
pub(super) struct Timers {
    pub(super) time_wait: Option<Instant>,
    pub(super) keep_alive_probes: u32,
    /// When the last probe was sent.
    pub(super) keep_alive_sent: Option<Instant>,
}

impl Timers {
    /// Starts TIME-WAIT, or restarts it.
    pub(super) fn restart_time_wait(&mut self, now: Instant, length: Duration) {
        self.time_wait = Some(now + length);
    }

    /// A segment shows that the peer is alive.
    pub(super) fn on_received(&mut self) {
        self.keep_alive_probes = 0;
        self.keep_alive_sent = None;
    }
}

/// Segments to send besides data and ACKs.
#[derive(Clone, Copy, Debug, Default, serde::Serialize, serde::Deserialize)]
pub(super) struct Pending {
    /// A reset with this sequence number.
    pub(super) reset: Option<Seq>,
    /// A reset that ends this connection.
    pub(super) abort: bool,
    pub(super) challenge: bool,
    last_challenge: Option<Instant>,
    /// A keep-alive probe of an idle peer.
    pub(super) keep_alive: bool,
}

/// Linux net.ipv4.tcp_invalid_ratelimit.
const CHALLENGE_INTERVAL: Duration = Duration::from_millis(500);

impl Pending {
    /// Refuses a segment (RFC 9293, Section 3.5.2).
    pub(super) fn reset_at(&mut self, seq: Seq) {
        self.reset = Some(seq);
    }

    /// Ends the connection with a reset.
    pub(super) fn abort(&mut self) {
        self.abort = true;
    }

    pub(super) fn resets(&self) -> bool {
        self.reset.is_some() || self.abort
    }

    pub(super) fn is_empty(&self) -> bool {
        !self.resets() && !self.challenge && !self.keep_alive
    }

    /// Sends a challenge ACK at a limited rate (RFC 5961, Section 10).
    pub(super) fn challenge(&mut self, now: Instant) {
        if self.last_challenge.is_none_or(|last| now.saturating_since(last) >= CHALLENGE_INTERVAL) {
            self.last_challenge = Some(now);
            self.challenge = true;
        }
    }
}

/// Congestion echoes that the receiver owes the peer.
#[derive(Clone, Copy, Debug, Default, serde::Serialize, serde::Deserialize)]
pub(super) struct Echo {
    /// ECE in every segment, until the peer says that it has reduced its window (Linux TCP_ECN_DEMAND_CWR).
    pub(super) due: bool,
    /// Number of data segments that arrived with CE.
    pub(super) ce_received: u64,
    /// True if the last ABC data arrived as ECT(1), false if as ECT(0). `None` before the first ECT(1).
    #[serde(default)]
    pub(super) accelerate: Option<bool>,
}
