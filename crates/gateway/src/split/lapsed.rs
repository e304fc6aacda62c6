//! Flows that were split before a restart. What each end had is not known any more, so both are told that it is over.

use hashbrown::HashMap;
use paceline_wire::{Flags, FlowKey, Packet, Payload, PortId, TcpRepr};

use crate::WAN;
use crate::flow::Context;
use crate::observe::Event;

/// The flows, and which of their ends were told.
#[derive(Debug, Default)]
pub(crate) struct Lapsed {
    flows: HashMap<FlowKey, Told>,
}

#[derive(Clone, Copy, Debug, Default)]
struct Told {
    server: bool,
    client: bool,
}

impl Lapsed {
    pub(crate) fn add(&mut self, client_to_server: FlowKey) {
        self.flows.insert(client_to_server, Told::default());
    }

    #[cfg(feature = "serde")]
    pub(super) fn keys(&self) -> impl Iterator<Item = FlowKey> {
        self.flows.keys().copied()
    }

    /// Answers a packet of such a flow with a reset, which has the number that its sender expects; others come back.
    pub(crate) fn on_packet(
        &mut self,
        ctx: &mut Context<'_>,
        from: PortId,
        key: &FlowKey,
        packet: Packet,
    ) -> Option<Packet> {
        if self.flows.is_empty() {
            return Some(packet);
        }
        let Some(told) = self.flows.get_mut(key) else { return Some(packet) };
        let flags = packet.tcp()?.flags();
        if flags.intersects(Flags::SYN | Flags::RST) || !flags.contains(Flags::ACK) {
            // Another flow begins, or this one is over anyway.
            self.forget(ctx, key);
            return Some(packet);
        }
        ctx.out.extend(reset(&packet).map(|reset| (from, reset)));
        *(if from == WAN { &mut told.server } else { &mut told.client }) = true;
        if told.server && told.client {
            self.forget(ctx, key);
        }
        None
    }

    fn forget(&mut self, ctx: &mut Context<'_>, key: &FlowKey) {
        self.flows.remove(key);
        ctx.observer.on_event(ctx.now, key, &Event::SplitClosed);
    }
}

/// RFC 9293, Section 3.10.7.1: the answer to a segment of a connection that does not exist.
fn reset(packet: &Packet) -> Option<Packet> {
    let repr = TcpRepr { seq: packet.tcp()?.ack(), flags: Flags::RST, ..TcpRepr::default() };
    let mut reset = Packet::build_tcp(packet.flow_key()?.reversed(), &repr, Payload::Length(0));
    reset.set_path_marks(&packet.path_marks()?.reversed(), 0);
    Some(reset)
}
