//! Flows that were split before a restart. What each end had is not known any more, so both are told that it is over.

use alloc::vec::Vec;

use paceline_wire::{Duration, Flags, FlowKey, Instant, Packet, Payload, PortId, TcpRepr};

use crate::WAN;
use crate::flow::Context;
use crate::keyed::{Key, Map, rekeyed};
use crate::observe::Event;

/// The flows, and which of their ends were told.
#[derive(Debug, Default)]
pub(crate) struct Lapsed {
    flows: Map<FlowKey, Told>,
    /// When those that are still here are forgotten; nothing until the clock has been seen.
    due: Option<Instant>,
}

#[derive(Clone, Copy, Debug, Default)]
struct Told {
    server: bool,
    client: bool,
}

impl Lapsed {
    /// Hashes with another key.
    pub(super) fn set_key(&mut self, key: Key) {
        rekeyed(&mut self.flows, key);
    }

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

    /// Our choice: an end that says nothing is waited for as long as for a packet of any other flow, from when this process began.
    /// Ends that are gone, or only read, would otherwise be remembered for ever, in the driver's file as well.
    pub(super) fn on_timeout(&mut self, ctx: &mut Context<'_>) {
        if self.flows.is_empty() {
            return;
        }
        let idle = Duration::from_secs(ctx.config.limits.idle_timeout_s);
        if ctx.now < *self.due.get_or_insert(ctx.now + idle) {
            return;
        }
        self.due = Some(ctx.now + PAUSE);
        let some: Vec<FlowKey> = self.flows.keys().take(AT_ONCE).copied().collect();
        some.iter().for_each(|key| self.forget(ctx, key));
    }

    pub(super) fn next_timeout(&self) -> Option<Instant> {
        (!self.flows.is_empty()).then(|| self.due.unwrap_or(Instant::ZERO))
    }

    fn forget(&mut self, ctx: &mut Context<'_>, key: &FlowKey) {
        self.flows.remove(key);
        if self.flows.is_empty() {
            self.due = None;
        }
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

/// Our choice: what an observer does for each, such as a change of the kernel's table, stays short and fits its queue.
const AT_ONCE: usize = 256;
const PAUSE: Duration = Duration::from_millis(100);
