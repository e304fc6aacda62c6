//! Gateways with some parts off.

use paceline_gateway::GatewayConfig;
use paceline_gateway::config::{
    FlowMode, QueueBoundMode, RetransmissionMode, RttModulationMode, ScheduleMode, VirtualWindowMode,
};
use paceline_gateway::split::SenderConfig;
use paceline_tcp::{CongestionName, DetectionName, ReductionName};
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
        prop_oneof![
            Just(RttModulationMode::None),
            Just(RttModulationMode::Modulated),
            Just(RttModulationMode::Text)
        ],
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

/// Split flows with any sender and any memory.
pub fn any_split() -> impl Strategy<Value = GatewayConfig> {
    let sender = (
        prop_oneof![Just(CongestionName::Cubic), Just(CongestionName::Bbr), Just(CongestionName::Rre)],
        prop_oneof![Just(ReductionName::Prr), Just(ReductionName::Qarr), Just(ReductionName::Barr)],
        prop_oneof![Just(DetectionName::RackTlp), Just(DetectionName::Rfc6675), Just(DetectionName::Ncl)],
        any::<bool>(),
        any::<bool>(),
    );
    (sender, 65_535u32..1_000_000, 20_000u64..1_000_000, 30_000usize..1_000_000).prop_map(
        |((congestion, reduction, detection, opportunistic, hack1), window, flow_buffer, buffer)| {
            let mut config = GatewayConfig { mode: FlowMode::Split, ..GatewayConfig::all_off() };
            config.split.receive_window_bytes = window;
            config.limits.max_flow_buffer_bytes = flow_buffer;
            config.limits.max_buffer_bytes = buffer;
            config.split.sender = SenderConfig {
                congestion_control: Some(congestion),
                rate_reduction: reduction,
                loss_detection: detection,
                opportunistic_retransmission: opportunistic,
                hack1,
                ..SenderConfig::default()
            };
            config
        },
    )
}
