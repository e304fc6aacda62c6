//! How large the receive buffer is, and how much of it is offered: fixed, or as Linux tunes both
//! (tcp_input.c:tcp_rcv_space_adjust, tcp_grow_window).

use paceline_wire::{Duration, Instant};

use crate::config::ReceiveBuffer;

/// The size of the buffer, in bytes of payload.
#[derive(Clone, Debug)]
pub(super) struct Space {
    size: u64,
    /// Linux rcv_ssthresh: what may be offered, which follows the size as data comes.
    rcv_ssthresh: u64,
    max: u64,
    auto: bool,
    /// Bytes read in the last round trip (Linux rcvq_space.space).
    space: u64,
    copied_at: u64,
    since: Instant,
    /// The receiver's own RTT, smoothed by eighths.
    rtt: Duration,
}

impl Space {
    pub(super) fn new(config: ReceiveBuffer, copied: u64) -> Self {
        Space {
            size: u64::from(config.initial()),
            rcv_ssthresh: u64::from(config.initial()),
            max: u64::from(config.max()),
            auto: matches!(config, ReceiveBuffer::Auto { .. }),
            space: u64::from(config.initial()),
            copied_at: copied,
            since: Instant::ZERO,
            rtt: Duration::ZERO,
        }
    }

    /// The handshake is over: a peer is expected to send an initial window per round trip (Linux tcp_init_buffer_space).
    pub(super) fn on_established(&mut self, mss: u32) {
        self.space = self.space.min(INITIAL_WINDOW * u64::from(mss));
    }

    /// A segment came, `unread` bytes wait: two more segments may be offered, if there is room (Linux tcp_grow_window).
    /// Returns whether there was.
    pub(super) fn on_segment(&mut self, unread: u64, len: u64, mss: u32) -> bool {
        let room = self.size.saturating_sub(unread).saturating_sub(self.rcv_ssthresh);
        if room == 0 || len < SMALL {
            return false;
        }
        self.rcv_ssthresh += room.min(2 * u64::from(mss).max(len));
        true
    }

    /// The application starts to read here.
    pub(super) fn start_at(&mut self, copied: u64) {
        self.copied_at = copied;
    }

    pub(super) fn size(&self) -> u64 {
        self.size
    }

    /// How much of it may be offered while `unread` bytes wait (Linux __tcp_select_window).
    pub(super) fn free(&self, unread: u64) -> u64 {
        self.size.saturating_sub(unread).min(self.rcv_ssthresh)
    }

    /// A sample of the receiver's RTT: timestamps echoed by the peer's data.
    pub(super) fn on_rtt(&mut self, rtt: Duration) {
        self.rtt = if self.rtt.is_zero() { rtt } else { (self.rtt * 7 + rtt) / 8 };
    }

    /// The application has read up to `copied`.
    pub(super) fn on_read(&mut self, now: Instant, copied: u64, mss: u32) {
        if !self.auto || self.rtt.is_zero() || now.saturating_since(self.since) < self.rtt {
            return;
        }
        let read = copied - self.copied_at;
        if read > self.space {
            // Twice what was read, room for slow start to double, and for a few segments.
            let window = 2 * read + 16 * u64::from(mss);
            let growth = window * (read - self.space) / self.space.max(1);
            let window = window.saturating_add(2 * growth);
            self.size = self.size.max(window.min(self.max));
            self.space = read;
        }
        self.copied_at = copied;
        self.since = now;
    }
}

/// Linux TCP_INIT_CWND, segments.
const INITIAL_WINDOW: u64 = 10;
/// Linux tcp_event_data_recv: shorter segments do not let the window grow.
const SMALL: u64 = 128;
