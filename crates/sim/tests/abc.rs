//! ABC: its router and sender together, and each of them with flows or routers that do not know ABC.

#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

mod kit;

use paceline_path::{
    AbcConfig, Aqm, CodelConfig, Delay, LinkConfig, QueueLimit, RateProcess, RateStep, TraceModel,
};
use paceline_sim::result::RunResult;
use paceline_sim::scenario::{Flow, PathLink, Scenario, TcpFlow, Transport};
use paceline_tcp::{Config, CongestionName};
use paceline_wire::{Duration, Rate};

use kit::checked;

use CongestionName::{Abc, Cubic};

/// The published set-up: 100 ms, 250 packets. Flows start ten seconds apart.
fn transfer(rate: &RateProcess, aqm: Aqm, flows: &[CongestionName]) -> RunResult {
    let delay = Delay::Constant(Duration::from_millis(50));
    let down = LinkConfig {
        rate: rate.clone(),
        queue: QueueLimit::Packets(250),
        aqm,
        delay: delay.clone(),
        ..LinkConfig::default()
    };
    let up = LinkConfig { delay, ..LinkConfig::default() };
    let host = |congestion| Config { congestion, ecn: true, ..Config::default() };
    let flows = flows.iter().enumerate().map(|(n, &congestion)| Flow {
        transport: Transport::Tcp(Box::new(TcpFlow {
            server: host(congestion),
            client: host(Cubic),
            ..TcpFlow::default()
        })),
        start: Duration::from_secs(10) * n as u64,
        ..Flow::default()
    });
    checked(Scenario {
        duration: Duration::from_secs(60),
        path: vec![PathLink { name: "link".into(), down, up }],
        flows: flows.collect(),
        ..Scenario::default()
    })
}

fn abc() -> Aqm {
    Aqm::Abc(AbcConfig::default())
}

/// Utilization, and p95 of the queue in milliseconds.
fn figures(result: &RunResult) -> (f64, f64) {
    let down = &result.links["link_down"];
    (down.utilization.unwrap(), down.queue_delay_ms.p95.unwrap())
}

fn steady(mbps: f64) -> RateProcess {
    RateProcess::Constant(Rate::from_mbps(mbps))
}

/// Eta is 0.98 of the link. The wait is at most that of the threshold.
#[test]
fn a_steady_link_is_filled_without_a_queue() {
    for mbps in [5.0, 20.0, 50.0] {
        let result = transfer(&steady(mbps), abc(), &[Abc]);
        let (utilization, p95) = figures(&result);
        println!("{mbps} Mbit/s: {utilization} of the link, {p95} ms");
        assert!(utilization > 0.93 && p95 < 30.0, "{mbps} Mbit/s: {utilization} of the link, {p95} ms");
        assert_eq!(result.links["link_down"].drops, 0);
    }
}

/// Additive increase (Eq. (3)) gives a late flow its share in time. The flow begins with 10 packets beside 166. Marks
/// alone would leave it there.
#[test]
fn a_second_flow_gains_on_the_first() {
    let result = transfer(&steady(20.0), abc(), &[Abc, Abc]);
    let shares: Vec<f64> = result.flows.iter().map(|flow| flow.goodput_mbps).collect();
    assert!(shares[1] > 0.3 * 20.0 && figures(&result).0 > 0.93, "{shares:?}");
}

/// The link falls to a fifth and comes back.
#[test]
fn steps_are_followed() {
    let at = |s, mbps| RateStep { at: Duration::from_secs(s), rate: Rate::from_mbps(mbps) };
    let steps = RateProcess::Steps(vec![at(0, 20.0), at(15, 4.0), at(30, 20.0), at(45, 40.0)]);
    let (abc_share, abc_p95) = figures(&transfer(&steps, abc(), &[Abc]));
    let codel = Aqm::Codel(CodelConfig::default());
    let (codel_share, codel_p95) = figures(&transfer(&steps, codel, &[Cubic]));
    println!("{abc_share} {abc_p95}, {codel_share} {codel_p95}");
    assert!(abc_share > 0.9 && abc_p95 < 60.0, "{abc_share} {abc_p95}");
    assert!(abc_share > codel_share, "{abc_share} {codel_share}");
}

/// The paper's claim, on our links: half as much again as CUBIC with CoDel, at similar delays.
#[test]
fn on_mobile_links_it_has_more_than_cubic_with_codel() {
    for seed in 1..=3 {
        let trace = TraceModel { seed, ..TraceModel::lte_driving() }.generate().unwrap();
        let trace = RateProcess::Opportunities(trace);
        let (share, p95) = figures(&transfer(&trace, abc(), &[Abc]));
        let (codel_share, codel_p95) =
            figures(&transfer(&trace, Aqm::Codel(CodelConfig::default()), &[Cubic]));
        let (cubic_share, cubic_p95) = figures(&transfer(&trace, Aqm::DropTail, &[Cubic]));
        let what = format!(
            "seed {seed}: ABC {share} {p95} ms, CUBIC+CoDel {codel_share} {codel_p95} ms, CUBIC {cubic_share} {cubic_p95} ms"
        );
        println!("{what}");
        assert!(share > 1.15 * codel_share && p95 < 0.6 * cubic_p95, "{what}");
    }
}

/// An ABC sender behind a router without ABC behaves like CUBIC. CUBIC behind an ABC router meets a plain queue.
#[test]
fn who_does_not_know_it_is_left_alone() {
    let plain = transfer(&steady(10.0), Aqm::DropTail, &[Cubic]);
    let unknown = transfer(&steady(10.0), abc(), &[Cubic]);
    assert_eq!((unknown.links["link_down"].marks, figures(&unknown)), (0, figures(&plain)));
    let alone = transfer(&steady(10.0), Aqm::DropTail, &[Abc]);
    let down = &alone.links["link_down"];
    println!("{:?} {:?}", figures(&alone), figures(&plain));
    assert!(figures(&alone).0 > 0.97 && down.marks == 0 && down.drops > 0, "{down:?}");
}
