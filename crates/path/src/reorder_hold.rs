//! A middlebox that holds TCP segments until all earlier ones have passed, so that the receiver never sees a gap. (Z.
//! Wang et al., "An Untold Story of Middleboxes in Cellular Networks", SIGCOMM 2011, Section 4.3; DRWA, Section 5.4.)

use alloc::collections::{BTreeMap, VecDeque};

use paceline_wire::{Flags, FlowKey, Instant, Packet};

use crate::flight::Flight;

/// The held packets, for a bounded number of flows.
#[derive(Clone, Debug, Default)]
pub(crate) struct ReorderHold {
    flows: BTreeMap<FlowKey, FlowHold>,
    held: usize,
}

/// One direction of a connection.
#[derive(Clone, Debug, Default)]
struct FlowHold {
    /// The position after all data that passed in order, as 64 bits.
    expected: u64,
    /// Held packets by first position, with their end. A segment that came twice is held twice.
    waiting: BTreeMap<u64, VecDeque<(u64, Flight)>>,
    count: usize,
}

/// Our choice: more flows than any test has. Further flows pass unexamined.
const FLOWS_MAX: usize = 65_536;
/// Our choice: about 6 MB, the assumed memory of a box per flow. If it is full, the box passes everything in spite of
/// the gap.
const HELD_MAX: usize = 4_096;

impl ReorderHold {
    /// Takes a packet that has passed the link. Gives `pass` all packets that continue with it, in order.
    pub(crate) fn take(&mut self, packet: Option<&Packet>, flight: Flight, pass: &mut impl FnMut(Flight)) {
        let tcp = packet.and_then(|packet| Some((packet.flow_key()?, packet.tcp()?)));
        let Some((key, tcp)) = tcp.filter(|(_, tcp)| tcp.seq_len() > 0) else { return pass(flight) };
        let (len, at) = (u64::from(tcp.seq_len()), flight.at);
        let first = tcp.flags().contains(Flags::SYN) || !self.flows.contains_key(&key);
        if first && !self.flows.contains_key(&key) && self.flows.len() >= FLOWS_MAX {
            return pass(flight);
        }
        let flow = self.flows.entry(key).or_default();
        if first {
            self.held -= flow.pass_all(at, pass);
            flow.expected = (1 << 32) + u64::from(tcp.seq().0);
        }
        let start = tcp.seq().unwrap_near(flow.expected);
        if start <= flow.expected {
            flow.expected = flow.expected.max(start + len);
            pass(flight);
            self.held -= flow.pass_in_order(at, pass);
            return;
        }
        flow.waiting.entry(start).or_default().push_back((start + len, flight));
        flow.count += 1;
        self.held += 1;
        if flow.count > HELD_MAX {
            self.held -= flow.pass_all(at, pass);
        }
    }

    /// The number of held packets.
    pub(crate) fn len(&self) -> usize {
        self.held
    }
}

impl FlowHold {
    /// Passes the packets that no gap precedes. Returns their number.
    fn pass_in_order(&mut self, at: Instant, pass: &mut impl FnMut(Flight)) -> usize {
        let before = self.count;
        while let Some(entry) = self.waiting.first_entry().filter(|entry| *entry.key() <= self.expected) {
            for (end, flight) in entry.remove() {
                self.expected = self.expected.max(end);
                self.count -= 1;
                pass(Flight { at, ..flight });
            }
        }
        before - self.count
    }

    /// Passes everything in order. Returns the number of packets.
    fn pass_all(&mut self, at: Instant, pass: &mut impl FnMut(Flight)) -> usize {
        let last = self.waiting.last_key_value().map(|(start, _)| *start);
        self.expected = self.expected.max(last.unwrap_or(0));
        self.pass_in_order(at, pass)
    }
}
