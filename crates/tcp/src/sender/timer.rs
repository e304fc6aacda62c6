//! The state of the sender's one timer and of the tail loss probe.

use paceline_wire::{Duration, Instant};

use crate::scoreboard::Scoreboard;

/// Purpose of the timer.
#[derive(Clone, Copy, PartialEq, Eq, Debug, serde::Serialize, serde::Deserialize)]
pub(crate) enum TimerKind {
    /// RFC 6298.
    Retransmission,
    /// RFC 8985, Section 6.2, step 5.
    Reordering,
    /// RFC 8985, Section 7.
    Probe,
    /// RFC 9293, Section 3.8.6.1.
    Persist,
}

/// The timer and the counts of its expiries.
#[derive(Clone, Copy, Debug, Default, serde::Serialize, serde::Deserialize)]
pub(crate) struct Timer {
    #[serde(rename = "timer")]
    pub(super) due: Option<(TimerKind, Instant)>,
    pub(crate) backoff: u32,
    pub(crate) retransmits: u32,
    /// How long sent data may stay unacknowledged, if the application has set a limit (RFC 9293, Section 3.8.3: R2).
    #[serde(default)]
    pub(crate) user_timeout: Option<Duration>,
    /// Since when the peer owes an answer. Valid only while `retransmits` or `probes_out` is above zero.
    #[serde(default)]
    pub(super) unanswered_since: Instant,
    pub(crate) probes_out: u32,
    pub(crate) window_probe: bool,
}

impl Timer {
    /// Sets the timer, but not beyond the user timeout (tcp_clamp_rto_to_user_timeout).
    pub(super) fn set(&mut self, kind: TimerKind, at: Instant) {
        let end = match self.user_timeout {
            Some(limit) if self.retransmits > 0 => self.unanswered_since + limit,
            _ => at,
        };
        self.due = Some((kind, at.min(end)));
    }

    pub(super) fn set_reordering(&mut self, at: Instant) {
        self.due = Some((TimerKind::Reordering, at));
    }

    pub(super) fn is(&self, kind: TimerKind) -> bool {
        self.due.is_some_and(|(set, _)| set == kind)
    }

    /// Notes the departure of the first segment before it is retransmitted.
    pub(super) fn note_unanswered(&mut self, now: Instant, board: &Scoreboard) {
        self.unanswered_since = board.head().map_or(now, |segment| segment.sent_at);
    }

    /// True after `most` tries, or once the user timeout has passed.
    pub(super) fn gives_up(&self, now: Instant, tries: u32, most: u32) -> bool {
        let waited = now.saturating_since(self.unanswered_since);
        tries >= most || self.user_timeout.is_some_and(|limit| tries > 0 && waited >= limit)
    }
}

/// The outstanding tail loss probe.
#[derive(Clone, Copy, Debug, Default, serde::Serialize, serde::Deserialize)]
pub(super) struct TailProbe {
    /// SND.NXT when it left (TLP.end_seq).
    #[serde(rename = "tlp_high_seq")]
    pub(super) high_seq: Option<u64>,
    /// The probe was a retransmission (TLP.is_retrans).
    #[serde(rename = "tlp_retransmitted")]
    pub(super) retransmitted: bool,
}
