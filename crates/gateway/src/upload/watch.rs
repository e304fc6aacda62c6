//! Watches one upload: the ACKs that pass to its client, and the data that answers them ([`crate::upload`]).

use alloc::collections::VecDeque;
use alloc::vec::Vec;
use core::ops::Range;

use paceline_wire::{Duration, Instant};

use super::{UploadReport, UploadState};

/// Number of ACKs remembered until their answer. Our choice: sixteen for a round trip, and as many for a queue as long
/// as that. In a longer queue some ACKs stay unknown.
const ACKS: usize = 32;
/// Number of gaps remembered. Our choice: losses in more gaps at once are a tail, which a few gaps show.
const GAPS: usize = 16;
/// Our choice: a gap not filled within this time is forgotten.
const FORGOTTEN: Duration = Duration::from_secs(10);

/// An ACK that has passed.
#[derive(Clone, Copy, Debug, Default, serde::Serialize, serde::Deserialize)]
pub(crate) struct ForwardedAck {
    pub(crate) stamp: u32,
    pub(crate) at: Instant,
    /// The right edge that the client knew then.
    pub(crate) edge: u64,
    /// The server's own right edge lay beyond it.
    pub(crate) lowered: bool,
    /// Bytes of all uploads that had arrived.
    pub(crate) arrived: u64,
}

/// Data of an upload.
#[derive(Clone, Debug)]
pub(crate) struct UploadData {
    pub(crate) now: Instant,
    /// Its stream positions.
    pub(crate) range: Range<u64>,
    /// The timestamp that it echoes.
    pub(crate) echo: Option<u32>,
    /// Payload of a full-sized segment.
    pub(crate) segment: u64,
    /// Longest possible queueing delay of the uplink, by the client's timestamps.
    pub(crate) queue: Option<Duration>,
    /// Shortest round trip that the flow knows from other packets.
    pub(crate) handshake: Option<Duration>,
}

/// Bytes missing before data that has arrived.
#[derive(Clone, Copy, Debug, serde::Serialize, serde::Deserialize)]
struct Gap {
    start: u64,
    end: u64,
    seen: Instant,
}

/// State of a flow that uploads.
#[derive(Debug, serde::Serialize, serde::Deserialize)]
pub(crate) struct UploadWatch {
    /// The furthest right edge that the client was shown.
    pub(crate) edge: u64,
    /// The acknowledgement and window field of the newest ACK, as the server sent it.
    pub(crate) newest: (u64, u16),
    passed: VecDeque<ForwardedAck>,
    /// The newest timestamp of an ACK, remembered or not.
    #[serde(default)]
    stamp: Option<u32>,
    /// The newest round trip.
    rtt: Duration,
    /// Position after the newest byte.
    reached: u64,
    gaps: Vec<Gap>,
    /// Bytes lost and not yet reported.
    lost: u64,
    /// Arrival of the newest data.
    #[serde(default)]
    heard: Instant,
    /// The client's timer expired, which is not yet reported.
    #[serde(default)]
    timed_out: bool,
    /// Bytes arrived and not yet reported.
    unreported: u64,
    pub(crate) own: UploadState,
    first: bool,
}

impl UploadWatch {
    pub(crate) fn new(edge: u64, rtt: Duration) -> Self {
        UploadWatch {
            edge,
            newest: (0, 0),
            passed: VecDeque::with_capacity(ACKS),
            stamp: None,
            rtt,
            reached: 0,
            gaps: Vec::with_capacity(GAPS),
            lost: 0,
            heard: Instant::ZERO,
            timed_out: false,
            unreported: 0,
            own: UploadState::default(),
            first: true,
        }
    }

    /// Bytes of memory that it takes.
    pub(crate) const MEMORY: usize =
        size_of::<UploadWatch>() + ACKS * size_of::<ForwardedAck>() + GAPS * size_of::<Gap>();

    /// Handles a passing ACK. Only the first ACK of a tick of the server's clock is remembered: the others have the
    /// same timestamp.
    pub(crate) fn on_passed(&mut self, passed: ForwardedAck) {
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

    /// Handles the arrival of positions `start..end`. Data that fills a gap after half a round trip was lost. Data that
    /// fills it sooner was overtaken. Known data after a silence was sent by the client's timer (RFC 8985, Section 7.2:
    /// two round trips).
    fn on_data(&mut self, now: Instant, start: u64, end: u64) {
        let silence = now.saturating_since(core::mem::replace(&mut self.heard, now));
        self.timed_out |= end <= self.reached && self.gaps.is_empty() && silence >= self.rtt * 2;
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

    /// Handles arrived data. Returns its report of the uplink, if it answers a remembered ACK.
    pub(crate) fn report(&mut self, data: &UploadData) -> Option<UploadReport> {
        let UploadData { now, ref range, .. } = *data;
        self.on_data(now, range.start, range.end);
        self.unreported = self.unreported.saturating_add(range.end - range.start);
        let passed = self.answered(data.echo?)?;
        self.rtt = now.saturating_since(passed.at);
        Some(UploadReport {
            delivered: core::mem::take(&mut self.unreported),
            rtt: self.rtt,
            lost: core::mem::take(&mut self.lost),
            timed_out: core::mem::take(&mut self.timed_out),
            queue: data.queue,
            arrived: passed.arrived,
            // If an ACK allows two segments, the first one ends a segment before the edge.
            limited: passed.lowered && range.end + 2 * data.segment > passed.edge,
            own: self.own,
            handshake: data.handshake.filter(|_| core::mem::take(&mut self.first)),
        })
    }

    /// Returns the ACK that data with this echo answers. Earlier ACKs are answered too.
    fn answered(&mut self, echo: u32) -> Option<ForwardedAck> {
        while self.passed.front().is_some_and(|passed| (passed.stamp.wrapping_sub(echo) as i32) < 0) {
            self.passed.pop_front();
        }
        self.passed.front().filter(|passed| passed.stamp == echo).copied()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(ms: u64) -> Instant {
        Instant::ZERO + Duration::from_millis(1_000 + ms)
    }

    fn upload() -> UploadWatch {
        UploadWatch::new(0, Duration::from_millis(64))
    }

    #[test]
    fn an_answer_is_that_to_the_first_ack_of_its_tick() {
        let mut upload = upload();
        for (stamp, ms) in [(u32::MAX - 1, 0), (u32::MAX - 1, 5), (u32::MAX, 10), (5, 15), (6, 16)] {
            upload.on_passed(ForwardedAck { stamp, at: at(ms), ..ForwardedAck::default() });
        }
        assert_eq!(upload.answered(u32::MAX - 1).map(|passed| passed.at), Some(at(0)));
        // ACK 6 came too soon after the previous one and is not remembered. A later ACK of its tick is not taken for
        // it.
        upload.on_passed(ForwardedAck { stamp: 6, at: at(40), ..ForwardedAck::default() });
        assert!(upload.answered(6).is_none());
        assert!(upload.answered(5).is_none(), "what was answered before is forgotten");
    }

    #[test]
    fn what_had_come_and_comes_after_a_silence_is_the_timers() {
        let mut upload = upload();
        upload.on_data(at(0), 0, 100);
        upload.on_data(at(20), 0, 100);
        assert!(!upload.timed_out, "a copy");
        upload.on_data(at(300), 100, 200);
        assert!(!upload.timed_out, "new data");
        upload.on_data(at(500), 100, 200);
        assert!(upload.timed_out);
    }

    #[test]
    fn acks_that_nobody_answers_are_limited() {
        let mut upload = upload();
        for n in 0..1_000 {
            upload.on_passed(ForwardedAck { stamp: n, at: at(10 * u64::from(n)), ..ForwardedAck::default() });
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
