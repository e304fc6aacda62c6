//! The sender itself hides loss events from its congestion control (W. S. Wan, CUHK 2010, Chapter 6 and Section 9.4).
//!
//! The text names the idea and leaves the algorithm open. The accelerator repairs a loss before the server's timeout
//! and hides the signs of loss from the server. It lengthens that timeout by the time of L repairs (Eqs. (13), (16)).
//! Here the sender repairs, and its own congestion control does not learn of the loss. cwnd and ssthresh stay, and the
//! timeout leaves time for a repair. A timeout is answered as usual.

use paceline_wire::Duration;

use super::Sender;
use crate::schedule::ScheduleName;

/// L of Eq. (16). Our choice, as in the gateway: one repair is usually enough, and each further one delays losses that
/// only a timeout repairs.
const ATTEMPTS: u64 = 1;

impl Sender {
    /// True if the loss that begins an episode is hidden from the congestion control. Our choice: losses are answered
    /// while cwnd is the limit, because nothing else bounds the data in flight. Otherwise the schedule and the receive
    /// window bound it, as in the accelerator. A smaller cwnd would then only leave the link idle.
    pub(super) fn keeps_from_congestion(&self) -> bool {
        self.config.schedule == ScheduleName::Suppressing && !self.usage.is_cwnd_limited(self.control.window)
    }

    /// Time added to the retransmission timeout.
    pub(super) fn repair_margin(&self) -> Duration {
        match self.config.schedule {
            ScheduleName::Suppressing => self.rtt.srtt() * ATTEMPTS,
            _ => Duration::ZERO,
        }
    }
}
