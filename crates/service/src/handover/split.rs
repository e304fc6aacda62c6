//! Split flows in the state for a successor. Each is a separate block of bytes. If a block is damaged, or written
//! differently by another version of the program, only its flow ends.

use std::fmt;

use paceline_gateway::{Gateway, RestoredSplitFlow};
use serde::de::{SeqAccess, Visitor};
use serde::ser::{Error as _, SerializeSeq};
use serde::{Deserialize, Deserializer, Serialize, Serializer};
use twox_hash::XxHash64;

/// The split flows of a gateway, for writing.
pub(super) struct OutgoingSplitFlows<'a>(pub(super) &'a Gateway);

/// The split flows that could be read.
#[derive(Default)]
pub(super) struct IncomingSplitFlows(pub(super) Vec<RestoredSplitFlow>);

/// One split flow: a digest of the rest, then the flow.
struct Block<'a>(&'a [u8]);

impl Serialize for OutgoingSplitFlows<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let mut blocks = serializer.serialize_seq(Some(self.0.split_flows()))?;
        let mut block = Vec::new();
        for flow in self.0.split_states() {
            block.clear();
            block.extend([0; DIGEST]);
            rmp_serde::encode::write_named(&mut block, &flow).map_err(S::Error::custom)?;
            let digest = XxHash64::oneshot(VERSION, &block[DIGEST..]);
            block[..DIGEST].copy_from_slice(&digest.to_le_bytes());
            blocks.serialize_element(&Block(&block))?;
        }
        blocks.end()
    }
}

impl Serialize for Block<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_bytes(self.0)
    }
}

impl<'de> Deserialize<'de> for IncomingSplitFlows {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_seq(Reader)
    }
}

struct Reader;

impl<'de> Visitor<'de> for Reader {
    type Value = IncomingSplitFlows;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a list of split flows")
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut blocks: A) -> Result<IncomingSplitFlows, A::Error> {
        let mut flows = Vec::new();
        while let Some(block) = blocks.next_element::<&[u8]>()? {
            flows.extend(read(block));
        }
        Ok(IncomingSplitFlows(flows))
    }
}

fn read(block: &[u8]) -> Option<RestoredSplitFlow> {
    let (digest, flow) = block.split_first_chunk::<DIGEST>()?;
    if u64::from_le_bytes(*digest) != XxHash64::oneshot(VERSION, flow) {
        return None;
    }
    super::read::from_slice(flow).ok()
}

const DIGEST: usize = size_of::<u64>();
/// Increase it when a field changes its meaning. Added or removed fields are found by their names.
const VERSION: u64 = 1;

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;
    use std::net::SocketAddr;

    use paceline_gateway::config::FlowMode;
    use paceline_gateway::{GatewayConfig, GatewayState, RADIO, RestoredGateway};
    use paceline_wire::{Flags, FlowKey, Instant, Node, Packet, Payload, TcpRepr};

    use super::*;

    /// Returns a gateway after SYNs of `flows` clients.
    fn gateway(flows: u16) -> Gateway {
        let config = GatewayConfig { mode: FlowMode::Split, ..GatewayConfig::default() };
        let mut gateway = Gateway::new(config);
        for port in 0..flows {
            let [client, server] = [("10.0.0.2", 40_000 + port), ("10.0.0.1", 80)]
                .map(|(address, port)| SocketAddr::new(address.parse().unwrap(), port));
            let syn = TcpRepr { flags: Flags::SYN, window: 60_000, ..TcpRepr::default() };
            let key = FlowKey::new(client, server);
            gateway.handle_packet(
                Instant::from_nanos(1),
                RADIO,
                Packet::build_tcp(key, &syn, Payload::Length(0)),
            );
        }
        gateway
    }

    /// Returns the gateway's successor, after `change` has edited the blocks.
    fn successor(gateway: &Gateway, change: impl Fn(usize, &mut Vec<u8>)) -> Gateway {
        let state = rmp_serde::to_vec_named::<GatewayState<'_>>(&gateway.state()).unwrap();
        let state: RestoredGateway = crate::handover::read::from_slice(&state).unwrap();
        let written = rmp_serde::to_vec(&OutgoingSplitFlows(gateway)).unwrap();
        let blocks: Vec<&[u8]> = crate::handover::read::from_slice(&written).unwrap();
        let changed = blocks.iter().enumerate().filter_map(|(n, block)| {
            let mut block = block.to_vec();
            change(n, &mut block);
            read(&block)
        });
        let changed = changed.collect();
        Gateway::take_over(GatewayConfig::default(), Box::new(()), state, changed)
    }

    #[test]
    fn all_go_on() {
        let before = gateway(5);
        let after = successor(&before, |_, _| {});
        assert_eq!((after.split_flows(), after.flows(), after.counters().split_let_go), (5, 5, 0));
        let whole: IncomingSplitFlows =
            crate::handover::read::from_slice(&rmp_serde::to_vec(&OutgoingSplitFlows(&before)).unwrap())
                .unwrap();
        assert_eq!(whole.0.len(), 5);
    }

    #[test]
    fn what_is_damaged_or_of_another_version_ends_and_nothing_else() {
        let before = gateway(5);
        let cut = |n: usize, block: &mut Vec<u8>| block.truncate(if n == 1 { 30 } else { usize::MAX });
        let none = |n: usize, block: &mut Vec<u8>| block.truncate(if n == 2 { 3 } else { usize::MAX });
        let flipped = |n: usize, block: &mut Vec<u8>| block[100] ^= u8::from(n == 3);
        // Signed as by another version, without a field that this version needs.
        let other = |n: usize, block: &mut Vec<u8>| {
            if n == 4 {
                let flow = rmp_serde::to_vec_named(&BTreeMap::from([("id", 4)])).unwrap();
                *block = XxHash64::oneshot(VERSION, &flow).to_le_bytes().to_vec();
                block.extend(flow);
            }
        };
        for change in [&cut as &dyn Fn(usize, &mut Vec<u8>), &none, &flipped, &other] {
            let after = successor(&before, change);
            assert_eq!((after.split_flows(), after.flows(), after.counters().split_let_go), (4, 4, 1));
        }
    }
}
