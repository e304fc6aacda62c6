//! The queue of the device, as a script sets it with `tc`: a full one (`pfifo limit 0`), Linux's fq, or none.
//!
//! fq releases a connection's super-packets at the pacing rate (fq_dequeue). TCP passes the next one
//! while at most two wait (tcp_small_queue_check). A connection that may not be polled has sent nothing.

use std::collections::VecDeque;
use std::fs;

use paceline_tcp::Status;
use paceline_wire::{Duration, Instant, Packet, Rate};

/// How the device handles packets.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Discipline {
    /// All packets leave at once.
    None,
    /// No packet is accepted.
    Full,
    /// Packets are paced.
    Fq,
}

impl Discipline {
    /// The discipline set by the last `tc`. The environment names the file with its words.
    pub(crate) fn now() -> Discipline {
        let file = std::env::var_os("PACKETDRILL_QUEUE");
        let words = file.and_then(|file| fs::read_to_string(file).ok()).unwrap_or_default();
        match words.trim() {
            words if words.ends_with("pfifo limit 0") => Discipline::Full,
            words if words.ends_with(" fq") => Discipline::Fq,
            _ => Discipline::None,
        }
    }
}

/// fq for the single connection of a script.
#[derive(Debug)]
pub(crate) struct Fq {
    waiting: VecDeque<Vec<Packet>>,
    credit: i64,
    /// Departure time of the next super-packet (time_next_packet).
    next: Option<Instant>,
    last: Instant,
}

/// Refill of the credit: two MTUs. A super-packet takes the time of its bytes at the pacing rate, and of two MTUs at
/// least.
const QUANTUM: i64 = 2 * 1_500;
const INITIAL_QUANTUM: i64 = 10 * 1_500;
/// Idle time after which a connection has credit again (flow_refill_delay).
const REFILL_DELAY: Duration = Duration::from_millis(40);
/// Most waiting super-packets with which TCP passes another one.
const SMALL_QUEUE: usize = 2;

impl Fq {
    pub(crate) fn new(now: Instant) -> Fq {
        Fq { waiting: VecDeque::new(), credit: INITIAL_QUANTUM, next: None, last: now }
    }

    pub(crate) fn takes(&self) -> bool {
        self.waiting.len() <= SMALL_QUEUE
    }

    pub(crate) fn take(&mut self, now: Instant, packets: Vec<Packet>) {
        if self.waiting.is_empty() && now.saturating_since(self.last) > REFILL_DELAY {
            self.credit = self.credit.max(QUANTUM);
        }
        self.waiting.push_back(packets);
    }

    /// Departure time of the next super-packet.
    pub(crate) fn due(&self) -> Option<Instant> {
        (!self.waiting.is_empty()).then(|| self.next.unwrap_or(Instant::ZERO))
    }

    /// Returns a super-packet that may leave.
    pub(crate) fn release(&mut self, now: Instant, rate: Rate) -> Option<Vec<Packet>> {
        if self.due()? > now {
            return None;
        }
        let packets = self.waiting.pop_front()?;
        if self.credit <= 0 {
            self.credit += QUANTUM;
        }
        let bytes: usize = packets.iter().map(|packet| packet.ip_len()).sum();
        self.credit -= bytes as i64;
        self.last = now;
        if self.credit > 0 {
            return Some(packets);
        }
        let mut share = rate.time_for(bytes.max(QUANTUM as usize) as u64).min(Duration::from_secs(1));
        if let Some(next) = self.next {
            // The last departure was late. The delay is made up for by half of the share at most.
            share = share - (share / 2).min(now.saturating_since(next));
        }
        self.next = Some(now + share);
        Some(packets)
    }
}

/// The pacing rate: twice the window in a round trip below half of ssthresh, else 1.2 times the window
/// (tcp_update_pacing_rate).
pub(crate) fn pacing_rate(status: &Status) -> u64 {
    let percent = if status.window.snd_cwnd < status.window.snd_ssthresh / 2 { 200 } else { 120 };
    let window =
        u64::from(status.window.snd_cwnd.max(status.pulse.unacked)) * u64::from(status.snd_mss.max(1));
    (window * 1_000_000 * percent / 100).checked_div(status.pulse.rtt).unwrap_or(u64::MAX)
}
