//! An acknowledgement that tells the server of much at once is told in steps.
//!
//! While a hole is repaired here the server hears nothing, and then of all that arrived meanwhile. A server without pacing answers by a burst of as
//! much, and a short buffer before the gateway loses most of it. Without a gateway duplicate ACKs clock it out (RFC 6675, Section 5;
//! RFC 9937 bounds such bursts). Our choice: steps of two segments, as a client acknowledges them (RFC 5681, Section 4.2), at the pace at
//! which packets leave before a buffer that may be short (bound/short_buffer.rs). This is done only where something was lost before the
//! gateway of late: elsewhere a burst does no harm, and fast links that lose packets need it to grow. A step tells of less than the
//! client has, never of more. `docs/design/queue-bound.md` has the measurements.

use paceline_wire::Rate;

use super::{Context, Flow};
use crate::config::QueueBoundMode;
use crate::modulation::Steps;

/// Segments of a step.
const STEP: u64 = 2;
/// A quarter faster than what the link carries, so that the rate can grow. The rate itself and half more gave the same on 820 drawn paths.
const GAIN: (u64, u64) = (5, 4);

impl Flow {
    /// How the server is told that `advance` bytes have arrived, of which it was not told `withheld`. `None`: at once.
    pub(super) fn ack_steps(&self, ctx: &Context<'_>, advance: u64, withheld: u64) -> Option<Steps> {
        let bytes = STEP * self.segment();
        let is_bounded = ctx.config.queue_bound.mode == QueueBoundMode::Adaptive;
        if advance.min(withheld) <= 2 * bytes
            || !is_bounded
            || !self.repairs(ctx.config)
            || !self.stream.lost_of_late(ctx.now)
        {
            return None;
        }
        // A hole whose repair arrives was open for two round trips, and the link was busy. What a client took before may be much less.
        let hidden = Rate::from_bytes_in(advance, self.shortest_rtt() * 2);
        let rate = self.path.link.max(self.client.rate().carried().unwrap_or_default()).max(hidden);
        let apart = rate.mul_ratio(GAIN.0, GAIN.1).time_for(bytes);
        (!rate.is_zero()).then_some(Steps { left: advance, bytes, apart })
    }
}
