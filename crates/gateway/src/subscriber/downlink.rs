//! A subscriber's downlink: the bytes in flight to the client, and how many may be.

use paceline_wire::{Duration, Instant, Rate};

use crate::ack_clumps::AckClumps;
use crate::base_rtt::BaseRtt;
use crate::bound::{BoundSample, QueueBound, QueueBoundConfig};
use crate::config::{GatewayConfig, QueueBoundMode, ScheduleMode};
use crate::late_acks::LateAcks;
use crate::link_report::LinkReport;
use crate::path_estimate::UplinkQueue;

/// Round trip before the first sample: the second of RFC 6298, Section 2.1.
pub(super) const RTT_UNKNOWN: Duration = Duration::from_secs(1);

/// Linux net.ipv4.tcp_tso_win_divisor.
const TSO_WIN_DIVISOR: u64 = 3;

/// The link, as reports of all flows show it.
#[derive(Debug, serde::Serialize, serde::Deserialize)]
pub(crate) struct Downlink {
    /// Bytes in flight of all flows.
    pub(crate) outstanding: u64,
    bound: Option<QueueBound>,
    /// Used where there is no bound.
    #[serde(default)]
    base_rtt: BaseRtt,
    /// The schedule may let more be in flight than the path holds.
    #[serde(default)]
    scheduled: bool,
    /// The bound has held a packet back since the last ACK.
    limited: bool,
    /// The bound had held a packet back when the last ACK came: the link is full.
    #[serde(default)]
    full: bool,
    /// Wait of the newest ACK on the uplink, which is not part of the downlink's queue.
    #[serde(default)]
    uplink_queue: UplinkQueue,
    #[serde(default)]
    late_acks: LateAcks,
    #[serde(default)]
    ack_clumps: AckClumps,
    /// When a retransmission last left without room.
    #[serde(default)]
    repaired_at: Instant,
}

/// What a report needs besides the flow's own values.
pub(super) struct ReportContext {
    /// Bytes other than TCP that have arrived with the reported ones.
    pub(super) arrived: u64,
    /// Flows that have not ended.
    pub(super) flows: u32,
    /// The host is overloaded: packets waited for the gateway to read them.
    pub(super) crowded: bool,
    /// A bound holds the uploads.
    pub(super) uploads_are_bounded: bool,
}

impl Downlink {
    pub(super) fn new(config: &GatewayConfig, bound: QueueBoundConfig) -> Self {
        let is_bounded = config.queue_bound.mode == QueueBoundMode::Adaptive;
        Downlink {
            outstanding: 0,
            bound: is_bounded.then(|| QueueBound::new(bound)),
            base_rtt: BaseRtt::default(),
            scheduled: config.schedule.mode == ScheduleMode::ReceptionRate,
            limited: false,
            full: false,
            uplink_queue: UplinkQueue::default(),
            late_acks: LateAcks::default(),
            ack_clumps: AckClumps::default(),
            repaired_at: Instant::ZERO,
        }
    }

    /// The shortest recent RTT.
    pub(super) fn rtt_min(&self) -> Option<Duration> {
        self.bound.as_ref().map_or(self.base_rtt.rtt_min(), QueueBound::rtt_min)
    }

    /// Expected rate of the link; zero while unknown, and without a bound.
    pub(super) fn rate(&self) -> Rate {
        self.bound.as_ref().map_or(Rate::ZERO, QueueBound::rate)
    }

    /// Known rate of the link; zero while unknown, and without a bound.
    pub(super) fn link(&self) -> Rate {
        self.bound.as_ref().map_or(Rate::ZERO, QueueBound::link)
    }

    /// The bound's limit, for the operator.
    pub(super) fn bound_limit(&self) -> Option<u64> {
        self.bound.as_ref().and_then(QueueBound::limit)
    }

    /// True if data waits for room.
    pub(super) fn is_full(&self) -> bool {
        self.full
    }

    /// The newest known wait of a packet on the uplink.
    pub(super) fn uplink_queue(&self) -> UplinkQueue {
        self.uplink_queue
    }

    /// True if transparent flows pass through, because their ACKs wait behind an upload.
    pub(super) fn has_late_acks(&self) -> bool {
        self.late_acks.are_late()
    }

    /// Returns rate and longest burst before a buffer that may be short. Flows that pass have no pace; the gateway's
    /// own senders cannot pass.
    pub(super) fn pace(&self, now: Instant, report: &LinkReport) -> Option<(Rate, Duration)> {
        let bound = self.bound.as_ref().filter(|_| !self.has_late_acks() || report.is_own())?;
        bound.pace(now)
    }

    /// Bytes that all flows may have outstanding; `u64::MAX` before the first estimate. Without a bound there is a
    /// limit only during a drain.
    pub(crate) fn limit(&self) -> u64 {
        self.bound.as_ref().map_or(self.base_rtt.limit(), |bound| bound.limit().unwrap_or(u64::MAX))
    }

    /// Bytes that may leave now; `u64::MAX` without a bound or before the first estimate.
    pub(crate) fn room(&self, now: Instant) -> u64 {
        match self.limit() {
            u64::MAX => u64::MAX,
            limit => limit.saturating_sub(self.on_link(now)),
        }
    }

    /// Returns when there will be room for a packet of `bytes`, if no ACK is needed for that.
    pub(crate) fn room_at(&self, now: Instant, bytes: u64) -> Option<Instant> {
        let rate = self.rate();
        if rate.is_zero() {
            return None;
        }
        // Rounding might otherwise leave a byte missing.
        let wait = rate.time_for(bytes.saturating_sub(self.room(now))) + Duration::from_micros(1);
        self.ack_clumps.lasts(now, wait).then(|| now + wait)
    }

    /// Bytes in flight, less those that have arrived and whose ACKs wait on the uplink (Little's law).
    fn on_link(&self, now: Instant) -> u64 {
        let waits = self.uplink_queue.queue + self.ack_clumps.untold(now);
        self.outstanding.saturating_sub(self.rate().bytes_in(waits))
    }

    /// Returns the smallest part of a super-packet, because packets cost more than bytes. As in tcp_tso_autosize() of
    /// Linux, it is what the link carries in a millisecond. On very short paths it is up to 64 KB more (tcp_tso_rtt_log
    /// = 9). It is at most a third of the limit (tcp_tso_win_divisor = 3). For more, all flows would have to wait until
    /// the link is nearly idle.
    pub(crate) fn quantum(&self) -> u64 {
        self.bound.as_ref().map_or(0, |bound| {
            let near = bound.rtt_min().map_or(0, |rtt| (1 << 16) >> (rtt.as_micros() >> 9).min(31));
            (bound.rate().bytes_in(Duration::from_millis(1)) + near).min(self.limit() / TSO_WIN_DIVISOR)
        })
    }

    /// True if a packet of `bytes` fits; one packet always does.
    pub(crate) fn fits(&mut self, now: Instant, bytes: u64) -> bool {
        let fits = self.outstanding == 0 || bytes <= self.room(now);
        self.limited |= !fits;
        fits
    }

    /// Returns when a retransmission may leave without room: one in a round trip is no load (RFC 5681, Section 3.1, the
    /// loss window).
    pub(crate) fn repair_due(&self) -> Instant {
        self.repaired_at + self.rtt_min().unwrap_or(RTT_UNKNOWN)
    }

    /// Handles the departure of a packet without room.
    pub(crate) fn on_repair_without_room(&mut self, now: Instant) {
        self.repaired_at = now;
    }

    /// `bytes` left for the client.
    pub(crate) fn on_sent(&mut self, bytes: u64) {
        self.outstanding += bytes;
    }

    /// `bytes` have arrived, or nobody waits for them any more.
    pub(crate) fn on_left_network(&mut self, bytes: u64) {
        self.outstanding = self.outstanding.saturating_sub(bytes);
    }

    /// Handles a client's report. True if the bound learnt something of the link.
    pub(super) fn on_report(&mut self, now: Instant, report: &LinkReport, context: &ReportContext) -> bool {
        let Some(bound) = &mut self.bound else {
            match report.rtt {
                Some(rtt) => self.base_rtt.on_rtt(now, rtt, self.outstanding, self.scheduled),
                None => self.base_rtt.on_unmeasured(now),
            }
            return false;
        };
        if report.lost > 0 {
            bound.on_loss(now, report.lost, report.lost_sent);
        }
        if report.delivered == 0 && report.age.is_none() {
            return false;
        }
        if let Some(queue) = report.uplink {
            self.uplink_queue = UplinkQueue { queue, at: now };
        }
        let uplink = self.uplink_queue.of_late(now).unwrap_or_default();
        self.ack_clumps.on_ack(now, uplink);
        let rtt_min = bound.rtt_min().unwrap_or_default();
        self.late_acks.on_ack(now, uplink, rtt_min, context.uploads_are_bounded);
        let answered = bound.rate().bytes_in(uplink);
        bound.on_ack(&BoundSample {
            now,
            delivered: report.delivered + context.arrived,
            rtt: report.rtt.map(|rtt| rtt.saturating_sub(uplink)),
            age: report.age.map(|age| age.saturating_sub(uplink)),
            server_rtt: report.server_rtt,
            outstanding: self.outstanding.saturating_sub(answered),
            flows: context.flows,
            limited: self.limited,
            own: report.is_own(),
            paced: report.paced,
            crowded: context.crowded,
        });
        self.full = core::mem::take(&mut self.limited);
        true
    }
}
