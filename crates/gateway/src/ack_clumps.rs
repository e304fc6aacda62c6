//! What ACKs that come in clumps do not tell: what has arrived since the last of them.
//!
//! Beside an upload ACKs wait on the uplink behind its packets, one of which takes 100 ms at 0.12 Mbit/s, and then come together. Until the
//! next clump the link goes on carrying what is outstanding. Taken for outstanding still, it left the link idle in each gap: downloads beside
//! an upload had .90 to .98 of what they have without a bound.

use paceline_tcp::WindowedMax;
use paceline_wire::{Duration, Instant};

/// Our choice: an uplink that has been free for so long lets ACKs through as they come.
const WINDOW: Duration = Duration::from_secs(1);
/// Our choice: shorter is the client's clock or the radio's scheduler, no packet in front of an ACK.
const CLUMP_MIN: Duration = Duration::from_millis(5);

/// How long ACKs of one subscriber stay away because they wait on the uplink.
#[derive(Clone, Debug, serde::Serialize, serde::Deserialize)]
pub(crate) struct AckClumps {
    reported_at: Instant,
    /// Of the gaps between ACKs, in nanoseconds: as much as the ACK at the end had waited.
    gap: WindowedMax,
}

impl Default for AckClumps {
    fn default() -> Self {
        AckClumps { reported_at: Instant::ZERO, gap: WindowedMax::new(0, 0) }
    }
}

impl AckClumps {
    /// An ACK came, which had waited on the uplink for `uplink`.
    pub(crate) fn on_ack(&mut self, now: Instant, uplink: Duration) {
        let since = now.saturating_since(core::mem::replace(&mut self.reported_at, now));
        self.gap.update(WINDOW.as_nanos(), now.as_nanos(), since.min(uplink).as_nanos());
    }

    /// For so long since the last ACK the link has carried what is outstanding, though nothing tells it yet.
    pub(crate) fn untold(&self, now: Instant) -> Duration {
        now.saturating_since(self.reported_at).min(self.longest())
    }

    /// `time` from now on what is outstanding will still be carried untold.
    pub(crate) fn lasts(&self, now: Instant, time: Duration) -> bool {
        now + time <= self.reported_at + self.longest()
    }

    fn longest(&self) -> Duration {
        let gap = Duration::from_nanos(self.gap.get());
        if gap < CLUMP_MIN { Duration::ZERO } else { gap }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(ms: u64) -> Instant {
        Instant::ZERO + Duration::from_millis(10_000 + ms)
    }

    fn ms(ms: u64) -> Duration {
        Duration::from_millis(ms)
    }

    #[test]
    fn a_gap_counts_as_far_as_acks_waited() {
        let mut clumps = AckClumps::default();
        // A clump each 100 ms, of which the first ACK waited longest.
        for clump in 0..5 {
            for ack in 0..10 {
                clumps.on_ack(at(100 * clump + ack), ms(90 - 9 * ack));
            }
        }
        assert_eq!(clumps.untold(at(450)), ms(41));
        assert_eq!(clumps.untold(at(600)), ms(90), "a link that has stopped carries no more");
        assert!(clumps.lasts(at(450), ms(40)) && !clumps.lasts(at(450), ms(60)));
    }

    #[test]
    fn where_acks_come_as_they_are_sent_nothing_is_untold() {
        let mut clumps = AckClumps::default();
        (0..100).for_each(|ack| clumps.on_ack(at(ack * 50), ms(2)));
        assert_eq!(clumps.untold(at(5_000)), Duration::ZERO);
        // A link that stood still: the ACK after it has waited for nothing.
        clumps.on_ack(at(6_000), ms(0));
        assert_eq!(clumps.untold(at(6_500)), Duration::ZERO);
    }

    #[test]
    fn an_upload_that_has_ended_is_forgotten() {
        let mut clumps = AckClumps::default();
        clumps.on_ack(at(0), ms(0));
        clumps.on_ack(at(100), ms(90));
        (1..30).for_each(|ack| clumps.on_ack(at(100 + ack * 50), ms(0)));
        assert_eq!(clumps.untold(at(1_600)), Duration::ZERO);
    }
}
