//! How much of the windows is used, and what limits the sender.

use paceline_wire::{Duration, Instant};

use crate::congestion::Window;

/// How much of the windows is used (tcp_cwnd_validate), and what limits the sender (Linux chronographs).
#[derive(Clone, Copy, Debug, Default, serde::Serialize, serde::Deserialize)]
pub(crate) struct Usage {
    pub(super) is_cwnd_limited: bool,
    pub(super) max_packets_out: u32,
    pub(super) cwnd_usage_seq: u64,
    pub(super) cwnd_used: u32,
    pub(super) stamp: Instant,
    /// Something happened since the sender last had nothing to send.
    pub(super) round_open: bool,
    pub(super) sent_in_round: bool,
    /// Something was sent since the tail loss probe was last scheduled.
    #[serde(default)]
    pub(super) unprobed: bool,
    pub(super) stalled: bool,
    pub(super) recovery_stalled: bool,
    limit: Option<(Limit, Instant)>,
    /// Total time for each [`Limit`].
    spent: [Duration; 3],
}

/// What limits the sender.
#[derive(Clone, Copy, PartialEq, Eq, Debug, serde::Serialize, serde::Deserialize)]
pub(crate) enum Limit {
    /// The network or the application.
    Busy = 0,
    /// The receiver's window.
    ReceiveWindow = 1,
    /// The send buffer.
    SendBuffer = 2,
}

impl Usage {
    pub(super) fn on_start(&mut self, position: u64) {
        self.cwnd_usage_seq = position;
    }

    pub(super) fn open_round(&mut self) {
        self.round_open = true;
    }

    pub(super) fn on_sent(&mut self) {
        (self.round_open, self.sent_in_round, self.unprobed) = (true, true, true);
    }

    pub(super) fn on_recovery(&mut self) {
        self.recovery_stalled = false;
    }

    /// As Linux: in slow start cwnd counts as used if half of it was used.
    pub(super) fn is_cwnd_limited(&self, window: Window) -> bool {
        self.is_cwnd_limited
            || (window.in_slow_start() && window.cwnd < self.max_packets_out.saturating_mul(2))
    }

    /// Returns the busy time, and the parts of it limited by the receive window and by the send buffer.
    pub(crate) fn times(&self, now: Instant) -> (Duration, Duration, Duration) {
        let mut spent = self.spent;
        if let Some((limit, since)) = self.limit {
            spent[limit as usize] += now.saturating_since(since);
        }
        (spent[0] + spent[1] + spent[2], spent[1], spent[2])
    }

    pub(super) fn note(&mut self, limited: bool, packets_out: u32, nxt: u64) {
        self.is_cwnd_limited = limited;
        self.max_packets_out = packets_out;
        self.cwnd_usage_seq = nxt;
    }

    pub(super) fn set_limit(&mut self, now: Instant, limit: Option<Limit>) {
        if self.limit.map(|(limit, _)| limit) == limit {
            return;
        }
        if let Some((old, since)) = self.limit {
            self.spent[old as usize] += now.saturating_since(since);
        }
        self.limit = limit.map(|limit| (limit, now));
    }
}
