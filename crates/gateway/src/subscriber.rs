//! A subscriber: one radio link, and the bounds that belong to it whatever the number of its flows.

use alloc::boxed::Box;
use core::net::IpAddr;

use paceline_wire::{Duration, Instant, Rate};

use crate::ack_clumps::AckClumps;
use crate::auto::Reason;
use crate::base_rtt::BaseRtt;
use crate::bound::{BoundSample, QueueBound, QueueBoundConfig};
use crate::config::{
    self, GatewayConfig, Prefer, QueueBoundMode, ScheduleMode, ShareConfig, SharingConfig, SubscriberRule,
};
use crate::flow::LinkReport;
use crate::late_acks::LateAcks;
use crate::non_tcp::{NonTcp, WAIT_MAX};
use crate::pool::MemoryUse;
use crate::priority_round_robin::PriorityRoundRobin;
use crate::ring::{Linked, Links};
use crate::share::Share;
use crate::status::SubscriberStatus;
use crate::upload::{Own, UploadBound, UploadPath, UploadReport};

/// Before there is a sample: the second of RFC 6298, Section 2.1.
const RTT_UNKNOWN: Duration = Duration::from_secs(1);

/// Linux net.ipv4.tcp_tso_win_divisor.
const TSO_WIN_DIVISOR: u64 = 3;

/// The address prefix that names a subscriber.
pub(crate) fn prefix(config: &SharingConfig, client: IpAddr) -> IpAddr {
    match client {
        IpAddr::V4(address) => {
            let bits = u32::from(config.subscriber_prefix_v4.min(32));
            let mask = u32::MAX.checked_shl(32 - bits).unwrap_or(0);
            IpAddr::V4((address.to_bits() & mask).into())
        }
        IpAddr::V6(address) => {
            let bits = u32::from(config.subscriber_prefix_v6.min(128));
            let mask = u128::MAX.checked_shl(128 - bits).unwrap_or(0);
            IpAddr::V6((address.to_bits() & mask).into())
        }
    }
}

/// The path between gateway and client, as all flows of the subscriber have seen it.
#[derive(Clone, Copy, Debug, Default)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
pub(crate) struct PathEstimate {
    /// The shortest RTT of late.
    pub(crate) rtt: Option<Duration>,
    /// An even share of what the link delivers, among the flows that have not ended; zero while unknown.
    pub(crate) share: Rate,
    /// Bytes that the subscriber has sent up, without those of acknowledgements.
    #[cfg_attr(feature = "serde", serde(default))]
    pub(crate) uploaded: u64,
    /// Data waits for room: the link is full.
    #[cfg_attr(feature = "serde", serde(default))]
    pub(crate) full: bool,
    /// Why the gateway cannot help: flows pass through as if it were not there.
    #[cfg_attr(feature = "serde", serde(default))]
    pub(crate) passes: Option<Reason>,
    /// What an upload may have on its way.
    #[cfg_attr(feature = "serde", serde(default))]
    pub(crate) upload: UploadPath,
}

/// The state of one subscriber.
#[derive(Debug)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
pub(crate) struct Subscriber {
    pub(crate) prefix: IpAddr,
    /// Flows in the table.
    pub(crate) flows: u32,
    /// Of these, flows that have ended and are kept for what comes late.
    #[cfg_attr(feature = "serde", serde(default))]
    pub(crate) ended: u32,
    /// What it may have of the gateway, beside others.
    pub(crate) share: Share,
    /// Flows that may have something to send.
    #[cfg_attr(feature = "serde", serde(rename = "rings"))]
    pub(crate) round_robin: PriorityRoundRobin,
    /// Of these, flows whose next packet retransmits what was lost.
    pub(crate) repairing: u32,
    /// The gateway's own circle in which it stands, and where.
    pub(crate) class: Option<usize>,
    pub(crate) links: Links,
    /// Bytes in flight of all flows.
    pub(crate) outstanding: u64,
    /// What its flows hold of the memory that all share.
    #[cfg_attr(feature = "serde", serde(rename = "holdings"))]
    pub(crate) memory_use: MemoryUse,
    /// What it receives besides TCP, if it does.
    #[cfg_attr(feature = "serde", serde(rename = "other"))]
    pub(crate) non_tcp: Option<Box<NonTcp>>,
    /// The timer of that.
    pub(crate) armed: Option<Instant>,
    /// It is on the list of those whose packets other than TCP may leave.
    pub(crate) stirred: bool,
    bound: Option<QueueBound>,
    /// Used where there is no bound.
    #[cfg_attr(feature = "serde", serde(default))]
    base_rtt: BaseRtt,
    /// The schedule may let more be on its way than the path holds.
    #[cfg_attr(feature = "serde", serde(default))]
    scheduled: bool,
    /// The bound has held a packet back since the last ACK.
    limited: bool,
    /// It had done so when the last ACK came: the link is full.
    #[cfg_attr(feature = "serde", serde(default))]
    full: bool,
    /// Bytes of TCP that it has sent up.
    #[cfg_attr(feature = "serde", serde(default))]
    uploaded: u64,
    /// What the newest ACK waited on the uplink, which is none of the downlink's queue.
    uplink: Duration,
    #[cfg_attr(feature = "serde", serde(default))]
    late_acks: LateAcks,
    /// Why its transparent flows pass through, if they do.
    #[cfg_attr(feature = "serde", serde(default))]
    passes: Option<Reason>,
    /// The bound of its uplink, once it has uploads.
    #[cfg_attr(feature = "serde", serde(default))]
    upload: Option<Box<UploadBound>>,
    #[cfg_attr(feature = "serde", serde(default))]
    upload_config: QueueBoundConfig,
    #[cfg_attr(feature = "serde", serde(default))]
    ack_clumps: AckClumps,
    /// When a repair last left that had no room.
    #[cfg_attr(feature = "serde", serde(default))]
    repaired_at: Instant,
}

impl Subscriber {
    pub(crate) fn new(prefix: IpAddr, config: &GatewayConfig) -> Self {
        let GatewayConfig { queue_bound: bound, sharing, .. } = config;
        let about = |rule: &&SubscriberRule| {
            rule.address.contains(prefix) || self::prefix(sharing, rule.address.address()) == prefix
        };
        let rule = sharing.subscribers.iter().find(about);
        let share = rule.map_or_else(ShareConfig::default, |rule| rule.share.clone());
        let prefer = rule.and_then(|rule| rule.prefer).unwrap_or(bound.prefer);
        Subscriber {
            prefix,
            flows: 0,
            ended: 0,
            share: Share::new(&share),
            round_robin: PriorityRoundRobin::default(),
            repairing: 0,
            class: None,
            links: Links::default(),
            outstanding: 0,
            memory_use: MemoryUse::default(),
            non_tcp: None,
            armed: None,
            stirred: false,
            bound: (bound.mode == QueueBoundMode::Adaptive)
                .then(|| QueueBound::new(bound_config(bound, prefer))),
            base_rtt: BaseRtt::default(),
            scheduled: config.schedule.mode == ScheduleMode::ReceptionRate,
            limited: false,
            full: false,
            uploaded: 0,
            uplink: Duration::ZERO,
            late_acks: LateAcks::default(),
            passes: None,
            upload: None,
            upload_config: bound_config(bound, prefer),
            ack_clumps: AckClumps::default(),
            repaired_at: Instant::ZERO,
        }
    }

    /// What its flows have in common.
    pub(crate) fn path(&self) -> PathEstimate {
        let uploaded = self.uploaded();
        let upload = self.upload.as_ref().map_or(UploadPath::default(), |upload| upload.path());
        match &self.bound {
            Some(bound) => {
                let share = bound.rate().mul_ratio(1, u64::from((self.flows - self.ended).max(1)));
                let (passes, full) = (self.passes, self.full);
                PathEstimate { rtt: bound.rtt_min(), share, uploaded, full, passes, upload }
            }
            None => {
                PathEstimate { rtt: self.base_rtt.rtt_min(), uploaded, upload, ..PathEstimate::default() }
            }
        }
    }

    /// It sent `bytes` up, over TCP.
    pub(crate) fn note_uploaded(&mut self, bytes: u64) {
        self.uploaded = self.uploaded.saturating_add(bytes);
    }

    /// Bytes that it has sent up, without those of acknowledgements.
    pub(crate) fn uploaded(&self) -> u64 {
        self.uploaded.saturating_add(self.non_tcp.as_ref().map_or(0, |non_tcp| non_tcp.uplink_bytes))
    }

    /// A copy of its state for an operator.
    pub(crate) fn status(&self) -> SubscriberStatus {
        SubscriberStatus {
            prefix: self.prefix,
            flows: self.flows,
            weight: self.share.weight(),
            outstanding: self.outstanding,
            limit: self.bound.as_ref().and_then(QueueBound::limit),
            rate: self.bound.as_ref().map_or(Rate::ZERO, QueueBound::rate),
            rtt_min: self.path().rtt,
            other_downlink_bytes: self.non_tcp.as_ref().map_or(0, |non_tcp| non_tcp.downlink_bytes),
            other_uplink_bytes: self.non_tcp.as_ref().map_or(0, |non_tcp| non_tcp.uplink_bytes),
            other_waiting: self.non_tcp.as_ref().map_or(0, |non_tcp| non_tcp.waiting_bytes()),
        }
    }

    /// Bytes that all its flows may have outstanding; `u64::MAX` before the first estimate, and without a bound but for a drain.
    pub(crate) fn limit(&self) -> u64 {
        self.bound.as_ref().map_or(self.base_rtt.limit(), |bound| bound.limit().unwrap_or(u64::MAX))
    }

    /// Bytes that may leave now; `u64::MAX` without a bound or before the first estimate.
    pub(crate) fn room(&self, now: Instant) -> u64 {
        match self.limit() {
            u64::MAX => u64::MAX,
            limit => limit.saturating_sub(self.on_downlink(now)),
        }
    }

    /// When a packet of `bytes`, for which there is no room now, will have some, if no ACK is needed to say so.
    pub(crate) fn room_at(&self, now: Instant, bytes: u64) -> Option<Instant> {
        let rate = self.bound.as_ref().map_or(Rate::ZERO, QueueBound::rate);
        if rate.is_zero() {
            return None;
        }
        // To the nanosecond it might miss a byte.
        let wait = rate.time_for(bytes.saturating_sub(self.room(now))) + Duration::from_micros(1);
        self.ack_clumps.lasts(now, wait).then(|| now + wait)
    }

    /// Bytes in flight without those that have arrived and whose ACKs wait on the uplink (Little's law).
    fn on_downlink(&self, now: Instant) -> u64 {
        let waits = self.uplink + self.ack_clumps.untold(now);
        let answered = self.bound.as_ref().map_or(0, |bound| bound.rate().bytes_in(waits));
        self.outstanding.saturating_sub(answered)
    }

    /// A super-packet is not cut smaller than this, because packets cost more than bytes: as tcp_tso_autosize() of Linux
    /// has it, what the link carries in a millisecond, and on very short paths up to 64 KB (tcp_tso_rtt_log = 9); but never more than a
    /// third of what may be outstanding (tcp_tso_win_divisor = 3), for which all flows would have to wait until the link is nearly idle.
    pub(crate) fn quantum(&self) -> u64 {
        self.bound.as_ref().map_or(0, |bound| {
            let near = bound.rtt_min().map_or(0, |rtt| (1 << 16) >> (rtt.as_micros() >> 9).min(31));
            (bound.rate().bytes_in(Duration::from_millis(1)) + near).min(self.limit() / TSO_WIN_DIVISOR)
        })
    }

    /// A packet of `bytes` fits; one packet always does.
    pub(crate) fn fits(&mut self, now: Instant, bytes: u64) -> bool {
        let fits = self.outstanding == 0 || bytes <= self.room(now);
        self.limited |= !fits;
        fits
    }

    /// When a packet that a client waits for may leave without room: one in a round trip is no load (RFC 5681, Section 3.1, the loss window).
    pub(crate) fn repair_due(&self) -> Instant {
        self.repaired_at + self.path().rtt.unwrap_or(RTT_UNKNOWN)
    }

    /// A packet leaves for which there is no room.
    pub(crate) fn on_repair_without_room(&mut self, now: Instant) {
        self.repaired_at = now;
    }

    /// `bytes` left for the client.
    pub(crate) fn on_sent(&mut self, bytes: u64) {
        self.outstanding += bytes;
    }

    /// Nobody needs it any more.
    pub(crate) fn is_over(&self) -> bool {
        self.flows == 0 && self.non_tcp.is_none()
    }

    /// `bytes` of TCP left, in which what is not TCP has a share.
    pub(crate) fn on_tcp_sent(&mut self, now: Instant, bytes: u64) {
        let per_ms = self.bound.as_ref().map_or(0, |bound| bound.rate().bytes_in(Duration::from_millis(1)));
        if let Some(non_tcp) = &mut self.non_tcp {
            non_tcp.on_tcp_sent(now, bytes, self.round_robin.len(), per_ms);
        }
    }

    /// `bytes` that are not TCP left for the client. Where no ACK of TCP will tell when they have arrived, they do not count.
    pub(crate) fn on_non_tcp_sent(&mut self, now: Instant, bytes: u64) {
        self.share.on_sent(now, bytes);
        let Some(non_tcp) = &mut self.non_tcp else { return };
        if self.outstanding > non_tcp.outstanding() {
            non_tcp.on_departure(now, bytes);
            self.outstanding += bytes;
        }
    }

    /// TCP flows wait for their turn, or would if they had anything to send: what is not TCP has to keep to its share.
    pub(crate) fn contended(&mut self, now: Instant, bytes: u64) -> bool {
        let give_up = self.path().rtt.unwrap_or(RTT_UNKNOWN) * 2 + WAIT_MAX;
        if let Some(non_tcp) = &mut self.non_tcp {
            // Of a TCP flow whose client has gone no ACK comes any more.
            self.outstanding = self.outstanding.saturating_sub(non_tcp.on_arrival(now - give_up));
        }
        self.forget_non_tcp();
        !self.round_robin.is_empty() || (self.outstanding > 0 && bytes > self.room(now))
    }

    /// What is not TCP, and left before what has arrived, has arrived too. Returns how much that was.
    fn non_tcp_arrived(&mut self, sent: Option<Instant>) -> u64 {
        let Some(non_tcp) = &mut self.non_tcp else { return 0 };
        let arrived = sent.map_or(0, |sent| non_tcp.on_arrival(sent));
        self.outstanding = self.outstanding.saturating_sub(arrived);
        arrived
    }

    /// Without TCP on the link nothing tells when the rest arrives.
    pub(crate) fn forget_non_tcp(&mut self) {
        if let Some(non_tcp) = &mut self.non_tcp
            && self.outstanding <= non_tcp.outstanding()
        {
            non_tcp.forget_departures();
            self.outstanding = 0;
        }
    }

    /// Data of an upload arrived.
    pub(crate) fn on_upload(&mut self, now: Instant, report: &UploadReport) -> Own {
        let config = self.upload_config;
        self.upload.get_or_insert_with(|| Box::new(UploadBound::new(config))).on_report(now, report)
    }

    /// The bytes in flight of one of its flows went from `before` to `after`, and its client reported.
    pub(crate) fn on_report(
        &mut self,
        now: Instant,
        before: u64,
        after: u64,
        report: &LinkReport,
        crowded: bool,
    ) {
        self.outstanding = (self.outstanding + after).saturating_sub(before);
        let arrived = self.non_tcp_arrived(report.age.map(|age| now - age));
        self.forget_non_tcp();
        let Some(bound) = &mut self.bound else {
            if let Some(rtt) = report.rtt {
                self.base_rtt.on_rtt(now, rtt, self.outstanding, self.scheduled);
            }
            return;
        };
        if report.lost > 0 {
            bound.on_loss(now, report.lost, report.lost_sent);
        }
        if report.delivered == 0 && report.age.is_none() {
            return;
        }
        self.uplink = report.uplink;
        self.ack_clumps.on_ack(now, report.uplink);
        let bounded = self.upload.as_ref().is_some_and(|upload| upload.is_active());
        self.late_acks.on_ack(now, report.uplink, bound.rtt_min().unwrap_or_default(), bounded);
        let answered = bound.rate().bytes_in(report.uplink);
        bound.on_ack(&BoundSample {
            now,
            delivered: report.delivered + arrived,
            rtt: report.rtt.map(|rtt| rtt.saturating_sub(report.uplink)),
            age: report.age.map(|age| age.saturating_sub(report.uplink)),
            outstanding: self.outstanding.saturating_sub(answered),
            flows: self.flows - self.ended,
            limited: self.limited,
            paced: report.paced,
            crowded,
        });
        self.full = core::mem::take(&mut self.limited);
        self.passes = match bound.has_short_buffer(now) {
            _ if self.late_acks.are_late() => Some(Reason::LateAcks),
            true => Some(Reason::ShortBuffer),
            false => None,
        };
        self.share.set_pace(bound.pace(now).filter(|_| self.passes.is_none()));
    }
}

impl Linked for Subscriber {
    fn links(&mut self) -> &mut Links {
        &mut self.links
    }
}

fn bound_config(config: &config::QueueBoundConfig, prefer: Prefer) -> QueueBoundConfig {
    let mut bound =
        QueueBoundConfig { error_gain_percent: prefer.error_gain_percent(), ..QueueBoundConfig::default() };
    if let Some(target_ms) = config.target_ms {
        bound.target = Duration::from_millis(target_ms);
    }
    bound
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_handset_is_one_subscriber_whatever_its_ipv6_interface_identifier() {
        let config = SharingConfig::default();
        let of = |text: &str| prefix(&config, text.parse().unwrap());
        assert_eq!(of("2001:db8:1:2::1"), of("2001:db8:1:2:ffff::9"));
        assert_ne!(of("2001:db8:1:2::1"), of("2001:db8:1:3::1"));
        assert_ne!(of("10.0.0.1"), of("10.0.0.2"));
        let everyone = SharingConfig { subscriber_prefix_v4: 0, ..config };
        assert_eq!(
            prefix(&everyone, "10.0.0.1".parse().unwrap()),
            prefix(&everyone, "192.0.2.1".parse().unwrap())
        );
    }

    /// A subscriber to whom `delivered` bytes came each 10 ms over a path of `rtt`, in front of which a queue stood.
    fn busy(delivered: u64, rtt: Duration) -> Subscriber {
        let mut subscriber = Subscriber::new(IpAddr::from([10, 0, 0, 1]), &GatewayConfig::default());
        subscriber.outstanding = 100_000;
        for step in 1..=500 {
            // From the second report on.
            let rtt = Some(if step == 1 { rtt } else { rtt + Duration::from_millis(30) });
            let report = LinkReport { delivered, rtt, age: rtt, ..LinkReport::default() };
            subscriber.on_report(Instant::ZERO + Duration::from_millis(10) * step, 0, 0, &report, false);
        }
        subscriber
    }

    #[test]
    fn nobody_waits_for_room_for_more_than_a_third_of_what_may_be_outstanding() {
        // 10 Mbit/s: a millisecond is 1,250 bytes, and 8 ms of queue are no room for 64 KB.
        let subscriber = busy(12_500, Duration::from_micros(200));
        assert!(subscriber.limit() < 65_536, "{}", subscriber.limit());
        assert_eq!(subscriber.quantum(), subscriber.limit() / 3);
        let subscriber = busy(12_500, Duration::from_millis(50));
        assert!(subscriber.quantum() < subscriber.limit() / 3);
        assert!((1_000..1_500).contains(&subscriber.quantum()), "{}", subscriber.quantum());
    }

    #[test]
    fn flows_that_have_ended_have_no_share_of_the_link() {
        let mut subscriber = busy(12_500, Duration::from_millis(50));
        subscriber.flows = 1;
        let alone = subscriber.path().share;
        assert!(alone > Rate::ZERO);
        (subscriber.flows, subscriber.ended) = (4, 3);
        assert_eq!(subscriber.path().share, alone);
        (subscriber.flows, subscriber.ended) = (4, 2);
        assert_eq!(subscriber.path().share, alone.mul_ratio(1, 2));
    }
}
