//! Results of an ideal sender, for comparison.

use alloc::vec::Vec;

use paceline_wire::{Duration, Rate};

use crate::bottleneck::Bottleneck;
use crate::outage::Outages;
use crate::rate::RateProcess;

/// The path of an ideal sender, and its time.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct OraclePath {
    /// Propagation delay in both directions together.
    pub rtt: Duration,
    /// Size of its packets, as the link counts them.
    pub packet_bytes: u64,
    /// Time at which it starts, since the start of the link.
    pub from: Duration,
    /// Time at which it ends.
    pub to: Duration,
}

/// The best results that any sender can reach.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Oracle {
    /// IP bytes that the link can carry from the end of the handshake, one RTT after the start, to the end.
    pub capacity_bytes: u64,
    /// These bytes divided by the whole time, an upper bound of throughput. Goodput is the payload's share of it.
    pub throughput: Rate,
    /// The 95th percentile of queueing delay if each packet reaches the link exactly when the link can take it. Zero at
    /// a constant rate, and on a trace whose packets fit into one opportunity. Otherwise a packet waits from its first
    /// to its last opportunity.
    pub queue_delay_p95: Duration,
}

impl Oracle {
    /// Returns the results for a link with this rate; `None` if nothing limits the sender.
    pub fn new(rate: &RateProcess, path: &OraclePath) -> Option<Oracle> {
        let first = path.from + path.rtt;
        let capacity_bytes = rate.capacity_bytes(first, path.to, &Outages::default())?;
        Some(Oracle {
            capacity_bytes,
            throughput: Rate::from_bytes_in(capacity_bytes, path.to - path.from),
            queue_delay_p95: percentile_95(just_in_time_delays(rate, path)),
        })
    }
}

/// Returns the wait of each packet after its first byte has left, if the link always has a packet to send.
fn just_in_time_delays(rate: &RateProcess, path: &OraclePath) -> Vec<Duration> {
    let mut bottleneck = Bottleneck::new(rate.clone(), Outages::default());
    let mut free_at = path.from + path.rtt;
    let mut delays = Vec::new();
    while let Some(service) = bottleneck.serve(free_at, path.packet_bytes.max(1)) {
        if service.finish >= path.to {
            break;
        }
        delays.push((service.finish - service.start) - service.sending);
        free_at = service.finish;
    }
    delays
}

fn percentile_95(mut delays: Vec<Duration>) -> Duration {
    delays.sort_unstable();
    let rank = (delays.len() * 95).div_ceil(100);
    rank.checked_sub(1).map_or(Duration::ZERO, |index| delays[index])
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::trace::Trace;

    fn path(packet_bytes: u64) -> OraclePath {
        OraclePath {
            rtt: Duration::from_millis(100),
            packet_bytes,
            from: Duration::ZERO,
            to: Duration::from_secs(10),
        }
    }

    #[test]
    fn capacity_starts_after_the_handshake() {
        let oracle = Oracle::new(&RateProcess::Constant(Rate::from_mbps(8.0)), &path(1_500)).unwrap();
        assert_eq!(oracle.capacity_bytes, 9_900_000);
        assert_eq!(oracle.throughput, Rate::from_bytes_per_sec(990_000));
        assert_eq!(oracle.queue_delay_p95, Duration::ZERO);
        assert_eq!(Oracle::new(&RateProcess::Unlimited, &path(1_500)), None);
    }

    #[test]
    fn only_packets_across_opportunities_wait() {
        let rate = RateProcess::Opportunities(Trace::from_opportunities([0, 10, 10, 20]).unwrap());
        assert_eq!(Oracle::new(&rate, &path(1_500)).unwrap().queue_delay_p95, Duration::ZERO);
        assert_eq!(Oracle::new(&rate, &path(9_000)).unwrap().queue_delay_p95, Duration::from_millis(20));
    }
}
