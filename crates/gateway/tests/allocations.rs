//! In steady state the packet path allocates nothing.

#![allow(clippy::unwrap_used)] // A test may panic.

use allocation_counter::measure;
use paceline_gateway::config::{FlowMode, LimitsConfig};
use paceline_gateway::{Gateway, GatewayConfig, RADIO, WAN};
use paceline_wire::{Duration, Flags, FlowKey, Instant, Node, Packet, Payload, Seq, TcpOptionsRepr, TcpRepr};

const MSS: u32 = 1_448;

/// A download of one packet a millisecond, each acknowledged 50 ms later.
struct Download {
    gateway: Gateway,
    client: FlowKey,
    now: Instant,
    sent: u32,
    acked: u32,
}

impl Download {
    fn open(config: GatewayConfig) -> Self {
        let client = FlowKey { src: "10.0.0.2:40000".parse().unwrap(), dst: "10.0.1.1:80".parse().unwrap() };
        let gateway = Gateway::new(config);
        let mut flow = Download { gateway, client, now: Instant::ZERO, sent: 0, acked: 0 };
        let options = TcpOptionsRepr {
            mss: Some(1_460),
            window_scale: Some(7),
            sack_permitted: true,
            ..Default::default()
        };
        let syn = TcpRepr { flags: Flags::SYN, window: 64_000, options, ..Default::default() };
        let syn_ack = TcpRepr {
            flags: Flags::SYN | Flags::ACK,
            ack: Seq(1),
            window: 64_000,
            options,
            ..Default::default()
        };
        let up = Packet::build_tcp(client, &syn, Payload::Length(0));
        let down = Packet::build_tcp(client.reversed(), &syn_ack, Payload::Length(0));
        flow.exchange(RADIO, up);
        flow.exchange(WAN, down);
        let ack =
            TcpRepr { flags: Flags::ACK, seq: Seq(1), ack: Seq(1), window: 8_000, ..Default::default() };
        flow.exchange(RADIO, Packet::build_tcp(client, &ack, Payload::Length(0)));
        flow
    }

    fn exchange(&mut self, port: paceline_wire::PortId, packet: Packet) -> u32 {
        self.gateway.handle_packet(self.now, port, packet);
        self.gateway.handle_timeout(self.now);
        std::iter::from_fn(|| self.gateway.poll_transmit(self.now)).count() as u32
    }

    /// One millisecond passes.
    fn step(&mut self) -> u32 {
        self.now += Duration::from_millis(1);
        let data = TcpRepr {
            seq: Seq(1 + self.sent),
            ack: Seq(1),
            flags: Flags::ACK,
            window: 500,
            ..Default::default()
        };
        self.sent += MSS;
        let packet = Packet::build_tcp(self.client.reversed(), &data, Payload::Length(MSS));
        let mut out = self.exchange(WAN, packet);
        if self.sent > 50 * MSS {
            self.acked += MSS;
            let ack = TcpRepr {
                seq: Seq(1),
                ack: Seq(1 + self.acked),
                flags: Flags::ACK,
                window: 8_000,
                ..Default::default()
            };
            out += self.exchange(RADIO, Packet::build_tcp(self.client, &ack, Payload::Length(0)));
        }
        out
    }
}

#[test]
fn nothing_is_allocated_per_packet() {
    let mut flow = Download::open(GatewayConfig::default());
    let warm_up: u32 = (0..20_000).map(|_| flow.step()).sum();
    assert!(warm_up > 39_000, "{warm_up} packets left: the flow does not run");
    let mut packets = 0;
    let change = measure(|| packets = (0..20_000).map(|_| flow.step()).sum());
    assert_eq!(packets, 40_000);
    assert_eq!(change.count_total, 0, "{change:?}");
}

#[test]
fn nothing_is_allocated_per_packet_of_a_split_flow() {
    let mut flow = Download::open(GatewayConfig { mode: FlowMode::Split, ..GatewayConfig::default() });
    let warm_up: u32 = (0..20_000).map(|_| flow.step()).sum();
    assert!(warm_up >= 20_000, "{warm_up} packets left: the flow does not run");
    assert_eq!(flow.gateway.split_flows(), 1);
    let mut packets = 0;
    let change = measure(|| packets = (0..20_000).map(|_| flow.step()).sum());
    assert!(packets >= 20_000, "{packets}");
    assert_eq!(change.count_total, 0, "{change:?}");
}

/// Two hosts that make the gateway keep as much as they can of a flow. They send single bytes beyond the client's
/// window, packets without data behind them, reports of every other byte, and acknowledgements that wait.
fn hoard(gateway: &mut Gateway, now: Instant, flow: u32, a_subscriber: u32, pieces: u32) {
    let key = FlowKey {
        src: (
            std::net::Ipv4Addr::from(0x0a00_0000 + flow / a_subscriber),
            1_024 + (flow % a_subscriber) as u16,
        )
            .into(),
        dst: "10.9.0.1:443".parse().unwrap(),
    };
    let mut send = |port, key, seq, ack, flags, options, len| {
        let repr =
            TcpRepr { seq: Seq(seq), ack: Seq(ack), flags, window: 100, options, ..Default::default() };
        gateway.handle_packet(now, port, Packet::build_tcp(key, &repr, Payload::Length(len)));
        while gateway.poll_transmit(now).is_some() {}
    };
    let none = TcpOptionsRepr::default();
    let options = TcpOptionsRepr {
        mss: Some(1_460),
        window_scale: Some(0),
        sack_permitted: true,
        ..Default::default()
    };
    send(RADIO, key, 0, 0, Flags::SYN, options, 0);
    send(WAN, key.reversed(), 0, 1, Flags::SYN | Flags::ACK, options, 0);
    send(RADIO, key, 1, 1, Flags::ACK, none, 0);
    for n in 0..pieces {
        send(WAN, key.reversed(), 1 + n, 1, Flags::ACK, none, 1);
        send(WAN, key.reversed(), 2 + n, 1, Flags::ACK, none, 0);
    }
    for n in 0..pieces / 15 {
        let mut options = TcpOptionsRepr::default();
        options.sack_blocks.push(Seq(3 + 2 * n), Seq(4 + 2 * n));
        send(RADIO, key, 1, 1, Flags::ACK, options, 0);
    }
}

/// Opens this many flows, which hoard or are only open. Their memory must not exceed the pool, a tenth more, and each
/// flow's fixed part.
fn take(mode: FlowMode, flows: u32, a_subscriber: u32, hoards: bool) {
    const LIMIT: usize = 16 << 20;
    let mut config = GatewayConfig { mode, ..GatewayConfig::default() };
    config.limits.max_buffer_bytes = LIMIT;
    let (mut gateway, now) = (Gateway::new(config), Instant::ZERO + Duration::from_secs(1));
    let pieces = if hoards { 300 } else { 0 };
    let change = measure(|| (0..flows).for_each(|flow| hoard(&mut gateway, now, flow, a_subscriber, pieces)));
    let taken = change.bytes_current as usize;
    let (open, charged) = (gateway.flows(), gateway.buffered_bytes() as usize);
    println!("{mode:?}, {a_subscriber} a subscriber: {taken} bytes for {open} flows, {charged} charged");
    assert!(open >= flows as usize / 2 && charged <= LIMIT, "{open} flows, {charged} charged");
    let kept = if hoards { LIMIT / 10 * 11 } else { charged };
    assert!(taken <= kept + open * LimitsConfig::FLOW_BYTES, "{taken} bytes for {open} flows");
}

#[test]
fn what_is_kept_is_within_the_limit() {
    take(FlowMode::Transparent, 2_000, 8, true);
    take(FlowMode::Split, 2_000, 8, true);
}

#[test]
fn flows_that_keep_nothing_are_within_their_part() {
    for a_subscriber in [1, 8] {
        take(FlowMode::Transparent, 4_000, a_subscriber, false);
        take(FlowMode::Split, 4_000, a_subscriber, false);
    }
}
