//! The size of the receive buffer, and the part of it that is offered: fixed, or tuned as in Linux
//! (tcp_rcv_space_adjust, tcp_grow_window).

use paceline_wire::{Duration, Instant};

use super::{Arrival, PathView, ReceiveWindow, ReceiveWindowName};
use crate::config::ReceiveBuffer;

/// The size of the buffer, in bytes of payload.
#[derive(Clone, Debug, serde::Serialize, serde::Deserialize)]
pub struct DrsLinux {
    size: u64,
    /// Linux rcv_ssthresh: limit of the offered window. It follows the size as data comes.
    rcv_ssthresh: u64,
    max: u64,
    auto: bool,
    /// Linux advmss: the MSS that we offered, timestamps or not.
    advmss: u64,
    /// Bytes read in the last round trip (Linux rcvq_space.space).
    space: u64,
    copied_at: u64,
    since: Instant,
    /// The receiver's own RTT, smoothed by eighths.
    rtt: Duration,
    rtt_echo: Option<u32>,
}

impl DrsLinux {
    /// A window within `config`, of a host that offers `advmss`.
    pub fn new(config: ReceiveBuffer, advmss: u16) -> Self {
        let advmss = u64::from(advmss);
        DrsLinux {
            size: u64::from(config.initial()),
            rcv_ssthresh: u64::from(config.initial()).min(FIRST_OFFER),
            max: u64::from(config.max()),
            auto: matches!(config, ReceiveBuffer::Auto { .. }),
            advmss,
            // A peer is expected to send an initial window per round trip (tcp_init_buffer_space).
            space: u64::from(config.initial()).min(INITIAL_WINDOW * advmss),
            copied_at: 0,
            since: Instant::ZERO,
            rtt: Duration::ZERO,
            rtt_echo: None,
        }
    }
}

impl ReceiveWindow for DrsLinux {
    fn name(&self) -> ReceiveWindowName {
        ReceiveWindowName::DrsLinux
    }

    fn start_at(&mut self, copied: u64) {
        self.copied_at = copied;
    }

    /// Lets the window grow by two segments if there is room (Linux tcp_grow_window). Returns true if there was.
    fn on_segment(&mut self, &Arrival { unread, len, .. }: &Arrival) -> bool {
        let room = self.size.saturating_sub(unread).saturating_sub(self.rcv_ssthresh);
        if room == 0 || len < SMALL {
            return false;
        }
        self.rcv_ssthresh += room.min(2 * self.advmss.max(len));
        true
    }

    fn size(&self) -> u64 {
        self.size
    }

    /// The window to offer: the free space, up to the threshold.
    fn free(&self, unread: u64) -> u64 {
        self.size.saturating_sub(unread).min(self.rcv_ssthresh)
    }

    /// Only the first segment that an ACK released shows the RTT, because the others came later (Linux
    /// rcv_rtt_last_tsecr).
    fn on_rtt(&mut self, _now: Instant, echo: u32, rtt: Duration) {
        if self.rtt_echo == Some(echo) {
            return;
        }
        self.rtt_echo = Some(echo);
        self.rtt = if self.rtt.is_zero() { rtt } else { (self.rtt * 7 + rtt) / 8 };
    }

    fn on_read(&mut self, now: Instant, copied: u64) {
        if !self.auto || self.rtt.is_zero() || now.saturating_since(self.since) < self.rtt {
            return;
        }
        let read = copied.saturating_sub(self.copied_at);
        if read > self.space {
            // Twice the data read, so that slow start can double, and a few segments.
            let window = 2 * read + 16 * self.advmss;
            let growth = u128::from(window) * u128::from(read - self.space) / u128::from(self.space.max(1));
            let window = window.saturating_add(u64::try_from(2 * growth).unwrap_or(u64::MAX));
            self.size = self.size.max(window.min(self.max));
            self.space = read;
        }
        self.copied_at = copied;
        self.since = now;
    }

    fn path(&self) -> PathView {
        PathView { rtt: self.rtt, ..PathView::default() }
    }
}

/// Linux first offers at most 65,535 bytes, the limit of a SYN's window field, whatever the size of the buffer
/// (tcp_select_initial_window, tcp_connect_init: rcv_ssthresh = rcv_wnd). ACKs round them up to the unit
/// of the scaled window (__tcp_select_window).
const FIRST_OFFER: u64 = 65_536;
/// Linux TCP_INIT_CWND, segments.
const INITIAL_WINDOW: u64 = 10;
/// As Linux: shorter segments do not let the window grow.
const SMALL: u64 = 128;

#[cfg(test)]
mod tests {
    use alloc::vec;
    use alloc::vec::Vec;

    use super::*;

    fn tuned() -> DrsLinux {
        DrsLinux::new(ReceiveBuffer::Auto { initial: 65_536, max: 3_000_000 }, 1_460)
    }

    fn arrival(len: u64) -> Arrival {
        Arrival { now: Instant::ZERO, len, unread: 0, nxt: 0, edge: 0 }
    }

    /// One round trip of 100 ms in which `segments` full-sized segments come and are read.
    fn round(space: &mut DrsLinux, number: u64, copied: &mut u64, segments: u64) {
        for n in 0..segments {
            let now = Instant::ZERO + Duration::from_millis(100 * number + n / 2);
            space.on_rtt(now, number as u32, Duration::from_millis(100 + n / 2));
            space.on_segment(&arrival(1_448));
            *copied += 1_448;
            space.on_read(now, *copied);
        }
    }

    /// As Linux 6.1 in the virtual lab: 64 KB for two round trips, then as much as slow start needs.
    #[test]
    fn the_window_grows_ahead_of_slow_start() {
        let (mut space, mut copied) = (tuned(), 0);
        let mut offered = Vec::new();
        for (number, segments) in [(1, 10), (2, 20), (3, 40), (4, 80), (5, 160)] {
            round(&mut space, number, &mut copied, segments);
            offered.push(space.free(0) / 1_448);
        }
        assert_eq!(offered[..2], [45, 45]);
        assert!((110..=130).contains(&offered[2]) && (260..=300).contains(&offered[3]), "{offered:?}");
        assert!(offered[4] > 3 * 160, "{offered:?}");
    }

    #[test]
    fn a_small_fixed_buffer_is_offered_whole() {
        let mut space = DrsLinux::new(ReceiveBuffer::Fixed(17_520), 1_460);
        assert!(!space.on_segment(&arrival(1_460)));
        assert_eq!((space.free(0), space.free(2_920)), (17_520, 14_600));
    }

    /// Windows of a buffer of 8 MB, as Linux 6.1 offers them in the virtual lab, in units of 128 bytes. 3, 10 and 75
    /// segments have come as super-packets.
    #[test]
    fn a_large_fixed_buffer_opens_as_data_comes() {
        let mut space = DrsLinux::new(ReceiveBuffer::Fixed(8_000_000), 1_460);
        let mut offered = vec![space.free(0)];
        for segments in [&[3][..], &[7], &[2, 20, 43]] {
            segments.iter().for_each(|count| assert!(space.on_segment(&arrival(count * 1_448))));
            offered.push(space.free(0).next_multiple_of(128));
        }
        assert_eq!(offered, [65_536, 74_240, 94_592, 282_752]);
        // Segments one by one: twice the MSS for each, until all is offered.
        assert!(space.on_segment(&arrival(1_448)));
        assert_eq!(space.free(0), 65_536 + 75 * 2_896 + 2_920);
        (0..2_650).for_each(|_| _ = space.on_segment(&arrival(1_448)));
        assert_eq!(space.free(0), 8_000_000);
        assert!(!space.on_segment(&arrival(1_448)));
    }

    /// A peer's echo may make a round trip of a quarter of an hour.
    #[test]
    fn gigabytes_in_a_round_trip_do_not_overflow() {
        let mut space = tuned();
        space.on_rtt(Instant::ZERO, 7, Duration::from_secs(1_000));
        space.on_read(Instant::ZERO + Duration::from_secs(1_000), 1 << 40);
        assert_eq!(space.size(), 3_000_000);
    }

    #[test]
    fn the_first_segment_of_a_round_tells_the_round_trip() {
        let mut space = tuned();
        space.on_rtt(Instant::ZERO, 7, Duration::from_millis(100));
        space.on_rtt(Instant::ZERO, 7, Duration::from_millis(180));
        assert_eq!(space.rtt, Duration::from_millis(100));
        space.on_rtt(Instant::ZERO, 8, Duration::from_millis(180));
        assert_eq!(space.rtt, Duration::from_millis(110));
    }
}
