//! Distinguishes originals from retransmissions.

use alloc::collections::BTreeMap;

use paceline_wire::{Flags, FlowKey, Packet, Seq};

/// The highest sequence number of each flow, for a bounded number of flows.
///
/// There are two generations. If the younger one is full, the older one is forgotten. A flow that sends moves to the
/// younger generation with each packet. So only flows that are silent while `flows_max` others send are forgotten.
/// Their next packet counts as an original.
#[derive(Clone, Debug)]
pub(crate) struct Originals {
    flows_max: usize,
    young: BTreeMap<FlowKey, Seq>,
    old: BTreeMap<FlowKey, Seq>,
}

impl Originals {
    pub(crate) fn new(flows_max: usize) -> Self {
        Originals { flows_max, young: BTreeMap::new(), old: BTreeMap::new() }
    }

    /// True if the packet brings new data. This holds if it is no TCP segment, takes no sequence numbers, or ends
    /// beyond all that its flow has sent. A segment with old and new bytes is an original.
    pub(crate) fn is_original(&mut self, packet: &Packet) -> bool {
        let (Some(key), Some(tcp)) = (packet.flow_key(), packet.tcp()) else { return true };
        if tcp.seq_len() == 0 {
            return true;
        }
        let end = tcp.end_seq();
        let Some(highest) = self.young.get(&key).or_else(|| self.old.get(&key)).copied() else {
            self.remember(key, end);
            return true;
        };
        // A SYN with another number begins another connection between the same ports.
        let original = if tcp.flags().contains(Flags::SYN) { highest != end } else { highest.before(end) };
        self.remember(key, if original { end } else { highest });
        original
    }

    fn remember(&mut self, key: FlowKey, highest: Seq) {
        if self.young.len() >= self.flows_max && !self.young.contains_key(&key) {
            self.old = core::mem::take(&mut self.young);
        }
        self.young.insert(key, highest);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::{key, segment};

    #[test]
    fn what_ends_beyond_everything_before_is_an_original() {
        let mut originals = Originals::new(4);
        let mut is_original = |seq, len| originals.is_original(&segment(key(1), seq, len));
        assert!(is_original(u32::MAX - 99, 100));
        assert!(is_original(100, 100), "after a gap, and across the wrap");
        assert!(!is_original(0, 100), "the gap is filled later");
        assert!(!is_original(u32::MAX - 99, 100));
        assert!(is_original(150, 100), "half of it is new");
        assert!(is_original(100, 0), "an acknowledgement without data");
    }

    #[test]
    fn a_new_connection_between_the_same_ports_starts_again() {
        let mut originals = Originals::new(4);
        let syn = |seq| crate::testing::syn(key(1), seq);
        assert!(originals.is_original(&syn(5_000)));
        assert!(!originals.is_original(&syn(5_000)));
        assert!(originals.is_original(&segment(key(1), 5_001, 1_000)));
        assert!(originals.is_original(&syn(10)));
        assert!(originals.is_original(&segment(key(1), 11, 1_000)));
    }

    #[test]
    fn memory_is_bounded_and_busy_flows_stay_known() {
        let mut originals = Originals::new(10);
        for round in 0..100u16 {
            assert!(originals.is_original(&segment(key(0), u32::from(round), 1)));
            assert!(!originals.is_original(&segment(key(0), 0, 1)), "round {round}");
            assert!(originals.is_original(&segment(key(1 + round), 0, 1)));
            assert!(originals.young.len() + originals.old.len() <= 20);
        }
    }
}
