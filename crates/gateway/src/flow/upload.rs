//! The windows of the server's ACKs on their way to a client that uploads, and what answers them ([`crate::upload`]).

use alloc::boxed::Box;
use alloc::collections::VecDeque;
use alloc::vec::Vec;

use paceline_wire::{Duration, Flags, Instant, Packet, Tcp};

use super::{Context, Flow};
use crate::config::QueueBoundMode;
use crate::upload::{Own, UploadReport};

/// ACKs that are remembered until their answer. Our choice: sixteen a round trip, and a queue of one more; of a longer one some stay unknown.
const ACKS: usize = 32;
/// Gaps that are remembered. Our choice: what is lost in more of them at once is a tail that a few tell of.
const GAPS: usize = 16;
/// Our choice: a flow that sends as much as slow start's first flight (RFC 6928) is an upload.
const FIRST_FLIGHT: u64 = 10;
/// Our choice: a gap that nobody has filled by then is no part of what goes on.
const FORGOTTEN: Duration = Duration::from_secs(10);
/// What a client without an estimate may send beside what slow start says: the largest window of a SYN's answer, which was shown anyway.
const FIRST_WINDOW: u64 = 65_535;

/// An ACK that has passed.
#[derive(Clone, Copy, Debug, Default)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
struct Passed {
    stamp: u32,
    at: Instant,
    /// The right edge that the client knew then.
    edge: u64,
    /// The server's own lay beyond.
    lowered: bool,
    /// What of all uploads had arrived.
    arrived: u64,
}

/// What is missing before what has come.
#[derive(Clone, Copy, Debug)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
struct Gap {
    start: u64,
    end: u64,
    seen: Instant,
}

/// What is kept of a flow that uploads.
#[derive(Debug)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
pub(super) struct Upload {
    /// The furthest right edge that the client was shown.
    edge: u64,
    /// The acknowledgement and window field of the newest ACK, as the server sent it.
    newest: (u64, u16),
    passed: VecDeque<Passed>,
    /// The newest timestamp of an ACK, remembered or not.
    #[cfg_attr(feature = "serde", serde(default))]
    stamp: Option<u32>,
    /// The newest round trip.
    rtt: Duration,
    /// Position after the newest byte.
    reached: u64,
    gaps: Vec<Gap>,
    /// Lost and not yet reported.
    lost: u64,
    /// Arrived and not yet reported.
    unreported: u64,
    own: Own,
    first: bool,
}

impl Upload {
    fn new(edge: u64, rtt: Duration) -> Self {
        Upload {
            edge,
            newest: (0, 0),
            passed: VecDeque::with_capacity(ACKS),
            stamp: None,
            rtt,
            reached: 0,
            gaps: Vec::with_capacity(GAPS),
            lost: 0,
            unreported: 0,
            own: Own::default(),
            first: true,
        }
    }

    /// Bytes of memory that it takes.
    pub(super) const MEMORY: usize =
        size_of::<Upload>() + ACKS * size_of::<Passed>() + GAPS * size_of::<Gap>();

    /// An ACK passes. Only the first of a tick of the server's clock is remembered: its answer would be taken for that of the others.
    fn on_passed(&mut self, passed: Passed) {
        let is_first = self.stamp.is_none_or(|newest| passed.stamp.wrapping_sub(newest) as i32 > 0);
        if !is_first {
            return;
        }
        self.stamp = Some(passed.stamp);
        let is_due =
            self.passed.back().is_none_or(|last| passed.at.saturating_since(last.at) >= self.rtt / 16);
        if is_due && self.passed.len() < ACKS {
            self.passed.push_back(passed);
        }
    }

    /// Positions `start..end` came. What fills a gap after a round trip was lost; what comes sooner was overtaken.
    fn on_data(&mut self, now: Instant, start: u64, end: u64) {
        if start > self.reached && self.reached > 0 && self.gaps.len() < GAPS {
            self.gaps.push(Gap { start: self.reached, end: start, seen: now });
        }
        self.reached = self.reached.max(end);
        let (rtt, lost) = (self.rtt, &mut self.lost);
        self.gaps.retain_mut(|gap| {
            let filled = end.min(gap.end).saturating_sub(start.max(gap.start));
            if filled > 0 {
                if now.saturating_since(gap.seen) >= rtt / 2 {
                    *lost = lost.saturating_add(filled);
                }
                // A client fills a gap from its start on.
                gap.start = end.min(gap.end);
            }
            gap.start < gap.end && now.saturating_since(gap.seen) < FORGOTTEN
        });
    }

    /// The ACK that data with this echo answers. Those before it are answered, too.
    fn answered(&mut self, echo: u32) -> Option<Passed> {
        while self.passed.front().is_some_and(|passed| (passed.stamp.wrapping_sub(echo) as i32) < 0) {
            self.passed.pop_front();
        }
        self.passed.front().filter(|passed| passed.stamp == echo).copied()
    }
}

impl Flow {
    /// A packet of the client came. Returns what it says of the uplink.
    pub(super) fn watch_sent(&mut self, ctx: &Context<'_>, tcp: Tcp<'_>) -> Option<UploadReport> {
        self.watch_uplink(ctx, tcp);
        self.watch_upload(ctx, tcp)
    }

    /// Only data that answers an ACK that is remembered says something.
    fn watch_upload(&mut self, ctx: &Context<'_>, tcp: Tcp<'_>) -> Option<UploadReport> {
        let len = u64::from(tcp.seq_len());
        if ctx.config.queue_bound.uploads == QueueBoundMode::None || len == 0 {
            return None;
        }
        let segment = self.segment();
        let uplink = self.uplink.as_ref()?;
        let end = tcp.seq().unwrap_near(uplink.sent()) + len;
        if self.upload.is_none() {
            let is_short = uplink.sent() - uplink.first() <= FIRST_FLIGHT * segment;
            if is_short || tcp.timestamps().is_none() || !self.has_room(ctx, Upload::MEMORY) {
                return None;
            }
            let rtt = self.totals.rtt_min.unwrap_or_default();
            self.upload = Some(Box::new(Upload::new(uplink.edge(), rtt)));
        }
        let queue = self.uplink_at_most();
        let handshake = self.totals.rtt_min;
        let upload = self.upload.as_mut()?;
        upload.on_data(ctx.now, end - len, end);
        upload.unreported = upload.unreported.saturating_add(len);
        let passed = upload.answered(tcp.timestamps()?.1)?;
        upload.rtt = ctx.now.saturating_since(passed.at);
        let delivered = core::mem::take(&mut upload.unreported);
        let lost = core::mem::take(&mut upload.lost);
        Some(UploadReport {
            delivered,
            rtt: upload.rtt,
            lost,
            queue,
            arrived: passed.arrived,
            // Of two segments that an ACK allows the first comes first.
            limited: passed.lowered && end + 2 * segment > passed.edge,
            own: upload.own,
            handshake: handshake.filter(|_| core::mem::take(&mut upload.first)),
        })
    }

    /// What its subscriber knows of it.
    pub(crate) fn set_own_upload(&mut self, own: Own) {
        if let Some(upload) = &mut self.upload {
            upload.own = own;
        }
    }

    /// A packet of the server, as its client would read it, is to pass: its window lets the client have no more on its way than the uplink's bound
    /// says.
    /// The right edge never moves back by that (RFC 9293, Section 3.8.6).
    pub(super) fn lower_upload_window(&mut self, now: Instant, packet: &mut Packet) {
        let (segment, at_once, server_rtt) = (self.segment(), self.waiting() == 0, self.server_rtt.get());
        let Some((uplink, upload)) = self.uplink.as_ref().zip(self.upload.as_mut()) else { return };
        let Some(tcp) = packet.tcp().filter(|tcp| tcp.flags().contains(Flags::ACK)) else { return };
        let shift = if self.shifts.added { 0 } else { self.shifts.server };
        let (ack, field) = (tcp.ack().unwrap_near(uplink.acked()), tcp.window());
        let is_pure_ack = tcp.seq_len() == 0;
        // Without SACK what moves the window is no duplicate (RFC 5681, Section 2).
        let repeats = is_pure_ack && !self.handshake.sack() && upload.newest == (ack, field);
        upload.newest = (ack, field);
        let path = &self.path.upload;
        let wanted = match path.share(upload.own, segment) {
            // After a pause (BBR looks for its shortest round trip) no ACK comes that could move the edge until what it allowed has been to the
            // server. Without the wired side's part a path of 72 and 139 ms had a third of its rate for four seconds after each.
            Some(share) => {
                let on_wired = (uplink.sent().saturating_sub(ack)).max(path.carries(upload.own, server_rtt));
                (ack + on_wired).saturating_add(share)
            }
            // What slow start may have on its way from here: each byte that is acknowledged brings two (RFC 5681, Section 3.1).
            None => ack + (ack - uplink.first().min(ack)) + FIRST_WINDOW,
        };
        let wanted = if repeats { upload.edge } else { wanted.max(upload.edge) };
        // Rounded up (RFC 7323, Section 2.4), and never to nothing.
        let units = wanted.saturating_sub(ack).div_ceil(1 << shift).max(1).min(u64::from(field)) as u16;
        upload.edge = upload.edge.max(ack + (u64::from(units) << shift));
        let lowered = units < field;
        if lowered && let Some(mut tcp) = packet.tcp_mut() {
            tcp.set_window(units);
        }
        if is_pure_ack
            && at_once
            && let Some((stamp, _)) = packet.tcp().and_then(|tcp| tcp.timestamps())
        {
            upload.on_passed(Passed { stamp, at: now, edge: upload.edge, lowered, arrived: path.arrived });
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(ms: u64) -> Instant {
        Instant::ZERO + Duration::from_millis(1_000 + ms)
    }

    fn upload() -> Upload {
        Upload::new(0, Duration::from_millis(64))
    }

    #[test]
    fn an_answer_is_that_to_the_first_ack_of_its_tick() {
        let mut upload = upload();
        for (stamp, ms) in [(u32::MAX - 1, 0), (u32::MAX - 1, 5), (u32::MAX, 10), (5, 15), (6, 16)] {
            upload.on_passed(Passed { stamp, at: at(ms), ..Passed::default() });
        }
        assert_eq!(upload.answered(u32::MAX - 1).map(|passed| passed.at), Some(at(0)));
        // One of which nothing is known, as it came too soon after the one before; a later one of its tick is not taken for it.
        upload.on_passed(Passed { stamp: 6, at: at(40), ..Passed::default() });
        assert!(upload.answered(6).is_none());
        assert!(upload.answered(5).is_none(), "what was answered before is forgotten");
    }

    #[test]
    fn acks_that_nobody_answers_are_limited() {
        let mut upload = upload();
        for n in 0..1_000 {
            upload.on_passed(Passed { stamp: n, at: at(10 * u64::from(n)), ..Passed::default() });
        }
        assert_eq!(upload.passed.len(), ACKS);
        assert_eq!(upload.answered(0).map(|passed| passed.at), Some(at(0)));
    }

    #[test]
    fn a_gap_that_is_filled_late_was_lost_and_one_filled_soon_was_not() {
        let mut upload = upload();
        for (ms, start, end) in
            [(0, 100, 200), (10, 300, 400), (20, 200, 300), (30, 500, 600), (100, 400, 450)]
        {
            upload.on_data(at(ms), start, end);
        }
        assert_eq!(upload.lost, 50);
        upload.on_data(at(110), 450, 500);
        assert_eq!((upload.lost, upload.gaps.len()), (100, 0));
        (0..100).for_each(|n| upload.on_data(at(200), 1_000 + 200 * n, 1_100 + 200 * n));
        assert_eq!(upload.gaps.len(), GAPS);
    }
}
