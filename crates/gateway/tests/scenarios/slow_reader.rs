//! An application that reads more slowly than the link brings data.

use paceline_gateway::config::Profile;
use paceline_wire::Rate;

use crate::kit::accelerated::{accelerated, run, unaccelerated};
use crate::kit::connection::{EndpointConfig, Reading};
use crate::kit::scenario::{FlowSpec, Path, XP_WINDOW, at_ms, lossy, modern_client, xp_client};

#[test]
fn the_reader_sets_the_pace_and_nothing_is_dropped() {
    for client in [xp_client(XP_WINDOW), xp_client(65_535), modern_client(192 << 10)] {
        let buffer = client.buffer();
        let mut client: EndpointConfig = client;
        client.reading = Reading { rate: Some(Rate::from_mbps(2.0)), pauses: Vec::new() };
        let (sim, flow) = run(Profile::Full.config(), &Path::thesis(), &FlowSpec::download(client), 30, 1);
        let report = sim.download(flow);
        let goodput = sim.goodput_between(flow, at_ms(5_000), at_ms(30_000));
        assert!((1.9..=2.05).contains(&goodput), "{buffer}: {goodput} {report:?}");
        assert_eq!(report.beyond_window_segments, 0, "{buffer}: {report:?}");
        assert_eq!((report.timeouts, report.aborted), (0, false), "{buffer}: {report:?}");
    }
}

/// Behind a hole, three windows were once discarded in each round trip and sent again, as long as the flow lasted.
#[test]
fn what_a_slow_reader_discards_is_not_sent_to_it_again_and_again() {
    let path = Path { loss: lossy(0.0003), ..Path::new(41.0, 20, 217) };
    let mut client: EndpointConfig = modern_client(81_100);
    client.reading = Reading { rate: Some(Rate::from_mbps(20.0)), pauses: Vec::new() };
    let spec = FlowSpec::download(client);
    let (mut arrived, mut discarded) = (0, 0);
    for seed in 1..=4 {
        let report = accelerated(&path, &spec, 30, seed);
        (arrived, discarded) =
            (arrived + report.received_bytes, discarded + 1_460 * report.beyond_window_segments);
    }
    assert!(discarded < arrived, "{discarded} bytes discarded, {arrived} arrived");
    let without = unaccelerated(&path, &spec, 30, 1).received_bytes;
    assert!(arrived > 4 * without, "{arrived}, and one flow without a gateway {without}");
}
