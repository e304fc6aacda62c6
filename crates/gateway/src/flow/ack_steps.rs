//! An acknowledgement that tells the server of much at once is told in steps.
//!
//! While a hole is repaired here, or a late packet is awaited, the server hears nothing, and then of all that arrived meanwhile. A server without
//! pacing answers by a burst of as much, and a short buffer before the gateway loses most of it. Without a gateway duplicate ACKs clock it
//! out (RFC 6675, Section 5; RFC 9937 bounds such bursts). Our choice: steps of two segments, as a client acknowledges them (RFC 5681,
//! Section 4.2), at a pace somewhat above that of the ACKs which were withheld. What comes meanwhile goes on at that pace. This is done
//! only where something was lost before the gateway of late: elsewhere a burst does no harm, and fast links that lose packets need it
//! to grow. A step tells of less than the client has, never of more. `docs/design/queue-bound.md` has the measurements.

use paceline_wire::Rate;

use super::ack_filter::Withheld;
use super::{Context, Flow};
use crate::config::QueueBoundMode;
use crate::modulation::Steps;

/// Segments of a step.
const STEP: u64 = 2;
/// A quarter faster, so that what waits catches up and the rate can grow. The rate itself and half more gave the same on 820 drawn paths.
const GAIN: (u64, u64) = (5, 4);

impl Flow {
    /// How the server is told that `advance` bytes have arrived, after what was `withheld`. `None`: at once.
    pub(super) fn ack_steps(&self, ctx: &Context<'_>, advance: u64, withheld: &Withheld) -> Option<Steps> {
        let bytes = STEP * self.segment();
        let is_bounded = ctx.config.queue_bound.mode == QueueBoundMode::Adaptive;
        if advance.min(withheld.bytes) <= 2 * bytes
            || !is_bounded
            || !self.repairs(ctx.config)
            || !self.stream.lost_of_late(ctx.now)
        {
            return None;
        }
        // Each may have breaks in it. The steps take no longer than the hole was open, two round trips with its repair.
        let hidden = Rate::from_bytes_in(advance, self.shortest_rtt() * 2);
        let carried = self.client.rate().carried().unwrap_or_default();
        let rate = withheld.rate().max(carried).max(self.path.link).max(hidden);
        let apart = rate.mul_ratio(GAIN.0, GAIN.1).time_for(bytes);
        (!rate.is_zero()).then_some(Steps { left: advance, bytes, apart })
    }
}
