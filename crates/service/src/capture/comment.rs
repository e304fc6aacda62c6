//! Comments on what the gateway did with a packet. They come from the counters before and after it, and from a
//! comparison of received and sent packets.

use std::collections::{HashMap, HashSet};

use paceline_gateway::{Counters, RADIO, WAN};
use paceline_wire::{Flags, FlowKey, Packet, PortId, Seq};

/// State of the captured flows.
#[derive(Debug, Default)]
pub(super) struct Comments {
    flows: HashMap<FlowKey, Flow>,
}

#[derive(Debug, Default)]
struct Flow {
    /// Window field and window scale of the client's newest packets.
    client_window: Option<u16>,
    client_scale: Option<u8>,
    server_scale: Option<u8>,
    /// Sequence number behind the newest data sent to the client.
    left: Option<Seq>,
    /// Sequence numbers of server retransmissions that were passed on, until they leave.
    passed: HashSet<u32>,
    split: bool,
}

impl Comments {
    /// Returns the comment on a received packet. The counters are those before and after its handling.
    pub(super) fn incoming(
        &mut self,
        key: FlowKey,
        port: PortId,
        packet: &Packet,
        before: &Counters,
        after: &Counters,
    ) -> String {
        let mut words = changes(INCOMING, before, after);
        if let (Some(flow), Some(tcp)) = (self.flow(key), packet.tcp()) {
            flow.split |= after.flows_split > before.flows_split;
            let syn = tcp.flags().contains(Flags::SYN);
            if port == RADIO {
                flow.client_window = Some(tcp.window());
                flow.client_scale = if syn { tcp.window_scale() } else { flow.client_scale };
            } else if syn {
                flow.server_scale = tcp.window_scale();
            }
            if after.server_retransmissions_passed > before.server_retransmissions_passed
                && flow.passed.len() < PASSED_MAX
            {
                flow.passed.insert(tcp.seq().0);
            }
        }
        super_packet(&mut words, packet);
        words.join("; ")
    }

    /// Returns the comment on a packet that leaves.
    pub(super) fn outgoing(
        &mut self,
        key: FlowKey,
        port: PortId,
        packet: &Packet,
        before: &Counters,
        after: &Counters,
    ) -> String {
        let mut words = changes(OUTGOING, before, after);
        let counted = !words.is_empty();
        if let (Some(flow), Some(tcp)) = (self.flow(key), packet.tcp()) {
            if flow.split {
                words.push("of the gateway's own connection".into());
            }
            let came = if port == WAN { flow.client_scale } else { flow.server_scale };
            if tcp.flags().contains(Flags::SYN) && tcp.window_scale() != came {
                words.push(format!("window scale {}, came as {}", name(tcp.window_scale()), name(came)));
            }
            if port == WAN
                && !flow.split
                && let Some(window) = flow.client_window.filter(|window| *window != tcp.window())
            {
                words.push(format!("window field {}, the client's newest is {window}", tcp.window()));
            }
            if port == RADIO && tcp.payload_len() > 0 {
                let again = flow.left.is_some_and(|left| !left.before(tcp.end_seq()));
                let of_the_server = flow.passed.remove(&tcp.seq().0);
                if again && of_the_server {
                    words.push("sent again by the server".into());
                } else if again && !counted {
                    words.push("sent again by the gateway".into());
                }
                if !again {
                    flow.left = Some(tcp.end_seq());
                }
            }
        }
        super_packet(&mut words, packet);
        words.join("; ")
    }

    /// Returns the state of a flow. `None` if there are too many flows already.
    fn flow(&mut self, key: FlowKey) -> Option<&mut Flow> {
        if self.flows.len() >= FLOWS_MAX && !self.flows.contains_key(&key) {
            return None;
        }
        Some(self.flows.entry(key).or_default())
    }
}

fn name(scale: Option<u8>) -> String {
    scale.map_or_else(|| "none".into(), |scale| scale.to_string())
}

fn super_packet(words: &mut Vec<String>, packet: &Packet) {
    if let Some(size) = packet.gso_size() {
        words.push(format!("super-packet, cut at {size} bytes"));
    }
}

fn changes(of: Words, before: &Counters, after: &Counters) -> Vec<String> {
    let changed = of.iter().filter(|(count, _)| count(after) > count(before));
    changed.map(|(_, word)| (*word).to_owned()).collect()
}

type Words = &'static [(fn(&Counters) -> u64, &'static str)];

const INCOMING: Words = &[
    (|c| c.flows_accelerated, "flow accelerated"),
    (|c| c.flows_rescaled, "its windows are rescaled"),
    (|c| c.flows_split, "flow split"),
    (|c| c.split_refused, "split refused"),
    (|c| c.duplicate_acks_withheld, "duplicate ACK withheld from the server"),
    (|c| c.sack_blocks_removed, "SACK blocks taken out for the server"),
    (|c| c.server_retransmissions_absorbed, "dropped: the server sent again what is kept here"),
    (|c| c.server_retransmissions_passed, "the server sent this again; passed on"),
    (|c| c.differing_copies, "its bytes differ from those that came before; these count"),
    (|c| c.stale_promises_dropped, "dropped: too much waits, and the server was promised more before"),
    (|c| c.stale_promises_marked, "marked (ECN): too much waits, and the server was promised more before"),
    (|c| c.path_mtus_lowered, "what is kept is too large for the path: it leaves as smaller packets"),
    (|c| c.split_drops_no_memory, "dropped: payload memory is used up"),
    (|c| c.split_bad_checksums, "dropped: wrong checksum"),
    (|c| c.other_dropped, "dropped: more than its share"),
    (|c| c.passed_mid_flow, "passed unedited: seen in its middle"),
    (|c| c.passed_table_full, "passed unedited: the table is full"),
    (|c| c.passed_authenticated, "passed unedited: TCP-MD5 or TCP-AO"),
    (|c| c.passed_mptcp, "passed unedited: MPTCP"),
    (|c| c.passed_no_option_room, "no room for an option in the SYN"),
    (|c| c.passed_rule, "passed unedited by rule"),
    (|c| c.passed_bad_checksum, "passed unedited: wrong checksum"),
    (|c| c.passed_buffer_full, "passed, not kept: no memory"),
    (|c| c.passed_gave_up, "passed unedited: the server repairs"),
    (|c| c.passed_unacceptable, "passed and not believed: not the flow's numbers"),
];

const OUTGOING: Words = &[
    (|c| c.proactive_retransmissions, "sent again by the gateway: the client must have discarded it"),
    (
        |c| c.local_retransmissions - c.proactive_retransmissions.min(c.local_retransmissions),
        "sent again by the gateway",
    ),
    (|c| c.tail_probes, "probe for a lost tail"),
    (|c| c.window_probes, "probe of a closed window"),
];

/// The largest number of remembered flows. Our choice: a capture of more no longer selects flows.
const FLOWS_MAX: usize = 1_024;
const PASSED_MAX: usize = 256;
