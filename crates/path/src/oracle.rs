//! What a sender that knows everything could reach: values to set beside results.

use alloc::vec::Vec;

use paceline_wire::{Duration, Rate};

use crate::outage::Outages;
use crate::rate::RateProcess;
use crate::server::Server;

/// The path of an omniscient sender and the time that it has.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct OraclePath {
    /// Propagation only, both ways.
    pub rtt: Duration,
    /// Bytes of its packets as the link charges them.
    pub packet_bytes: u64,
    /// When it starts, since the start of the link.
    pub from: Duration,
    /// When it ends.
    pub to: Duration,
}

/// The best that any sender can do.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Oracle {
    /// IP bytes that the link can carry from one RTT after the start, when the handshake is over, to the end.
    pub capacity_bytes: u64,
    /// These bytes over the whole time: an upper bound of throughput. Goodput is the payload's share of it.
    pub throughput: Rate,
    /// The 95th percentile of queueing delay that is left when each packet reaches the link just when the link can take
    /// it. Zero at a rate, and on a trace whose packets fit an opportunity; else what packets wait that begin in one
    /// opportunity and end in a later one.
    pub queue_delay_p95: Duration,
}

impl Oracle {
    /// The values for a link with this rate; `None` where nothing limits the sender.
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

/// What each packet waits after its first byte has left, when the link is never without one.
fn just_in_time_delays(rate: &RateProcess, path: &OraclePath) -> Vec<Duration> {
    let mut server = Server::new(rate.clone(), Outages::default());
    let mut free_at = path.from + path.rtt;
    let mut delays = Vec::new();
    while let Some(service) = server.serve(free_at, path.packet_bytes.max(1)) {
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
