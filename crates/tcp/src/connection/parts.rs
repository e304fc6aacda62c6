//! The parts of a connection's state that are neither the sender's nor the receiver's.

use paceline_wire::{Duration, Flags, Instant, Seq};

use crate::rtt::{RTO_INITIAL, RTO_MAX};
use crate::segment::Incoming;

/// The SYN or SYN-ACK, until it is acknowledged.
#[derive(Clone, Copy, Debug, Default, serde::Serialize, serde::Deserialize)]
pub(super) struct Handshake {
    /// It is to be sent.
    pub(super) due: bool,
    /// When it was first sent.
    pub(super) first_sent: Option<Instant>,
    /// When it was sent last.
    #[serde(default)]
    pub(super) last_sent: Instant,
    /// How long after its newest copy the answer came, where it was sent more than once: no sample (Karn), but all that is known of a peer that only sends.
    #[serde(default)]
    pub(super) answered_in: Duration,
    /// When it goes again.
    pub(super) timer: Option<Instant>,
    pub(super) retransmissions: u32,
    /// It was sent more than once, by its timer or because the peer's SYN came again.
    #[serde(default)]
    pub(super) resent: bool,
    /// It leaves again only when somebody asks for it.
    #[serde(default)]
    pub(super) on_demand: bool,
    pub(super) peer_mss: Option<u16>,
}

impl Handshake {
    pub(super) fn start(&mut self) {
        self.due = true;
    }

    /// It left (RFC 6298, Section 2.1: one second, then doubled).
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

    /// What is due. False when it was sent too often.
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

/// Linux waits so long after the last but one of its SYNs (net.ipv4.tcp_syn_retries): whoever has not asked again by then has given up.
const DEMAND_MAX: Duration = Duration::from_secs(64);

/// Whether a segment asks for a connection.
pub(super) fn opens(incoming: &Incoming) -> bool {
    incoming.has(Flags::SYN) && !incoming.flags.intersects(Flags::ACK | Flags::RST | Flags::FIN)
}

/// What is not the sender's or the receiver's.
#[derive(Clone, Copy, Debug, Default, serde::Serialize, serde::Deserialize)]
pub(super) struct Timers {
    pub(super) time_wait: Option<Instant>,
    pub(super) keep_alive_probes: u32,
    /// When the last probe was sent.
    pub(super) keep_alive_sent: Option<Instant>,
}

impl Timers {
    /// TIME-WAIT begins, or begins anew.
    pub(super) fn restart_time_wait(&mut self, now: Instant, length: Duration) {
        self.time_wait = Some(now + length);
    }

    /// The peer is alive.
    pub(super) fn on_received(&mut self) {
        self.keep_alive_probes = 0;
        self.keep_alive_sent = None;
    }
}

/// What waits to be sent beside data and ACKs.
#[derive(Clone, Copy, Debug, Default, serde::Serialize, serde::Deserialize)]
pub(super) struct Pending {
    /// A reset at this number.
    pub(super) reset: Option<Seq>,
    /// A reset of the connection.
    pub(super) abort: bool,
    pub(super) challenge: bool,
    last_challenge: Option<Instant>,
    /// A segment that the peer must answer: a probe of an idle peer.
    pub(super) keep_alive: bool,
}

/// Linux net.ipv4.tcp_invalid_ratelimit.
const CHALLENGE_INTERVAL: Duration = Duration::from_millis(500);

impl Pending {
    /// Refuses a segment (RFC 9293, Section 3.5.2).
    pub(super) fn reset_at(&mut self, seq: Seq) {
        self.reset = Some(seq);
    }

    /// Tells the peer that all is over.
    pub(super) fn abort(&mut self) {
        self.abort = true;
    }

    pub(super) fn resets(&self) -> bool {
        self.reset.is_some() || self.abort
    }

    pub(super) fn is_empty(&self) -> bool {
        !self.resets() && !self.challenge && !self.keep_alive
    }

    /// A challenge ACK, not too often (RFC 5961, Section 10).
    pub(super) fn challenge(&mut self, now: Instant) {
        if self.last_challenge.is_none_or(|last| now.saturating_since(last) >= CHALLENGE_INTERVAL) {
            self.last_challenge = Some(now);
            self.challenge = true;
        }
    }
}

/// What the receiving half owes the peer.
#[derive(Clone, Copy, Debug, Default, serde::Serialize, serde::Deserialize)]
pub(super) struct Echo {
    /// ECE in every segment, until the peer says that it has reduced its window (Linux TCP_ECN_DEMAND_CWR).
    pub(super) due: bool,
    /// Segments with data that came marked.
    pub(super) ce_received: u64,
    /// The last data came as ECT(1). `None` before any did.
    #[serde(default)]
    pub(super) accelerate: Option<bool>,
}
