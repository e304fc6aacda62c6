//! Whatever the links do, every byte arrives once, in order and right, and nothing hangs.

use paceline_gateway::config::FlowMode;
use paceline_gateway::{Gateway, GatewayConfig};
use paceline_path::random::Probability;
use paceline_path::{
    Delay, LinkConfig, OutageEffect, Outages, PeriodicOutage, QueueLimit, RateProcess, Reorder,
};
use paceline_sim::host::TcpSetup;
use paceline_sim::workload::Workload;
use paceline_tcp::InitialNumbers;
use paceline_wire::{Duration, Node, Rate, Seq};
use proptest::prelude::*;
use proptest::test_runner::{Config, RngSeed};

use crate::parts::{any_config, any_split};
use crate::world::{Direct, FlowSpec, Path, World, at_ms, lossy, modern_client};

/// The faults of one link.
#[derive(Clone, Debug)]
struct Faults {
    loss_percent: u32,
    reorder_percent: u32,
    reorder_ms: u64,
    duplicate_percent: u32,
    outage: Option<(u64, OutageEffect)>,
    rate_mbps: u32,
    delay_ms: u64,
    queue_packets: u32,
}

impl Faults {
    fn link(&self) -> LinkConfig {
        let percent = |p: u32| Probability::from_ppm(u64::from(p) * 10_000);
        let mut outage = Outages::default();
        if let Some((every_ms, effect)) = self.outage {
            outage.effect = effect;
            let every = Duration::from_millis(every_ms);
            outage.periodic =
                Some(PeriodicOutage { first: every / 2, every, length: Duration::from_millis(1_000) });
        }
        LinkConfig {
            rate: RateProcess::Constant(Rate::from_mbps(f64::from(self.rate_mbps))),
            queue: QueueLimit::Packets(self.queue_packets),
            delay: Delay::Constant(Duration::from_millis(self.delay_ms)),
            loss: lossy(f64::from(self.loss_percent) / 100.0),
            reorder: (self.reorder_percent > 0).then(|| Reorder {
                probability: percent(self.reorder_percent),
                by: Duration::from_millis(self.reorder_ms),
            }),
            duplicate: percent(self.duplicate_percent),
            outage,
            ..LinkConfig::default()
        }
    }
}

#[derive(Clone, Debug)]
struct Case {
    wired: Faults,
    radio_down: Faults,
    radio_up: Faults,
    ipv6: bool,
    down: u64,
    up: u64,
    client: TcpSetup,
    server: TcpSetup,
    seed: u64,
}

fn faults(radio: bool) -> impl Strategy<Value = Faults> {
    let loss = 0u32..=if radio { 5 } else { 1 };
    let outage = prop_oneof![Just(OutageEffect::Hold), Just(OutageEffect::Drop)];
    let outage = proptest::option::weighted(if radio { 0.5 } else { 0.1 }, (5_000u64..15_000, outage));
    (loss, 0u32..=5, 1u64..=40, 0u32..=3, outage, 1u32..=30, 0u64..=60, 10u32..=400).prop_map(
        |(
            loss_percent,
            reorder_percent,
            reorder_ms,
            duplicate_percent,
            outage,
            rate_mbps,
            delay_ms,
            queue_packets,
        )| {
            Faults {
                loss_percent,
                reorder_percent,
                reorder_ms,
                duplicate_percent,
                outage,
                rate_mbps,
                delay_ms,
                queue_packets,
            }
        },
    )
}

fn endpoint() -> impl Strategy<Value = TcpSetup> {
    let mss = prop_oneof![Just(1460u16), 536u16..=1460];
    (any::<[bool; 4]>(), 4_000u64..300_000, 1u32..=20, any::<u32>(), mss).prop_map(
        |([sack, timestamps, window_scaling, delayed_ack], buffer, gso_segments, isn, mss)| {
            let end = modern_client(buffer as u32);
            let config =
                paceline_tcp::Config { sack, timestamps, window_scaling, delayed_ack, mss, ..end.config };
            let origin = end.origin.map(|origin| InitialNumbers { isn: Seq(isn), ..origin });
            TcpSetup { config, origin, has_bytes: true, gso_segments, ..end }
        },
    )
}

fn cases() -> impl Strategy<Value = Case> {
    let sizes = (prop_oneof![Just(0u64), 1u64..400_000], prop_oneof![Just(0u64), 1u64..200_000]);
    (faults(false), faults(true), faults(true), any::<bool>(), sizes, endpoint(), endpoint(), any::<u64>())
        .prop_map(|(wired, radio_down, radio_up, ipv6, (down, up), client, server, seed)| Case {
            wired,
            radio_down,
            radio_up,
            ipv6,
            down,
            up,
            client,
            server,
            seed,
        })
}

/// Runs a case to its end. The caller judges what is left then.
fn transfer<G: Node>(gateway: G, case: &Case, splits: bool) -> Result<World<G>, TestCaseError> {
    let path = Path {
        wired_down: case.wired.link(),
        wired_up: case.wired.link(),
        down: case.radio_down.link(),
        up: case.radio_up.link(),
        ipv6: case.ipv6,
        ..Path::thesis()
    };
    let mut world = World::new(gateway, &path, case.seed);
    if splits {
        world.checker.allow_splits();
    }
    let mut spec = FlowSpec::download(case.client.clone()).sending(Workload::Bytes(case.up));
    spec.server = case.server.clone();
    let flow = world.add_flow(&spec.bytes(case.down));
    let done = world.run_while(at_ms(600_000), |world| world.is_over(flow));
    prop_assert_eq!(world.findings(), Vec::<String>::new());
    let read = [world.read(flow.client), world.read(flow.server)];
    prop_assert!(done, "not over after ten minutes: {:?}", read);
    prop_assert_eq!(read, [case.down, case.up]);
    world.run_until(world.network.now() + Duration::from_secs(120));
    Ok(world)
}

fn through(config: GatewayConfig, case: &Case) -> Result<(), TestCaseError> {
    let world = transfer(Gateway::new(config.clone()), case, config.mode == FlowMode::Split)?;
    prop_assert_eq!(world.gateway().buffered_bytes(), 0, "two minutes after the last byte");
    Ok(())
}

/// Returns 48 cases from a fixed seed, so that a change is judged by what it changed. With PROPTEST_CASES it returns
/// that many, from a new seed each time, to hunt. A case that a hunt finds is printed in its smallest form.
fn cases_to_run() -> Config {
    let config = Config { max_shrink_iters: 60, failure_persistence: None, ..Config::default() };
    if config.cases == 256 { Config { cases: 48, rng_seed: RngSeed::Fixed(SEED), ..config } } else { config }
}

const SEED: u64 = 1;

proptest! {
    #![proptest_config(cases_to_run())]

    /// The hosts alone, so that what the others find is the gateway's.
    #[test]
    fn everything_arrives_without_a_gateway(case in cases()) {
        transfer(Direct::default(), &case, false)?;
    }

    #[test]
    fn everything_arrives_whatever_the_links_do(case in cases()) {
        through(GatewayConfig::default(), &case)?;
    }

    #[test]
    fn with_parts_switched_off_too(case in cases(), parts in any_config()) {
        through(parts, &case)?;
    }

    #[test]
    fn split_flows_too(case in cases(), split in any_split()) {
        through(split, &case)?;
    }
}
