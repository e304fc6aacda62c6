//! TCP counters of a whole namespace, from `/proc/net/netstat` and `/proc/net/snmp`.

use std::fs;
use std::io;

use paceline_wire::Instant;

/// Counts since the namespace was created.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct MibCounters {
    /// Retransmission timeouts (`TCPTimeouts`).
    pub timeouts: u64,
    /// Tail-loss probes sent (`TCPLossProbes`).
    pub tail_loss_probes: u64,
    /// Tail-loss probes that repaired a loss (`TCPLossProbeRecovery`).
    pub tail_loss_recoveries: u64,
    /// Entries into fast recovery (`TCPSackRecovery`, `TCPRenoRecovery`).
    pub fast_recoveries: u64,
    /// Timeouts that were found unnecessary (`TCPSpuriousRTOs`).
    pub spurious_timeouts: u64,
    /// Congestion responses that D-SACK or timestamps undid (`TCPFullUndo`, `TCPPartialUndo`, `TCPDSACKUndo`).
    pub undone_responses: u64,
    /// Retransmitted segments (`RetransSegs`).
    pub retransmitted_segments: u64,
}

/// The counters at one time.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct MibSample {
    /// Time of the sample.
    pub at: Instant,
    /// The counts.
    pub counters: MibCounters,
}

impl MibCounters {
    /// Reads the counters of the calling thread's namespace. `/proc/net` would show those of the process's first
    /// thread.
    pub(super) fn read() -> io::Result<MibCounters> {
        let mut text = fs::read_to_string("/proc/thread-self/net/netstat")?;
        text.push_str(&fs::read_to_string("/proc/thread-self/net/snmp")?);
        Ok(Self::parse(&text))
    }

    /// Parses pairs of lines: names, then values, both after the same prefix.
    fn parse(text: &str) -> MibCounters {
        let mut counters = MibCounters::default();
        let mut lines = text.lines();
        while let (Some(names), Some(values)) = (lines.next(), lines.next()) {
            for (name, value) in names.split_whitespace().zip(values.split_whitespace()) {
                let Ok(value) = value.parse::<u64>() else { continue };
                match name {
                    "TCPTimeouts" => counters.timeouts = value,
                    "TCPLossProbes" => counters.tail_loss_probes = value,
                    "TCPLossProbeRecovery" => counters.tail_loss_recoveries = value,
                    "TCPSackRecovery" | "TCPRenoRecovery" => counters.fast_recoveries += value,
                    "TCPSpuriousRTOs" => counters.spurious_timeouts = value,
                    "TCPFullUndo" | "TCPPartialUndo" | "TCPDSACKUndo" => counters.undone_responses += value,
                    "RetransSegs" => counters.retransmitted_segments = value,
                    _ => {}
                }
            }
        }
        counters
    }

    /// Returns the counts since `earlier`.
    pub fn since(&self, earlier: &MibCounters) -> MibCounters {
        MibCounters {
            timeouts: self.timeouts.saturating_sub(earlier.timeouts),
            tail_loss_probes: self.tail_loss_probes.saturating_sub(earlier.tail_loss_probes),
            tail_loss_recoveries: self.tail_loss_recoveries.saturating_sub(earlier.tail_loss_recoveries),
            fast_recoveries: self.fast_recoveries.saturating_sub(earlier.fast_recoveries),
            spurious_timeouts: self.spurious_timeouts.saturating_sub(earlier.spurious_timeouts),
            undone_responses: self.undone_responses.saturating_sub(earlier.undone_responses),
            retransmitted_segments: self
                .retransmitted_segments
                .saturating_sub(earlier.retransmitted_segments),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_and_values_are_paired() {
        let text = "TcpExt: SyncookiesSent TCPTimeouts TCPSackRecovery TCPRenoRecovery TCPLossProbes\n\
                    TcpExt: 1 2 3 4 5\nTcp: InSegs RetransSegs\nTcp: 9 8\n";
        let counters = MibCounters::parse(text);
        assert_eq!(counters.timeouts, 2);
        assert_eq!(counters.fast_recoveries, 7);
        assert_eq!(counters.tail_loss_probes, 5);
        assert_eq!(counters.retransmitted_segments, 8);
        assert_eq!(MibCounters::parse("odd"), MibCounters::default());
    }
}
