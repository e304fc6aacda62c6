//! An application that reads more slowly than the link brings data.

use paceline_gateway::config::Profile;
use paceline_wire::Rate;

use crate::kit::accelerated::run;
use crate::kit::connection::EndpointConfig;
use crate::kit::receiver::Reading;
use crate::kit::scenario::{FlowSpec, Path, XP_WINDOW, at_ms, modern_client, xp_client};

#[test]
fn the_reader_sets_the_pace_and_nothing_is_dropped() {
    for client in [xp_client(XP_WINDOW), xp_client(65_535), modern_client(192 << 10)] {
        let buffer = client.receiver.buffer;
        let mut client: EndpointConfig = client;
        client.receiver.reading = Reading { rate: Some(Rate::from_mbps(2.0)), pauses: Vec::new() };
        let (sim, flow) = run(Profile::Full.config(), &Path::thesis(), &FlowSpec::download(client), 30, 1);
        let report = sim.download(flow);
        let goodput = sim.goodput_between(flow, at_ms(5_000), at_ms(30_000));
        assert!((1.9..=2.05).contains(&goodput), "{buffer}: {goodput} {report:?}");
        assert_eq!(report.beyond_window_bytes, 0, "{buffer}: {report:?}");
        assert_eq!((report.timeouts, report.aborted), (0, false), "{buffer}: {report:?}");
    }
}
