//! A seed draws paths, faults, a gateway, algorithms and transfers. Then the faults stop. Every transfer must end
//! whole, and the checker must find nothing (safety, then liveness).
//!
//! A failure prints its seed. `SWARM_SEED=n cargo test -p paceline-sim --test swarm` replays it. `SWARM_RUNS=n` draws
//! more seeds than a test run does. `SWARM_FROM=n` begins with another seed.

#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

use std::ops::Range;

use paceline_gateway::GatewayConfig;
use paceline_gateway::config::{
    FlowMode, QueueBoundMode, RetransmissionMode, RttModulationMode, ScheduleMode, ShareConfig,
    VirtualWindowMode,
};
use paceline_gateway::split::SenderConfig;
use paceline_path::random::{Probability, Random};
use paceline_sim::faults::draw_link;
use paceline_sim::result::Direction;
use paceline_sim::scenario::{Flow, GatewayAt, Load, PathLink, Scenario, TcpFlow, Transport};
use paceline_sim::workload::{Reader, SizeRange};
use paceline_sim::{run, seed_of};
use paceline_tcp::{
    Config, CongestionName, DetectionName, HystartName, ReceiveBuffer, ReductionName, SendBufferName,
};
use paceline_wire::{Duration, Instant, Rate};

#[path = "swarm/acks.rs"]
mod acks;
#[path = "swarm/attacker.rs"]
mod attacker;
#[path = "swarm/covered.rs"]
mod covered;

const RUNS: u64 = 100;
const BEGUN_LATER: u64 = 50;
const FAULTS_LAST: Duration = Duration::from_secs(30);
/// When the faults stop, timeouts may have doubled to two minutes. The slowest link needs two minutes for the largest
/// transfers. If the path has become longer, Vegas keeps two segments in flight. Each of four sequential transfers then
/// takes an hour (seed 120821).
const PATIENCE: Duration = Duration::from_secs(20_000);

#[test]
fn every_transfer_ends_once_the_faults_stop() {
    let seeds = seeds();
    let replays = seeds.end - seeds.start == 1;
    let mut failures = Vec::new();
    for seed in seeds {
        let scenario = draw(seed);
        if replays {
            println!("{scenario:#?}");
        }
        let result = run(&scenario).unwrap();
        let errors = result.flows.iter().filter_map(|flow| flow.error.as_ref());
        let unfinished: Vec<_> = errors.collect();
        if !result.findings.is_empty() || !unfinished.is_empty() {
            failures.push(format!("SWARM_SEED={seed}: {:?} {unfinished:?}", result.findings));
        }
    }
    assert!(failures.is_empty(), "{}", failures.join("\n"));
}

#[test]
fn a_seed_replays() {
    for seed in 1..4 {
        assert_eq!(run(&draw(seed)).unwrap(), run(&draw(seed)).unwrap());
    }
}

/// The clock of a running gateway counts from the machine's start. Within 50 days a timestamp of 32 bits wraps. Reports
/// and counters are the same at any time, so what is seen here happens on live packets, too.
#[test]
fn results_do_not_depend_on_the_time_at_which_a_run_begins() {
    let mut failures = Vec::new();
    for seed in seeds_of(BEGUN_LATER) {
        let mut scenario = Scenario { begins: Instant::ZERO + Duration::from_secs(60), ..draw(seed) };
        // What splits a flow draws BBR's phases from the offset of its timestamps, and so from the time.
        if let Some(GatewayAt { config, .. }) = &mut scenario.gateway {
            config.mode = FlowMode::Transparent;
        }
        // Whole seconds, so that ticks of clocks fall at the same times.
        let begins =
            Instant::ZERO + Duration::from_secs(Random::named(seed, "begins").below(50 * 24 * 3_600));
        let later = Scenario { begins, ..scenario.clone() };
        let (later, now) = (run(&later).unwrap(), run(&scenario).unwrap());
        if later != now {
            failures.push(format!("SWARM_SEED={seed}"));
        }
    }
    assert!(failures.is_empty(), "{}", failures.join("\n"));
}

fn seeds() -> Range<u64> {
    seeds_of(RUNS)
}

/// This many seeds, unless the environment says otherwise.
fn seeds_of(runs: u64) -> Range<u64> {
    let number = |name: &str| std::env::var(name).ok().and_then(|text| text.parse::<u64>().ok());
    match number("SWARM_SEED") {
        Some(seed) => seed..seed + 1,
        None => {
            let from = number("SWARM_FROM").unwrap_or(1);
            from..from + number("SWARM_RUNS").unwrap_or(runs)
        }
    }
}

fn draw(seed: u64) -> Scenario {
    let mut random = Random::named(seed, "swarm");
    let links = 1 + random.below(3) as usize;
    let link = |number: usize| {
        let direction = |name| {
            let mut random = Random::named(seed, &format!("link {number} {name}"));
            draw_link(&mut random, FAULTS_LAST)
        };
        PathLink { name: format!("hop{number}"), down: direction("down"), up: direction("up") }
    };
    let path: Vec<PathLink> = (0..links).map(link).collect();
    let gateway = (links > 1 && flip(&mut random)).then(|| GatewayAt {
        links_before: 1 + random.below(links as u64 - 1) as usize,
        config: draw_gateway(&mut Random::named(seed, "gateway")),
    });
    let flows =
        (0..1 + random.below(4)).map(|number| draw_flow(&mut Random::named(seed, &format!("flow {number}"))));
    Scenario {
        duration: FAULTS_LAST,
        seed: seed_of(seed, "run"),
        path,
        gateway,
        flows: flows.collect(),
        patience: PATIENCE,
        heals: true,
        checked: true,
        ..Scenario::default()
    }
}

fn flip(random: &mut Random) -> bool {
    random.chance(Probability::from_fraction(0.5))
}

fn one_of<T: Copy>(random: &mut Random, all: &[T]) -> T {
    all[random.below(all.len() as u64) as usize]
}

fn draw_gateway(random: &mut Random) -> GatewayConfig {
    use RetransmissionMode as Retransmission;
    let mut config = GatewayConfig::all_off();
    let windows = [
        VirtualWindowMode::None,
        VirtualWindowMode::Fixed,
        VirtualWindowMode::Sized,
        VirtualWindowMode::Drwa,
    ];
    config.virtual_window.mode = one_of(random, &windows);
    config.virtual_window.add_window_scale = flip(random);
    config.schedule.mode = one_of(random, &[ScheduleMode::OnArrival, ScheduleMode::ReceptionRate]);
    config.retransmission.mode =
        one_of(random, &[Retransmission::None, Retransmission::Local, Retransmission::Proactive]);
    config.rtt_modulation.mode =
        one_of(random, &[RttModulationMode::None, RttModulationMode::Modulated, RttModulationMode::Text]);
    config.queue_bound.mode = one_of(random, &[QueueBoundMode::None, QueueBoundMode::Adaptive]);
    config.sharing.capacity_mbps = (random.below(4) == 0).then(|| 1.0 + 20.0 * random.unit());
    config.mode = one_of(random, &[FlowMode::Transparent, FlowMode::Split]);
    if config.mode == FlowMode::Split {
        config.split.sender = draw_sender(random);
        config.split.receive_window_bytes = 65_535 << random.below(8);
        config.limits.max_flow_buffer_bytes = 20_000 << random.below(10);
    }
    config
}

fn draw_sender(random: &mut Random) -> SenderConfig {
    let any = draw_config(random);
    SenderConfig {
        congestion_control: Some(any.congestion),
        hystart: any.hystart,
        rate_reduction: any.reduction,
        opportunistic_retransmission: any.opportunistic,
        hack1: any.hack1,
        hack1_text: any.hack1_text,
        schedule: any.schedule,
        loss_detection: any.detection,
        send_buffer_growth: any.send_buffer,
        initial_window: 1 + random.below(30) as u32,
    }
}

fn draw_flow(random: &mut Random) -> Flow {
    let max = 100 * 10_000u64.pow(1 + random.below(2) as u32) / 100;
    let load = Load::Size(SizeRange { min: 1, max: max.min(2_000_000) });
    let reader = match random.below(3) {
        0 => Reader::Eager,
        1 => Reader::Paced(Rate::from_mbps(0.5 + 20.0 * random.unit())),
        _ => {
            let from = Instant::ZERO + random.duration_up_to(FAULTS_LAST);
            Reader::Paused { from, to: from + random.duration_up_to(Duration::from_secs(20)) }
        }
    };
    let tcp = TcpFlow { server: draw_config(random), client: draw_config(random), load, reader };
    Flow {
        direction: if flip(random) { Direction::Down } else { Direction::Up },
        transport: Transport::Tcp(Box::new(tcp)),
        start: random.duration_up_to(FAULTS_LAST / 2),
        count: 1 + random.below(4) as u32,
        sequential: flip(random),
        interval: random.duration_up_to(Duration::from_secs(2)),
        share: draw_share(random),
        pass: random.below(8) == 0,
        ipv6: flip(random),
        ..Flow::default()
    }
}

fn draw_share(random: &mut Random) -> ShareConfig {
    let rate = |random: &mut Random| (random.below(4) == 0).then(|| 0.3 + 5.0 * random.unit());
    let guaranteed_mbps = rate(random);
    ShareConfig {
        weight: 1 + random.below(3) as u32,
        priority: random.below(3) as u8,
        guaranteed_mbps,
        ceiling_mbps: rate(random).map(|mbps| mbps + guaranteed_mbps.unwrap_or(0.0)),
    }
}

fn draw_config(random: &mut Random) -> Config {
    use CongestionName::{Bbr, Cubic, Reno, Rre, Vegas, Veno, Westwood};
    let reductions = [
        ReductionName::Rfc6675,
        ReductionName::Rh,
        ReductionName::Prr,
        ReductionName::Qarr,
        ReductionName::Barr,
        ReductionName::QarrText,
        ReductionName::BarrText,
    ];
    let initial = 4_000 + random.below(60_000) as u32;
    let receive_buffer = match random.below(2) {
        0 => ReceiveBuffer::Fixed(3_000 * 300u32.pow(random.below(2) as u32) + random.below(3_000) as u32),
        _ => ReceiveBuffer::Auto { initial, max: initial * 50 },
    };
    Config {
        congestion: one_of(random, &[Reno, Cubic, Veno, Westwood, Vegas, Bbr, Rre]),
        hystart: one_of(random, &[HystartName::Linux, HystartName::PlusPlus, HystartName::Off]),
        reduction: one_of(random, &reductions),
        opportunistic: flip(random),
        hack1: flip(random),
        hack1_text: flip(random),
        detection: one_of(random, &[DetectionName::Rfc6675, DetectionName::Fack, DetectionName::RackTlp]),
        send_buffer: one_of(random, &[SendBufferName::Linux, SendBufferName::Refined]),
        receive_buffer,
        mss: 536 + random.below(925) as u16,
        timestamps: flip(random),
        window_scaling: flip(random),
        sack: flip(random),
        nagle: flip(random),
        delayed_ack: flip(random),
        sack_compression: flip(random),
        frto: flip(random),
        ..Config::default()
    }
}
