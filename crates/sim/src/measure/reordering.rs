//! Reordering between two places: packets that arrive after packets that left later (RFC 4737, Section 3).
//!
//! A packet's number is its place in the order of departures. So a retransmission counts by its own departure. The flow
//! and the sequence number identify a packet.

use std::cell::RefCell;
use std::rc::Rc;

use paceline_path::Delivered;
use paceline_wire::{FlowKey, Instant, Packet};
use rustc_hash::FxHashMap;

use crate::network::Tap;

/// Watches data segments between two links. Clones share the measurement.
#[derive(Clone, Debug, Default)]
pub struct ReorderingMeter(Rc<RefCell<State>>);

/// Tap on the link where packets leave.
#[derive(Clone, Debug)]
pub struct Departures(ReorderingMeter);

/// Tap on the link from which packets arrive.
#[derive(Clone, Debug)]
pub struct Arrivals(ReorderingMeter);

/// Counts of segments that arrived out of order.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Reordering {
    /// Data segments that arrived.
    pub arrived: u64,
    /// Segments that arrived after one that had left later.
    pub reordered: u64,
    /// The greatest extent: the number of the latest arrival minus the number of the reordered packet.
    pub extent_max: u64,
    /// The sum of all extents.
    pub extent_sum: u64,
}

#[derive(Debug, Default)]
struct State {
    departed: u64,
    /// Numbers of packets in flight.
    numbers: FxHashMap<(FlowKey, u32), u64>,
    latest: u64,
    seen: Reordering,
}

/// Our choice: lost packets stay in the table until it has this many entries. Then all entries go.
const NUMBERS_MAX: usize = 65_536;

impl ReorderingMeter {
    /// Returns a tap for the link on which packets leave.
    pub fn departures(&self) -> Departures {
        Departures(self.clone())
    }

    /// Returns a tap for the link from which packets arrive.
    pub fn arrivals(&self) -> Arrivals {
        Arrivals(self.clone())
    }

    /// The counts so far.
    pub fn seen(&self) -> Reordering {
        self.0.borrow().seen
    }
}

impl Reordering {
    /// Returns the counts since `earlier`. The greatest extent is still that of the whole time.
    pub fn since(&self, earlier: &Reordering) -> Reordering {
        Reordering {
            arrived: self.arrived - earlier.arrived,
            reordered: self.reordered - earlier.reordered,
            extent_max: self.extent_max,
            extent_sum: self.extent_sum - earlier.extent_sum,
        }
    }

    /// The share of arrived segments that were reordered.
    pub fn share(&self) -> f64 {
        self.reordered as f64 / self.arrived.max(1) as f64
    }

    /// The mean extent of reordered segments.
    pub fn extent_mean(&self) -> f64 {
        self.extent_sum as f64 / self.reordered.max(1) as f64
    }
}

impl Tap for Departures {
    fn sent(&mut self, _now: Instant, packet: &Packet) {
        let Some(segment) = segment(packet) else { return };
        let mut state = self.0.0.borrow_mut();
        state.departed += 1;
        let number = state.departed;
        if state.numbers.len() >= NUMBERS_MAX {
            state.numbers.clear();
        }
        state.numbers.insert(segment, number);
    }
}

impl Tap for Arrivals {
    fn delivered(&mut self, delivered: &Delivered) {
        let Some(segment) = segment(&delivered.packet) else { return };
        let State { numbers, latest, seen, .. } = &mut *self.0.0.borrow_mut();
        let Some(number) = numbers.remove(&segment) else { return };
        seen.arrived += 1;
        if number > *latest {
            *latest = number;
            return;
        }
        let extent = *latest - number;
        seen.reordered += 1;
        seen.extent_sum += extent;
        seen.extent_max = seen.extent_max.max(extent);
    }
}

/// Identifies a packet with data.
fn segment(packet: &Packet) -> Option<(FlowKey, u32)> {
    let tcp = packet.tcp().filter(|tcp| tcp.payload_len() > 0)?;
    Some((packet.flow_key()?, tcp.seq().0))
}

#[cfg(test)]
mod tests {
    use std::net::{Ipv4Addr, SocketAddr};

    use paceline_wire::{Duration, Payload, Seq, TcpRepr};

    use super::*;

    fn packet(seq: u32) -> Packet {
        let [src, dst] = [1, 2].map(|host| SocketAddr::from((Ipv4Addr::new(10, 0, 0, host), 80)));
        let tcp = TcpRepr { seq: Seq(seq), ..TcpRepr::default() };
        Packet::build_tcp(FlowKey::new(src, dst), &tcp, Payload::Length(1_000))
    }

    #[test]
    fn what_was_overtaken_is_counted_with_its_extent() {
        let meter = ReorderingMeter::default();
        let (mut out, mut into) = (meter.departures(), meter.arrivals());
        (1..=5).for_each(|seq| out.sent(Instant::ZERO, &packet(seq)));
        // The second packet is lost, and the first arrives third. The retransmission is in order by its own departure.
        out.sent(Instant::ZERO, &packet(2));
        for seq in [3, 4, 1, 5, 2] {
            let delivered = Delivered {
                at: Instant::ZERO,
                packet: packet(seq),
                sent: Instant::ZERO,
                queue_delay: Duration::ZERO,
            };
            into.delivered(&delivered);
        }
        assert_eq!(meter.seen(), Reordering { arrived: 5, reordered: 1, extent_max: 3, extent_sum: 3 });
    }
}
