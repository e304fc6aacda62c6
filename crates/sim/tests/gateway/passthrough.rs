//! Flows whose halves close, open and send in ways that the gateway must not hinder.

use paceline_gateway::{Gateway, GatewayConfig};
use paceline_sim::workload::Workload;
use paceline_wire::Duration;

use crate::world::{Direct, FlowSpec, Path, at_ms, modern_client, run, xp_client};

fn gateway() -> Gateway {
    Gateway::new(GatewayConfig::default())
}

#[test]
fn a_download_goes_on_after_the_client_has_closed_its_half() {
    let spec = FlowSpec::download(xp_client()).bytes(3_000_000).sending(Workload::Bytes(500));
    let (world, flow) = run(gateway(), &Path::thesis(), &spec, 20);
    assert_eq!([flow.client, flow.server].map(|host| world.read(host)), [3_000_000, 500]);
    let [down, up] = [flow.client, flow.server].map(|host| world.completion(flow, host));
    assert!(up < down && down < Some(Duration::from_secs(6)), "{down:?}");
}

#[test]
fn a_flow_that_is_over_leaves_nothing_behind() {
    let spec = FlowSpec::download(modern_client(1 << 20)).bytes(1_000_000);
    let (mut world, flow) = run(gateway(), &Path::thesis(), &spec, 20);
    assert!(world.completion(flow, flow.client).is_some());
    assert_eq!(world.gateway().buffered_bytes(), 0);
    world.run_until(at_ms(600_000));
    assert_eq!(world.gateway().flows(), 0, "ten minutes after both ends closed");
}

#[test]
fn uploads_run_at_full_speed_under_rescaled_windows() {
    for client in [xp_client(), modern_client(1 << 20)] {
        let mut spec = FlowSpec::download(client).sending(Workload::Bytes(4_000_000));
        spec.server.workloads.clear();
        let (direct, flow) = run(Direct::default(), &Path::thesis(), &spec, 30);
        let without = direct.completion(flow, flow.server).unwrap();
        let (world, flow) = run(gateway(), &Path::thesis(), &spec, 30);
        let with = world.completion(flow, flow.server).unwrap();
        assert!(with <= without.mul_ratio(102, 100), "{without:?} {with:?}");
    }
}

#[test]
fn both_ends_may_open_at_once() {
    for client in [xp_client(), modern_client(1 << 20)] {
        let mut spec = FlowSpec::download(client).bytes(2_000_000).sending(Workload::Bytes(200_000));
        spec.server_start = Some(at_ms(10));
        let (world, flow) = run(gateway(), &Path::new(7.2, 20, 100), &spec, 20);
        assert_eq!(world.gateway().counters().passed_unacceptable, 0);
        assert_eq!([flow.client, flow.server].map(|host| world.read(host)), [2_000_000, 200_000]);
    }
}
