//! The sending half of a model TCP, close to Linux: RACK-TLP (RFC 8985), PRR (RFC 9937), RTO (RFC 6298) with Eifel and
//! D-SACK undo, zero-window probes; New Reno (RFC 6582) when SACK was not negotiated.

use paceline_wire::{Duration, Instant};

use super::congestion::{AckSample, Congestion};
use super::rto::{RttEstimator, earliest};
use super::scoreboard::{Delivered, Scoreboard, Sent};

/// Configuration of a sender.
#[derive(Clone, Debug)]
pub struct SenderConfig {
    pub initial_window: u32,
    /// `None`: CUBIC. Otherwise a constant window in segments, whatever happens.
    pub fixed_window: Option<u32>,
    pub hystart: bool,
    pub rto_min: Duration,
    pub tail_loss_probe: bool,
    /// Largest super-packet in segments. 1 means that every segment is a separate packet.
    pub gso_segments: u32,
    /// RFC 2861: the window decays while nothing is sent.
    pub slow_start_after_idle: bool,
    /// Unanswered timeouts or probes until the connection is aborted (`tcp_retries2`).
    pub give_up_after: u32,
}

impl Default for SenderConfig {
    fn default() -> Self {
        SenderConfig {
            initial_window: 10,
            fixed_window: None,
            hystart: true,
            rto_min: Duration::from_millis(200),
            tail_loss_probe: true,
            gso_segments: 1,
            slow_start_after_idle: true,
            give_up_after: 15,
        }
    }
}

/// The timestamp clock of every host, in milliseconds. It wraps 5 s after the start.
pub fn clock_ms(now: Instant) -> u32 {
    ((now.as_nanos() / 1_000_000) as u32).wrapping_sub(5_000)
}

/// Counters of a sender.
#[derive(Clone, Debug, Default)]
pub struct SenderStats {
    pub sent_segments: u64,
    pub retransmitted_segments: u64,
    pub timeouts: u64,
    pub tail_loss_probes: u64,
    pub window_probes: u64,
    pub recoveries: u64,
    pub undone: u64,
    pub rtts_ms: Vec<f64>,
    /// Bytes that were sent and acknowledged.
    pub acked_bytes: u64,
    pub aborted: bool,
    pub max_cwnd: u32,
    pub timeouts_at: Vec<Instant>,
}

/// A packet to send.
#[derive(Clone, Copy, Debug)]
pub struct Emit {
    pub start: u64,
    pub end: u64,
    pub fin: bool,
}

/// An acknowledgement, in stream positions.
#[derive(Clone, Debug)]
pub struct AckInput<'a> {
    pub now: Instant,
    pub ack: u64,
    /// Right edge of the peer's window.
    pub edge: u64,
    pub sacks: &'a [(u64, u64)],
    /// The echoed timestamp, on this host's millisecond clock.
    pub echo: Option<u32>,
    /// The segment carries data, SYN or FIN, so it is never a duplicate ACK.
    pub has_data: bool,
}

#[derive(Clone, Copy, Debug, PartialEq)]
enum Phase {
    Open,
    Recovery { high: u64 },
    Loss { high: u64 },
}

/// Proportional rate reduction, named as in RFC 9937.
#[derive(Clone, Copy, Debug, Default)]
struct Prr {
    delivered: u32,
    out: u32,
    recover_fs: u32,
}

/// State for undoing an episode.
#[derive(Clone, Copy, Debug)]
struct Undo {
    /// Time of the first retransmission on this host's timestamp clock.
    stamp_ms: Option<u32>,
    /// Retransmissions that are not yet reported as duplicates.
    open: i64,
    any: bool,
}

#[derive(Clone, Copy, Debug)]
struct TailProbe {
    high: u64,
    retransmission: bool,
}

/// The sending half.
#[derive(Debug)]
pub struct Sender {
    config: SenderConfig,
    mss: u32,
    sack: bool,
    una: u64,
    nxt: u64,
    edge: u64,
    /// End of the data that the application has written. `u64::MAX / 2` for a stream without end.
    written: u64,
    fin: bool,
    board: Scoreboard,
    rtt: RttEstimator,
    cc: Congestion,
    phase: Phase,
    prr: Prr,
    undo: Option<Undo>,
    probe: Option<TailProbe>,
    backoff: u32,
    unanswered: u32,
    cwnd_limited: bool,
    last_sent: Instant,
    rto_at: Option<Instant>,
    tlp_at: Option<Instant>,
    rack_at: Option<Instant>,
    persist_at: Option<Instant>,
    pub out: Vec<Emit>,
    pub stats: SenderStats,
}

impl Sender {
    /// `first` is the position of the first byte, directly after the SYN.
    pub fn new(config: SenderConfig, mss: u32, sack: bool, first: u64, edge: u64) -> Self {
        let cc = match config.fixed_window {
            Some(segments) => Congestion::Fixed(segments),
            None => Congestion::cubic(config.initial_window, config.hystart),
        };
        Sender {
            rtt: RttEstimator::new(config.rto_min),
            config,
            mss,
            sack,
            una: first,
            nxt: first,
            edge,
            written: first,
            fin: false,
            board: Scoreboard::new(sack),
            cc,
            phase: Phase::Open,
            prr: Prr::default(),
            undo: None,
            probe: None,
            backoff: 0,
            unanswered: 0,
            cwnd_limited: false,
            last_sent: Instant::ZERO,
            rto_at: None,
            tlp_at: None,
            rack_at: None,
            persist_at: None,
            out: Vec::new(),
            stats: SenderStats::default(),
        }
    }

    pub fn mss(&self) -> u32 {
        self.mss
    }

    pub fn una(&self) -> u64 {
        self.una
    }

    pub fn nxt(&self) -> u64 {
        self.nxt
    }

    pub fn cwnd(&self) -> u32 {
        self.cc.cwnd()
    }

    pub fn edge(&self) -> u64 {
        self.edge
    }

    pub fn srtt(&self) -> Option<Duration> {
        self.rtt.srtt()
    }

    pub fn rto(&self) -> Duration {
        self.rtt.rto(0)
    }

    /// True if all written data, FIN included, is acknowledged.
    pub fn is_done(&self) -> bool {
        self.fin && self.una > self.written
    }

    pub fn seed_rtt(&mut self, rtt: Duration) {
        self.rtt.update(rtt, self.una, self.nxt);
    }

    /// The application writes data. `None` means without end.
    pub fn write(&mut self, now: Instant, bytes: Option<u64>) {
        self.written = bytes.map_or(u64::MAX / 2, |bytes| self.written + bytes);
        self.restart_after_idle(now);
        self.transmit(now);
    }

    pub fn close(&mut self, now: Instant) {
        self.fin = true;
        self.transmit(now);
    }

    /// The application ends an endless stream: no data beyond what is sent, then FIN.
    pub fn finish(&mut self, now: Instant) {
        self.written = self.written.min(self.nxt);
        self.close(now);
    }

    pub fn next_timeout(&self) -> Option<Instant> {
        earliest(&[self.rto_at, self.tlp_at, self.rack_at, self.persist_at])
    }

    pub fn on_ack(&mut self, input: &AckInput) {
        if input.ack > self.nxt || input.ack < self.una {
            return;
        }
        let advanced = input.ack > self.una;
        let dsack = self.take_dsack(input);
        let min_rtt = self.rtt.min();
        let mut sacked = Delivered::default();
        if self.sack {
            for &(start, end) in input.sacks.iter().filter(|b| b.0 >= input.ack) {
                let part = self.board.on_sack(input.now, start, end, min_rtt);
                sacked.segments += part.segments;
                sacked.sack_rtt = part.sack_rtt.or(sacked.sack_rtt);
            }
        }
        let edge_moved = input.edge != self.edge;
        self.edge = input.edge;
        let acked = self.board.on_ack(input.now, input.ack, min_rtt);
        self.stats.acked_bytes += input.ack - self.una;
        self.una = input.ack;
        self.unanswered = 0;
        if edge_moved && self.board.is_empty() && self.edge > self.nxt {
            self.backoff = 0;
        }
        let rtt = self.sample_rtt(input, advanced, &acked, &sacked);
        if advanced {
            self.backoff = 0;
        } else if !self.sack && !input.has_data && !edge_moved && !self.board.is_empty() {
            self.board.on_duplicate_ack();
        }
        self.end_tail_probe(input, dsack);
        let delivered = acked.segments + sacked.segments;
        self.advance_phase(input, advanced, delivered, rtt);
        if advanced || self.board.is_empty() {
            self.rearm(input.now);
        }
        self.transmit(input.now);
    }

    pub fn on_timeout(&mut self, now: Instant) {
        if self.rack_at.is_some_and(|at| at <= now) {
            self.rack_at = None;
            self.detect_losses(now);
            self.reduce(0, false);
        }
        if self.tlp_at.is_some_and(|at| at <= now) {
            self.tlp_at = None;
            self.send_tail_probe(now);
        }
        if self.rto_at.is_some_and(|at| at <= now) {
            self.on_rto(now);
        }
        if self.persist_at.is_some_and(|at| at <= now) {
            self.on_persist(now);
        }
        self.transmit(now);
    }

    fn take_dsack(&mut self, input: &AckInput) -> bool {
        let Some(&(start, end)) = input.sacks.first() else { return false };
        let inside_second = input.sacks.get(1).is_some_and(|b| b.0 <= start && end <= b.1);
        if !self.sack || (start >= input.ack && !inside_second) {
            return false;
        }
        if let Some(undo) = &mut self.undo {
            undo.open -= 1;
        }
        self.board.on_spurious_copy();
        true
    }

    fn sample_rtt(
        &mut self,
        input: &AckInput,
        advanced: bool,
        acked: &Delivered,
        sacked: &Delivered,
    ) -> Option<Duration> {
        let own = acked.rtt.filter(|_| !acked.copies);
        let by_echo = input
            .echo
            .filter(|_| advanced)
            .map(|echo| Duration::from_millis(u64::from(clock_ms(input.now).wrapping_sub(echo))));
        let rtt = own.or(sacked.sack_rtt).or(by_echo)?;
        self.rtt.update(rtt, input.ack, self.nxt);
        self.stats.rtts_ms.push(rtt.as_secs_f64() * 1e3);
        Some(rtt)
    }

    fn advance_phase(&mut self, input: &AckInput, advanced: bool, delivered: u32, rtt: Option<Duration>) {
        if advanced {
            self.try_undo(input);
        }
        let high = match self.phase {
            Phase::Open => None,
            Phase::Recovery { high } | Phase::Loss { high } => Some(high),
        };
        if let (Phase::Recovery { .. }, Some(high)) = (self.phase, high) {
            // RFC 6582: without SACK, duplicate ACKs of the old episode must not start a new one.
            if self.una >= high && (self.sack || self.una > high || self.board.is_empty()) {
                let ssthresh = self.cc.ssthresh();
                self.cc.set_cwnd(ssthresh);
                self.end_episode();
            }
        } else if high.is_some_and(|high| self.una >= high) {
            self.end_episode();
        }
        let lost = self.detect_losses(input.now);
        match self.phase {
            Phase::Recovery { .. } => {
                if !self.sack && advanced {
                    self.board.mark_first_lost();
                }
                self.reduce(delivered, advanced && lost == 0);
            }
            _ if delivered > 0 && advanced => self.cc.on_ack(&AckSample {
                now: input.now,
                acked: delivered,
                rtt,
                cwnd_limited: self.cwnd_limited,
                una: self.una,
                nxt: self.nxt,
            }),
            _ => {}
        }
        self.stats.max_cwnd = self.stats.max_cwnd.max(self.cc.cwnd());
    }

    fn end_episode(&mut self) {
        self.phase = Phase::Open;
        self.undo = None;
        self.board.forget_duplicate_acks();
    }

    /// Detects losses by RACK, or by three duplicate ACKs, and enters recovery. Returns the newly lost segments.
    fn detect_losses(&mut self, now: Instant) -> u32 {
        let times = (self.rtt.min().unwrap_or_default(), self.rtt.srtt().unwrap_or_default());
        let (mut lost, again) = self.board.detect(now, self.phase != Phase::Open, times);
        self.rack_at = again;
        if !self.sack && self.phase == Phase::Open && self.board.sacked() >= 3 {
            self.board.mark_first_lost();
            lost += 1;
        }
        if self.phase == Phase::Open && self.board.lost() > 0 {
            self.stats.recoveries += 1;
            self.prr = Prr { delivered: 0, out: 0, recover_fs: self.cc.cwnd().max(1) };
            self.cc.on_loss();
            self.undo = Some(Undo { stamp_ms: None, open: 0, any: false });
            self.phase = Phase::Recovery { high: self.nxt };
            self.tlp_at = None;
            self.probe = None;
        }
        lost
    }

    /// Makes one step of PRR, and sets the window that it allows.
    fn reduce(&mut self, delivered: u32, safe: bool) {
        let Phase::Recovery { .. } = self.phase else { return };
        let first = self.prr.delivered == 0 && self.prr.out == 0;
        self.prr.delivered += delivered;
        let (pipe, ssthresh) = (self.board.pipe(), self.cc.ssthresh());
        let mut allowed = if pipe > ssthresh {
            (self.prr.delivered * ssthresh).div_ceil(self.prr.recover_fs).saturating_sub(self.prr.out)
        } else {
            let limit = self.prr.delivered.saturating_sub(self.prr.out).max(delivered) + u32::from(safe);
            (ssthresh - pipe).min(limit)
        };
        if first {
            // RFC 9937, Section 6.2: the fast retransmit itself must leave.
            allowed = allowed.max(1);
        }
        self.cc.set_cwnd(pipe + allowed);
    }

    fn try_undo(&mut self, input: &AckInput) {
        let Some(undo) = self.undo else { return };
        let by_echo = match (input.echo, undo.stamp_ms) {
            (Some(echo), Some(stamp)) => (echo.wrapping_sub(stamp) as i32) < 0,
            _ => false,
        };
        if by_echo || (undo.any && undo.open <= 0) {
            self.stats.undone += 1;
            self.cc.undo();
            self.board.unmark_lost();
            self.end_episode();
        }
    }

    fn end_tail_probe(&mut self, input: &AckInput, dsack: bool) {
        let Some(probe) = self.probe.filter(|probe| input.ack >= probe.high) else { return };
        if !probe.retransmission || dsack || input.ack == probe.high && !self.board.is_empty() {
            self.probe = None;
        } else if input.ack > probe.high {
            // The probe has repaired a loss, which means congestion (RFC 8985, Section 7.4.2).
            self.probe = None;
            self.cc.on_loss();
            let ssthresh = self.cc.ssthresh();
            self.cc.set_cwnd(ssthresh);
        }
    }

    fn send_tail_probe(&mut self, now: Instant) {
        if self.probe.is_some() || self.board.is_empty() {
            return;
        }
        self.stats.tail_loss_probes += 1;
        let retransmission = !self.send_new(now, 1);
        if retransmission {
            let Some(last) = self.board.probe_last(now) else { return };
            self.emit_copy(&last, now);
        }
        self.probe = Some(TailProbe { high: self.nxt, retransmission });
        self.rto_at = Some(now + self.rtt.rto(self.backoff));
    }

    fn on_rto(&mut self, now: Instant) {
        if self.board.is_empty() {
            self.rto_at = None;
            return;
        }
        self.unanswered += 1;
        if self.unanswered > self.config.give_up_after {
            self.abort();
            return;
        }
        self.stats.timeouts += 1;
        self.stats.timeouts_at.push(now);
        if !matches!(self.phase, Phase::Loss { .. }) {
            self.cc.on_loss();
        }
        self.phase = Phase::Loss { high: self.nxt };
        self.undo = Some(Undo { stamp_ms: None, open: 0, any: false });
        self.probe = None;
        self.board.mark_all_lost();
        self.cc.set_cwnd(self.board.pipe() + 1);
        self.backoff += 1;
        self.tlp_at = None;
        self.rack_at = None;
        self.rto_at = Some(now + self.rtt.rto(self.backoff));
    }

    fn on_persist(&mut self, now: Instant) {
        self.persist_at = None;
        if !self.board.is_empty() || !self.has_unsent() {
            return;
        }
        self.unanswered += 1;
        if self.unanswered > self.config.give_up_after {
            self.abort();
            return;
        }
        self.backoff += 1;
        self.stats.window_probes += 1;
        let room = self.edge.saturating_sub(self.nxt);
        if room > 0 {
            // `tcp_write_wakeup`: sends what fits, although it is less than a full segment.
            self.push_segment(now, room.min(u64::from(self.mss)));
        } else {
            // `tcp_xmit_probe_skb`: no data, one position too early, so that the peer must answer.
            self.out.push(Emit { start: self.una - 1, end: self.una - 1, fin: false });
        }
    }

    pub fn abort(&mut self) {
        self.stats.aborted = true;
        (self.rto_at, self.tlp_at, self.rack_at, self.persist_at) = (None, None, None, None);
        self.written = self.nxt;
        self.fin = false;
        self.board = Scoreboard::new(self.sack);
    }

    fn has_unsent(&self) -> bool {
        self.nxt < self.written || (self.fin && self.nxt == self.written)
    }

    fn restart_after_idle(&mut self, now: Instant) {
        let (idle, rto) = (now.saturating_since(self.last_sent), self.rtt.rto(0));
        if self.config.slow_start_after_idle && self.board.is_empty() && idle > rto {
            self.cc.on_idle(idle, rto, self.config.initial_window);
        }
    }

    /// Sends retransmissions before new data, never beyond cwnd or the peer's window.
    fn transmit(&mut self, now: Instant) {
        if self.stats.aborted {
            return;
        }
        self.cwnd_limited = false;
        loop {
            let (pipe, cwnd) = (self.board.pipe(), self.cc.cwnd());
            if pipe >= cwnd {
                self.cwnd_limited = true;
                break;
            }
            if let Some(segment) = self.board.resend_next(now, self.edge) {
                self.prr.out += 1;
                if segment.start == self.una {
                    self.rto_at = Some(now + self.rtt.rto(self.backoff));
                }
                self.emit_copy(&segment, now);
            } else if !self.send_new(now, cwnd - pipe) {
                break;
            }
        }
        if self.cc.in_slow_start() && self.cc.cwnd() < 2 * self.board.len() as u32 {
            self.cwnd_limited = true;
        }
        if self.rto_at.is_none() && !self.board.is_empty() {
            self.rto_at = Some(now + self.rtt.rto(self.backoff));
        }
        if self.board.is_empty() && self.has_unsent() {
            self.persist_at.get_or_insert(now + self.rtt.rto(self.backoff));
        } else {
            self.persist_at = None;
        }
    }

    /// Sends a packet of up to `quota` new segments. False if there is no data or no room.
    fn send_new(&mut self, now: Instant, quota: u32) -> bool {
        if self.board.is_empty() {
            self.restart_after_idle(now);
        }
        let quota = quota.min(self.config.gso_segments.max(1));
        let start = self.nxt;
        let mut segments = 0;
        while segments < quota && self.has_unsent() {
            let length = u64::from(self.mss).min(self.written - self.nxt);
            let fin = self.fin && self.nxt + length == self.written;
            if self.nxt + length + u64::from(fin && length == 0) > self.edge {
                break;
            }
            self.board_push(now, length);
            segments += 1;
        }
        if segments == 0 {
            return false;
        }
        let fin = self.fin && self.nxt > self.written;
        self.emit(start, self.nxt, fin, segments, now);
        true
    }

    fn push_segment(&mut self, now: Instant, length: u64) {
        let start = self.nxt;
        self.board_push(now, length.min(self.written - self.nxt));
        let fin = self.fin && self.nxt > self.written;
        self.emit(start, self.nxt, fin, 1, now);
    }

    fn board_push(&mut self, now: Instant, length: u64) {
        let end = self.nxt + length;
        let fin = self.fin && end == self.written && (length == 0 || end < self.edge);
        self.board.push(self.nxt, end + u64::from(fin), fin, now);
        self.nxt = end + u64::from(fin);
    }

    fn emit(&mut self, start: u64, end: u64, fin: bool, segments: u32, now: Instant) {
        self.prr.out += segments;
        self.stats.sent_segments += u64::from(segments);
        self.last_sent = now;
        self.out.push(Emit { start, end: end - u64::from(fin), fin });
        self.arm_tail_probe(now);
    }

    fn emit_copy(&mut self, segment: &Sent, now: Instant) {
        self.stats.sent_segments += 1;
        self.stats.retransmitted_segments += 1;
        self.last_sent = now;
        if let Some(undo) = &mut self.undo {
            undo.any = true;
            undo.open += 1;
            undo.stamp_ms.get_or_insert(clock_ms(now));
        }
        self.out.push(Emit {
            start: segment.start,
            end: segment.end - u64::from(segment.fin),
            fin: segment.fin,
        });
    }

    fn rearm(&mut self, now: Instant) {
        if self.board.is_empty() {
            (self.rto_at, self.tlp_at, self.rack_at) = (None, None, None);
            return;
        }
        self.rto_at = Some(now + self.rtt.rto(self.backoff));
        self.arm_tail_probe(now);
    }

    /// `tcp_schedule_loss_probe`.
    fn arm_tail_probe(&mut self, now: Instant) {
        let allowed = self.config.tail_loss_probe && self.sack && self.phase == Phase::Open;
        if !allowed || self.board.is_empty() || self.board.sacked() > 0 || self.probe.is_some() {
            self.tlp_at = None;
            return;
        }
        let slack = if self.board.len() == 1 { self.rtt.rto_min() } else { Duration::from_millis(2) };
        let wait = self.rtt.srtt().map_or(Duration::from_secs(1), |srtt| srtt * 2 + slack);
        let at = now + wait;
        self.tlp_at = Some(self.rto_at.map_or(at, |rto| at.min(rto)));
    }
}
