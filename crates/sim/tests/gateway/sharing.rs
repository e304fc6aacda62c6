//! Weights, guaranteed rates and ceilings of subscribers. Those of flows are in scenarios/regression/shares.toml.

use paceline_gateway::config::{ShareConfig, SubscriberRule};
use paceline_gateway::{Gateway, GatewayConfig};

use crate::world::{FlowSpec, Path, World, address, at_ms, modern_client};

/// IP rate of the radio link, and payload's share of it.
const LINK_MBPS: f64 = 8.64;
const PAYLOAD: f64 = 1_448.0 / 1_500.0;

fn share(priority: u8) -> ShareConfig {
    ShareConfig { priority, ..ShareConfig::default() }
}

/// Two clients with their own links, behind a backhaul that is narrower than both.
#[test]
fn subscribers_share_a_backhaul_by_weight_guarantee_and_ceiling() {
    let goodputs = |first: ShareConfig, second: ShareConfig| {
        let mut config = GatewayConfig::default();
        config.sharing.capacity_mbps = Some(6.0);
        let rule = |n, share| SubscriberRule { address: address(false, 1, n).into(), share, prefer: None };
        config.rules.subscribers = vec![rule(1, first), rule(2, second)];
        config.check().unwrap();
        let mut world = World::new(Gateway::new(config), &Path::new(LINK_MBPS, 20, 80), 1);
        for client in [0, 1] {
            world.add_flow(&FlowSpec {
                client_number: client,
                ..FlowSpec::download(modern_client(256 << 10))
            });
        }
        let rates = world.goodputs_between(at_ms(10_000), at_ms(40_000));
        world.assert_clean();
        [rates[0] / PAYLOAD, rates[1] / PAYLOAD]
    };
    let plain = ShareConfig::default();
    let near = |got: [f64; 2], wanted: [f64; 2]| {
        let fits = |n: usize| (got[n] / wanted[n] - 1.0).abs() < 0.03;
        assert!(fits(0) && fits(1), "{got:?} for {wanted:?}");
    };
    near(goodputs(plain.clone(), plain.clone()), [3.0, 3.0]);
    near(goodputs(ShareConfig { weight: 3, ..plain.clone() }, plain.clone()), [4.5, 1.5]);
    near(goodputs(ShareConfig { guaranteed_mbps: Some(1.0), ..share(0) }, share(5)), [1.0, 5.0]);
    near(goodputs(ShareConfig { ceiling_mbps: Some(2.0), ..share(5) }, plain), [2.0, 4.0]);
}
