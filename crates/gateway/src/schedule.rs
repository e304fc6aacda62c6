//! When a packet may leave so that the receiver has room for it: Eqs. (6)-(10).

use paceline_wire::{Duration, Instant, Rate};

/// What the newest ACK of a flow said, and what was derived from it.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Receiver {
    /// a_i: the window in the newest ACK, in bytes.
    pub(crate) window: u64,
    /// a_max: the largest recent window.
    pub(crate) window_max: u64,
    /// t_i: arrival of the newest ACK that advanced.
    pub(crate) acked_at: Instant,
    /// rtt; `None` before the first sample. The text takes the smoothed RTT and assumes constant delays. Ours is the
    /// shortest recent RTT. The smoothed RTT contains the queue that the schedule itself builds, by a_i every round
    /// trip, and would let it grow without end.
    pub(crate) rtt: Option<Duration>,
    /// R; `None` before the first sample.
    pub(crate) rate: Option<Rate>,
}

/// The answer of the schedule.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Departure {
    /// At once.
    Now,
    /// Not before this time, f_k of Eq. (6).
    At(Instant),
    /// Only after another ACK.
    AfterAck,
}

/// Returns the bytes that may be in flight at `now`. They are the reported window and R x (now + rtt - t_i), Eqs. (7)
/// and (10). The receiver will have taken the latter out of its buffer when the packet arrives. Where the text is
/// silent:
/// - A closed window is closed. What the reported window itself allows is always allowed (RFC 9293).
/// - Time after the ACK counts up to one rtt, so that credit does not grow through silence.
/// - The bytes already in the buffer are subtracted from the credit. So an application that reads in bursts, or has
///   just stopped, has a margin, and a slow reader's buffer settles half full.
pub(crate) fn allowance(receiver: &Receiver, now: Instant) -> u64 {
    let (Some(rtt), Some(rate)) = (receiver.rtt, receiver.rate) else { return receiver.window };
    if receiver.window == 0 {
        return 0;
    }
    let elapsed = now.saturating_since(receiver.acked_at).min(rtt);
    let credit = rate.bytes_in(elapsed + rtt).saturating_sub(receiver.filled());
    receiver.window + credit
}

/// Returns when a packet of `bytes` may leave while `outstanding` bytes are in flight (Eq. (8)).
pub(crate) fn departure(receiver: &Receiver, now: Instant, outstanding: u64, bytes: u64) -> Departure {
    let wanted = outstanding + bytes;
    if wanted <= allowance(receiver, now) {
        return Departure::Now;
    }
    let (Some(rtt), Some(rate)) = (receiver.rtt, receiver.rate) else { return Departure::AfterAck };
    if receiver.window == 0 {
        return Departure::AfterAck;
    }
    let credit_time = rate.time_for(wanted.saturating_sub(receiver.window) + receiver.filled());
    if credit_time > rtt * 2 {
        return Departure::AfterAck;
    }
    // Rounding may put the time a nanosecond early.
    let at = receiver.acked_at + credit_time.saturating_sub(rtt);
    Departure::At(at.max(now + Duration::from_nanos(1)))
}

impl Receiver {
    /// Bytes that the application has not yet taken out of its buffer.
    fn filled(&self) -> u64 {
        self.window_max.saturating_sub(self.window)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const RTT: Duration = Duration::from_millis(100);

    fn receiver() -> Receiver {
        Receiver {
            window: 17_000,
            window_max: 17_000,
            acked_at: Instant::ZERO + RTT,
            rtt: Some(RTT),
            rate: Some(Rate::from_mbps(7.2)),
        }
    }

    #[test]
    fn a_bdp_beyond_the_window_leaves_at_once_and_more_at_the_reception_rate() {
        let r = receiver();
        let now = r.acked_at;
        assert_eq!(departure(&r, now, 90_000, 17_000), Departure::Now);
        // 9,000 bytes more are 10 ms at 7.2 Mbit/s.
        assert_eq!(departure(&r, now, 99_000, 17_000), Departure::At(now + Duration::from_millis(10)));
        assert_eq!(departure(&r, now, 198_000, 17_000), Departure::AfterAck);
    }

    #[test]
    fn before_the_first_estimate_the_reported_window_is_all() {
        let r = Receiver { rtt: None, rate: None, ..receiver() };
        assert_eq!(departure(&r, r.acked_at, 15_552, 1_448), Departure::Now);
        assert_eq!(departure(&r, r.acked_at, 17_000, 1_448), Departure::AfterAck);
    }

    #[test]
    fn a_closed_window_is_closed_and_a_filling_buffer_takes_credit_away() {
        let closed = Receiver { window: 0, ..receiver() };
        assert_eq!(departure(&closed, closed.acked_at + RTT, 0, 1_448), Departure::AfterAck);
        let filling = Receiver { window: 8_000, ..receiver() };
        let now = filling.acked_at;
        assert_eq!(departure(&filling, now, 80_000, 9_000), Departure::Now);
        assert_eq!(departure(&filling, now, 89_000, 9_000), Departure::At(now + Duration::from_millis(10)));
    }
}
