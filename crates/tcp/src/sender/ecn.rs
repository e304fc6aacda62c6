//! The answer to an ECN-Echo (RFC 3168, Section 6.1.2; Linux tcp_enter_cwr): the window is reduced as after a loss, once for each window
//! of data, and nothing is sent again.

use paceline_wire::Instant;

use super::Sender;
use crate::congestion::CaState;

impl Sender {
    /// An ACK echoes a mark. In a reduction already, it says nothing new, except that the reduction was called for.
    #[cold]
    pub(super) fn on_congestion_echo(&mut self, now: Instant) {
        self.prior_ssthresh = 0;
        if self.state < CaState::Cwr {
            self.undo.marker = None;
            // A mark is no loss: whoever marks asks for an answer.
            self.suppressed = false;
            self.begin_reduction(now);
            self.totals.ecn_reductions += 1;
            self.set_state(now, CaState::Cwr);
        }
    }

    /// Whether the peer is to be told of a reduction: with the next new data, and once. Whatever called for it (RFC 3168, Section 6.1.2).
    #[inline]
    pub(crate) fn take_cwr(&mut self) -> bool {
        core::mem::take(&mut self.cwr_due)
    }
}
