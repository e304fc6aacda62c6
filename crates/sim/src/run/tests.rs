use paceline_gateway::GatewayConfig;
use paceline_path::random::Probability;
use paceline_path::{Delay, LinkConfig, Loss, QueueLimit, RateProcess};
use paceline_wire::Rate;

use paceline_tcp::{Config, ReceiveBuffer};

use super::*;
use crate::scenario::{GatewayAt, PathLink};
use crate::workload::{Reader, SizeRange};

fn link(name: &str, mbps: f64, delay_ms: u64, loss_ppm: u64) -> PathLink {
    let config = LinkConfig {
        rate: RateProcess::Constant(Rate::from_mbps(mbps)),
        queue: QueueLimit::Packets(50),
        delay: Delay::Constant(Duration::from_millis(delay_ms)),
        loss: Loss::Independent(Probability::from_ppm(loss_ppm)),
        ..LinkConfig::default()
    };
    PathLink { name: name.into(), down: config.clone(), up: config }
}

fn datagrams(mbps: f64, direction: Direction) -> Flow {
    let transport = Transport::Udp { rate: Rate::from_mbps(mbps), ip_bytes: 1_000 };
    Flow { direction, transport, ..Flow::default() }
}

#[test]
fn datagrams_fill_what_the_links_leave_them() {
    let scenario = Scenario {
        path: vec![link("wired", 100.0, 5, 0), link("radio", 10.0, 20, 10_000)],
        gateway: Some(GatewayAt { links_before: 1, config: GatewayConfig::default() }),
        flows: vec![
            Flow { count: 2, ..datagrams(8.0, Direction::Down) },
            datagrams(2.0, Direction::Up),
            Flow { client: 1, ipv6: true, ..datagrams(0.5, Direction::Down) },
        ],
        ..Scenario::default()
    };
    let result = run(&scenario).unwrap();
    assert_eq!(run(&scenario).unwrap(), result);
    let down: f64 = result.flows[..2].iter().chain(&result.flows[3..]).map(|f| f.goodput_mbps).sum();
    assert!((9.8..9.95).contains(&down), "{down} Mbit/s of 10, less 1 %");
    assert!((1.94..2.0).contains(&result.flows[2].goodput_mbps));
    let radio = &result.links["radio_down"];
    assert!(radio.utilization.unwrap() > 0.99 && radio.drops_by_cause["queue"] > 0);
    assert!(radio.drops_by_cause["loss"] > 80 && result.links["wired_down"].drops == 0);
    let queue_ms = radio.queue_delay_ms.p50.unwrap();
    assert!((35.0..41.0).contains(&queue_ms), "50 packets of 1,000 bytes at 10 Mbit/s: {queue_ms}");
    assert!(result.gateway.unwrap().counters.passed_not_tcp > 20_000);
}

/// An idle path of 50 ms, and then one whose answers are lost for a second of ten.
#[test]
fn a_ping_measures_the_path_through_the_gateway_and_lost_answers_are_missing() {
    let ping = Flow { transport: Transport::Ping, interval: Duration::from_millis(100), ..Flow::default() };
    let mut scenario = Scenario {
        path: vec![link("wired", 100.0, 5, 0), link("radio", 10.0, 20, 0)],
        gateway: Some(GatewayAt { links_before: 1, config: GatewayConfig::default() }),
        flows: vec![ping, Flow { ipv6: true, transport: Transport::Ping, ..Flow::default() }],
        duration: Duration::from_secs(10),
        ..Scenario::default()
    };
    let idle = run(&scenario).unwrap();
    // 84 bytes of IP: as `ping` sends them. What is sent last is not answered in time. Over IPv6 there are 104.
    assert_eq!(idle.flows.iter().map(|flow| flow.bytes).collect::<Vec<_>>(), [100 * 84, 10 * 104]);
    assert!(
        idle.flows.iter().all(|flow| (50.0..50.4).contains(&flow.rtt_ms.p95.unwrap())),
        "{:?}",
        idle.flows
    );
    assert_eq!(idle.gateway.unwrap().counters.passed_not_tcp, 2 * 110);
    scenario.path[1].down.loss = Loss::Independent(Probability::from_fraction(0.3));
    let lossy = run(&scenario).unwrap();
    assert!((55 * 84..85 * 84).contains(&lossy.flows[0].bytes), "{}", lossy.flows[0].bytes);
}

#[test]
fn what_cannot_be_is_refused() {
    assert_eq!(run(&Scenario::default()), Err(ScenarioError::NoPath));
    let path = vec![link("radio", 10.0, 20, 0)];
    let gateway = Some(GatewayAt { links_before: 1, config: GatewayConfig::default() });
    let outside = Scenario { path: path.clone(), gateway, ..Scenario::default() };
    assert_eq!(run(&outside), Err(ScenarioError::GatewayOutsidePath));
    let mut none = path;
    none[0].down.queue = QueueLimit::Packets(0);
    let result = run(&Scenario { path: none, ..Scenario::default() });
    assert!(matches!(result, Err(ScenarioError::Link(name, _)) if name == "radio_down"));
}

fn tcp(load: Load) -> Flow {
    let transport = Transport::Tcp(Box::new(TcpFlow { load, ..TcpFlow::default() }));
    Flow { transport, ..Flow::default() }
}

fn size(bytes: u64) -> Load {
    Load::Size(SizeRange::exactly(bytes))
}

/// 20 Mbit/s, 50 ms, a queue of 50 packets.
fn tcp_scenario(loss_ppm: u64, flows: Vec<Flow>) -> Scenario {
    let path = vec![link("wired", 1_000.0, 5, 0), link("radio", 20.0, 20, loss_ppm)];
    Scenario { path, flows, checked: true, ..Scenario::default() }
}

#[track_caller]
fn completed(result: &RunResult) {
    assert_eq!(result.findings, [""; 0]);
    for flow in &result.flows {
        assert!(flow.completed, "{flow:?}");
    }
}

#[test]
fn a_download_arrives_whole_with_and_without_loss() {
    for loss_ppm in [0, 1_000, 20_000] {
        let scenario = tcp_scenario(loss_ppm, vec![tcp(size(5_000_000))]);
        let result = run(&scenario).unwrap();
        assert_eq!(run(&scenario).unwrap(), result);
        completed(&result);
        let flow = &result.flows[0];
        assert_eq!(flow.bytes, 5_000_000);
        assert!(flow.completion_s.unwrap() > 2.0, "faster than the link");
        assert!(flow.goodput_mbps > if loss_ppm == 0 { 14.0 } else { 1.0 }, "{flow:?}");
        assert_eq!(flow.retransmitted_segments > 0, loss_ppm > 0 || flow.retransmitted_segments > 0);
    }
}

#[test]
fn a_bulk_flow_fills_the_link_until_the_end() {
    let result = run(&tcp_scenario(0, vec![tcp(Load::Bulk)])).unwrap();
    completed(&result);
    let flow = &result.flows[0];
    assert!((18.0..19.4).contains(&flow.goodput_mbps), "{flow:?}");
    assert_eq!(flow.completion_s, Some(10.0));
    assert!(result.links["radio_down"].utilization.unwrap() > 0.93);
    assert!(flow.rtt_ms.p50.unwrap() > 50.0);
}

#[test]
fn objects_of_a_page_come_one_after_the_other_beside_an_upload() {
    let load = Load::Size(SizeRange { min: 8_000, max: 64_000 });
    let interval = Duration::from_millis(50);
    let page = Flow { name: "object".into(), count: 12, sequential: true, interval, ..tcp(load) };
    let upload = Flow { name: "upload".into(), direction: Direction::Up, ..tcp(size(2_000_000)) };
    let result = run(&tcp_scenario(0, vec![page, upload])).unwrap();
    completed(&result);
    assert_eq!(result.flows.len(), 13);
    let objects = &result.flows[..12];
    for pair in objects.windows(2) {
        let ended = pair[0].start_s + pair[0].completion_s.unwrap();
        assert!(pair[1].start_s > ended, "{pair:?}");
    }
    assert!(objects.iter().any(|object| object.bytes != objects[0].bytes));
    assert_eq!((result.flows[12].bytes, result.flows[12].direction), (2_000_000, Direction::Up));
}

#[test]
fn on_and_off_leaves_the_link_alone_when_off() {
    let load = Load::OnOff { on: Duration::from_secs(1), off: Duration::from_secs(4) };
    let result = run(&tcp_scenario(0, vec![tcp(load)])).unwrap();
    completed(&result);
    let utilization = result.links["radio_down"].utilization.unwrap();
    assert!((0.1..0.4).contains(&utilization), "{utilization}");
    assert!(result.flows[0].longest_gap_s > 2.0);
}

#[test]
fn a_slow_reader_closes_the_window_and_nothing_is_lost() {
    let reader = Reader::Paced(Rate::from_mbps(2.0));
    let client = Config { receive_buffer: ReceiveBuffer::Fixed(64_000), ..Config::default() };
    let flow = TcpFlow { load: size(1_000_000), reader, client, ..TcpFlow::default() };
    let paced = Flow { transport: Transport::Tcp(Box::new(flow)), ..Flow::default() };
    let result = run(&tcp_scenario(0, vec![paced])).unwrap();
    completed(&result);
    assert!((1.8..2.1).contains(&result.flows[0].goodput_mbps), "{:?}", result.flows[0]);
    assert_eq!(result.links["radio_down"].drops, 0);
}

#[test]
fn the_gateway_stands_between_the_links() {
    let client =
        Config { receive_buffer: ReceiveBuffer::Fixed(17_000), window_scaling: false, ..Config::default() };
    let flow = TcpFlow { client, ..TcpFlow::default() };
    let small = Flow { transport: Transport::Tcp(Box::new(flow)), ..Flow::default() };
    let mut scenario = tcp_scenario(0, vec![small]);
    let without = run(&scenario).unwrap();
    completed(&without);
    assert!(without.flows[0].goodput_mbps < 3.0);
    scenario.gateway = Some(GatewayAt { links_before: 1, config: GatewayConfig::default() });
    scenario.checked = false;
    let with = run(&scenario).unwrap();
    completed(&with);
    assert!(with.flows[0].goodput_mbps > without.flows[0].goodput_mbps, "{:?}", with.flows[0]);
    let gateway = with.gateway.unwrap();
    assert_eq!(gateway.counters.flows_accelerated, 1);
    assert!(gateway.sojourn_ms.p95.is_some());
}

#[test]
fn who_looks_on_sees_each_sender_and_may_end_the_run() {
    struct Eyes {
        seen: Vec<(usize, u64)>,
        until: Instant,
    }
    impl RunObserver for Eyes {
        fn sender(&mut self, _now: Instant, transfer: usize, status: &Status, _read_bytes: u64) {
            self.seen.push((transfer, status.sent.data_segs_out));
        }

        fn goes_on(&mut self, now: Instant) -> bool {
            now < self.until
        }
    }
    let scenario = Scenario {
        path: vec![link("radio", 10.0, 20, 0)],
        flows: vec![Flow { count: 2, ..Flow::default() }, Flow::default()],
        ..Scenario::default()
    };
    let mut eyes = Eyes { seen: Vec::new(), until: Instant::ZERO + Duration::from_secs(2) };
    let given_up = run_watched(&scenario, Vec::new(), &mut eyes);
    assert_eq!(given_up.unwrap_err(), ScenarioError::GivenUp);
    for transfer in 0..3 {
        let mut of = eyes.seen.iter().filter(|(seen, _)| *seen == transfer);
        assert!(of.clone().count() >= 18 && of.next_back().is_some_and(|(_, segments)| *segments > 100));
    }
}

#[test]
fn beside_others_a_run_is_the_same() {
    let scenarios: Vec<Scenario> =
        (1..9).map(|seed| Scenario { seed, ..tcp_scenario(5_000, vec![tcp(size(300_000))]) }).collect();
    let alone: Vec<RunResult> = scenarios.iter().map(|scenario| run(scenario).unwrap()).collect();
    assert_eq!(run_all(&scenarios).unwrap(), alone);
    assert_ne!(alone[0].flows, alone[1].flows);
}

#[test]
fn a_flow_that_cannot_end_says_so() {
    let mut scenario = tcp_scenario(0, vec![tcp(size(100_000))]);
    scenario.path[1].down.loss = Loss::Independent(Probability::ONE);
    scenario.patience = Duration::from_secs(20);
    let result = run(&scenario).unwrap();
    assert_eq!(result.flows[0].error.as_deref(), Some("not over at 30.0 s, last read at 0.0 s"));
    assert!(!result.flows[0].completed && result.flows[0].completion_s.is_none());
}
