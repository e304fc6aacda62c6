//! Random faults, drawn from a seed. When they stop, every connection must finish.

mod harness;

use harness::{Duplex, drawn_config, ms};
use paceline_path::random::Probability;
use paceline_path::{
    Delay, Jitter, Link, LinkConfig, Loss, OutageEffect, OutageWindow, Outages, QueueLimit, RateProcess,
    Reorder,
};
use paceline_tcp::{Config, ReceiveBuffer};
use paceline_wire::{Duration, Rate};
use proptest::prelude::*;

fn link() -> impl Strategy<Value = LinkConfig> {
    let percent = |most: u64| (0..most * 10_000_000).prop_map(Probability::from_ppb);
    let faults = (
        prop_oneof![Just(Probability::ZERO), percent(3), percent(30)],
        prop_oneof![Just(Probability::ZERO), percent(10)],
        prop_oneof![Just(Probability::ZERO), percent(10)],
        prop_oneof![Just(0u64), 0..40u64],
        prop_oneof![Just(0u64), 0..3_000u64],
    );
    let path = (1u64..100, 0u64..150, prop_oneof![Just(3u32), Just(50), Just(3_000)], any::<bool>());
    (faults, path).prop_map(
        |((loss, duplicate, reorder, jitter, outage), (mbps, delay, queue, keep_order))| LinkConfig {
            rate: RateProcess::Constant(Rate::from_mbps(mbps as f64)),
            queue: QueueLimit::Packets(queue),
            delay: Delay::Constant(ms(delay)),
            jitter: (jitter > 0).then_some(Jitter { up_to: ms(jitter), keep_order }),
            loss: Loss::Independent(loss),
            reorder: Some(Reorder { probability: reorder, by: ms(20) }),
            duplicate,
            outage: Outages {
                windows: match outage {
                    0 => vec![],
                    length => vec![OutageWindow { start: ms(500), end: ms(500 + length) }],
                },
                effect: if outage % 2 == 0 { OutageEffect::Drop } else { OutageEffect::Hold },
                ..Outages::default()
            },
            ..LinkConfig::default()
        },
    )
}

fn config() -> impl Strategy<Value = Config> {
    let window = prop_oneof![3_000u32..20_000, 60_000u32..1_000_000];
    let mss = prop_oneof![Just(536u16), Just(1_460), Just(9_000)];
    (drawn_config(), proptest::bool::weighted(0.8), mss, window).prop_map(
        |(config, window_scaling, mss, window)| Config {
            window_scaling,
            mss,
            receive_buffer: ReceiveBuffer::Fixed(window),
            ..config
        },
    )
}

proptest! {
    #[test]
    fn every_connection_finishes_once_the_faults_stop(
        server in config(),
        client in config(),
        down in link(),
        up in link(),
        seed in any::<u32>(),
        bytes in prop_oneof![0u64..3_000, 0u64..300_000, 0u64..3_000_000],
        content in any::<bool>(),
    ) {
        let mut duplex = Duplex::new(server, client, down, up, u64::from(seed));
        duplex.to_write = bytes;
        duplex.content = content;
        let start = duplex.now;
        duplex.run(start + Duration::from_secs(10), &mut ());
        // Packets in flight are lost here. From here on the path has no faults.
        let clean = LinkConfig {
            rate: RateProcess::Constant(Rate::from_mbps(20.0)),
            delay: Delay::Constant(ms(20)),
            ..LinkConfig::default()
        };
        duplex.down = Link::new(clean.clone(), 1, duplex.now).unwrap();
        duplex.up = Link::new(clean, 2, duplex.now).unwrap();
        duplex.run(start + Duration::from_secs(800), &mut ());
        prop_assert_eq!(duplex.received, bytes, "{:?} {:?}", duplex.server_status(), duplex.client_status());
        prop_assert!(duplex.server_status().is_none_or(|s| s.state == paceline_tcp::State::Closed),
            "{:?} {:?}", duplex.server_status(), duplex.client_status());
    }
}
