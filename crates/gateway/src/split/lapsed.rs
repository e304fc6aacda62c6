//! Flows that were split before a restart. What each end had is not known any more, so both are told that it is over.

use alloc::vec::Vec;

use paceline_wire::{Duration, Flags, FlowKey, Instant, Packet, Payload, PortId, TcpRepr};

use crate::context::SplitContext as Context;
use crate::keyed::{Key, Map, rekeyed};
use crate::observe::Event;
use crate::ports::WAN;

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

#[cfg(test)]
mod tests {
    use paceline_wire::{Node, Seq};

    use super::*;
    use crate::config::FlowMode;
    use crate::{Gateway, GatewayConfig, RADIO};

    fn key() -> FlowKey {
        FlowKey { src: "10.0.0.2:40000".parse().unwrap(), dst: "10.0.1.1:80".parse().unwrap() }
    }

    /// What leaves after a segment has come.
    fn tell(
        gateway: &mut Gateway,
        now: Instant,
        port: PortId,
        seq: u32,
        ack: u32,
        flags: Flags,
    ) -> Vec<(PortId, Packet)> {
        let repr = TcpRepr { seq: Seq(seq), ack: Seq(ack), flags, window: 60_000, ..TcpRepr::default() };
        let key = if port == WAN { key().reversed() } else { key() };
        gateway.handle_packet(now, port, Packet::build_tcp(key, &repr, Payload::Length(0)));
        core::iter::from_fn(|| gateway.poll_transmit(now)).collect()
    }

    /// While a gateway was away the kernel may have reset one end: then the other one must not wait for ever.
    #[test]
    fn both_ends_hear_that_their_flow_is_over_when_the_gateway_was_away() {
        let mut gateway = Gateway::new(GatewayConfig { mode: FlowMode::Split, ..GatewayConfig::default() });
        let now = Instant::ZERO + Duration::from_secs(1);
        tell(&mut gateway, now, RADIO, 0, 0, Flags::SYN);
        tell(&mut gateway, now, WAN, 500, 1, Flags::SYN | Flags::ACK);
        tell(&mut gateway, now, RADIO, 1, 501, Flags::ACK);
        assert_eq!(gateway.split_flows(), 1);
        gateway.let_go_of_split_flows(now);
        assert_eq!((gateway.split_flows(), gateway.flows(), gateway.buffered_bytes()), (0, 0, 0));
        for (port, seq, ack) in [(RADIO, 1, 501), (WAN, 501, 1)] {
            let answers = tell(&mut gateway, now, port, seq, ack, Flags::ACK);
            let resets: Vec<_> = answers
                .iter()
                .filter_map(|(to, packet)| Some((*to, packet.tcp()?.seq().0, packet.tcp()?.flags())))
                .collect();
            assert_eq!(resets, [(port, ack, Flags::RST)]);
        }
    }
}
