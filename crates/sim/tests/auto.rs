//! `auto` on a few small cells, compared with a passed flow and with the fixed profiles. `paceline profiles` has all
//! cells.

#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

use paceline_gateway::GatewayConfig;
use paceline_gateway::auto::PathHistory;
use paceline_gateway::config::Profile;
use paceline_path::random::Probability;
use paceline_path::{Delay, LinkConfig, Loss, QueueLimit, RateProcess, RateStep};
use paceline_sim::scenario::{Flow, GatewayAt, Load, PathLink, Scenario, TcpFlow, Transport};
use paceline_sim::workload::{Reader, SizeRange};
use paceline_sim::{RunObserver, run_watched};
use paceline_tcp::{Config, CongestionName, ReceiveBuffer, ReceiveWindowName};
use paceline_wire::{Duration, Rate};

/// A path with one download.
#[derive(Clone, Copy)]
struct Cell {
    down: fn() -> RateProcess,
    up_mbps: f64,
    loss_percent: f64,
    size: Option<u64>,
    /// Window in segments, offered whole from the start. `None` is a buffer that Linux opens as data comes.
    window: Option<u32>,
    read_mbps: Option<f64>,
    seconds: u64,
    /// Congestion control of the server.
    congestion: CongestionName,
}

const PLAIN: Cell = Cell {
    down: || RateProcess::Constant(Rate::from_mbps(10.0)),
    up_mbps: 10.0,
    loss_percent: 0.0,
    size: None,
    window: None,
    read_mbps: None,
    seconds: 20,
    congestion: CongestionName::Cubic,
};

/// Results of a cell.
#[derive(Debug)]
struct Outcome {
    mbps: f64,
    delay_ms: f64,
    split: u64,
    repeated: u64,
    memory: PathHistory,
}

fn scenario(cell: Cell, gateway: Option<GatewayConfig>) -> Scenario {
    let ms = |ms| Delay::Constant(Duration::from_millis(ms));
    let link = |rate, delay, loss_percent: f64| LinkConfig {
        rate,
        delay,
        queue: QueueLimit::Packets(1_000),
        loss: Loss::Independent(Probability::from_fraction(loss_percent / 100.0)),
        ..LinkConfig::default()
    };
    let constant = |mbps| RateProcess::Constant(Rate::from_mbps(mbps));
    let wired = link(constant(1_000.0), ms(5), 0.0);
    let server = Config { congestion: cell.congestion, ..Config::default() };
    let mut client = Config::default();
    if let Some(segments) = cell.window {
        client.receive_buffer = ReceiveBuffer::Fixed(segments * 1_448);
        client.receive_window = ReceiveWindowName::Fixed;
    }
    let load = cell.size.map_or(Load::Bulk, |bytes| Load::Size(SizeRange { min: bytes, max: bytes }));
    let reader = cell.read_mbps.map_or(Reader::Eager, |mbps| Reader::Paced(Rate::from_mbps(mbps)));
    Scenario {
        duration: Duration::from_secs(cell.seconds),
        seed: 1,
        path: vec![
            PathLink { name: "wired".into(), down: wired.clone(), up: wired },
            PathLink {
                name: "radio".into(),
                down: link((cell.down)(), ms(45), cell.loss_percent),
                up: link(constant(cell.up_mbps), ms(45), 0.0),
            },
        ],
        gateway: gateway.map(|config| GatewayAt { links_before: 1, config }),
        flows: vec![Flow {
            transport: Transport::Tcp(Box::new(TcpFlow { server, client, load, reader })),
            ..Flow::default()
        }],
        checked: true,
        ..Scenario::default()
    }
}

#[derive(Default)]
struct Remembers(PathHistory);

impl RunObserver for Remembers {
    fn memory(&mut self, memory: &PathHistory) {
        self.0 = memory.clone();
    }
}

fn simulate(scenario: &Scenario) -> Outcome {
    let mut remembers = Remembers::default();
    let result = run_watched(scenario, Vec::new(), &mut remembers).unwrap();
    assert_eq!(result.findings, Vec::<String>::new());
    let counters = result.gateway.map(|gateway| gateway.counters).unwrap_or_default();
    Outcome {
        mbps: result.flows[0].goodput_mbps,
        delay_ms: result.path_delay_ms.p95.unwrap_or(0.0),
        split: counters.flows_split,
        repeated: counters.local_retransmissions,
        memory: remembers.0,
    }
}

/// Outcomes without a gateway, with a transparent one, with `auto` without memory, and with `auto` that has seen this
/// flow.
fn all(cell: Cell) -> [Outcome; 4] {
    let auto = Profile::Auto.config();
    let first = simulate(&scenario(cell, Some(auto.clone())));
    let later = Scenario { memory: first.memory.clone(), ..scenario(cell, Some(auto)) };
    [
        simulate(&scenario(cell, None)),
        simulate(&scenario(cell, Some(Profile::Full.config()))),
        first,
        simulate(&later),
    ]
}

#[test]
fn a_steady_link_is_served_as_by_the_transparent_mode() {
    let [pass, transparent, first, later] = all(PLAIN);
    for auto in [first, later] {
        assert!(auto.mbps >= 0.98 * pass.mbps && auto.mbps >= 0.99 * transparent.mbps, "{auto:?}");
        assert!(auto.delay_ms <= 1.2 * transparent.delay_ms && auto.split == 0, "{auto:?}");
    }
}

#[test]
fn a_varying_link_is_filled_with_a_queue_that_is_far_from_a_full_one() {
    let down = || {
        let rates = (0..200u64).map(|step| {
            let mbps = [8.0, 3.0, 11.0, 1.0, 6.0, 9.0, 2.0][(step * step % 7) as usize];
            let at = Duration::from_millis(250 * step);
            RateStep { at, rate: Rate::from_mbps(mbps) }
        });
        RateProcess::Steps(rates.collect())
    };
    let [pass, transparent, first, later] = all(Cell { down, seconds: 40, ..PLAIN });
    println!("{} / {} {} {}", pass.mbps, transparent.mbps, first.mbps, later.mbps);
    for auto in [first, later] {
        // The bound alone decides, as in the transparent mode.
        assert_eq!((auto.mbps, auto.delay_ms), (transparent.mbps, transparent.delay_ms));
        // Less goodput than without a gateway is the price of less than half of the delay.
        assert!(auto.mbps >= 0.9 * pass.mbps && auto.delay_ms < 0.5 * pass.delay_ms, "{auto:?} {pass:?}");
    }
}

#[test]
fn acks_on_a_slow_uplink_cost_nothing_and_later_flows_are_sent_by_the_clients_clock() {
    let [pass, _, first, later] = all(Cell { up_mbps: 0.05, size: Some(1_000_000), ..PLAIN });
    assert!(first.mbps >= 0.98 * pass.mbps && first.split == 0, "{first:?} {pass:?}");
    assert!(later.mbps >= 1.5 * pass.mbps && later.split == 1, "{later:?} {pass:?}");
}

#[test]
fn a_server_that_does_not_wait_for_acks_is_not_held_back_where_they_are_late() {
    // The whole window is offered at once. So the server does not wait for ACKs that open it.
    let cell = Cell {
        up_mbps: 0.05,
        size: Some(1_000_000),
        window: Some(2_896),
        congestion: CongestionName::Rre,
        ..PLAIN
    };
    let [pass, transparent, first, later] = all(cell);
    for auto in [transparent, first, later] {
        assert!(auto.mbps >= 0.95 * pass.mbps, "{auto:?} {pass:?}");
        // The server's data does not wait in the gateway instead of at the link, split or not.
        assert!(auto.delay_ms < pass.delay_ms + 60.0, "{auto:?} {pass:?}");
    }
}

#[test]
fn what_was_only_late_is_not_sent_again() {
    // The link stands still for seconds and then is very slow. The ACK of a probe covers one packet, and the next one
    // takes a while.
    let down = || {
        let rates = (0..8u64).flat_map(|outage| {
            let at = |s: f64| Duration::from_secs_f64(5.0 * outage as f64 + s);
            [(0.0, 8.0), (3.0, 0.001), (4.0, 0.15), (4.8, 2.0)]
                .map(|(s, mbps)| RateStep { at: at(s), rate: Rate::from_mbps(mbps) })
        });
        RateProcess::Steps(rates.collect())
    };
    let [_, transparent, _, _] = all(Cell { down, seconds: 40, ..PLAIN });
    // Each time there are ten copies, and the probes. Otherwise there would be a whole queue of copies, hundreds.
    assert!(transparent.repeated <= 8 * 25, "{transparent:?}");
}

#[test]
fn loss_on_a_long_path_is_repaired_by_a_sender_of_its_own_unless_the_window_is_small() {
    let down = || RateProcess::Constant(Rate::from_mbps(100.0));
    let long = Cell { down, loss_percent: 0.1, window: Some(870), seconds: 10, ..PLAIN };
    let [pass, transparent, first, later] = all(long);
    assert!(first.mbps >= pass.mbps && first.split == 0, "{first:?}");
    assert!(later.split == 1 && later.mbps >= transparent.mbps, "{later:?} {transparent:?}");
    // On a short path, or with a small window, the transparent mode is better, even if one packet in twenty is lost.
    for cell in [
        Cell { loss_percent: 5.0, window: Some(120), ..PLAIN },
        Cell { loss_percent: 1.0, window: Some(12), ..PLAIN },
    ] {
        let [pass, transparent, first, later] = all(cell);
        assert!(first.mbps >= pass.mbps, "{first:?}");
        // Another rate at the start meets other losses.
        assert!(later.split == 0 && later.mbps >= 0.95 * transparent.mbps, "{later:?} {transparent:?}");
    }
}

/// Without this, the flow had a seventh of the goodput. The client discarded what the schedule sent beyond the window,
/// and each discarded packet took a round trip to repair.
#[test]
fn a_slow_reader_without_sack_is_not_sent_more_than_it_has_room_for() {
    let goodput = |gateway| {
        let down = || RateProcess::Constant(Rate::from_mbps(2.12));
        let (window, read_mbps, congestion) = (Some(12), Some(0.776), CongestionName::Vegas);
        let cell = Cell { down, up_mbps: 0.215, window, read_mbps, congestion, seconds: 30, ..PLAIN };
        let mut scenario = scenario(cell, gateway);
        let delay = |ms| Delay::Constant(Duration::from_millis(ms));
        let [wired, radio] = &mut scenario.path[..] else { unreachable!() };
        (wired.down.delay, wired.up.delay) = (delay(11), delay(11));
        (radio.down.delay, radio.up.delay) = (delay(121), delay(121));
        if let Transport::Tcp(tcp) = &mut scenario.flows[0].transport {
            (tcp.client.sack, tcp.client.window_scaling) = (false, false);
        }
        simulate(&scenario).mbps
    };
    let (pass, with) = (goodput(None), goodput(Some(GatewayConfig::default())));
    assert!(with >= 0.98 * pass, "{with} {pass}");
}
