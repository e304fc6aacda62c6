//! 7.2 Mbit/s, 100 ms, and a client with 17 KB and no window scaling (Chapters 3 and 4).

use paceline_gateway::GatewayConfig;
use paceline_tcp::Config;

use crate::kit::accelerated::{run, unaccelerated};
use crate::kit::scenario::{FlowSpec, Path, XP_WINDOW, at_ms, share, xp_client};

#[test]
fn unaccelerated_the_window_is_the_limit() {
    let report = unaccelerated(&Path::thesis(), &FlowSpec::download(xp_client(XP_WINDOW)), 60, 1);
    assert!((1.3..1.45).contains(&report.goodput_mbps), "{report:?}");
}

#[test]
fn accelerated_the_link_is_the_limit() {
    let spec = FlowSpec::download(xp_client(XP_WINDOW));
    let (sim, flow) = run(GatewayConfig::default(), &Path::thesis(), &spec, 60, 1);
    let report = sim.download(flow);
    assert!(report.goodput_mbps >= 6.7, "{report:?}");
    assert_eq!((report.timeouts, report.retransmitted_segments), (0, 0), "{report:?}");
    assert!(report.beyond_window_segments * 1_460_000 < report.received_bytes, "{report:?}");
    assert_eq!(sim.gateway.counters().flows_rescaled, 1);
}

#[test]
fn it_does_not_depend_on_the_client_s_habits() {
    for (sack, timestamps, delayed_ack) in
        [(false, false, true), (true, true, true), (true, false, true), (true, false, false)]
    {
        let mut client = xp_client(XP_WINDOW);
        client.tcp = Config { sack, timestamps, delayed_ack, ..client.tcp };
        let spec = FlowSpec::download(client);
        let (sim, flow) = run(GatewayConfig::default(), &Path::thesis(), &spec, 30, 1);
        let report = sim.download(flow);
        let case = format!("sack {sack}, timestamps {timestamps}, delayed ACKs {delayed_ack}");
        // From the sixth second on: how long the server takes to get there depends on how many ACKs it is sent.
        let payload = if timestamps { 1448.0 } else { 1460.0 };
        let of_link = share(sim.goodput_between(flow, at_ms(5_000), at_ms(30_000)), 7.2, payload, 1500.0);
        assert!(of_link >= 0.97, "{case}: {of_link} {report:?}");
        assert_eq!(report.timeouts, 0, "{case}: {report:?}");
    }
}
