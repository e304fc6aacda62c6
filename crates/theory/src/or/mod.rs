//! Opportunistic retransmission: link idle time during loss recovery, and its consequences.
//!
//! ```
//! use paceline_theory::or::{Episode, RateReduction};
//!
//! // 20 Mbit/s in packets of 1,500 bytes, 100 ms, a receive window of 180 packets, a burst of 50 lost ones.
//! let episode = Episode::new(20e6 / 8.0 / 1_500.0, 0.1, 180, 50, 0.7)?;
//! let as_found = RateReduction::Prr.recovery(&episode, false);
//! let opportunistic = RateReduction::Prr.recovery(&episode, true);
//! assert!((as_found.utilization() - 0.294).abs() < 0.001);
//! assert!((opportunistic.utilization() - 0.75).abs() < 0.001);
//! # Ok::<(), paceline_theory::or::DomainError>(())
//! ```

mod adaptive;
mod episode;
pub mod flow;
mod prr;
mod rate_halving;
mod send_buffer;
mod standard;

pub use adaptive::{theorem_4, theorem_5, theorem_9};
pub use episode::{DomainError, Episode, Recovery};
pub use prr::{theorem_3, theorem_8};
pub use rate_halving::{theorem_2, theorem_7};
pub use send_buffer::{stalled, theorem_10, theorem_11};
pub use standard::{theorem_1, theorem_6};

/// What cwnd does during fast recovery.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum RateReduction {
    /// RFC 6675 (RFC 3517 in the paper): half of what was in flight, at once.
    Standard,
    /// Rate-halving, Linux before 3.2: one packet for every two ACKs.
    RateHalving,
    /// Proportional rate reduction.
    Prr,
    /// Queue length adaptive.
    Qarr,
    /// Bandwidth adaptive.
    Barr,
}

impl RateReduction {
    /// All of them, in the paper's order.
    pub const ALL: [RateReduction; 5] =
        [Self::Standard, Self::RateHalving, Self::Prr, Self::Qarr, Self::Barr];

    /// The name that scenarios and tables use.
    pub const fn name(self) -> &'static str {
        match self {
            RateReduction::Standard => "rfc6675",
            RateReduction::RateHalving => "rh",
            RateReduction::Prr => "prr",
            RateReduction::Qarr => "qarr",
            RateReduction::Barr => "barr",
        }
    }

    /// From its [`name`](Self::name), upper or lower case.
    pub fn from_name(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|reduction| reduction.name().eq_ignore_ascii_case(name))
    }

    /// True if it sets cwnd during recovery and does not change ssthresh.
    pub const fn is_adaptive(self) -> bool {
        matches!(self, RateReduction::Qarr | RateReduction::Barr)
    }

    /// The recovery of one episode, with or without opportunistic retransmission.
    pub fn recovery(self, episode: &Episode, opportunistic: bool) -> Recovery {
        match (self, opportunistic) {
            (RateReduction::Standard, false) => theorem_1(episode),
            (RateReduction::RateHalving, false) => theorem_2(episode),
            (RateReduction::Prr, false) => theorem_3(episode),
            (RateReduction::Qarr, false) => theorem_4(episode),
            (RateReduction::Barr, false) => theorem_5(episode),
            (RateReduction::Standard, true) => theorem_6(episode),
            (RateReduction::RateHalving, true) => theorem_7(episode),
            (RateReduction::Prr, true) => theorem_8(episode),
            (RateReduction::Qarr | RateReduction::Barr, true) => theorem_9(episode),
        }
    }
}
