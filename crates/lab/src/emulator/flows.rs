//! Deliveries of the emulated link to each flow.

use std::collections::HashMap;

use paceline_wire::{Duration, FlowKey, Instant};

use super::series::Series;

/// The payload that a link delivered in one direction of a flow, retransmitted copies included.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FlowDelivery {
    /// Addresses and ports as in the packets.
    pub key: FlowKey,
    /// Packets with payload.
    pub packets: u64,
    /// Payload bytes.
    pub bytes: u64,
    /// Time from the start to the first packet's exit.
    pub first: Duration,
    /// Time from the start to the last packet's exit.
    pub last: Duration,
    /// Payload bytes over time. Ends early when all flows together exceed their memory.
    pub series: Series,
}

/// Numbers flows and counts their deliveries.
#[derive(Debug)]
pub(super) struct Flows {
    start: Instant,
    numbers: HashMap<FlowKey, u32>,
    deliveries: Vec<FlowDelivery>,
    bins: usize,
    not_tracked: u64,
}

impl Flows {
    pub(super) fn new(start: Instant) -> Self {
        Flows { start, numbers: HashMap::new(), deliveries: Vec::new(), bins: 0, not_tracked: 0 }
    }

    /// Returns the number of a flow's direction. `None` if there are too many flows.
    pub(super) fn number(&mut self, key: FlowKey) -> Option<u32> {
        if let Some(number) = self.numbers.get(&key) {
            return Some(*number);
        }
        if self.deliveries.len() >= FLOWS_MAX {
            self.not_tracked += 1;
            return None;
        }
        let number = self.deliveries.len() as u32;
        self.numbers.insert(key, number);
        self.deliveries.push(FlowDelivery {
            key,
            packets: 0,
            bytes: 0,
            first: Duration::ZERO,
            last: Duration::ZERO,
            series: Series::new(self.start),
        });
        Some(number)
    }

    pub(super) fn delivered(&mut self, number: u32, at: Instant, len: usize) {
        let Some(flow) = self.deliveries.get_mut(number as usize) else { return };
        let since_start = at.saturating_since(self.start);
        if flow.packets == 0 {
            flow.first = since_start;
        }
        flow.last = since_start;
        flow.packets += 1;
        flow.bytes += len as u64;
        if self.bins < BINS_MAX {
            self.bins += flow.series.add(at, len as u32);
        }
    }

    /// Returns the flows that received payload.
    pub(super) fn report(&self) -> Vec<FlowDelivery> {
        self.deliveries.iter().filter(|flow| flow.packets > 0).cloned().collect()
    }

    /// Returns the number of packets of flows that were not counted.
    pub(super) fn not_tracked(&self) -> u64 {
        self.not_tracked
    }
}

/// Our choice: enough for the short objects of a long run, in some 5 MB.
const FLOWS_MAX: usize = 32_768;
/// Bins of all flows together, 16 MB. One flow may exceed it by one hour of bins.
const BINS_MAX: usize = 4 << 20;

#[cfg(test)]
mod tests {
    use std::net::SocketAddr;

    use super::*;

    #[test]
    fn flows_are_counted_apart_and_bounded() {
        let key = |port: u16| {
            FlowKey::new(SocketAddr::from(([10, 0, 0, 1], 80)), SocketAddr::from(([10, 0, 1, 1], port)))
        };
        let mut flows = Flows::new(Instant::ZERO);
        let (a, b) = (flows.number(key(1)).unwrap(), flows.number(key(2)).unwrap());
        assert_eq!(flows.number(key(1)), Some(a));
        flows.delivered(b, Instant::from_nanos(15_000_000), 100);
        flows.delivered(b, Instant::from_nanos(35_000_000), 200);
        let report = flows.report();
        assert_eq!(report.len(), 1);
        assert_eq!((report[0].key, report[0].packets, report[0].bytes), (key(2), 2, 300));
        assert_eq!(report[0].last, Duration::from_millis(35));
        assert_eq!(report[0].series.values(), [100, 0, 200]);
        for port in 3..=u16::MAX {
            flows.number(key(port));
        }
        assert_eq!(flows.not_tracked(), 65_533 + 2 - FLOWS_MAX as u64);
    }
}
