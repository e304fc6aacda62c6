//! The packet path allocates nothing in steady state.

#![allow(clippy::unwrap_used)] // A test may panic.

use std::alloc::System;
use std::sync::Mutex;

use paceline_gateway::config::FlowMode;
use paceline_gateway::{Gateway, GatewayConfig, RADIO, WAN};
use paceline_wire::{Duration, Flags, FlowKey, Instant, Node, Packet, Payload, Seq, TcpOptionsRepr, TcpRepr};
use stats_alloc::{INSTRUMENTED_SYSTEM, Region, StatsAlloc};

#[global_allocator]
static ALLOCATOR: &StatsAlloc<System> = &INSTRUMENTED_SYSTEM;

/// What one test allocates is not to be counted by the other.
static ALONE: Mutex<()> = Mutex::new(());

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

    /// One millisecond.
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
    let _alone = ALONE.lock().unwrap();
    let mut flow = Download::open(GatewayConfig::default());
    let warm_up: u32 = (0..20_000).map(|_| flow.step()).sum();
    assert!(warm_up > 39_000, "{warm_up} packets left: the flow does not run");
    let region = Region::new(ALLOCATOR);
    let packets: u32 = (0..20_000).map(|_| flow.step()).sum();
    let change = region.change();
    assert_eq!(packets, 40_000);
    assert_eq!(change.allocations + change.reallocations, 0, "{change:?}");
}

#[test]
fn nothing_is_allocated_per_packet_of_a_split_flow() {
    let _alone = ALONE.lock().unwrap();
    let mut flow = Download::open(GatewayConfig { mode: FlowMode::Split, ..GatewayConfig::default() });
    let warm_up: u32 = (0..20_000).map(|_| flow.step()).sum();
    assert!(warm_up >= 20_000, "{warm_up} packets left: the flow does not run");
    assert_eq!(flow.gateway.split_flows(), 1);
    let region = Region::new(ALLOCATOR);
    let packets: u32 = (0..20_000).map(|_| flow.step()).sum();
    let change = region.change();
    assert!(packets >= 20_000, "{packets}");
    assert_eq!(change.allocations + change.reallocations, 0, "{change:?}");
}

/// What two hosts that want to make it keep as much as they can of a flow: single bytes beyond what the client takes, packets without data
/// behind them, reports of every other byte, acknowledgements that wait.
fn hoard(gateway: &mut Gateway, now: Instant, flow: u32) {
    let key = FlowKey {
        src: (std::net::Ipv4Addr::from(0x0a00_0000 + flow / 8), 1_024 + (flow % 8) as u16).into(),
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
    for n in 0..300 {
        send(WAN, key.reversed(), 1 + n, 1, Flags::ACK, none, 1);
        send(WAN, key.reversed(), 2 + n, 1, Flags::ACK, none, 0);
    }
    for n in 0..20 {
        let mut options = TcpOptionsRepr::default();
        options.sack_blocks.push(Seq(3 + 2 * n), Seq(4 + 2 * n));
        send(RADIO, key, 1, 1, Flags::ACK, options, 0);
    }
}

#[test]
fn what_is_kept_is_within_the_limit() {
    const LIMIT: usize = 16 << 20;
    let _alone = ALONE.lock().unwrap();
    let mut config = GatewayConfig::default();
    config.limits.max_buffer_bytes = LIMIT;
    let (mut gateway, now) = (Gateway::new(config), Instant::ZERO + Duration::from_secs(1));
    let region = Region::new(ALLOCATOR);
    for flow in 0..2_000 {
        hoard(&mut gateway, now, flow);
    }
    let change = region.change();
    let taken = change.bytes_allocated - change.bytes_deallocated;
    let flows = gateway.flows();
    // A flow's own state is bounded by the number of flows.
    let own = flows * 3_500;
    println!("{taken} bytes for {flows} flows, {} charged", gateway.buffered_bytes());
    assert!(flows > 1_000 && gateway.buffered_bytes() as usize <= LIMIT);
    assert!(taken <= LIMIT / 10 * 11 + own, "{taken} bytes for {flows} flows");
}
