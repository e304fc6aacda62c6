//! The receiving half of a model TCP. It has a buffer of a given size, and an application that reads at its own pace.
//! Its ACKs are delayed, and have SACK and D-SACK. It keeps nothing beyond the window that it has shown.

use std::collections::BTreeMap;

use paceline_wire::{Duration, Instant, Rate};

use super::rto::earliest;

/// The pace of the application's reads.
#[derive(Clone, Debug, Default)]
pub struct Reading {
    /// `None`: data is read as soon as it arrives.
    pub rate: Option<Rate>,
    /// Intervals in which nothing is read.
    pub pauses: Vec<(Instant, Instant)>,
}

/// Configuration of a receiver.
#[derive(Clone, Debug)]
pub struct ReceiverConfig {
    /// Bytes of the receive buffer: the largest window.
    pub buffer: u64,
    pub reading: Reading,
    pub delayed_ack: Duration,
    /// Full-sized segments per ACK.
    pub segments_per_ack: u32,
    /// Number of segments at the start that are acknowledged one by one.
    pub quick_acks: u32,
    pub dsack: bool,
}

impl Default for ReceiverConfig {
    fn default() -> Self {
        ReceiverConfig {
            buffer: 6 << 20,
            reading: Reading::default(),
            delayed_ack: Duration::from_millis(40),
            segments_per_ack: 2,
            quick_acks: 16,
            dsack: true,
        }
    }
}

/// Counters of a receiver.
#[derive(Clone, Debug, Default)]
pub struct ReceiverStats {
    /// Bytes in order.
    pub delivered_bytes: u64,
    /// Bytes that arrived beyond the window and were discarded.
    pub beyond_window_bytes: u64,
    pub beyond_window_segments: u64,
    pub duplicate_bytes: u64,
    pub out_of_order_segments: u64,
    pub finished_at: Option<Instant>,
    pub last_data_at: Option<Instant>,
    pub acks: u64,
    pub window_updates: u64,
    /// The longest time between two arrivals of data in order.
    pub longest_gap: Duration,
    /// Bytes in order in each 10 ms from the start of the run.
    pub bins: Vec<u32>,
}

/// Length of a bin of [`ReceiverStats::bins`].
pub const BIN: Duration = Duration::from_millis(10);

/// The receiving half. Positions are those of the peer's stream.
#[derive(Debug)]
pub struct Receiver {
    config: ReceiverConfig,
    scale: u8,
    mss: u32,
    nxt: u64,
    edge: u64,
    read: u64,
    last_read: Instant,
    queue: BTreeMap<u64, u64>,
    /// Starts of queued ranges, the latest changed first.
    recent: Vec<u64>,
    duplicate: Option<(u64, u64)>,
    fin: Option<u64>,
    acked: u64,
    segments_unacked: u32,
    quick_acks: u32,
    ack_now: bool,
    ack_at: Option<Instant>,
    wake_at: Option<Instant>,
    pub stats: ReceiverStats,
}

impl Receiver {
    /// `first` is the position of the first byte. `scale` is the shift of the windows that this end sends.
    pub fn new(config: ReceiverConfig, first: u64, scale: u8, mss: u32) -> Self {
        // The window of a SYN is not scaled.
        let edge = first + config.buffer.min(65_535);
        Receiver {
            quick_acks: config.quick_acks,
            config,
            scale,
            mss,
            nxt: first,
            edge,
            read: first,
            last_read: Instant::ZERO,
            queue: BTreeMap::new(),
            recent: Vec::new(),
            duplicate: None,
            fin: None,
            acked: first,
            segments_unacked: 0,
            ack_now: false,
            ack_at: None,
            wake_at: None,
            stats: ReceiverStats::default(),
        }
    }

    pub fn nxt(&self) -> u64 {
        self.nxt
    }

    /// Position of the last sent acknowledgement (RFC 7323: Last.ACK.sent).
    pub fn last_ack(&self) -> u64 {
        self.acked
    }

    pub fn is_finished(&self) -> bool {
        self.fin.is_some_and(|fin| self.nxt > fin)
    }

    pub fn edge(&self) -> u64 {
        self.edge
    }

    /// True if an ACK is due. The caller builds it with [`Self::make_ack`].
    pub fn wants_ack(&self) -> bool {
        self.ack_now
    }

    pub fn ack_soon(&mut self) {
        self.ack_now = true;
    }

    pub fn next_timeout(&self) -> Option<Instant> {
        earliest(&[self.ack_at, self.wake_at])
    }

    pub fn on_timeout(&mut self, now: Instant) {
        if self.ack_at.is_some_and(|at| at <= now) {
            self.ack_now = true;
        }
        if self.wake_at.is_some_and(|at| at <= now) {
            self.read_some(now);
        }
    }

    /// Takes a segment with data or FIN. Returns the kept range, for the caller to verify.
    pub fn on_segment(&mut self, now: Instant, start: u64, end: u64, fin: bool) -> Option<(u64, u64)> {
        // Zero-window probes and keep-alives also arrive here. They are outside the window, and so are answered at
        // once.
        let (kept, last) = (self.trim(start, end), end);
        let Some((start, end)) = kept else {
            if fin && end == self.nxt && self.edge >= end {
                self.fin = Some(end);
            }
            self.ack_now = true;
            self.advance(now);
            return None;
        };
        // A FIN behind bytes that were cut off is also cut off.
        if fin && last <= self.edge {
            self.fin = Some(last);
        }
        if start > self.nxt {
            self.stats.out_of_order_segments += 1;
            self.ack_now = true;
            self.enqueue(start, end);
            return kept;
        }
        let filled_gap = !self.queue.is_empty();
        self.enqueue(start, end);
        self.segments_unacked += (end - start).div_ceil(u64::from(self.mss.max(1))) as u32;
        self.advance(now);
        self.read_some(now);
        let full = self.nxt - self.acked > u64::from(self.mss * (self.config.segments_per_ack - 1));
        if filled_gap || full && self.segments_unacked >= self.config.segments_per_ack || self.quick_acks > 0
        {
            self.ack_now = true;
        } else {
            self.ack_at.get_or_insert(now + self.config.delayed_ack);
        }
        self.quick_acks = self.quick_acks.saturating_sub(1);
        kept
    }

    /// Returns the acknowledgement number, window field and SACK blocks to send. They count as sent.
    pub fn make_ack(&mut self, max_blocks: usize) -> (u64, u16, Vec<(u64, u64)>) {
        let mut blocks = Vec::new();
        if let Some(duplicate) = self.duplicate.take().filter(|_| self.config.dsack) {
            blocks.push(duplicate);
        }
        for start in &self.recent {
            if let Some(end) = self.queue.get(start) {
                blocks.push((*start, *end));
            }
        }
        blocks.truncate(max_blocks);
        self.ack_now = false;
        self.ack_at = None;
        self.segments_unacked = 0;
        self.acked = self.nxt;
        self.stats.acks += 1;
        (self.nxt, self.window_field(), blocks)
    }

    /// RFC 7323 scaling, rounded up so that the right edge does not move back (RFC 9293, Section 3.8.6.2.2).
    fn window_field(&mut self) -> u16 {
        let unit = 1u64 << self.scale;
        let free = self.free();
        let wanted = self.nxt + (if free < self.worth() { 0 } else { free / unit * unit });
        let edge = wanted.max(self.edge);
        let field = (edge - self.nxt).div_ceil(unit).min(65_535);
        self.edge = self.nxt + field * unit;
        field as u16
    }

    fn free(&self) -> u64 {
        self.config.buffer.saturating_sub(self.nxt - self.read)
    }

    /// Avoids silly windows: a smaller window counts as none (RFC 9293, Section 3.8.6.2.2).
    fn worth(&self) -> u64 {
        u64::from(self.mss).min(self.config.buffer / 2)
    }

    fn trim(&mut self, start: u64, end: u64) -> Option<(u64, u64)> {
        if end <= self.nxt {
            if end > start {
                self.stats.duplicate_bytes += end - start;
                self.duplicate = Some((start, end));
            }
            return None;
        }
        if end > self.edge {
            self.stats.beyond_window_bytes += end - start.max(self.edge);
            self.stats.beyond_window_segments += 1;
        }
        let (start, end) = (start.max(self.nxt), end.min(self.edge));
        if start >= end {
            return None;
        }
        if self.queue.range(..=start).next_back().is_some_and(|(_, &e)| e >= end) {
            self.stats.duplicate_bytes += end - start;
            self.duplicate = Some((start, end));
        }
        Some((start, end))
    }

    fn enqueue(&mut self, start: u64, end: u64) {
        let (mut start, mut end) = (start, end);
        while let Some((&s, &e)) = self.queue.range(..=end).next_back().filter(|(_, e)| **e >= start) {
            start = start.min(s);
            end = end.max(e);
            self.queue.remove(&s);
            self.recent.retain(|r| *r != s);
        }
        self.queue.insert(start, end);
        self.recent.insert(0, start);
    }

    fn advance(&mut self, now: Instant) {
        if let Some((&start, &end)) = self.queue.first_key_value().filter(|(start, _)| **start <= self.nxt) {
            self.queue.remove(&start);
            self.recent.retain(|r| *r != start);
            let bytes = end - self.nxt;
            self.nxt = end;
            self.count(now, bytes);
        }
        if self.fin == Some(self.nxt) {
            self.nxt += 1;
            self.read += u64::from(self.read + 1 == self.nxt);
            self.stats.finished_at.get_or_insert(now);
            self.ack_now = true;
        }
    }

    fn count(&mut self, now: Instant, bytes: u64) {
        self.stats.delivered_bytes += bytes;
        if let Some(last) = self.stats.last_data_at {
            self.stats.longest_gap = self.stats.longest_gap.max(now.saturating_since(last));
        }
        self.stats.last_data_at = Some(now);
        let bin = (now.as_nanos() / BIN.as_nanos()) as usize;
        if self.stats.bins.len() <= bin {
            self.stats.bins.resize(bin + 1, 0);
        }
        self.stats.bins[bin] += bytes as u32;
    }

    fn read_some(&mut self, now: Instant) {
        self.wake_at = None;
        let unread = self.nxt - self.read;
        if unread == 0 {
            self.last_read = now;
            return;
        }
        if let Some(end) = self.paused_until(now) {
            self.last_read = now;
            self.wake_at = Some(end);
            return;
        }
        let before = self.read;
        match self.config.reading.rate {
            None => self.read = self.nxt,
            Some(rate) => {
                let allowed = rate.bytes_in(now.saturating_since(self.last_read));
                // Reads in pieces of a segment, so that a slow reader wakes some hundred times a second.
                let piece = u64::from(self.mss).min(unread);
                if allowed >= piece {
                    self.read += allowed.min(unread);
                    self.last_read = now;
                }
                if self.read < self.nxt {
                    let rest = (self.nxt - self.read).min(u64::from(self.mss));
                    self.wake_at = Some(self.last_read + rate.time_for(rest) + Duration::from_nanos(1));
                }
            }
        }
        if self.read > before {
            self.update_window();
        }
    }

    fn paused_until(&self, now: Instant) -> Option<Instant> {
        self.config.reading.pauses.iter().find(|(from, to)| *from <= now && now < *to).map(|(_, to)| *to)
    }

    /// Sends a window update if the edge moves by two segments or half the buffer, or if the window leaves zero.
    fn update_window(&mut self) {
        let free = self.free();
        let shown = self.edge.saturating_sub(self.nxt);
        let step = u64::from(self.mss * 2).min(self.config.buffer / 2);
        if free >= shown + step && shown * 2 <= free && free >= self.worth() {
            self.stats.window_updates += 1;
            self.ack_now = true;
        }
    }
}
