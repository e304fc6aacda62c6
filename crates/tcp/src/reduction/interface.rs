//! The interface of rate reductions: what a reduction is told, what it answers.

use core::fmt::Debug;

use paceline_wire::{Duration, Instant};

use crate::congestion::{AckSample, Window};
use crate::names::named;

named! {
    /// A rate reduction by name.
    ReductionName {
        /// cwnd is ssthresh at once (RFC 6675).
        Rfc6675 = "rfc6675",
        /// One packet less for every two ACKs, as Linux before 3.2.
        Rh = "rh",
        /// Proportional rate reduction (RFC 9937).
        #[default]
        Prr = "prr",
        /// Its predecessor PRR-SSRB (RFC 6937), as Linux 3.2 to 4.3.
        PrrSsrb = "prr-ssrb",
        /// cwnd follows the length of the queue.
        Qarr = "qarr",
        /// cwnd follows the bandwidth.
        Barr = "barr",
        /// QARR as printed: Eqs. (1), (2) at every ACK.
        QarrText = "qarr-text",
        /// As `qarr-text`, and W rises below the target (Section VII.C).
        QarrTextRaises = "qarr-text-raises",
        /// As `qarr-text`, with RTTs from our own record of departures.
        QarrTextRecord = "qarr-text-record",
        /// As `qarr-text`, once per round trip.
        QarrTextRound = "qarr-text-round",
        /// As `qarr-text`, once per round trip, by its shortest queue.
        QarrTextShortest = "qarr-text-shortest",
        /// BARR as printed: Eqs. (3), (4) at every ACK.
        BarrText = "barr-text",
        /// As `barr-text`, with B of all data delivered, cumulatively or by SACK.
        BarrTextDelivered = "barr-text-delivered",
        /// As `barr-text`, with the highest B of a round trip.
        BarrTextHighest = "barr-text-highest",
        /// As `barr-text`, with RTTs from our own record of departures.
        BarrTextRecord = "barr-text-record",
        /// As `barr-text`, with slow start during recovery.
        BarrTextSlowStart = "barr-text-slow-start",
        /// As `barr-text`, but recovery leaves at least the earlier cwnd.
        BarrTextKeeps = "barr-text-keeps",
        /// As `qarr-text`, only at ACKs that advance SND.UNA.
        QarrTextCumulative = "qarr-text-cumulative",
    }
}

/// Controls cwnd during fast recovery.
pub trait RateReduction: Debug + Send {
    /// Name of the algorithm.
    fn name(&self) -> ReductionName;

    /// Takes an ACK in any state, before loss detection. For algorithms that measure all the time.
    fn on_measurement(&mut self, _sample: &AckSample) {}

    /// Fast recovery begins. Returns cwnd.
    fn enter(&mut self, entry: &Entry, window: Window) -> u32;

    /// An ACK in fast recovery that delivered something. Returns cwnd.
    fn on_ack(&mut self, sample: &AckSample, window: &mut Window) -> u32;

    /// Packets were sent in fast recovery.
    fn on_sent(&mut self, _packets: u32) {}

    /// Fast recovery ends. Returns cwnd.
    fn exit(&mut self, window: Window) -> u32;

    /// True if ssthresh is lowered, and the congestion control is told.
    fn lowers_ssthresh(&self) -> bool {
        true
    }

    /// Number of bytes that new data may go beyond the advertised window.
    fn window_extension(&self, _holes: &Holes) -> u64 {
        0
    }
}

/// The state when fast recovery begins.
#[derive(Clone, Copy, Debug)]
pub struct Entry {
    /// Now.
    pub now: Instant,
    /// Packets between SND.UNA and SND.NXT that the receiver was not known to have before this ACK (RecoverFS of RFC 9937).
    pub recover_fs: u32,
    /// Packets in flight (pipe).
    pub in_flight: u32,
    /// Smoothed RTT.
    pub srtt: Duration,
}

/// Missing and received data, as SACK reports it.
#[derive(Clone, Copy, Debug, Default)]
pub struct Holes {
    /// Bytes from SND.UNA to the highest one reported: holes and data received out of order, n1 + n2 of the paper.
    pub span: u64,
    /// Some missing data below that was not retransmitted yet.
    pub waiting: bool,
}
