//! The share of a flow in its subscriber's link, and of a subscriber in the gateway: turns, rates and priority.
//!
//! Section 9.3 of the thesis adds priorities, guaranteed and policed rates to the weights of Section 7.2. They combine
//! as in tc-htb(8). First come entries below their guaranteed rate. Then priority decides, and with equal priority they
//! take turns by weight. No entry exceeds its ceiling.

use paceline_wire::{Duration, Instant, Rate};

use crate::config::ShareConfig;

/// Number of circles, served one after the other: one for guaranteed rates, then one for each priority.
pub(crate) const CLASSES: usize = 1 + ShareConfig::PRIORITIES as usize;

/// Our choice: a flow that got less than its guarantee may catch up for at most this time. A link is commonly busy that
/// long with something that it cannot interrupt: a turn of the radio scheduler, or a repair.
const ARREARS: Duration = Duration::from_millis(100);

/// Our choice: interval over which a ceiling holds. It is some packets on a slow link, and a super-packet on a fast
/// one.
const CEILING_BURST: Duration = Duration::from_millis(10);

/// The longest wait of a packet for a pace. Our choice: a pace is learnt, not configured, and may be wrong. A
/// subscriber had received one packet in half an hour. Its link seemed to carry some bytes a second, and the next
/// packet had to wait that long. A second is the wait on a link of 12 kbit/s.
const LEARNT_HOLD_MAX: Duration = Duration::from_secs(1);

/// The state of a flow or subscriber that takes turns.
#[derive(Clone, Debug, serde::Serialize, serde::Deserialize)]
pub(crate) struct Share {
    weight: u32,
    priority: u8,
    /// Packets left in this turn.
    left: u32,
    guarantee: Option<Gcra>,
    ceiling: Option<Gcra>,
    /// The rate that the link's buffer can take, if the buffer is short.
    #[serde(default)]
    paced: Option<Gcra>,
}

impl Share {
    /// Returns the packets per round.
    pub(crate) fn weight(&self) -> u32 {
        self.weight
    }

    pub(crate) fn new(config: &ShareConfig) -> Self {
        let pace = |mbps: Option<f64>, burst| mbps.map(|mbps| Gcra::new(Rate::from_mbps(mbps), burst));
        let weight = config.weight.max(1);
        Share {
            weight,
            priority: config.priority.min(ShareConfig::PRIORITIES - 1),
            left: weight,
            guarantee: pace(config.guaranteed_mbps, ARREARS),
            ceiling: pace(config.ceiling_mbps, CEILING_BURST),
            paced: None,
        }
    }

    /// Takes over how much of its rates `before` had already used.
    pub(crate) fn continued(mut self, before: &Share) -> Self {
        for (own, before) in [(&mut self.guarantee, before.guarantee), (&mut self.ceiling, before.ceiling)] {
            if let (Some(own), Some(before)) = (own, before) {
                own.next = before.next;
            }
        }
        self
    }

    /// True if its priority has a circle.
    pub(crate) fn is_sound(&self) -> bool {
        self.priority < ShareConfig::PRIORITIES
    }

    /// Returns the circle in which it waits.
    pub(crate) fn class(&self, now: Instant) -> usize {
        let owed = self.guarantee.is_some_and(|pace| pace.next <= now);
        if owed { 0 } else { usize::from(ShareConfig::PRIORITIES - self.priority) }
    }

    /// Returns the time at which its guarantee will be owed again, if it is not owed now.
    pub(crate) fn owed_at(&self, now: Instant) -> Option<Instant> {
        self.guarantee.map(|pace| pace.next).filter(|&at| at > now)
    }

    /// Sets the rate at which it leaves, and the longest burst.
    pub(crate) fn set_pace(&mut self, pace: Option<(Rate, Duration)>) {
        let next = self.paced.map_or(Instant::ZERO, |before| before.next);
        self.paced = pace.map(|(rate, burst)| Gcra { rate, burst, next });
    }

    fn holds(&self) -> impl Iterator<Item = Gcra> {
        [self.ceiling, self.paced].into_iter().flatten()
    }

    /// Returns the lower rate of ceiling and pace, if there is either.
    pub(crate) fn most_rate(&self) -> Option<Rate> {
        self.holds().map(|pace| pace.rate).min()
    }

    /// Returns the time until which ceiling and pace hold it back, if they do.
    pub(crate) fn held_until(&self, now: Instant) -> Option<Instant> {
        self.holds().map(|pace| pace.next).filter(|&at| at > now).max()
    }

    /// Returns the most bytes that ceiling and pace allow for one packet.
    pub(crate) fn allowance(&self) -> u64 {
        self.holds().map(|pace| pace.rate.bytes_in(pace.burst)).fold(u64::MAX, u64::min)
    }

    /// Takes a packet off the turn. True if the turn is over.
    pub(crate) fn take_turn(&mut self) -> bool {
        self.left = self.left.saturating_sub(1);
        let over = self.left == 0;
        if over {
            self.left = self.weight;
        }
        over
    }

    /// Ends the turn because it has nothing to send. Its next turn is a whole one.
    pub(crate) fn leave_turn(&mut self) {
        self.left = self.weight;
    }

    /// Notes that `bytes` of IP have left.
    pub(crate) fn on_sent(&mut self, now: Instant, bytes: u64) {
        for pace in [&mut self.guarantee, &mut self.ceiling, &mut self.paced].into_iter().flatten() {
            pace.on_sent(now, bytes);
        }
        if let Some(paced) = &mut self.paced {
            paced.next = paced.next.min(now + LEARNT_HOLD_MAX);
        }
    }
}

/// A rate as kept by the virtual scheduling of ITU-T I.371 (GCRA). `next` is when the bytes sent so far will have used
/// up their time at this rate.
#[derive(Clone, Copy, Debug, serde::Serialize, serde::Deserialize)]
struct Gcra {
    rate: Rate,
    /// The part of the past whose unused time still counts.
    #[serde(default)]
    burst: Duration,
    next: Instant,
}

impl Gcra {
    fn new(rate: Rate, burst: Duration) -> Self {
        Gcra { rate, burst, next: Instant::ZERO }
    }

    fn on_sent(&mut self, now: Instant, bytes: u64) {
        let earliest = Instant::from_nanos(now.as_nanos().saturating_sub(self.burst.as_nanos()));
        self.next = self.next.max(earliest) + self.rate.time_for(bytes);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::test_time::at;

    #[test]
    fn priorities_stand_in_order_behind_what_is_owed() {
        let of = |priority, guaranteed_mbps| {
            Share::new(&ShareConfig { priority, guaranteed_mbps, ..ShareConfig::default() }).class(at(1_000))
        };
        assert_eq!((of(0, Some(1.0)), of(7, None), of(6, None), of(0, None)), (0, 1, 2, CLASSES - 1));
    }

    #[test]
    fn a_guarantee_is_owed_until_its_rate_is_had() {
        let mut share = Share::new(&ShareConfig { guaranteed_mbps: Some(8.0), ..ShareConfig::default() });
        // 1 MB/s. After a long silence it catches up for 100 ms.
        for _ in 0..100 {
            assert_eq!(share.class(at(10_000)), 0);
            share.on_sent(at(10_000), 1_000);
        }
        share.on_sent(at(10_000), 1_000);
        assert_eq!((share.class(at(10_000)), share.owed_at(at(10_000))), (CLASSES - 1, Some(at(10_001))));
        assert_eq!((share.class(at(10_001)), share.owed_at(at(10_001))), (0, None));
    }

    #[test]
    fn a_ceiling_holds_over_ten_milliseconds() {
        let mut share = Share::new(&ShareConfig { ceiling_mbps: Some(8.0), ..ShareConfig::default() });
        assert_eq!(share.allowance(), 10_000);
        let mut sent = 0;
        for ms in 0..1_000 {
            while share.held_until(at(10_000 + ms)).is_none() {
                share.on_sent(at(10_000 + ms), 1_500);
                sent += 1_500;
            }
            let most = 1_000 * (ms + 10) + 1_500;
            assert!(sent <= most && sent + 1_500 > 1_000 * ms, "{sent} after {ms} ms");
        }
    }

    #[test]
    fn a_pace_lets_a_burst_leave_and_then_its_rate() {
        let mut share = Share::new(&ShareConfig::default());
        share.set_pace(Some((Rate::from_mbps(8.0), Duration::from_millis(4))));
        assert_eq!(share.allowance(), 4_000);
        let mut sent = 0;
        while share.held_until(at(10_000)).is_none() {
            share.on_sent(at(10_000), 1_000);
            sent += 1_000;
        }
        // 1 MB/s: the bytes of 4 ms, and the packet that begins before they are used up.
        assert_eq!((sent, share.held_until(at(10_000))), (5_000, Some(at(10_001))));
        share.set_pace(None);
        assert_eq!((share.held_until(at(10_000)), share.allowance()), (None, u64::MAX));
    }

    #[test]
    fn a_pace_that_is_wrong_holds_a_packet_for_a_second_at_most() {
        let mut share = Share::new(&ShareConfig::default());
        share.set_pace(Some((Rate::from_bytes_per_sec(1), Duration::from_millis(4))));
        share.on_sent(at(10_000), 1_500);
        assert_eq!(share.held_until(at(10_000)), Some(at(11_000)));
    }

    #[test]
    fn a_turn_is_as_long_as_the_weight() {
        let mut share = Share::new(&ShareConfig { weight: 3, ..ShareConfig::default() });
        assert_eq!([(); 6].map(|()| share.take_turn()), [false, false, true, false, false, true]);
        share.take_turn();
        share.leave_turn();
        assert_eq!([(); 3].map(|()| share.take_turn()), [false, false, true]);
    }
}
