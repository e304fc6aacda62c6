//! Loss events are kept from the congestion control (W. S. Wan, CUHK 2010, Chapter 6), by the sender itself (Section 9.4).
//!
//! The text names the idea and leaves the algorithm open. The accelerator repairs a loss before the server's timeout, to which it adds the
//! time of L repairs (Eqs. (13), (16)), and keeps its signs from the server. Here the sender repairs, and its own congestion control does not
//! hear of it: cwnd and ssthresh stay, and the timeout leaves room for a repair. A timeout is answered as ever.

use paceline_wire::Duration;

use super::Sender;
use crate::schedule::ScheduleName;

/// L of Eq. (16). Our choice, as the gateway's: one repair is usually enough, and each further one delays what only a timeout repairs.
const ATTEMPTS: u64 = 1;

impl Sender {
    /// Whether a loss that begins an episode is kept from the congestion control. Our choice: where cwnd is what binds, nothing else bounds
    /// what is in flight, so losses are answered. Where it does not, the schedule and the receiver's window are the bound, as in the
    /// accelerator, and a smaller cwnd would only leave the link idle.
    pub(super) fn keeps_from_congestion(&self) -> bool {
        self.config.schedule == ScheduleName::Suppressing && !self.usage.is_cwnd_limited(self.control.window)
    }

    /// What is added to the timeout.
    pub(super) fn repair_margin(&self) -> Duration {
        match self.config.schedule {
            ScheduleName::Suppressing => self.rtt.srtt() * ATTEMPTS,
            _ => Duration::ZERO,
        }
    }
}
