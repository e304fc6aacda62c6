//! Data that has arrived since the last clump of ACKs, and that no ACK reports yet.
//!
//! During an upload, ACKs wait on the uplink behind its packets and then arrive together. One such packet takes 100 ms
//! at 0.12 Mbit/s. Until the next clump the link keeps carrying outstanding data. Without this estimate the data still
//! counted as outstanding, and the link was idle in each gap. Downloads during an upload then had .90 to .98 of their
//! throughput without a bound.

use paceline_tcp::WindowedMax;
use paceline_wire::{Duration, Instant};

/// Our choice: an uplink that has been free for this long passes ACKs as they come.
const WINDOW: Duration = Duration::from_secs(1);
/// Our choice: a shorter gap comes from the client's clock or the radio's scheduler, not from a packet before an ACK.
const CLUMP_MIN: Duration = Duration::from_millis(5);

/// The gaps between one subscriber's ACKs that come from waiting on the uplink.
#[derive(Clone, Debug, serde::Serialize, serde::Deserialize)]
pub(crate) struct AckClumps {
    reported_at: Instant,
    /// Longest gap between ACKs in nanoseconds, each counted at most as long as the ACK at its end had waited.
    gap: WindowedMax,
}

impl Default for AckClumps {
    fn default() -> Self {
        AckClumps { reported_at: Instant::ZERO, gap: WindowedMax::new(0, 0) }
    }
}

impl AckClumps {
    /// Takes an ACK that had waited on the uplink for `uplink`.
    pub(crate) fn on_ack(&mut self, now: Instant, uplink: Duration) {
        let since = now.saturating_since(core::mem::replace(&mut self.reported_at, now));
        self.gap.update(WINDOW.as_nanos(), now.as_nanos(), since.min(uplink).as_nanos());
    }

    /// Returns how long the link has carried outstanding data since the last ACK without an ACK that reports it.
    pub(crate) fn untold(&self, now: Instant) -> Duration {
        now.saturating_since(self.reported_at).min(self.longest())
    }

    /// True if `time` from now the link still carries outstanding data that no ACK reports yet.
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
    use crate::test_time::ms;

    fn at(ms: u64) -> Instant {
        Instant::ZERO + Duration::from_millis(10_000 + ms)
    }

    #[test]
    fn a_gap_counts_as_far_as_acks_waited() {
        let mut clumps = AckClumps::default();
        // A clump every 100 ms. Its first ACK waited longest.
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
        // The link stood still. The ACK after that did not wait on the uplink.
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
