//! A client's connection that is gone, and its effect on the client's other flows.

use paceline_gateway::config::{RetransmissionMode, ScheduleMode};
use paceline_gateway::{Gateway, GatewayConfig};
use paceline_wire::Duration;

use crate::world::{FlowSpec, Path, World, at_ms, modern_client};

/// What was on its way is not on the link for ever. After a timeout the other flows have all of the link.
#[test]
fn what_nobody_answers_keeps_no_room() {
    others_go_on(GatewayConfig::default());
}

/// The same holds if the server repairs, and no timer of the gateway sends anything.
#[test]
fn what_nobody_answers_keeps_no_room_where_the_server_repairs() {
    for schedule in [ScheduleMode::ReceptionRate, ScheduleMode::OnArrival] {
        let mut config = GatewayConfig::default();
        config.retransmission.mode = RetransmissionMode::None;
        config.schedule.mode = schedule;
        others_go_on(config);
    }
}

#[track_caller]
fn others_go_on(config: GatewayConfig) {
    let mut world = World::new(Gateway::new(config), &Path::thesis(), 1);
    let first = world.add_flow(&FlowSpec::download(modern_client(256 << 10)));
    let others = [5_100, 6_000, 20_000].map(|start| {
        world.add_flow(&FlowSpec::download(modern_client(256 << 10)).bytes(100_000).starting(start))
    });
    world.run_until(at_ms(5_000));
    world.forget(first);
    world.run_until(at_ms(30_000));
    for other in others {
        let completion = world.completion(other, other.client);
        assert!(completion.is_some_and(|time| time < Duration::from_secs(3)), "{completion:?}");
    }
}
