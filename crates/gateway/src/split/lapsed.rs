//! Flows that were split before a restart, or before packets passed without this gateway. Nobody knows any more which
//! data each end had. So each packet of either end is answered: the flow is over.

use alloc::collections::VecDeque;
use alloc::vec::Vec;

use paceline_wire::{Duration, Flags, FlowKey, Instant, Packet, Payload, PortId, TcpRepr};

use crate::context::SplitContext as Context;
use crate::keyed::{Key, Map, rekeyed};
use crate::observe::Event;

/// The flows. Each is kept for its own time, even after an end was told. A reset may be lost. A segment forged off the
/// path draws a reset that no end accepts. If a flow is forgotten, packets of one end reach the other, which has
/// nothing to send. The first end then waits for ever.
#[derive(Debug, Default)]
pub(crate) struct LapsedFlows {
    /// Time at which each is forgotten. None until the first timeout after it was added.
    flows: Map<FlowKey, Option<Instant>>,
    undated: Vec<FlowKey>,
    /// Flows by that time. The entry of a flow forgotten earlier stays until its time.
    order: VecDeque<(Instant, FlowKey)>,
    pause_until: Instant,
}

impl LapsedFlows {
    /// Hashes with another key.
    pub(super) fn set_key(&mut self, key: Key) {
        rekeyed(&mut self.flows, key);
    }

    pub(crate) fn add(&mut self, client_to_server: FlowKey) {
        self.flows.insert(client_to_server, None);
        self.undated.push(client_to_server);
    }

    pub(super) fn keys(&self) -> impl Iterator<Item = FlowKey> {
        self.flows.keys().copied()
    }

    /// Answers a packet of such a flow with a reset that has the number expected by the sender. Returns any other
    /// packet.
    pub(crate) fn on_packet(
        &mut self,
        ctx: &mut Context<'_>,
        from: PortId,
        key: &FlowKey,
        packet: Packet,
    ) -> Option<Packet> {
        if self.flows.is_empty() || !self.flows.contains_key(key) {
            return Some(packet);
        }
        let flags = packet.tcp()?.flags();
        if flags.contains(Flags::SYN) {
            // A new flow begins.
            self.forget(ctx, key);
            return Some(packet);
        }
        if flags.contains(Flags::RST) || !flags.contains(Flags::ACK) {
            return Some(packet);
        }
        ctx.out.extend(reset(&packet).map(|reset| (from, reset)));
        None
    }

    /// Forgets flows. Our choice: each is kept for the idle timeout of any flow, from when this process learns of it.
    /// Without that, flows whose ends are gone, or only read, would stay for ever, and in the driver's file as well.
    pub(super) fn on_timeout(&mut self, ctx: &mut Context<'_>) {
        let due = ctx.now + Duration::from_secs(ctx.config.limits.idle_timeout_s);
        for key in self.undated.drain(..) {
            if let Some(at) = self.flows.get_mut(&key) {
                *at = Some(due);
                self.order.push_back((due, key));
            }
        }
        if ctx.now < self.pause_until {
            return;
        }
        for _ in 0..AT_ONCE {
            let Some(&(at, key)) = self.order.front().filter(|(at, _)| *at <= ctx.now) else { return };
            self.order.pop_front();
            if self.flows.get(&key) == Some(&Some(at)) {
                self.forget(ctx, &key);
            }
        }
        self.pause_until = ctx.now + PAUSE;
    }

    pub(super) fn next_timeout(&self) -> Option<Instant> {
        if !self.undated.is_empty() {
            return Some(Instant::ZERO);
        }
        self.order.front().map(|(at, _)| (*at).max(self.pause_until))
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

/// Our choice: for each forgotten flow, an observer does some work, such as a change of the kernel's table. These
/// limits keep that work short, and within the observer's queue.
const AT_ONCE: usize = 256;
const PAUSE: Duration = Duration::from_millis(100);

#[cfg(test)]
mod tests {
    use paceline_wire::{Node, Seq};

    use super::*;
    use crate::config::FlowMode;
    use crate::{Gateway, GatewayConfig, RADIO, WAN};

    fn key() -> FlowKey {
        FlowKey { src: "10.0.0.2:40000".parse().unwrap(), dst: "10.0.1.1:80".parse().unwrap() }
    }

    /// Returns what leaves after a segment has come.
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

    /// A reset may be lost, and a packet in the server's name may be forged.
    #[test]
    fn an_end_is_told_again_and_each_flow_has_its_own_time() {
        let config = GatewayConfig { mode: FlowMode::Split, ..GatewayConfig::default() };
        let idle = Duration::from_secs(config.limits.idle_timeout_s);
        let mut gateway = Gateway::new(config);
        let at = |seconds| Instant::ZERO + Duration::from_secs(seconds);
        let other = FlowKey { src: "10.0.0.3:40000".parse().unwrap(), ..key() };
        gateway.end(other);
        gateway.handle_timeout(at(1));
        gateway.end(key());
        gateway.handle_timeout(at(1) + idle - Duration::from_secs(1));
        // The other flow is forgotten, this one is not.
        gateway.handle_timeout(at(1) + idle);
        let now = at(2) + idle;
        for _ in 0..3 {
            assert_eq!(tell(&mut gateway, now, WAN, 9_999, 7, Flags::ACK).len(), 1);
            let answers = tell(&mut gateway, now, RADIO, 1, 501, Flags::ACK);
            assert!(
                answers.iter().all(|(to, packet)| *to == RADIO && packet.tcp().unwrap().seq() == Seq(501))
            );
        }
        gateway.handle_timeout(now + idle);
        let passed = tell(&mut gateway, now + idle, RADIO, 1, 501, Flags::ACK);
        assert_eq!(passed.first().map(|(to, _)| *to), Some(WAN));
    }

    /// While a gateway was away, the kernel may have reset one end. The other end must not wait for ever.
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
