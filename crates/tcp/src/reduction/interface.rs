//! The interface of rate reductions: what one is told, what it answers.

use core::fmt::Debug;

use paceline_wire::{Duration, Instant};

use crate::congestion::{AckSample, Window};
use crate::names::named;

named! {
    /// A rate reduction by name.
    ReductionName {
        /// The window at once (RFC 6675).
        Rfc6675 = "rfc6675",
        /// One packet less for every two ACKs, as Linux before 3.2.
        Rh = "rh",
        /// Proportional rate reduction (RFC 9937).
        #[default]
        Prr = "prr",
        /// Its predecessor PRR-SSRB (RFC 6937), as Linux 3.2 to 4.3.
        PrrSsrb = "prr-ssrb",
        /// By the length of the queue.
        Qarr = "qarr",
        /// By the bandwidth.
        Barr = "barr",
        /// QARR as printed: Eqs. (1), (2) at every ACK.
        QarrText = "qarr-text",
        /// The same, and below the target W rises, as Section VII.C tells of it.
        QarrTextRaises = "qarr-text-raises",
        /// The same as printed, RTTs by our own record of what was sent.
        QarrTextRecord = "qarr-text-record",
        /// The same as printed, once per round trip.
        QarrTextRound = "qarr-text-round",
        /// The same as printed, once per round trip, by the shortest queue of it.
        QarrTextShortest = "qarr-text-shortest",
        /// BARR as printed: Eqs. (3), (4) at every ACK.
        BarrText = "barr-text",
        /// The same, with B of all that is delivered, cumulatively or by SACK.
        BarrTextDelivered = "barr-text-delivered",
        /// The same as printed, with the highest B of a round trip.
        BarrTextHighest = "barr-text-highest",
        /// The same as printed, RTTs by our own record of what was sent.
        BarrTextRecord = "barr-text-record",
        /// The same as printed, with slow start going on inside recovery.
        BarrTextSlowStart = "barr-text-slow-start",
        /// The same as printed, left with no less than the cwnd of before.
        BarrTextKeeps = "barr-text-keeps",
        /// QARR as printed, at ACKs that move SND.UNA alone.
        QarrTextCumulative = "qarr-text-cumulative",
    }
}

/// What cwnd does during fast recovery.
pub trait RateReduction: Debug + Send {
    /// Which one it is.
    fn name(&self) -> ReductionName;

    /// An ACK in any state, before loss detection: for those that measure all the time.
    fn on_measurement(&mut self, _sample: &AckSample) {}

    /// Fast recovery begins. Returns cwnd.
    fn enter(&mut self, entry: &Entry, window: Window) -> u32;

    /// An ACK in fast recovery that delivered something. Returns cwnd.
    fn on_ack(&mut self, sample: &AckSample, window: &mut Window) -> u32;

    /// Packets were sent in fast recovery.
    fn on_sent(&mut self, _packets: u32) {}

    /// Fast recovery ends. Returns cwnd.
    fn exit(&mut self, window: Window) -> u32;

    /// Whether ssthresh is lowered, and the congestion control told.
    fn lowers_ssthresh(&self) -> bool {
        true
    }

    /// How many bytes beyond the advertised window new data may go.
    fn window_extension(&self, _holes: &Holes) -> u64 {
        0
    }
}

/// How fast recovery begins.
#[derive(Clone, Copy, Debug)]
pub struct Entry {
    /// Now.
    pub now: Instant,
    /// Packets between SND.UNA and SND.NXT that the receiver was not known to have before this ACK (RecoverFS of RFC 9937).
    pub recover_fs: u32,
    /// Pipe.
    pub in_flight: u32,
    /// Smoothed RTT.
    pub srtt: Duration,
}

/// What the receiver lacks and has, as SACK tells.
#[derive(Clone, Copy, Debug, Default)]
pub struct Holes {
    /// Bytes from SND.UNA to the highest one reported: holes and what arrived out of order, n1 + n2 of the paper.
    pub span: u64,
    /// Some of what is missing below it was not sent again yet.
    pub waiting: bool,
}
