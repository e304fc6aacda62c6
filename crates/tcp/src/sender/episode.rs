//! The state of an episode of loss or congestion, and the data to undo its reduction.

use crate::congestion::CaState;
use crate::scoreboard::Scoreboard;

/// The current episode, or the last one.
#[derive(Clone, Copy, Debug, Default, serde::Serialize, serde::Deserialize)]
pub(crate) struct Episode {
    pub(crate) state: CaState,
    /// SND.NXT when it began (RecoveryPoint).
    pub(super) high_seq: u64,
    pub(super) prior_cwnd: u32,
    pub(super) prior_ssthresh: u32,
    pub(super) undo: Undo,
    pub(super) frto: bool,
    /// F-RTO, step 2.b: send new data instead of retransmissions until the next ACK.
    pub(super) frto_new_data: bool,
    /// This episode is hidden from the congestion control.
    #[serde(default)]
    pub(super) suppressed: bool,
    /// The window was reduced. With ECN the peer must be told (Linux TCP_ECN_QUEUE_CWR).
    #[serde(default)]
    pub(super) cwr_due: bool,
    /// Number of segments that the last ACK reported by SACK, for RecoverFS.
    pub(super) newly_sacked: u32,
}

impl Episode {
    /// The initial state for a stream that begins at `start`.
    pub(super) fn new(start: u64) -> Self {
        Episode { high_seq: start, ..Episode::default() }
    }

    /// True once after each reduction of any cause. The next new data then carries CWR (RFC 3168, Section 6.1.2).
    #[inline]
    pub(crate) fn take_cwr(&mut self) -> bool {
        core::mem::take(&mut self.cwr_due)
    }

    /// The reduction was undone (tcp_ecn_withdraw_cwr).
    pub(super) fn withdraw_cwr(&mut self) {
        self.cwr_due = false;
    }
}

/// The data to undo a reduction.
#[derive(Clone, Copy, Debug, Default, serde::Serialize, serde::Deserialize)]
pub(super) struct Undo {
    /// SND.UNA when the reduction began. `None` if no undo is possible.
    pub(super) marker: Option<u64>,
    /// Number of retransmissions of the episode that no D-SACK has reported. `None` before the first.
    pub(super) retrans: Option<u32>,
    /// The timestamp of the episode's first retransmission.
    pub(super) retrans_stamp: Option<u32>,
}

impl Undo {
    /// An episode begins (tcp_init_undo).
    pub(super) fn begin(&mut self, board: &Scoreboard) {
        self.marker = Some(board.una());
        let out = board.retrans_out();
        self.retrans = (out > 0).then_some(out);
    }

    /// A segment was retransmitted with this timestamp.
    pub(super) fn on_retransmitted(&mut self, stamp: u32) {
        self.retrans_stamp.get_or_insert(stamp);
        self.retrans = Some(self.retrans.unwrap_or(0) + 1);
    }

    /// Clears the stamp if no retransmitted segment is in flight any more.
    pub(super) fn check_stamp(&mut self, board: &Scoreboard) {
        if !board.any_retransmitted() {
            self.retrans_stamp = None;
        }
    }

    /// True if the ACK answers a segment sent before the first retransmission (tcp_packet_delayed).
    pub(super) fn is_answered_early(&self, tsecr: Option<u32>) -> bool {
        let pair = self.retrans_stamp.zip(tsecr);
        pair.is_some_and(|(stamp, tsecr)| (tsecr.wrapping_sub(stamp) as i32) < 0)
    }

    /// True if D-SACKs have reported every retransmission as a duplicate.
    pub(super) fn is_answered_twice(&self) -> bool {
        self.marker.is_some() && self.retrans == Some(0)
    }
}
