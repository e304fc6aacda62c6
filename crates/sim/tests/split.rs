//! Split flows: a server with CUBIC, a gateway with its own sending algorithm, a client with a small window.

#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

use paceline_gateway::GatewayConfig;
use paceline_gateway::config::{FlowMode, QueueBoundMode};
use paceline_gateway::split::SenderConfig;
use paceline_path::random::Probability;
use paceline_path::{Delay, LinkConfig, Loss, OutageEffect, OutageWindow, Outages, QueueLimit, RateProcess};
use paceline_sim::result::Direction;
use paceline_sim::run;
use paceline_sim::scenario::{Flow, GatewayAt, PathLink, Scenario, TcpFlow, Transport};
use paceline_tcp::{Config, CongestionName, ReceiveBuffer, ReductionName};
use paceline_wire::{Duration, Rate};

const MBPS: f64 = 20.0;
const RADIO_RTT_MS: u64 = 100;
const SEGMENT_BYTES: u32 = 1_448;
/// Bytes of 20 Mbit/s in 100 ms, in segments.
const BDP: u32 = 167;
const BUFFER: ReceiveBuffer = ReceiveBuffer::Auto { initial: 65_536, max: 3_000_000 };

fn scenario(sender: Option<SenderConfig>, window_segments: u32, loss_percent: f64) -> Scenario {
    let wired = LinkConfig {
        rate: RateProcess::Constant(Rate::from_mbps(1_000.0)),
        delay: Delay::Constant(Duration::from_millis(5)),
        ..LinkConfig::default()
    };
    let delay = Delay::Constant(Duration::from_millis(RADIO_RTT_MS / 2));
    let down = LinkConfig {
        rate: RateProcess::Constant(Rate::from_mbps(MBPS)),
        queue: QueueLimit::Packets(3_000),
        delay: delay.clone(),
        loss: Loss::Independent(Probability::from_fraction(loss_percent / 100.0)),
        ..LinkConfig::default()
    };
    let up = LinkConfig { delay, ..LinkConfig::default() };
    let client =
        Config { receive_buffer: ReceiveBuffer::Fixed(window_segments * SEGMENT_BYTES), ..Config::default() };
    let gateway = sender.map(|sender| {
        let mut config = GatewayConfig { mode: FlowMode::Split, ..GatewayConfig::default() };
        config.split.sender = sender;
        GatewayAt { links_before: 1, config }
    });
    Scenario {
        duration: Duration::from_secs(60),
        seed: 1,
        path: vec![
            PathLink { name: "wired".into(), down: wired.clone(), up: wired },
            PathLink { name: "radio".into(), down, up },
        ],
        gateway,
        flows: vec![Flow {
            transport: Transport::Tcp(Box::new(TcpFlow { client, ..TcpFlow::default() })),
            ..Flow::default()
        }],
        checked: true,
        patience: Duration::ZERO,
        ..Scenario::default()
    }
}

/// Share of the link's payload rate, and the 95th percentile of the path's queueing delay in milliseconds.
fn share(scenario: &Scenario) -> (f64, f64) {
    let result = run(scenario).unwrap();
    assert_eq!(result.findings, Vec::<String>::new());
    let share = result.flows[0].goodput_mbps / (MBPS * f64::from(SEGMENT_BYTES) / 1_500.0);
    (share, result.path_delay_ms.p95.unwrap_or(0.0))
}

#[test]
fn a_split_flow_fills_a_lossy_link_that_the_server_alone_does_not() {
    let sender = SenderConfig { rate_reduction: ReductionName::Qarr, ..SenderConfig::default() };
    let (with, delay_ms) = share(&scenario(Some(sender), BDP, 0.1));
    let (without, _) = share(&scenario(None, BDP, 0.1));
    println!("{with} of the link and {delay_ms} ms with it, {without} without");
    assert!(with > 0.93 && with > 1.1 * without, "{with} with, {without} without");
    // The bound's target is 8 ms before the link. The window's target is 20 ms before the sender.
    assert!(delay_ms < 30.0, "{delay_ms} ms");
}

/// 80 ms to the gateway and 80 ms behind it, and 20 Mbit/s each way over the radio. Before the gateway, `lost_percent`
/// of the packets in `direction` are lost.
fn wired_losses(split: bool, direction: Direction, lost_percent: f64) -> Scenario {
    let mut scenario = scenario(split.then(SenderConfig::default), 20 * BDP, 0.0);
    let rtt = Delay::Constant(Duration::from_millis(40));
    let [wired, radio] = &mut scenario.path[..] else { unreachable!("two links") };
    radio.up.rate = radio.down.rate.clone();
    for link in [&mut wired.down, &mut wired.up, &mut radio.down, &mut radio.up] {
        link.delay = rtt.clone();
    }
    let lossy = if direction == Direction::Down { &mut wired.down } else { &mut wired.up };
    lossy.loss = Loss::Independent(Probability::from_fraction(lost_percent / 100.0));
    let bbr = Config { congestion: CongestionName::Bbr, ..Config::default() };
    let host = Config { receive_buffer: BUFFER, ..bbr };
    let tcp = TcpFlow { client: host, server: host, ..TcpFlow::default() };
    scenario.flows = vec![Flow { direction, transport: Transport::Tcp(Box::new(tcp)), ..Flow::default() }];
    scenario.duration = Duration::from_secs(20);
    scenario
}

#[test]
fn losses_before_the_gateway_cost_a_split_download_nothing() {
    for lost_percent in [0.1, 1.0, 2.0] {
        let (with, delay_ms) = share(&wired_losses(true, Direction::Down, lost_percent));
        let (without, _) = share(&wired_losses(false, Direction::Down, lost_percent));
        println!("{lost_percent} %: {with} of the link and {delay_ms} ms with it, {without} without");
        assert!(with >= 0.98 * without, "{lost_percent} %: {with} with, {without} without");
        // At most the delay of the longest gaps: two round trips of the wired side, and the data held back by a longer
        // gap.
        assert!(delay_ms < 3.0 * 80.0, "{lost_percent} %: {delay_ms} ms");
    }
}

/// A server whose SYN was sent twice (Karn) and which only sends gave no measurement. The gateway showed it the window
/// for a server next door.
#[test]
fn a_split_download_whose_syn_was_lost_has_the_link() {
    for timestamps in [true, false] {
        let of = |is_lost: bool| {
            let mut scenario = wired_losses(true, Direction::Down, 0.0);
            let window = OutageWindow { start: Duration::ZERO, end: Duration::from_millis(200) };
            let windows = if is_lost { vec![window] } else { Vec::new() };
            let effect = OutageEffect::Drop;
            scenario.path[0].up.outage = Outages { windows, effect, ..Outages::default() };
            let Transport::Tcp(tcp) = &mut scenario.flows[0].transport else { unreachable!("a TCP flow") };
            tcp.client.timestamps = timestamps;
            share(&scenario).0
        };
        let (lost, whole) = (of(true), of(false));
        println!("timestamps {timestamps}: {lost} of the link, {whole} if no SYN is lost");
        // The transfer begins one second later, of twenty.
        assert!(
            lost >= 0.9 * whole,
            "timestamps {timestamps}: {lost} of the link, {whole} if no SYN is lost"
        );
    }
}

#[test]
fn a_split_upload_is_no_slower_than_the_clients_own_sender() {
    for lost_percent in [0.5, 2.0] {
        let (with, _) = share(&wired_losses(true, Direction::Up, lost_percent));
        let (without, _) = share(&wired_losses(false, Direction::Up, lost_percent));
        println!("{lost_percent} %: {with} of the link with it, {without} without");
        assert!(with >= 0.98 * without, "{lost_percent} %: {with} with, {without} without");
    }
}

/// A bulk upload over an uplink with a second of buffer. The gateway acknowledges it, so the window is the gateway's
/// own.
#[test]
fn a_split_upload_keeps_the_modems_buffer_short() {
    let upload = |uploads: QueueBoundMode, mbps: f64| {
        let mut scenario = wired_losses(true, Direction::Up, 0.0);
        if let Some(gateway) = &mut scenario.gateway {
            gateway.config.queue_bound.uploads = uploads;
        }
        let rate = Rate::from_mbps(mbps);
        scenario.path[1].up.rate = RateProcess::Constant(rate);
        scenario.path[1].up.queue = QueueLimit::Bytes(rate.bytes_in(Duration::from_secs(1)));
        let cubic = Config { receive_buffer: BUFFER, ..Config::default() };
        let tcp = TcpFlow { client: cubic, server: cubic, ..TcpFlow::default() };
        scenario.flows[0].transport = Transport::Tcp(Box::new(tcp));
        let result = run(&scenario).unwrap();
        assert_eq!(result.findings, Vec::<String>::new());
        let queue = result.links["radio_up"].queue_delay_ms;
        (result.flows[0].goodput_mbps, queue.p50.unwrap_or(0.0))
    };
    for mbps in [1.0, 5.0, 20.0] {
        let (before, long_ms) = upload(QueueBoundMode::None, mbps);
        let (after, short_ms) = upload(QueueBoundMode::Adaptive, mbps);
        println!(
            "{mbps} Mbit/s: {before} at {long_ms} ms without the bound, {after} at {short_ms} ms with it"
        );
        assert!(after >= 0.95 * before && short_ms < long_ms / 5.0, "{mbps} Mbit/s: {short_ms} ms");
    }
}
