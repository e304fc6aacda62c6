//! When to acknowledge (RFC 9293, Section 3.8.6.3; Linux __tcp_ack_snd_check, tcp_send_delayed_ack, quick ACKs).

use paceline_wire::{Duration, Instant};

use crate::config::Config;

/// State of Linux's icsk_ack and of its SACK compression.
#[derive(Clone, Debug, serde::Serialize, serde::Deserialize)]
pub(crate) struct AckPolicy {
    delayed_ack: bool,
    compress: bool,
    /// Number of ACKs still to send at once, because the peer is probably in slow start.
    quick: u32,
    /// Value of `quick` when data begins, after a silence, and after a duplicate (Linux tcp_incr_quickack).
    quick_most: u32,
    quick_started: bool,
    /// The connection also sends data, which carries ACKs.
    pingpong: bool,
    ato: Duration,
    last_data: Instant,
    /// The largest segment received, which is taken as the peer's full size.
    rcv_mss: u32,
    wire_len: u32,
    due_now: bool,
    pending: bool,
    timer: Option<Instant>,
    compress_timer: Option<Instant>,
    compressed: u32,
    duplicates: u32,
    duplicates_at: u64,
    srtt: Duration,
}

/// Linux TCP_ATO_MIN and TCP_DELACK_MIN: 40 ms.
const ATO_MIN: Duration = Duration::from_millis(40);
/// Linux TCP_DELACK_MAX: 200 ms.
const DELACK_MAX: Duration = Duration::from_millis(200);
/// Linux TCP_RTO_MIN: the time by which a timeout exceeds the RTT.
const RTO_MIN: Duration = Duration::from_millis(200);
/// Linux TCP_MAX_QUICKACKS.
const MAX_QUICKACKS: u32 = 16;
/// Linux net.ipv4.tcp_comp_sack_nr.
const COMPRESS_MAX: u32 = 44;
/// Linux net.ipv4.tcp_comp_sack_delay_ns.
const COMPRESS_DELAY: Duration = Duration::from_millis(1);

impl AckPolicy {
    pub(super) fn new(config: &Config) -> Self {
        AckPolicy {
            delayed_ack: config.delayed_ack,
            compress: config.sack_compression,
            quick: 0,
            quick_most: 2,
            quick_started: false,
            pingpong: false,
            ato: Duration::ZERO,
            last_data: Instant::ZERO,
            // Linux begins with TCP_MIN_MSS; 536 is the smallest full-sized segment.
            rcv_mss: 536,
            wire_len: u32::MAX,
            due_now: false,
            pending: false,
            timer: None,
            compress_timer: None,
            compressed: 0,
            duplicates: 0,
            duplicates_at: 0,
            srtt: Duration::ZERO,
        }
    }

    /// Takes the window for the number of quick ACKs, and whether SACK was negotiated. Without SACK, ACKs are not
    /// compressed (Linux __tcp_ack_snd_check), because each duplicate counts (RFC 5681, Sections 3.2 and 4.2).
    pub(crate) fn on_established(&mut self, window: u64, mss: u32, sack: bool) {
        self.compress &= sack;
        let quick = window / (2 * u64::from(mss.max(1)));
        self.quick_most = (quick.max(2) as u32).min(MAX_QUICKACKS);
    }

    /// Sets the smoothed RTT, if the sending half knows it.
    pub(crate) fn set_rtt(&mut self, srtt: Duration) {
        self.srtt = srtt;
    }

    /// The next data was sent in packets of at most `len` bytes (Linux tcp_measure_rcv_mss: gso_size).
    pub(crate) fn set_wire_len(&mut self, len: u32) {
        self.wire_len = len;
    }

    /// Data arrived (Linux tcp_event_data_recv).
    pub(super) fn on_data(&mut self, now: Instant, len: u32) {
        self.rcv_mss = self.rcv_mss.max(len.min(self.wire_len).min(65_535));
        let gap = now.saturating_since(self.last_data);
        if !self.quick_started {
            self.quick_started = true;
            self.quick = self.quick.max(self.quick_most);
            self.ato = ATO_MIN;
        } else if gap <= ATO_MIN / 2 {
            self.ato = self.ato / 2 + ATO_MIN / 2;
        } else if gap < self.ato {
            self.ato = (self.ato / 2 + gap).min(DELACK_MAX);
        } else if gap > self.srtt + RTO_MIN {
            // Silence for longer than a timeout: the peer restarts with slow start.
            self.quick = self.quick.max(self.quick_most);
        }
        self.last_data = now;
    }

    /// The window has grown: the next data is acknowledged at once to tell the peer (Linux tcp_grow_window).
    pub(super) fn on_window_growth(&mut self) {
        self.quick |= 1;
    }

    /// Handles in-order data with no hole. `unacked` bytes have arrived since the last ACK.
    pub(super) fn on_in_order(&mut self, now: Instant, unacked: u64) {
        let quick = self.quick > 0 && !self.pingpong;
        if unacked > u64::from(self.rcv_mss) || quick || !self.delayed_ack {
            self.due_now = true;
        } else {
            self.delay(now);
        }
    }

    /// Handles out-of-order data: a duplicate ACK at once (RFC 5681, Section 4.2), but compressed after the third.
    pub(super) fn on_out_of_order(&mut self, now: Instant, nxt: u64) {
        if !self.compress || self.compressed >= COMPRESS_MAX {
            self.due_now = true;
            return;
        }
        if self.duplicates_at != nxt {
            self.duplicates_at = nxt;
            self.duplicates = 0;
        }
        if self.duplicates < crate::detection::DUP_THRESH || self.quick > 0 {
            self.duplicates += 1;
            self.due_now = true;
            return;
        }
        self.compressed += 1;
        if self.compress_timer.is_none() {
            // 5 % of an RTT, at most a millisecond.
            let rtt = if self.srtt.is_zero() { Duration::from_millis(20) } else { self.srtt };
            self.compress_timer = Some(now + (rtt / 20).min(COMPRESS_DELAY));
        }
    }

    /// Handles data that fills a hole. The ACK leaves at once, because a sender in recovery waits for it (RFC 5681,
    /// Section 4.2).
    pub(super) fn on_filled(&mut self, now: Instant, complete: bool, nxt: u64) {
        if complete {
            self.due_now = true;
        } else {
            self.on_out_of_order(now, nxt);
        }
    }

    /// Handles repeated data: an ACK was lost, or a timeout was spurious (Linux tcp_send_dupack,
    /// tcp_enter_quickack_mode).
    pub(super) fn on_duplicate(&mut self) {
        self.quick = self.quick.max(self.quick_most);
        self.pingpong = false;
        self.ato = ATO_MIN;
        self.due_now = true;
    }

    /// Handles the first of a train of packets with congestion marks. The next ones are acknowledged one by one (Linux
    /// tcp_ecn_check_ce, tcp_enter_quickack_mode of 2).
    #[cold]
    pub(crate) fn on_congestion(&mut self) {
        self.quick = self.quick.max(self.quick_most.min(2));
        self.pingpong = false;
        self.ato = ATO_MIN;
    }

    /// Makes an ACK due at once.
    pub(crate) fn now(&mut self) {
        self.due_now = true;
    }

    /// Handles outgoing data, which carries ACKs.
    pub(crate) fn on_data_sent(&mut self, now: Instant) {
        // Linux: data sent within ato after received data is an answer to it.
        if self.quick_started && now.saturating_since(self.last_data) < self.ato {
            self.pingpong = true;
        }
    }

    /// An ACK has left, alone or with data.
    pub(crate) fn on_ack_sent(&mut self) {
        if self.pending || self.due_now || self.compressed > 0 {
            self.quick = self.quick.saturating_sub(1);
        }
        self.due_now = false;
        self.pending = false;
        self.timer = None;
        self.compress_timer = None;
        self.compressed = 0;
    }

    /// True if an ACK should leave now.
    pub(crate) fn is_due(&self) -> bool {
        self.due_now
    }

    /// Time of the next ACK timer.
    pub(crate) fn timeout(&self) -> Option<Instant> {
        match (self.timer, self.compress_timer) {
            (Some(a), Some(b)) => Some(a.min(b)),
            (a, b) => a.or(b),
        }
    }

    /// Handles expired timers.
    pub(crate) fn on_timeout(&mut self, now: Instant) {
        if self.timer.is_some_and(|at| at <= now) {
            self.timer = None;
            if self.pingpong {
                // No answer carried the ACK (tcp_delack_timer_handler).
                self.pingpong = false;
                self.ato = ATO_MIN;
            } else {
                self.ato = (self.ato * 2).min(DELACK_MAX);
            }
            self.due_now = true;
        }
        if self.compress_timer.is_some_and(|at| at <= now) {
            self.compress_timer = None;
            self.due_now = true;
        }
    }

    fn delay(&mut self, now: Instant) {
        self.pending = true;
        if self.timer.is_some() {
            return;
        }
        let most = if self.pingpong { DELACK_MAX } else { Duration::from_millis(500) };
        let most = match self.srtt.is_zero() {
            true => most,
            false => most.min(self.srtt.max(ATO_MIN)),
        };
        self.timer = Some(now + self.ato.max(ATO_MIN).min(most).min(DELACK_MAX));
    }
}
