//! The bound on a subscriber's uplink queue: what its uploads may have on their way to the gateway.
//!
//! The queue stands before the uplink, in the client's modem, where the gateway cannot hold anything back. What it can do is to say less in the
//! window of the server's ACKs: a right edge that lies `limit` beyond what has arrived here lets no more than `limit` be between an ACK that passes
//! and the data that answers it. So the rule is that of the downlink ([`crate::bound`]), with ACKs that pass as what leaves, and data
//! that arrives as what is reported: the round trip is from the ACK to its answer, named by its timestamp. The wired side is no part of it.
//! docs/uploads.md has reasons and measurements.

use paceline_wire::{Duration, Instant};

use crate::bound::{BoundSample, QueueBound, QueueBoundConfig};

/// Uploads are counted over this and the slot before. Our choice: some round trips of a slow uplink.
const SLOT: Duration = Duration::from_millis(500);
/// Our choice: after a break as long as the shortest round trip is kept nothing is known of the link any more, and an upload begins as the first did.
const IDLE: Duration = Duration::from_secs(10);
/// A new flow begins with so many segments (RFC 6928).
const FIRST_SEGMENTS: u64 = 10;
/// Our choice: of several uploads none has less than two segments on its way, for which a server's delayed ACK waits (RFC 5681, Section 4.2).
const LEAST_SEGMENTS: u64 = 2;

/// What data of an upload says, when it answers an ACK that is known.
#[derive(Clone, Copy, Debug)]
pub(crate) struct UploadReport {
    /// Bytes that have arrived since the last report.
    pub(crate) delivered: u64,
    /// From the ACK to this data.
    pub(crate) rtt: Duration,
    /// The longest that the uplink's queue can have been, by the client's timestamps.
    pub(crate) queue: Option<Duration>,
    /// Bytes of all uploads that had arrived when the ACK passed: what has arrived since was on its way.
    pub(crate) arrived: u64,
    /// The window that the gateway showed was the limit.
    pub(crate) limited: bool,
    /// The flow is new among the uploads of this slot.
    pub(crate) joins: bool,
    /// The shortest round trip that the flow knows by other packets, if this is its first report.
    pub(crate) handshake: Option<Duration>,
}

/// A count in the running slot and in the one before.
#[derive(Clone, Copy, Debug, Default)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
pub(crate) struct Slots {
    number: u64,
    before: u64,
    current: u64,
}

impl Slots {
    fn turn(&mut self, now: Instant) {
        let number = now.saturating_since(Instant::ZERO).as_nanos() / SLOT.as_nanos();
        if number != self.number {
            self.before = if number == self.number + 1 { self.current } else { 0 };
            self.current = 0;
            self.number = number;
        }
    }

    /// Adds; true if nothing was there in this slot.
    pub(crate) fn add(&mut self, now: Instant, more: u64) -> bool {
        self.turn(now);
        self.current += more;
        self.current == more
    }

    fn both(mut self, now: Instant) -> u64 {
        self.turn(now);
        self.before + self.current
    }

    /// The larger of both, for what is counted anew in each.
    fn most(mut self, now: Instant) -> u64 {
        self.turn(now);
        self.before.max(self.current)
    }
}

/// What an upload knows of the others and of the bound.
#[derive(Clone, Copy, Debug, Default)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
pub(crate) struct UploadPath {
    /// What all may have on their way, once that is known.
    limit: Option<u64>,
    /// All bytes of uploads that have arrived.
    pub(crate) arrived: u64,
    bytes: Slots,
    flows: Slots,
}

impl UploadPath {
    /// What a flow of which `own` has arrived may have on its way. Its part of the limit is that of what arrives; a flow with less than an even part
    /// may double, as in slow start (RFC 5681, Section 3.1), until it has that.
    pub(crate) fn share(&self, now: Instant, own: &Slots, segment: u64) -> Option<u64> {
        let limit = self.limit?;
        let (own, all) = (own.both(now), self.bytes.both(now));
        let flows = self.flows.most(now).max(1) + u64::from(own == 0 && all > 0);
        if flows == 1 {
            return Some(limit);
        }
        let part = (u128::from(limit) * u128::from(own) / u128::from(all.max(1))) as u64;
        let even = (limit / flows).min(own.saturating_mul(2).saturating_add(FIRST_SEGMENTS * segment));
        Some(part.min(limit).max(even).max(LEAST_SEGMENTS * segment))
    }
}

/// The bound of one subscriber's uplink.
#[derive(Debug)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
pub(crate) struct UploadBound {
    config: QueueBoundConfig,
    bound: QueueBound,
    path: UploadPath,
    last: Instant,
    limited_until: Instant,
}

impl UploadBound {
    /// Knows nothing yet.
    pub(crate) fn new(config: QueueBoundConfig) -> Self {
        UploadBound {
            config,
            bound: QueueBound::new(config),
            path: UploadPath::default(),
            last: Instant::ZERO,
            limited_until: Instant::ZERO,
        }
    }

    /// What each upload is to know.
    pub(crate) fn path(&self) -> UploadPath {
        self.path
    }

    /// Data of an upload arrived.
    pub(crate) fn on_report(&mut self, now: Instant, report: &UploadReport) {
        if now.saturating_since(self.last) > IDLE {
            *self = UploadBound { path: UploadPath { limit: None, ..self.path }, ..UploadBound::new(self.config) };
        }
        self.last = now;
        self.path.arrived = self.path.arrived.wrapping_add(report.delivered);
        self.path.bytes.add(now, report.delivered);
        self.path.flows.add(now, u64::from(report.joins));
        let flows = self.path.flows.most(now).max(1) as u32;
        if let Some(rtt) = report.handshake {
            self.report(now, 0, rtt, 0, flows, false);
        }
        let rtt = self.round_trip(report);
        if report.limited {
            self.limited_until = now + rtt;
        }
        // Of several uploads one may be the limit itself, while the bound holds the others.
        let limited = report.limited || flows > 1 && now < self.limited_until;
        let outstanding = self.path.arrived.saturating_sub(report.arrived);
        self.report(now, report.delivered, rtt, outstanding, flows, limited);
        self.path.limit = self.bound.limit();
    }

    /// A client that has nothing to send when an ACK comes answers it late, with no queue as the reason: then the round trip is no longer than
    /// the uplink's own delay says. Where the window was the limit it answers at once, and the whole counts, so that a path that became
    /// longer is seen.
    fn round_trip(&self, report: &UploadReport) -> Duration {
        match self.bound.rtt_min().zip(report.queue) {
            Some((rtt_min, queue)) if !report.limited => report.rtt.min(rtt_min + queue),
            _ => report.rtt,
        }
    }

    fn report(&mut self, now: Instant, delivered: u64, rtt: Duration, outstanding: u64, flows: u32, limited: bool) {
        self.bound.on_ack(&BoundSample {
            now,
            delivered,
            rtt: Some(rtt),
            age: Some(rtt),
            outstanding,
            flows,
            limited,
            paced: false,
            crowded: false,
        });
    }
}
