//! A sender over time, for plots.

use paceline_tcp::Status;
use paceline_wire::Instant;

use crate::run::RunObserver;

/// The states of a sender, every 100 ms.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct SenderTrace {
    /// The states in order of time.
    pub rows: Vec<SenderRow>,
}

/// The state of a sender at one time.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct SenderRow {
    /// Time since the start of the run.
    pub at_s: f64,
    /// Congestion window in packets.
    pub cwnd_packets: u32,
    /// Pipe in packets.
    pub in_flight_packets: u32,
    /// Smoothed RTT.
    pub srtt_ms: f64,
    /// Payload that the receiving application has read so far.
    pub read_bytes: u64,
    /// Recoveries so far.
    pub recoveries: u64,
    /// Retransmission timeouts so far.
    pub timeouts: u64,
    /// Retransmissions by Hack 1 so far.
    pub hack1: u64,
}

impl RunObserver for SenderTrace {
    fn sender(&mut self, now: Instant, _transfer: usize, status: &Status, read_bytes: u64) {
        self.rows.push(SenderRow {
            at_s: now.as_secs_f64(),
            cwnd_packets: status.window.snd_cwnd,
            in_flight_packets: status.pulse.in_flight,
            srtt_ms: status.pulse.rtt as f64 / 1e3,
            read_bytes,
            recoveries: status.episodes.recoveries,
            timeouts: status.episodes.total_rto,
            hack1: status.episodes.hack1,
        });
    }
}
