//! The bound on a subscriber's uplink queue: the bytes that its uploads may have in flight to the gateway.
//!
//! The queue stands before the uplink, in the client's modem, where the gateway cannot hold anything back. But the
//! gateway can show a smaller window in the server's ACKs. With a right edge `limit` beyond what has arrived here, at
//! most `limit` is between a passing ACK and the data that answers it. So the downlink's rule applies
//! ([`crate::bound`]): passing ACKs are what leaves, arriving data is what is reported. The round trip is from the ACK
//! to its answer, which echoes its timestamp. The wired side is no part of it. docs/design/uploads.md has reasons and
//! measurements.

mod watch;

use paceline_wire::{Duration, Instant, Rate};

use crate::bound::{BoundSample, QueueBound, QueueBoundConfig};
pub(crate) use watch::{ForwardedAck, UploadData, UploadWatch};

/// Each upload's part of the link is counted over a slot and the previous one. Our choice: a slot is two round trips,
/// and at least this. In a shorter one the bursts of single flows would count.
const SLOT: Duration = Duration::from_millis(500);
/// Our choice: after a break as long as the shortest round trip is kept, the link is unknown again. An upload then
/// begins as the first did.
const IDLE: Duration = Duration::from_secs(10);
/// Uploads pass if a fiftieth is lost (as BBR.LossThresh, draft-ietf-ccwg-bbr, Section 2.7), and more than a few
/// packets. Either the buffer is too short for a bound, or the radio loses. No queue grows then, and a sender that
/// ignores losses has more without a bound.
const LOST_PART: u64 = 50;
const LOST_LEAST: u64 = 6_000;
/// Our choice: how long uploads pass, as long as the downlink's longest queue counts (`bound/backoff.rs`).
const PASSES: Duration = Duration::from_secs(30);
/// Number of reports over which waits elsewhere are averaged: about a round trip. Our choice: Little's law needs the
/// mean. With the shortest of 250 ms, jitter of the downlink counted as nothing. Uploads then had .6 to .94 of what
/// they have without a bound.
const AVERAGED: u64 = 16;
/// Segments with which a new flow begins (RFC 6928). Our choice: a flow that has sent more is an upload.
pub(crate) const FIRST_FLIGHT: u64 = 10;
/// Bytes that a client without an estimate may send in addition to slow start's: the largest window of a SYN-ACK, which
/// it was shown anyway.
pub(crate) const FIRST_WINDOW: u64 = 65_535;
/// Our choice: each of several uploads has at least two segments in flight, for which a server's delayed ACK waits
/// (RFC 5681, Section 4.2).
const LEAST_SEGMENTS: u64 = 2;

/// Report of upload data that answers a known ACK.
#[derive(Clone, Copy, Debug)]
pub(crate) struct UploadReport {
    /// Bytes that have arrived since the last report.
    pub(crate) delivered: u64,
    /// Time from the ACK to this data.
    pub(crate) rtt: Duration,
    /// Bytes found lost before the gateway.
    pub(crate) lost: u64,
    /// The client's timer expired although nothing was missing here.
    pub(crate) timed_out: bool,
    /// Longest possible queueing delay of the uplink, by the client's timestamps.
    pub(crate) queue: Option<Duration>,
    /// Bytes of all uploads that had arrived when the ACK passed. Later bytes were in flight then.
    pub(crate) arrived: u64,
    /// The window shown by the gateway was the limit.
    pub(crate) limited: bool,
    /// State of the flow.
    pub(crate) own: UploadState,
    /// Shortest round trip that the flow knows from other packets, in its first report only.
    pub(crate) handshake: Option<Duration>,
}

/// A count in the current slot and in the previous one.
#[derive(Clone, Copy, Debug, Default, serde::Serialize, serde::Deserialize)]
pub(crate) struct SlotCount {
    number: u64,
    before: u64,
    current: u64,
}

impl SlotCount {
    fn at(mut self, number: u64) -> Self {
        if number != self.number {
            self.before = if number == self.number.wrapping_add(1) { self.current } else { 0 };
            (self.current, self.number) = (0, number);
        }
        self
    }

    /// Adds `more`. True if the count of this slot was zero.
    fn add(&mut self, number: u64, more: u64) -> bool {
        *self = self.at(number);
        let is_first = self.current == 0;
        self.current = self.current.saturating_add(more);
        is_first
    }

    fn both(self, number: u64) -> u64 {
        let slots = self.at(number);
        slots.before.saturating_add(slots.current)
    }

    /// Returns the larger of both, for values that are counted anew in each slot.
    fn most(self, number: u64) -> u64 {
        let slots = self.at(number);
        slots.before.max(slots.current)
    }
}

/// State of one upload beside others.
#[derive(Clone, Copy, Debug, Default, serde::Serialize, serde::Deserialize)]
pub(crate) struct UploadState {
    /// Bytes that have arrived.
    bytes: SlotCount,
    /// It has met a queue. Before that a bound gains nothing, and would cut slow start's bursts to the path's average
    /// content.
    loaded: bool,
}

/// What one upload needs to know of the others and of the bound.
#[derive(Clone, Copy, Debug, Default, serde::Serialize, serde::Deserialize)]
pub(crate) struct UploadPath {
    /// Bytes that all uploads may have in flight, once known.
    limit: Option<u64>,
    /// All bytes of uploads that have arrived.
    pub(crate) arrived: u64,
    /// Expected rate of the uplink.
    #[serde(default)]
    rate: Rate,
    /// Number of the current slot.
    slot: u64,
    bytes: SlotCount,
    flows: SlotCount,
}

impl UploadPath {
    /// Returns the bytes that a flow with the state `own` may have in flight. Its part of the limit is its part of the
    /// arrivals. A flow with less than an even part may double until it has that, as in slow start (RFC 5681,
    /// Section 3.1).
    pub(crate) fn share(&self, own: UploadState, segment: u64) -> Option<u64> {
        let limit = self.limit.filter(|_| own.loaded)?;
        let (own, all) = (own.bytes.both(self.slot), self.bytes.both(self.slot));
        let flows = self.flows.most(self.slot).max(1) + u64::from(own == 0 && all > 0);
        if flows == 1 {
            return Some(limit);
        }
        let part = (u128::from(limit) * u128::from(own) / u128::from(all.max(1))) as u64;
        let even = (limit / flows).min(own.saturating_mul(2).saturating_add(FIRST_FLIGHT * segment));
        // Not all flows use their part at once: a quarter more, as BBR probes (draft-ietf-ccwg-bbr, Section 4.3.3).
        // Without it four BBR uploads had 92 % of a link. Only whole segments leave, and each flow may have one that
        // has arrived but is not acknowledged (RFC 9293, Section 3.8.6.3).
        let part = part.min(limit).max(even);
        Some((part + part / 4 + segment).max(LEAST_SEGMENTS * segment))
    }

    /// Returns what the uplink carries in `time` for a flow with the state `own`.
    pub(crate) fn carries(&self, own: UploadState, time: Duration) -> u64 {
        let (own, all) = (own.bytes.both(self.slot), self.bytes.both(self.slot));
        self.rate.mul_ratio(own.min(all), all.max(1)).bytes_in(time)
    }
}

/// The bound of one subscriber's uplink.
#[derive(Debug, serde::Serialize, serde::Deserialize)]
pub(crate) struct UploadBound {
    config: QueueBoundConfig,
    bound: QueueBound,
    path: UploadPath,
    last: Instant,
    limited_until: Instant,
    slot_since: Instant,
    lost: SlotCount,
    passes_until: Instant,
    bounded_since: Instant,
    /// Mean time, while the bound held, by which round trips are longer for another reason than the uplink.
    #[serde(default)]
    mean_elsewhere: Duration,
}

impl UploadBound {
    /// Creates a bound without measurements.
    pub(crate) fn new(config: QueueBoundConfig) -> Self {
        UploadBound {
            config,
            bound: QueueBound::new(config),
            path: UploadPath::default(),
            last: Instant::ZERO,
            limited_until: Instant::ZERO,
            slot_since: Instant::ZERO,
            lost: SlotCount::default(),
            passes_until: Instant::ZERO,
            bounded_since: Instant::ZERO,
            mean_elsewhere: Duration::ZERO,
        }
    }

    /// True while it bounds the uplink's queue.
    pub(crate) fn is_active(&self) -> bool {
        self.path.limit.is_some()
    }

    /// Returns what each upload needs to know.
    pub(crate) fn path(&self) -> UploadPath {
        self.path
    }

    /// Handles arrived data of an upload. Returns the new state of its flow.
    pub(crate) fn on_report(&mut self, now: Instant, report: &UploadReport) -> UploadState {
        if self.path.arrived == 0 || now.saturating_since(self.last) > IDLE {
            *self = UploadBound {
                path: UploadPath { limit: None, ..self.path },
                slot_since: now,
                ..UploadBound::new(self.config)
            };
        }
        self.last = now;
        self.path.arrived = self.path.arrived.wrapping_add(report.delivered);
        let (mut own, flows) = self.count(now, report);
        if let Some(rtt) = report.handshake {
            self.report(now, 0, rtt, 0, flows, false);
        }
        let elsewhere = self.elsewhere(report);
        let rtt = report.rtt.saturating_sub(elsewhere);
        if report.limited {
            self.limited_until = now + report.rtt;
        }
        // One of several uploads may be the limit itself, while the bound holds the others. And if an ACK allows much
        // at once, not all answers reach the edge. Judged by single packets, the measurement began anew again and
        // again, and the rate stayed where it was.
        let limited = report.limited || now < self.limited_until;
        let outstanding = self.path.arrived.wrapping_sub(report.arrived);
        let waits = self.bound.rate().bytes_in(elsewhere);
        self.report(now, report.delivered, rtt, outstanding.saturating_sub(waits), flows, limited);
        own.loaded |= self.bound.has_standing_queue();
        let passes = now < self.passes_until;
        if limited {
            self.mean_elsewhere = (self.mean_elsewhere * (AVERAGED - 1) + elsewhere) / AVERAGED;
        }
        let waits = self.bound.rate().bytes_in(self.mean_elsewhere);
        self.path.rate = self.bound.rate();
        let was_bounded = self.path.limit.is_some();
        self.path.limit = self.bound.limit().filter(|_| !passes).map(|limit| limit.saturating_add(waits));
        if self.path.limit.is_some() && !was_bounded {
            self.bounded_since = now;
        }
        own
    }

    /// Counts bytes, flows and losses. Decides whether uploads pass.
    fn count(&mut self, now: Instant, report: &UploadReport) -> (UploadState, u32) {
        let path = &mut self.path;
        if now.saturating_since(self.slot_since) >= SLOT.max(report.rtt * 2) {
            self.slot_since = now;
            path.slot = path.slot.wrapping_add(1);
        }
        let mut own = report.own;
        let joins = own.bytes.add(path.slot, report.delivered);
        path.bytes.add(path.slot, report.delivered);
        path.flows.add(path.slot, u64::from(joins));
        // Earlier losses are slow start's, which the bound is there to end.
        let counts =
            path.limit.is_some() && now.saturating_since(self.bounded_since) > SLOT.max(report.rtt * 2);
        self.lost.add(path.slot, if counts { report.lost } else { 0 });
        let (bytes, lost) = (path.bytes.both(path.slot), self.lost.both(path.slot));
        // Our choice: a timeout lets uploads pass too. All ACKs in flight were lost, which are few under the bound.
        // Otherwise two of three uploads stood still for seconds on a path that loses seven packets in a row. They had
        // half of what they have without a bound.
        let timed_out = report.timed_out && counts;
        if timed_out || (lost >= LOST_LEAST && lost > bytes / LOST_PART) {
            self.passes_until = now + PASSES;
        }
        (own, path.flows.most(path.slot).max(1) as u32)
    }

    /// Returns how much longer a round trip was for another reason than the uplink. The ACK waited before the downlink,
    /// or the client had nothing to send when it came. The client's timestamps show the uplink's own queue. Without
    /// this a download's queue would be taken for the upload's. It would not shrink, so the bound would fall further
    /// and further.
    fn elsewhere(&self, report: &UploadReport) -> Duration {
        let own = self.bound.rtt_min().zip(report.queue).map(|(rtt_min, queue)| rtt_min + queue);
        own.map_or(Duration::ZERO, |own| report.rtt.saturating_sub(own))
    }

    fn report(
        &mut self,
        now: Instant,
        delivered: u64,
        rtt: Duration,
        outstanding: u64,
        flows: u32,
        limited: bool,
    ) {
        self.bound.on_ack(&BoundSample {
            now,
            delivered,
            rtt: Some(rtt),
            age: Some(rtt),
            server_rtt: Duration::ZERO,
            outstanding,
            flows,
            limited,
            own: false,
            paced: false,
            crowded: false,
        });
    }
}

#[cfg(test)]
mod tests {
    use alloc::vec;
    use alloc::vec::Vec;

    use super::*;
    use crate::test_time::ms;

    const SEGMENT: u64 = 1_448;

    /// Uploads over a path of 62 ms and a link that carries a packet each 12 ms.
    struct Link {
        bound: UploadBound,
        own: Vec<UploadState>,
        now: Instant,
        rtt: Duration,
        queue: Duration,
    }

    impl Link {
        fn new(flows: usize) -> Self {
            let bound = UploadBound::new(QueueBoundConfig::default());
            let now = Instant::ZERO + Duration::from_secs(1);
            Link { bound, own: vec![UploadState::default(); flows], now, rtt: ms(62), queue: ms(0) }
        }

        /// A packet of a flow arrives.
        fn arrives(&mut self, flow: usize, lost: u64) {
            self.now += ms(12);
            let report = self.report(flow, lost);
            self.own[flow] = self.bound.on_report(self.now, &report);
        }

        fn report(&self, flow: usize, lost: u64) -> UploadReport {
            let in_loop = (self.rtt.as_millis() / 12) * SEGMENT;
            UploadReport {
                delivered: SEGMENT,
                rtt: self.rtt,
                lost,
                timed_out: false,
                queue: Some(self.queue),
                arrived: self.bound.path().arrived.saturating_sub(in_loop),
                limited: true,
                own: self.own[flow],
                handshake: None,
            }
        }

        /// Sees the shortest round trip, then for some seconds a queueing delay of `queue`.
        fn fill(&mut self, queue: Duration) {
            (self.rtt, self.queue) = (ms(62), ms(0));
            self.arrives(0, 0);
            (self.rtt, self.queue) = (ms(62) + queue, queue);
            let flows = self.own.len();
            (0..400).for_each(|n| self.arrives(n % flows, 0));
        }

        fn share(&self, flow: usize) -> Option<u64> {
            self.bound.path().share(self.own[flow], SEGMENT)
        }
    }

    #[test]
    fn one_upload_has_what_the_path_holds_and_little_more() {
        let mut link = Link::new(1);
        link.arrives(0, 0);
        assert_eq!(link.share(0), None, "nothing is known, and no queue was seen");
        link.fill(ms(100));
        // 121 bytes a millisecond: the path holds 7.5 KB. Two packets and the error of a single packet come on top.
        let share = link.share(0).unwrap();
        assert!((9_000..14_000).contains(&share), "{share}");
    }

    #[test]
    fn what_waits_elsewhere_is_no_queue_of_the_uplink() {
        let mut link = Link::new(1);
        link.fill(ms(100));
        let before = link.share(0).unwrap();
        // The downlink's queue makes round trips longer by 300 ms; the uplink's is unchanged.
        link.rtt = ms(62 + 100 + 300);
        (0..100).for_each(|_| link.arrives(0, 0));
        let waits = ms(300).as_millis() * 121;
        let after = link.share(0).unwrap();
        assert!((before + waits * 8 / 10..before + waits * 12 / 10).contains(&after), "{before} and {after}");
    }

    #[test]
    fn who_brings_more_has_more_and_who_comes_may_double() {
        let mut link = Link::new(3);
        link.fill(ms(100));
        // From here on one of them brings one packet of four, the second three, the third none.
        (0..400).for_each(|n| link.arrives(usize::from(n % 4 != 0), 0));
        let limit = link.bound.path().limit.unwrap();
        let (few, many) = (link.share(0).unwrap(), link.share(1).unwrap());
        assert!(many > limit * 3 / 4 && many < limit * 5 / 4, "{many} of {limit}");
        assert!(few >= limit / 2 && few < many, "{few} of {limit}");
        assert!(link.share(2).unwrap() >= LEAST_SEGMENTS * SEGMENT);
    }

    #[test]
    fn a_fiftieth_lost_lets_uploads_pass_for_a_while() {
        let mut link = Link::new(1);
        link.fill(ms(100));
        assert!(link.share(0).is_some());
        (0..200).for_each(|n| link.arrives(0, if n % 20 == 0 { 2 * SEGMENT } else { 0 }));
        assert_eq!(link.share(0), None);
        (0..3_000).for_each(|_| link.arrives(0, 0));
        assert!(link.share(0).is_some());
    }

    #[test]
    fn jitter_is_no_queue() {
        let mut link = Link::new(1);
        for n in 0..400 {
            (link.rtt, link.queue) = if n % 10 == 0 { (ms(64), ms(2)) } else { (ms(122), ms(60)) };
            link.arrives(0, 0);
        }
        assert_eq!(link.share(0), None);
    }

    #[test]
    fn a_client_whose_timer_ran_out_passes_for_a_while() {
        let mut link = Link::new(1);
        link.fill(ms(100));
        link.now += ms(300);
        let report = UploadReport { timed_out: true, ..link.report(0, 0) };
        link.own[0] = link.bound.on_report(link.now, &report);
        assert_eq!(link.share(0), None);
        (0..3_000).for_each(|_| link.arrives(0, 0));
        assert!(link.share(0).is_some());
    }

    #[test]
    fn after_a_break_nothing_is_known() {
        let mut link = Link::new(1);
        link.fill(ms(100));
        link.now += IDLE;
        link.arrives(0, 0);
        assert_eq!(link.share(0), None);
    }
}
