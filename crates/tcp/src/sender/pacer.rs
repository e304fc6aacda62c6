//! Departure time of the next packet and bytes allowed, where limits other than the windows apply.

use paceline_wire::{Duration, Instant};

use super::control::WindowControl;

/// Duration at the pacing rate of what Linux sends at once (sk_pacing_shift of 10).
const SUPER_PACKET_TIME: Duration = Duration::from_nanos(1_000_000_000 >> 10);

/// The pacing clock and the allowance.
#[derive(Clone, Copy, Debug, serde::Serialize, serde::Deserialize)]
pub(crate) struct Pacer {
    pub(super) next_departure: Instant,
    /// Bytes that may still be sent, if a limit besides the windows is set.
    pub(crate) allowance: u64,
    /// The last poll had data to send but no allowance.
    pub(crate) held: bool,
    pub(super) last_send: Instant,
}

impl Default for Pacer {
    fn default() -> Self {
        Pacer { next_departure: Instant::ZERO, allowance: u64::MAX, held: false, last_send: Instant::ZERO }
    }
}

impl Pacer {
    /// True if the next packet is not due yet.
    #[inline]
    pub(super) fn waits(&self, now: Instant, control: &WindowControl) -> bool {
        now < self.next_departure && control.window.burst == 0 && control.is_paced()
    }

    /// True if the allowance lets a segment leave.
    pub(super) fn allows(&mut self) -> bool {
        self.held |= self.allowance == 0;
        !self.held
    }

    /// Notes that `bytes` bytes leave. They are paced unless they are among the `first` packets.
    pub(super) fn on_sent(&mut self, now: Instant, bytes: u64, control: &mut WindowControl, first: bool) {
        if self.allowance != u64::MAX {
            self.allowance = self.allowance.saturating_sub(bytes);
        }
        self.last_send = now;
        self.pace(now, bytes, control, first);
    }

    /// Sets the departure time of the next packet (Linux tcp_update_skb_after_send). The first ten packets are not
    /// paced. Lost time is made up for by up to half of what Linux sends at once, which is a millisecond's worth or a
    /// segment (tcp_tso_autosize).
    fn pace(&mut self, now: Instant, bytes: u64, control: &mut WindowControl, first: bool) {
        if control.window.burst > 0 {
            control.window.burst -= 1;
            return;
        }
        let Some(rate) = control.congestion.pacing_rate() else { return };
        if rate.is_zero() || first {
            return;
        }
        let share = rate.time_for(bytes);
        let earliest = match self.next_departure {
            Instant::ZERO => now,
            due => due.max(now - share.max(SUPER_PACKET_TIME) / 2),
        };
        self.next_departure = earliest + share;
    }
}
