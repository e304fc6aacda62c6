//! An application that stops reading for a minute.

use paceline_gateway::GatewayConfig;

use crate::kit::accelerated::run;
use crate::kit::connection::Reading;
use crate::kit::scenario::{FlowSpec, Path, XP_WINDOW, at_ms, modern_client, xp_client};
use crate::kit::{at_least, missed};

#[test]
fn a_minute_without_reading_is_survived_and_then_forgotten() {
    for mut client in [xp_client(XP_WINDOW), modern_client(192 << 10)] {
        let buffer = client.buffer();
        client.reading = Reading { rate: None, pauses: vec![(at_ms(10_000), at_ms(70_000))] };
        let (sim, flow) = run(GatewayConfig::default(), &Path::thesis(), &FlowSpec::download(client), 80, 1);
        let report = sim.download(flow);
        assert!(!report.aborted, "{buffer}: {report:?}");
        let stalled = sim.goodput_between(flow, at_ms(12_000), at_ms(70_000));
        assert!(stalled < 0.1, "{buffer}: {stalled} Mbit/s while nobody reads");
        // The news of the open window takes half a round trip, and the data another half. The flow is at its rate
        // before the second round trip is over.
        let after = sim.goodput_between(flow, at_ms(70_100), at_ms(70_200));
        let what = format!("paused reader, {buffer} bytes, Mbit/s in the second RTT");
        if buffer == XP_WINDOW {
            at_least(&what, after, 0.9 * 6.7);
        } else {
            missed(&what, after, 0.9 * 6.7, 0.24 * 6.7);
        }
    }
}
