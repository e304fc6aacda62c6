//! Outstanding data of the model sender, by segment. Counters have Linux's names. Losses are detected by RACK (RFC
//! 8985).

use std::collections::VecDeque;

use paceline_wire::{Duration, Instant};

/// A sent segment that is not cumulatively acknowledged.
#[derive(Clone, Debug)]
pub struct Sent {
    pub start: u64,
    /// Exclusive end, FIN included.
    pub end: u64,
    pub fin: bool,
    pub sent_at: Instant,
    pub copies: u32,
    sacked: bool,
    lost: bool,
    /// The segment was found lost, and has been sent again since.
    resent: bool,
}

/// Data newly delivered by an ACK.
#[derive(Clone, Copy, Debug, Default)]
pub struct Delivered {
    /// Segments delivered for the first time, by cumulative or selective acknowledgement.
    pub segments: u32,
    /// RTT of the oldest segment that was sent once and is newly acknowledged cumulatively.
    pub rtt: Option<Duration>,
    /// RTT of the newest segment that was sent once and is newly acknowledged selectively.
    pub sack_rtt: Option<Duration>,
    /// The cumulatively acknowledged segments include one that was sent more than once.
    pub copies: bool,
    /// Segments removed from the board.
    pub left: u32,
}

/// RACK state, named as in RFC 8985.
#[derive(Clone, Debug)]
struct Rack {
    sent_at: Instant,
    end: u64,
    rtt: Duration,
    reordering_seen: bool,
    reo_wnd_mult: u64,
}

/// Outstanding segments in stream order.
#[derive(Clone, Debug)]
pub struct Scoreboard {
    segments: VecDeque<Sent>,
    sacked: usize,
    lost: usize,
    resent: usize,
    /// Exclusive end of the highest selectively acknowledged segment.
    fack: u64,
    /// Every lost segment below this has been sent again.
    resend_hint: u64,
    rack: Rack,
    sack: bool,
}

impl Scoreboard {
    /// `sack` is the negotiated value. Without SACK, duplicate ACKs are counted (RFC 6582).
    pub fn new(sack: bool) -> Self {
        let rack = Rack {
            sent_at: Instant::ZERO,
            end: 0,
            rtt: Duration::ZERO,
            reordering_seen: false,
            reo_wnd_mult: 1,
        };
        let segments = VecDeque::new();
        Scoreboard { segments, sacked: 0, lost: 0, resent: 0, fack: 0, resend_hint: u64::MAX, rack, sack }
    }

    pub fn is_empty(&self) -> bool {
        self.segments.is_empty()
    }

    pub fn len(&self) -> usize {
        self.segments.len()
    }

    pub fn sacked(&self) -> usize {
        self.sacked
    }

    pub fn lost(&self) -> usize {
        self.lost
    }

    /// `tcp_packets_in_flight`.
    pub fn pipe(&self) -> u32 {
        (self.segments.len() + self.resent).saturating_sub(self.sacked + self.lost) as u32
    }

    pub fn front(&self) -> Option<&Sent> {
        self.segments.front()
    }

    pub fn back(&self) -> Option<&Sent> {
        self.segments.back()
    }

    pub fn push(&mut self, start: u64, end: u64, fin: bool, now: Instant) {
        self.segments.push_back(Sent {
            start,
            end,
            fin,
            sent_at: now,
            copies: 1,
            sacked: false,
            lost: false,
            resent: false,
        });
    }

    /// Marks the segments inside [start, end) as received.
    pub fn on_sack(&mut self, now: Instant, start: u64, end: u64, min_rtt: Option<Duration>) -> Delivered {
        let mut delivered = Delivered::default();
        let first = self.segments.partition_point(|s| s.start < start);
        for i in first..self.segments.len() {
            let segment = &mut self.segments[i];
            if segment.end > end {
                break;
            }
            if segment.sacked {
                continue;
            }
            segment.sacked = true;
            self.sacked += 1;
            self.lost -= usize::from(segment.lost);
            self.resent -= usize::from(segment.resent);
            let (was_lost, segment) = (segment.lost, {
                segment.lost = false;
                segment.resent = false;
                segment.clone()
            });
            delivered.segments += 1;
            if segment.copies == 1 {
                delivered.sack_rtt = Some(now.saturating_since(segment.sent_at));
                if segment.end < self.fack && !was_lost {
                    self.rack.reordering_seen = true;
                }
            }
            self.fack = self.fack.max(segment.end);
            self.rack.on_delivered(now, &segment, min_rtt);
        }
        delivered
    }

    /// Removes data that `ack` covers. A partly covered segment keeps its rest.
    pub fn on_ack(&mut self, now: Instant, ack: u64, min_rtt: Option<Duration>) -> Delivered {
        let mut delivered = Delivered::default();
        while let Some(segment) = self.segments.front_mut() {
            if segment.end > ack {
                segment.start = segment.start.max(ack);
                break;
            }
            let Some(segment) = self.segments.pop_front() else { break };
            delivered.left += 1;
            self.lost -= usize::from(segment.lost);
            self.resent -= usize::from(segment.resent);
            delivered.copies |= segment.copies > 1;
            if segment.sacked {
                self.sacked -= usize::from(self.sack);
                continue;
            }
            delivered.segments += 1;
            if segment.copies == 1 && delivered.rtt.is_none() {
                delivered.rtt = Some(now.saturating_since(segment.sent_at));
                if self.sack && segment.end < self.fack && !segment.lost {
                    self.rack.reordering_seen = true;
                }
            }
            self.rack.on_delivered(now, &segment, min_rtt);
        }
        if !self.sack && delivered.left > 0 {
            self.sacked = self.sacked.saturating_sub(delivered.left as usize - 1);
        }
        if self.segments.is_empty() {
            self.sacked = 0;
        }
        delivered
    }

    /// Without SACK, a duplicate ACK means that one more segment has arrived.
    pub fn on_duplicate_ack(&mut self) {
        self.sacked = (self.sacked + 1).min(self.segments.len().saturating_sub(1 + self.lost));
    }

    /// Resets the count of duplicate ACKs, at the end of an episode or after a timeout.
    pub fn forget_duplicate_acks(&mut self) {
        if !self.sack {
            self.sacked = 0;
        }
    }

    pub fn on_spurious_copy(&mut self) {
        self.rack.reo_wnd_mult = (self.rack.reo_wnd_mult + 1).min(20);
    }

    /// RFC 8985, Section 6.2, step 5. Returns the number of newly lost segments, and the time of the next check.
    pub fn detect(
        &mut self,
        now: Instant,
        in_recovery: bool,
        rtts: (Duration, Duration),
    ) -> (u32, Option<Instant>) {
        let window = self.reordering_window(in_recovery, rtts);
        let limit = self.fack.max(self.rack.end);
        let (mut newly, mut again) = (0, None::<Instant>);
        for i in 0..self.segments.len() {
            let segment = &self.segments[i];
            if segment.start >= limit {
                break;
            }
            let pending = segment.lost && !segment.resent;
            if segment.sacked || pending || !self.rack.sent_after(segment) {
                continue;
            }
            let deadline = segment.sent_at + self.rack.rtt + window;
            if deadline <= now {
                newly += u32::from(self.mark_lost(i));
            } else {
                again = Some(again.map_or(deadline, |at| at.max(deadline)));
            }
        }
        (newly, again)
    }

    fn reordering_window(&self, in_recovery: bool, (min_rtt, srtt): (Duration, Duration)) -> Duration {
        if !self.rack.reordering_seen && (in_recovery || self.sacked >= 3) {
            return Duration::ZERO;
        }
        (min_rtt * self.rack.reo_wnd_mult / 4).min(srtt)
    }

    /// RFC 6582: marks the first outstanding segment as lost.
    pub fn mark_first_lost(&mut self) {
        if !self.segments.is_empty() {
            self.mark_lost(0);
        }
    }

    /// After a timeout: marks every segment as lost that is not selectively acknowledged.
    pub fn mark_all_lost(&mut self) {
        self.forget_duplicate_acks();
        for i in 0..self.segments.len() {
            if !self.segments[i].sacked {
                self.mark_lost(i);
            }
        }
    }

    /// Removes all loss marks: the segments were only late.
    pub fn unmark_lost(&mut self) {
        for segment in &mut self.segments {
            if segment.lost {
                segment.lost = false;
                self.lost -= 1;
                self.resent -= usize::from(std::mem::take(&mut segment.resent));
            }
        }
    }

    fn mark_lost(&mut self, i: usize) -> bool {
        let segment = &mut self.segments[i];
        let newly = !segment.lost || segment.resent;
        self.resent -= usize::from(std::mem::take(&mut segment.resent));
        self.lost += usize::from(!segment.lost);
        segment.lost = true;
        self.resend_hint = self.resend_hint.min(segment.start);
        newly
    }

    /// Returns the first lost segment that was not sent again since, and marks it as sent. Beyond the peer's window
    /// only the first outstanding segment may be sent again.
    pub fn resend_next(&mut self, now: Instant, edge: u64) -> Option<Sent> {
        if self.lost == self.resent {
            return None;
        }
        let first = self.segments.partition_point(|s| s.end <= self.resend_hint);
        let i = (first..self.segments.len()).find(|&i| self.segments[i].lost && !self.segments[i].resent)?;
        let segment = &mut self.segments[i];
        if i > 0 && segment.start >= edge {
            return None;
        }
        segment.resent = true;
        segment.sent_at = now;
        segment.copies += 1;
        self.resent += 1;
        self.resend_hint = segment.end;
        Some(segment.clone())
    }

    /// Returns the last segment, and marks it as sent: a tail-loss probe.
    pub fn probe_last(&mut self, now: Instant) -> Option<Sent> {
        let segment = self.segments.back_mut()?;
        segment.sent_at = now;
        segment.copies += 1;
        Some(segment.clone())
    }
}

impl Rack {
    /// RFC 8985, Section 6.2, step 2.
    fn on_delivered(&mut self, now: Instant, segment: &Sent, min_rtt: Option<Duration>) {
        let rtt = now.saturating_since(segment.sent_at);
        if segment.copies > 1 && min_rtt.is_some_and(|min| rtt < min) {
            return;
        }
        if (segment.sent_at, segment.end) >= (self.sent_at, self.end) {
            self.sent_at = segment.sent_at;
            self.end = segment.end;
            self.rtt = rtt;
        }
    }

    fn sent_after(&self, segment: &Sent) -> bool {
        (self.sent_at, self.end) > (segment.sent_at, segment.end)
    }
}
