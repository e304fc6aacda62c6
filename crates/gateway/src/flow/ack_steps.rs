//! Splits an acknowledgement of much data into steps.
//!
//! While a hole is repaired here, or a late packet is awaited, the server hears nothing. Then one ACK reports all that
//! arrived meanwhile. A server without pacing answers with a burst of that size, and a short buffer before the gateway
//! loses most of it. Without a gateway duplicate ACKs clock the data out (RFC 6675, Section 5; RFC 9937 bounds such
//! bursts). Our choice: steps of two segments, as a client acknowledges them (RFC 5681, Section 4.2). Their pace is
//! somewhat above that of the withheld ACKs. ACKs that come meanwhile follow at the same pace. Steps are used only if
//! something was lost before the gateway of late. Elsewhere a burst does no harm, and fast links that lose packets need
//! it to grow. A step reports less than the client has, never more. `docs/design/queue-bound.md` has the measurements.

use paceline_wire::Rate;

use super::ack_filter::WithheldAcks;
use super::{Context, Flow};
use crate::config::QueueBoundMode;
use crate::modulation::AckSteps;

/// Segments of a step.
const STEP: u64 = 2;
/// Pace of the steps: a quarter above the rate, so that waiting ACKs catch up and the rate can grow. The rate itself
/// and half more gave the same on 820 drawn paths.
const GAIN: (u64, u64) = (5, 4);

impl Flow {
    /// Returns the steps that tell the server of `advance` bytes after the `withheld` ACKs. `None`: it is told at once.
    pub(super) fn ack_steps(
        &self,
        ctx: &Context<'_>,
        advance: u64,
        withheld: &WithheldAcks,
    ) -> Option<AckSteps> {
        let bytes = STEP * self.segment();
        let is_bounded = ctx.config.queue_bound.mode == QueueBoundMode::Adaptive;
        if advance.min(withheld.bytes) <= 2 * bytes
            || !is_bounded
            || !self.repairs(ctx.config)
            || !self.stream.lost_of_late(ctx.now)
        {
            return None;
        }
        // Pauses may make each of these rates too low. With `hidden` the steps take no longer than the hole was open:
        // two round trips with its repair.
        let hidden = Rate::from_bytes_in(advance, self.shortest_rtt() * 2);
        let carried = self.client.rate().carried().unwrap_or_default();
        let rate = withheld.rate().max(carried).max(self.path.link).max(hidden);
        let apart = rate.mul_ratio(GAIN.0, GAIN.1).time_for(bytes);
        (!rate.is_zero()).then_some(AckSteps { left: advance, bytes, apart })
    }
}
