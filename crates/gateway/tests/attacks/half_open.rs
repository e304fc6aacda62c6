//! A flood of unanswered SYNs at 10 Mbit/s (scaled to the size of the table), while honest flows open. The honest
//! flows must be accelerated.

use std::net::{IpAddr, Ipv4Addr, SocketAddr};

use paceline_gateway::config::FlowMode;
use paceline_gateway::{Gateway, GatewayConfig, RADIO, WAN};
use paceline_path::random::Random;
use paceline_wire::{Duration, Flags, FlowKey, Instant, Node, Packet, PortId, TcpOptionsRepr, TcpRepr};

use crate::world::{header, segment};

/// An eighth of the default.
const MAX_FLOWS: usize = 8_192;
/// An eighth of the SYNs that 10 Mbit/s carry.
const SYNS_A_MS: u64 = 3;
/// One honest flow opens every 10 ms.
const HONEST: u64 = 400;

fn client(random: &mut Random) -> SocketAddr {
    let address = Ipv4Addr::from(0x0a10_0000 + random.below(1 << 16) as u32);
    SocketAddr::new(IpAddr::V4(address), 1_024 + random.below(60_000) as u16)
}

fn server(random: &mut Random) -> SocketAddr {
    SocketAddr::new(IpAddr::V4((0x2000_0000 + random.below(1 << 28) as u32).into()), 80)
}

/// Returns the honest flow `n`, whose server is in a busy network.
fn honest(n: u64) -> FlowKey {
    let client = Ipv4Addr::from(0x0a01_0000 + n as u32);
    let server = Ipv4Addr::from(0x0808_0800 + n as u32 % 250);
    FlowKey { src: (client, 40_000).into(), dst: (server, 443).into() }
}

struct Flood {
    gateway: Gateway,
    now: Instant,
}

impl Flood {
    fn arrive(&mut self, port: PortId, packet: Packet) {
        self.gateway.handle_packet(self.now, port, packet);
        while self.gateway.poll_transmit(self.now).is_some() {}
    }

    /// Sends a packet of an honest flow's handshake: its SYN, the SYN-ACK 60 ms later, and the ACK after another 60 ms.
    fn open(&mut self, n: u64, step: u64) {
        let (key, options) = (honest(n), TcpOptionsRepr { mss: Some(1_460), ..Default::default() });
        let (port, key, repr) = match step {
            0 => (RADIO, key, header(7, 0, Flags::SYN)),
            1 => (WAN, key.reversed(), header(9, 8, Flags::SYN | Flags::ACK)),
            _ => (RADIO, key, header(8, 10, Flags::ACK)),
        };
        let options = if step < 2 { options } else { TcpOptionsRepr::default() };
        self.arrive(port, segment(key, TcpRepr { options, ..repr }, &[]));
    }
}

/// Returns the percentage of honest flows that were accelerated.
fn accelerated(mode: FlowMode, mut syn: impl FnMut(&mut Random) -> (PortId, Packet)) -> u64 {
    let mut config = GatewayConfig { mode, ..GatewayConfig::default() };
    config.limits.max_flows = MAX_FLOWS;
    let mut flood = Flood { gateway: Gateway::new(config), now: Instant::ZERO + Duration::from_secs(1) };
    let mut random = Random::named(1, "half open");
    // The flood has filled the table when the first honest flow opens.
    let lead = MAX_FLOWS as u64 / SYNS_A_MS + 100;
    for ms in 0..lead + 10 * HONEST + 200 {
        flood.now += Duration::from_millis(1);
        flood.gateway.handle_timeout(flood.now);
        for _ in 0..SYNS_A_MS {
            let (port, packet) = syn(&mut random);
            flood.arrive(port, packet);
        }
        for step in 0..3 {
            let Some(since) = ms.checked_sub(lead + 60 * step).filter(|since| since % 10 == 0) else {
                continue;
            };
            if since / 10 < HONEST {
                flood.open(since / 10, step);
            }
        }
        assert!(flood.gateway.flows() <= MAX_FLOWS);
    }
    let page = flood.gateway.flow_statuses(0, usize::MAX / 4);
    let split = page.next.map(|next| flood.gateway.flow_statuses(next, usize::MAX / 4).items);
    let all = page.items.iter().chain(split.iter().flatten());
    let is_honest = |key: &FlowKey| key.src.port() == 40_000 && key.dst.port() == 443;
    let open =
        all.filter(|status| is_honest(&status.key) && status.stage == paceline_gateway::FlowStage::Open);
    100 * open.count() as u64 / HONEST
}

#[track_caller]
fn bears(syn: impl Fn(&mut Random) -> (PortId, Packet)) {
    for mode in [FlowMode::Transparent, FlowMode::Split] {
        let percent = accelerated(mode, &syn);
        assert!(percent >= 99, "{mode:?}: {percent} %");
    }
}

#[test]
fn syns_from_the_internet_do_not_fill_the_table() {
    bears(|random| {
        let key = FlowKey { src: server(random), dst: client(random) };
        (WAN, segment(key, header(random.below(1 << 32) as u32, 0, Flags::SYN), &[]))
    });
}

#[test]
fn syns_from_one_network_do_not_fill_the_table() {
    bears(|random| {
        let source = Ipv4Addr::from(0xc633_6400 + random.below(256) as u32);
        let key = FlowKey { src: (source, random.below(60_000) as u16).into(), dst: client(random) };
        (WAN, segment(key, header(random.below(1 << 32) as u32, 0, Flags::SYN), &[]))
    });
}

#[test]
fn syns_with_addresses_of_many_clients_do_not_fill_the_table() {
    bears(|random| {
        let key = FlowKey { src: client(random), dst: server(random) };
        (RADIO, segment(key, header(random.below(1 << 32) as u32, 0, Flags::SYN), &[]))
    });
}

/// No host opens a connection with a FIN. The gateway does not even remember it.
#[test]
fn syns_with_a_fin_are_none() {
    bears(|random| {
        let key = FlowKey { src: server(random), dst: client(random) };
        (WAN, segment(key, header(random.below(1 << 32) as u32, 0, Flags::SYN | Flags::FIN), &[]))
    });
}

/// The number of flows that pass and are remembered, so that they pass again, is limited.
#[test]
fn syns_that_must_pass_are_taken_for_no_others() {
    bears(|random| {
        let key = FlowKey { src: client(random), dst: server(random) };
        let options = TcpOptionsRepr { extra: &[30, 4, 1, 1], ..Default::default() };
        (RADIO, segment(key, TcpRepr { options, ..header(random.below(1 << 32) as u32, 0, Flags::SYN) }, &[]))
    });
}

/// A SYN that the client's port refuses is removed at once.
#[test]
fn what_is_refused_is_forgotten() {
    let mut flood = Flood { gateway: Gateway::new(GatewayConfig::default()), now: Instant::ZERO };
    let key = honest(1);
    flood.arrive(WAN, segment(key.reversed(), header(5, 0, Flags::SYN), &[]));
    flood.arrive(RADIO, segment(key, header(0, 7, Flags::RST | Flags::ACK), &[]));
    assert_eq!(flood.gateway.flows(), 1, "not the number");
    flood.arrive(RADIO, segment(key, header(0, 6, Flags::RST | Flags::ACK), &[]));
    assert_eq!(flood.gateway.flows(), 0);
}

/// A SYN with the client's address and an answer to it do not end an active flow.
#[test]
fn a_syn_and_its_answer_end_no_flow() {
    let mut flood = Flood { gateway: Gateway::new(GatewayConfig::default()), now: Instant::ZERO };
    let key = honest(1);
    (0..3).for_each(|step| flood.open(1, step));
    flood.arrive(RADIO, segment(key, header(1_000, 0, Flags::SYN), &[]));
    flood.arrive(WAN, segment(key.reversed(), header(2_000, 1_001, Flags::SYN | Flags::ACK), &[]));
    let stage = |flood: &Flood| flood.gateway.flow_statuses(0, 10).items[0].stage;
    assert_eq!(stage(&flood), paceline_gateway::FlowStage::Open);
    flood.arrive(WAN, segment(key.reversed(), header(10, 8, Flags::ACK), &[1; 100]));
    // Too late: the server has sent data meanwhile.
    flood.arrive(RADIO, segment(key, header(1_001, 2_001, Flags::ACK), &[]));
    assert_eq!(stage(&flood), paceline_gateway::FlowStage::Open);
    flood.arrive(RADIO, segment(key, header(1_000, 0, Flags::SYN), &[]));
    flood.arrive(WAN, segment(key.reversed(), header(2_000, 1_001, Flags::SYN | Flags::ACK), &[]));
    flood.arrive(RADIO, segment(key, header(1_001, 2_001, Flags::ACK), &[]));
    assert_eq!(stage(&flood), paceline_gateway::FlowStage::Replaced);
}

/// The state for an upgrade does not grow with a flood, and it contains the newest handshakes.
#[test]
fn a_flood_does_not_go_along_to_another_process() {
    let config = || {
        let mut config = GatewayConfig::default();
        config.limits.max_flows = MAX_FLOWS;
        config
    };
    let start = Instant::ZERO + Duration::from_secs(1);
    let mut flood = Flood { gateway: Gateway::new(config()), now: start };
    let mut random = Random::named(1, "handover");
    (0..3).for_each(|step| flood.open(1, step));
    for _ in 0..2 * MAX_FLOWS {
        flood.now += Duration::from_micros(300);
        let key = FlowKey { src: server(&mut random), dst: client(&mut random) };
        flood.arrive(WAN, segment(key, header(7, 0, Flags::SYN), &[]));
    }
    flood.open(2, 0);
    flood.open(2, 1);
    let written = |gateway: &Gateway| rmp_serde::to_vec_named(&gateway.state()).unwrap();
    let before = written(&flood.gateway).len();
    flood.gateway.prepare_handover(flood.now);
    let state = written(&flood.gateway);
    assert_eq!(flood.gateway.flows(), 1_025);
    assert!(state.len() < before / 6, "{} of {before} bytes", state.len());
    let taken = rmp_serde::from_slice(&state).unwrap();
    flood.gateway = Gateway::take_over(config(), Box::new(()), taken, Vec::new());
    flood.open(2, 2);
    for n in [1, 2] {
        let stage = flood
            .gateway
            .flow_statuses(0, usize::MAX / 4)
            .items
            .into_iter()
            .find(|flow| flow.key == honest(n));
        assert_eq!(stage.map(|flow| flow.stage), Some(paceline_gateway::FlowStage::Open), "{n}");
    }
}
