//! The mobile accelerator's estimation and schedule in the sending endpoint (W. S. Wan, CUHK 2010, Section 9.4).
//!
//! An offered window is half a round trip old when it arrives at the sender. Data sent then arrives another half later.
//! Meanwhile the application has read the data that came before. So Eq. (10) lets R x rtt more than the window be
//! outstanding. This goes beyond RFC 9293, and so applies only on request.
//!
//! Losses are repaired from here, not from the edge of the radio link. While a hole is open the offered window is the
//! limit, because the receiver discards data beyond it. The congestion control answers losses as usual, unless they are
//! kept from it, too (`sender/suppression.rs`).

use paceline_wire::{Duration, Instant};

use crate::names::named;
use crate::reception_rate::{ReceptionRate, Sampling};

named! {
    /// The limit of outstanding data, besides the congestion window.
    ScheduleName {
        /// What the receiver offers (RFC 9293).
        #[default]
        Window = "window",
        /// That, plus what the receiver will have freed when the data arrives.
        Accelerated = "sender-accelerated",
        /// As `sender-accelerated`. Losses that are repaired in time are kept from the congestion control.
        Suppressing = "sender-suppressing",
    }
}

impl ScheduleName {
    /// A new instance; `None` for the window alone.
    pub(crate) fn build(self) -> Option<SendSchedule> {
        let regrows = self == ScheduleName::Suppressing;
        self.exceeds_window().then(|| SendSchedule { regrows, ..SendSchedule::default() })
    }

    /// True if more than the receiver offers may be outstanding.
    pub fn exceeds_window(self) -> bool {
        self != ScheduleName::Window
    }
}

/// The schedule of one connection.
#[derive(Clone, Debug, Default, serde::Serialize, serde::Deserialize)]
pub(crate) struct SendSchedule {
    /// Flattened, as earlier versions write it.
    #[serde(flatten)]
    rate: ReceptionRate,
    /// a_max: the largest window offered.
    window_max: u64,
    extension: u64,
    /// n_i of the last ACK.
    #[serde(default)]
    ack: u64,
    /// After a hole the extension grows with the acknowledged data. Our choice, for when cwnd is not lowered: a round
    /// trip of data would leave at once, and overflow a shorter buffer.
    #[serde(default)]
    regrows: bool,
    /// There is a hole.
    #[serde(default)]
    held_back: bool,
    /// The extension regrown since the last hole, until it is whole again.
    #[serde(default)]
    regrown: Option<u64>,
}

/// The content of an ACK.
#[derive(Clone, Copy, Debug)]
pub(crate) struct AckContent {
    pub(crate) now: Instant,
    /// n_i, and whether it is more than before.
    pub(crate) ack: u64,
    pub(crate) advanced: bool,
    /// a_i.
    pub(crate) window: u64,
    /// The receiver lacks data, but has data beyond it.
    pub(crate) hole: bool,
    /// Eq. (2) smooths it. Ours is the shortest, as in the gateway: the smoothed one contains the queue that the
    /// schedule builds.
    pub(crate) rtt: Option<Duration>,
}

/// How a sender samples r and R.
const SAMPLING: Sampling = Sampling {
    // Our choice: 6 KB a connection are 50 ms of ACKs at 5,000 a second.
    points_max: 256,
    // Our choice: data beyond the window waits for a whole sample. A mistaken rate would lose it.
    early: false,
    // Our choice: a pause lowers R. So less goes beyond the window until there are k ACKs again.
    gap_max: Duration::MAX,
};

impl SendSchedule {
    /// Takes an ACK.
    pub(crate) fn on_ack(&mut self, content: &AckContent) {
        self.window_max = self.window_max.max(content.window);
        if content.hole {
            // The cumulative ACK stands still and will leap, so R keeps its value.
            self.rate.hold();
        } else if content.advanced {
            self.rate.on_ack(content.now, content.ack, content.ack + content.window, &SAMPLING);
        }
        self.extension = if content.hole { 0 } else { self.credit(content) };
        if self.regrows {
            self.regrow(content);
        }
    }

    /// Regrows the extension from 0 as in slow start: each acknowledged byte adds one.
    fn regrow(&mut self, content: &AckContent) {
        let acked = content.ack.saturating_sub(core::mem::replace(&mut self.ack, content.ack));
        if content.hole {
            self.regrown = None;
            self.held_back = true;
        } else if core::mem::take(&mut self.held_back) {
            self.regrown = Some(0);
        } else {
            self.regrown = self.regrown.map(|regrown| regrown + acked);
        }
        self.regrown = self.regrown.filter(|&regrown| regrown < self.extension);
        self.extension = self.regrown.unwrap_or(self.extension);
    }

    /// Bytes beyond the offered window that may be outstanding.
    pub(crate) fn extension(&self) -> u64 {
        self.extension
    }

    /// Eq. (10) when its ACK has just come: R x rtt, less the data that the application has not yet read. A closed
    /// window stays closed. R counts for no more than r, the rate of arrival. Otherwise a window that grows would be
    /// taken for data.
    fn credit(&self, content: &AckContent) -> u64 {
        let (Some(carried), Some(rtt)) = (self.rate.carried(), content.rtt) else { return 0 };
        if content.window == 0 {
            return 0;
        }
        let filled = self.window_max - content.window;
        carried.bytes_in(rtt).saturating_sub(filled)
    }
}

#[cfg(test)]
mod tests {
    use std::vec::Vec;

    use paceline_wire::Rate;

    use super::*;

    const RTT: Duration = Duration::from_millis(100);

    fn content(ms: u64, ack: u64, window: u64) -> AckContent {
        let now = Instant::ZERO + Duration::from_millis(ms);
        AckContent { now, ack, advanced: true, window, hole: false, rtt: Some(RTT) }
    }

    /// 7.2 Mbit/s for a second.
    fn settled(window: impl Fn(u64) -> u64) -> SendSchedule {
        let mut schedule = SendSchedule::default();
        (0..100).for_each(|i| schedule.on_ack(&content(10 * i, 9_000 * i, window(i))));
        schedule
    }

    #[test]
    fn a_receiver_that_keeps_up_is_sent_a_round_trip_more() {
        assert_eq!(settled(|_| 17_520).extension(), 90_000);
        // The first ACKs give no estimate.
        let mut schedule = SendSchedule::default();
        (0..10).for_each(|i| schedule.on_ack(&content(10 * i, 9_000 * i, 17_520)));
        assert_eq!(schedule.extension(), 0);
    }

    #[test]
    fn what_fills_the_buffer_counts_against_it() {
        // The application reads nothing: every ACK offers 9,000 bytes less.
        let schedule = settled(|i| 1_000_000 - 9_000 * i);
        assert_eq!(schedule.rate.rate(), Some(Rate::ZERO));
        assert_eq!(schedule.extension(), 0);
    }

    #[test]
    fn a_window_that_grows_is_no_data() {
        assert_eq!(settled(|i| 17_520 + 18_000 * i).extension(), 90_000);
    }

    #[test]
    fn holes_and_closed_windows_end_it_and_the_rate_is_held() {
        let mut schedule = settled(|_| 17_520);
        schedule.on_ack(&AckContent { hole: true, advanced: false, ..content(1_000, 891_000, 17_520) });
        assert_eq!(schedule.extension(), 0);
        schedule.on_ack(&content(1_200, 908_520, 17_520));
        assert_eq!(schedule.extension(), 90_000);
        schedule.on_ack(&content(1_210, 908_520, 0));
        assert_eq!(schedule.extension(), 0);
    }

    /// A round trip of data does not leave at once.
    #[test]
    fn after_a_hole_the_extension_grows_with_what_is_acknowledged() {
        let mut schedule = SendSchedule { regrows: true, ..settled(|_| 17_520) };
        schedule.on_ack(&content(1_000, 900_000, 17_520));
        schedule.on_ack(&AckContent { hole: true, advanced: false, ..content(1_010, 900_000, 17_520) });
        let extensions: Vec<u64> = (0..12)
            .map(|i| {
                schedule.on_ack(&content(1_200 + 10 * i, 917_520 + 9_000 * i, 17_520));
                schedule.extension()
            })
            .collect();
        let expected: Vec<u64> = (0..12).map(|i| (9_000 * i).min(90_000)).collect();
        assert_eq!(extensions, expected);
    }

    /// An earlier version has no field for k and for full intervals.
    #[test]
    fn the_state_of_an_earlier_version_is_read() {
        #[derive(serde::Serialize)]
        struct Before {
            points: Vec<u64>,
            link: Option<Rate>,
            reception: Option<Rate>,
            window_max: u64,
            extension: u64,
        }
        let link = Some(Rate::from_mbps(7.2));
        let before = Before { points: Vec::new(), link, reception: link, window_max: 17_520, extension: 0 };
        let mut schedule: SendSchedule =
            rmp_serde::from_slice(&rmp_serde::to_vec_named(&before).unwrap()).unwrap();
        schedule.on_ack(&content(0, 9_000, 17_520));
        assert_eq!(schedule.extension(), 90_000);
    }
}
