//! Gateways with some of their parts switched off.

use paceline_gateway::GatewayConfig;
use paceline_gateway::config::{
    QueueBoundMode, RetransmissionMode, RttModulationMode, ScheduleMode, VirtualWindowMode,
};
use proptest::prelude::*;

/// Any combination of parts.
pub fn any_config() -> impl Strategy<Value = GatewayConfig> {
    (
        prop_oneof![
            Just(VirtualWindowMode::None),
            Just(VirtualWindowMode::Fixed),
            Just(VirtualWindowMode::Sized),
            Just(VirtualWindowMode::Drwa)
        ],
        any::<bool>(),
        prop_oneof![Just(ScheduleMode::OnArrival), Just(ScheduleMode::ReceptionRate)],
        prop_oneof![
            Just(RetransmissionMode::None),
            Just(RetransmissionMode::Local),
            Just(RetransmissionMode::Proactive)
        ],
        prop_oneof![Just(RttModulationMode::None), Just(RttModulationMode::Modulated)],
        prop_oneof![Just(QueueBoundMode::None), Just(QueueBoundMode::Adaptive)],
    )
        .prop_map(|(window, scale, schedule, retransmission, modulation, bound)| {
            let mut config = GatewayConfig::all_off();
            config.virtual_window.mode = window;
            config.virtual_window.add_window_scale = scale;
            config.schedule.mode = schedule;
            config.retransmission.mode = retransmission;
            config.rtt_modulation.mode = modulation;
            config.queue_bound.mode = bound;
            config
        })
}
