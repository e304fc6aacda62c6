//! A policer on the link: a token bucket that drops what comes faster than its rate, whatever is on its way.
//!
//! Such losses go on when less is outstanding, so the loss test takes them for the radio's, and no queue tells of the rate. As the first BBR
//! does (Flach et al., An Internet-Wide Analysis of Traffic Policing, SIGCOMM 2016; Linux documents its "long-term bandwidth"): where a fifth is
//! lost for a while, twice in a row, and what arrives is the same both times, that is the rate of a policer. After 48 round trips it is asked
//! again.

use paceline_wire::{Duration, Instant, Rate};

/// Round trips of an interval: four at least (lt_intvl_min_rtts).
const ROUNDS: u64 = 4;
/// An interval ends with a loss, or is given up after so many (lt_intvl_max_rtts, four times the least).
const ROUNDS_MAX: u64 = 16;
/// Round trips for which a rate holds (lt_bw_max_rtts).
const HOLDS_ROUNDS: u64 = 48;

/// What was seen of it.
#[derive(Clone, Copy, Debug, Default, serde::Serialize, serde::Deserialize)]
pub(super) struct Policed {
    since: Option<Instant>,
    delivered: u64,
    lost: u64,
    /// The rate of the interval before.
    before: Rate,
    /// The rate, and until when it holds.
    rate: Option<(Rate, Instant)>,
}

impl Policed {
    /// So much arrived and was found lost.
    pub(super) fn on_report(&mut self, now: Instant, delivered: u64, lost: u64, rtt: Duration) {
        self.rate = self.rate.filter(|(_, until)| now < *until);
        let Some(since) = self.since else {
            // An interval begins with a loss, when the bucket is empty.
            if lost > 0 {
                *self = Policed { since: Some(now), delivered: 0, lost: 0, ..*self };
            }
            return;
        };
        self.delivered += delivered;
        self.lost += lost;
        let elapsed = now.saturating_since(since);
        if elapsed > rtt * ROUNDS_MAX {
            *self = Policed { since: None, before: Rate::ZERO, ..*self };
        } else if lost > 0 && elapsed >= rtt * ROUNDS {
            let rate = Rate::from_bytes_in(self.delivered, elapsed);
            let policed = self.lost * 5 >= self.delivered + self.lost;
            let same = rate <= self.before.mul_ratio(9, 8) && self.before <= rate.mul_ratio(9, 8);
            if policed && same {
                let mean = rate.min(self.before);
                self.rate = Some((mean, now + rtt * HOLDS_ROUNDS));
            }
            let before = if policed { rate } else { Rate::ZERO };
            *self = Policed { since: Some(now), delivered: 0, lost: 0, before, ..*self };
        }
    }

    /// The rate of the policer, if there is one.
    pub(super) fn rate(&self) -> Option<Rate> {
        self.rate.map(|(rate, _)| rate)
    }
}
