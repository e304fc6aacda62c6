//! Packets by hand: one gateway without hosts and links.

use std::net::SocketAddr;

use paceline_gateway::{Gateway, GatewayConfig, RADIO, WAN};
use paceline_wire::{
    Duration, Flags, FlowKey, Instant, Node, Packet, Payload, PortId, Seq, TcpOptionsRepr, TcpRepr,
};

/// Initial sequence numbers of the scripted flow.
pub const CLIENT_ISN: u32 = 0xffff_fff0;
pub const SERVER_ISN: u32 = 5_000;

/// No options.
pub fn none() -> TcpOptionsRepr {
    TcpOptionsRepr::default()
}

/// The options of a SYN without a window scale.
pub fn unscaled() -> TcpOptionsRepr {
    TcpOptionsRepr { mss: Some(1460), sack_permitted: true, ..none() }
}

/// The options of a usual SYN.
pub fn modern() -> TcpOptionsRepr {
    TcpOptionsRepr { window_scale: Some(7), ..unscaled() }
}

/// A gateway, a clock and one flow.
pub struct Script {
    pub gateway: Gateway,
    pub now: Instant,
    pub up: FlowKey,
    pub wrong_checksums_allowed: bool,
}

impl Script {
    pub fn new(config: GatewayConfig) -> Self {
        let end = |net, port| SocketAddr::from(([10, 0, net, 1], port));
        Script {
            gateway: Gateway::new(config),
            now: Instant::ZERO,
            up: FlowKey::new(end(1, 40_000), end(0, 80)),
            wrong_checksums_allowed: false,
        }
    }

    /// Returns a script whose flow is established, with 3,000 bytes downloaded and acknowledged.
    pub fn established() -> Self {
        let mut script = Script::new(GatewayConfig::default());
        script.handshake(modern(), modern());
        for i in 0..3 {
            script.pass(WAN, script.from_server(1 + i * 1_000, 1, Flags::ACK, 500, none(), 1_000));
        }
        script.wait(100);
        script.arrive(RADIO, script.from_client(1, 3_001, Flags::ACK, 500, none(), 0));
        script.wait(500);
        script
    }

    /// Lets time pass. Returns the packets that leave meanwhile.
    pub fn wait(&mut self, ms: u64) -> Vec<(PortId, Packet)> {
        let end = self.now + Duration::from_millis(ms);
        let mut out = Vec::new();
        while let Some(at) = self.gateway.poll_timeout().filter(|at| *at <= end) {
            self.now = self.now.max(at);
            self.gateway.handle_timeout(self.now);
            let before = out.len();
            self.drain(&mut out);
            let progress =
                out.len() > before || self.gateway.poll_timeout().is_none_or(|next| next > self.now);
            assert!(progress, "the gateway asks for the same timeout again and again");
        }
        self.now = end;
        out
    }

    /// Delivers a packet to the gateway. Returns the packets that leave at once.
    pub fn arrive(&mut self, port: PortId, packet: Packet) -> Vec<(PortId, Packet)> {
        self.gateway.handle_packet(self.now, port, packet);
        let mut out = Vec::new();
        self.drain(&mut out);
        out
    }

    fn drain(&mut self, out: &mut Vec<(PortId, Packet)>) {
        while let Some(leaving) = self.gateway.poll_transmit(self.now) {
            let good = leaving.1.verify_checksum() || self.wrong_checksums_allowed;
            assert!(good, "a wrong checksum leaves: {leaving:?}");
            out.push(leaving);
        }
    }

    /// Delivers a packet. Returns the one packet that leaves at once by the other port.
    #[track_caller]
    pub fn pass(&mut self, port: PortId, packet: Packet) -> Packet {
        let mut out = self.arrive(port, packet);
        assert_eq!(out.len(), 1, "one packet should leave: {out:#?}");
        let (to, packet) = out.remove(0);
        assert_eq!(to, PortId(1 - port.0), "leaves by the wrong port");
        packet
    }

    /// Delivers a packet that must leave unchanged, byte for byte.
    #[track_caller]
    pub fn pass_unchanged(&mut self, port: PortId, packet: Packet) {
        let before = packet.to_vec();
        let after = self.pass(port, packet);
        assert_eq!(before, after.to_vec(), "edited: {after:?}");
    }

    /// Performs a handshake with these options in the SYNs. Returns its three packets. The windows are 17,520 and
    /// 60,000 bytes.
    pub fn handshake(&mut self, client: TcpOptionsRepr, server: TcpOptionsRepr) -> [Packet; 3] {
        self.handshake_over([1, 100], client, server)
    }

    /// Performs a handshake over paths with these round trips in milliseconds: to the server, to the client.
    pub fn handshake_over(
        &mut self,
        [wired_ms, radio_ms]: [u64; 2],
        client: TcpOptionsRepr,
        server: TcpOptionsRepr,
    ) -> [Packet; 3] {
        let first = self.pass(RADIO, self.from_client(0, 0, Flags::SYN, 17_520, client, 0));
        self.wait(wired_ms);
        let second = self.pass(WAN, self.from_server(0, 1, Flags::SYN | Flags::ACK, 60_000, server, 0));
        self.wait(radio_ms);
        let ack = self.from_client(1, 1, Flags::ACK, 17_520, none(), 0);
        let third = self.pass(RADIO, ack);
        [first, second, third]
    }

    /// Builds a packet of the client. `seq` and `ack` are relative to the initial sequence numbers.
    pub fn from_client(
        &self,
        seq: u32,
        ack: u32,
        flags: Flags,
        window: u16,
        options: TcpOptionsRepr,
        payload: usize,
    ) -> Packet {
        let ack = if flags.contains(Flags::ACK) { Seq(SERVER_ISN).add(ack) } else { Seq(0) };
        build(self.up, Seq(CLIENT_ISN).add(seq), ack, flags, window, options, payload)
    }

    /// Builds a packet of the server.
    pub fn from_server(
        &self,
        seq: u32,
        ack: u32,
        flags: Flags,
        window: u16,
        options: TcpOptionsRepr,
        payload: usize,
    ) -> Packet {
        let ack = if flags.contains(Flags::ACK) { Seq(CLIENT_ISN).add(ack) } else { Seq(0) };
        build(self.up.reversed(), Seq(SERVER_ISN).add(seq), ack, flags, window, options, payload)
    }
}

fn build(
    key: FlowKey,
    seq: Seq,
    ack: Seq,
    flags: Flags,
    window: u16,
    options: TcpOptionsRepr,
    payload: usize,
) -> Packet {
    let repr = TcpRepr { seq, ack, flags, window, urgent_pointer: 0, options };
    let bytes: Vec<u8> = (0..payload).map(|i| (seq.0 as u8).wrapping_add(i as u8)).collect();
    let mut packet = Packet::build_tcp(key, &repr, Payload::from(bytes));
    packet.complete_checksum();
    packet
}
