//! The phases of a flow, from its first SYN until it is forgotten.

use paceline_wire::{Duration, Instant};

use crate::status::FlowStage;

/// A closed flow is kept for retransmitted FINs, so that their windows are still rescaled: Linux's TIME-WAIT.
const CLOSED_LINGER: Duration = Duration::from_secs(60);
/// RFC 5382, REQ-5: not less than 4 minutes for a connection that is being opened.
const OPENING_TIMEOUT: Duration = Duration::from_secs(240);

/// The phase of a flow.
#[derive(Clone, Copy, Debug, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
pub(crate) enum Phase {
    /// SYNs are on their way.
    Opening,
    /// Both are through, or the flow was resumed.
    Open,
    /// Resumed after a restart: a packet of each end has yet to tell where the streams are.
    Resumed,
    /// Both FINs are acknowledged, or a RST passed: forgotten after a while.
    Closed,
}

/// The phase of a flow, and the times that belong to it.
#[derive(Clone, Copy, Debug, serde::Serialize, serde::Deserialize)]
pub(super) struct Lifecycle {
    phase: Phase,
    since: Instant,
    last_packet: Instant,
    /// True if it was open before the gateway started.
    was_resumed: bool,
    /// Repair was given up: the server's own recovery passes.
    gave_up: bool,
    /// How it ended, if it has.
    end: Option<FlowStage>,
}

impl Lifecycle {
    /// A flow whose first SYN comes now.
    pub(super) fn new(now: Instant) -> Self {
        Lifecycle {
            phase: Phase::Opening,
            since: now,
            last_packet: now,
            was_resumed: false,
            gave_up: false,
            end: None,
        }
    }

    pub(super) fn phase(&self) -> Phase {
        self.phase
    }

    pub(super) fn since(&self) -> Instant {
        self.since
    }

    pub(super) fn last_packet(&self) -> Instant {
        self.last_packet
    }

    pub(super) fn was_resumed(&self) -> bool {
        self.was_resumed
    }

    pub(super) fn gave_up(&self) -> bool {
        self.gave_up
    }

    /// Returns the stage that an operator is shown.
    pub(super) fn stage(&self) -> FlowStage {
        let opening = self.phase == Phase::Opening;
        self.end.unwrap_or(if opening { FlowStage::Opening } else { FlowStage::Open })
    }

    pub(super) fn on_packet(&mut self, now: Instant) {
        self.last_packet = now;
    }

    /// Marks it as open before a restart.
    pub(super) fn resume(&mut self) {
        (self.phase, self.was_resumed) = (Phase::Resumed, true);
    }

    /// Opens it: its streams are known.
    pub(super) fn open(&mut self) {
        self.phase = Phase::Open;
    }

    pub(super) fn give_up(&mut self) {
        self.gave_up = true;
    }

    /// Closes it. True if it was not closed before.
    pub(super) fn close(&mut self, end: FlowStage) -> bool {
        if self.phase == Phase::Closed {
            return false;
        }
        (self.phase, self.end) = (Phase::Closed, Some(end));
        true
    }

    /// Returns when it is to be forgotten if no further packet comes.
    pub(super) fn expires_at(&self, is_proven: bool, idle_timeout_s: u64) -> Instant {
        match self.phase {
            Phase::Closed => self.last_packet + CLOSED_LINGER,
            _ if !is_proven => self.last_packet + OPENING_TIMEOUT,
            _ => self.last_packet + Duration::from_secs(idle_timeout_s),
        }
    }
}
