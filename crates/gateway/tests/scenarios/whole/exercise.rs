//! A download and an upload through a gateway. Shared by fuzz targets and by the replay of their corpora.

use paceline_gateway::config::{
    FlowMode, RetransmissionMode, RttModulationMode, ScheduleMode, VirtualWindowMode,
};
use paceline_gateway::{Gateway, GatewayConfig};
use paceline_wire::{Instant, Node, Packet, PortId};

use super::world::{Choices, Middle, World};
use crate::twins::Twins;

/// Runs a transparent gateway. `data` has its configuration, then hosts and events, a few bytes each.
pub fn transparent(data: &[u8]) {
    let mut choices = Choices(data);
    let config = config(&mut choices, FlowMode::Transparent);
    World::new(choices.0, Alone::new(config)).run();
}

/// Like [`transparent`], but split or as the gateway decides.
pub fn split(data: &[u8]) {
    let mut choices = Choices(data);
    let mut config = config(&mut choices, FlowMode::Split);
    if data.first().is_some_and(|bits| bits & 8 == 8) {
        config.mode = FlowMode::Auto;
    }
    World::new(choices.0, Alone::new(config)).run();
}

/// Runs a gateway in either mode that moves from process to process, beside one that stays.
pub fn handover(data: &[u8]) {
    let mut choices = Choices(data);
    let mode = choices.one_of(&[FlowMode::Transparent, FlowMode::Split, FlowMode::Auto]);
    let config = config(&mut choices, mode);
    World::new(choices.0, Twins::new(config, u32::MAX)).run();
}

/// Returns a configuration with some of the parts and with small limits.
pub(crate) fn config(choices: &mut Choices<'_>, mode: FlowMode) -> GatewayConfig {
    let mut config = GatewayConfig { mode, ..GatewayConfig::default() };
    let bits = choices.byte();
    if bits & 1 == 1 {
        use VirtualWindowMode as Window;
        config.virtual_window.mode =
            choices.one_of(&[Window::None, Window::Fixed, Window::Sized, Window::Drwa]);
        config.virtual_window.max_bytes = choices.one_of(&[8_000_000, 100_000, 20_000]);
        config.virtual_window.add_window_scale = choices.byte() & 1 == 0;
    }
    if bits & 2 == 2 {
        use RetransmissionMode as Repair;
        config.retransmission.mode = choices.one_of(&[Repair::None, Repair::Local, Repair::Proactive]);
        config.schedule.mode = choices.one_of(&[ScheduleMode::OnArrival, ScheduleMode::ReceptionRate]);
        config.rtt_modulation.mode = choices.one_of(&[RttModulationMode::None, RttModulationMode::Modulated]);
    }
    if bits & 4 == 4 {
        config.limits.max_flows = 2;
        config.limits.max_buffer_bytes = choices.one_of(&[200_000, 20_000, 3_000]);
        config.limits.max_flow_buffer_bytes = 100_000;
    }
    config
}

/// One gateway.
struct Alone {
    gateway: Gateway,
    config: GatewayConfig,
}

impl Alone {
    fn new(config: GatewayConfig) -> Alone {
        Alone { gateway: Gateway::new(config.clone()), config }
    }
}

/// Checks that memory and flows stay within their limits. Each end of a split flow may exceed them by one segment,
/// because memory becomes free only as flows move on (split.rs, `is_over_budget`).
pub(crate) fn check(gateway: &Gateway, config: &GatewayConfig) {
    let beyond = gateway.split_flows() as u64 * 2 * 1_460;
    let (kept, most) = (gateway.buffered_bytes(), config.limits.max_buffer_bytes as u64 + beyond);
    assert!(kept <= most, "{kept} bytes kept of {most}");
    assert!(gateway.flows() <= config.limits.max_flows, "{} flows", gateway.flows());
}

impl Middle for Alone {
    fn makes_acks(&self) -> bool {
        self.config.mode != FlowMode::Transparent
    }

    /// Sets the same policy again.
    fn turn(&mut self, _: u8) {
        self.gateway.set_policy(&self.config);
    }

    fn check(&self) {
        check(&self.gateway, &self.config);
    }

    fn describe(&self) -> String {
        format!("{:?} {:?}", self.gateway.flow_statuses(0, 10).items, self.gateway.counters())
    }
}

impl Node for Alone {
    fn handle_packet(&mut self, arrival: Instant, port: PortId, packet: Packet) {
        self.gateway.handle_packet(arrival, port, packet);
    }

    fn handle_timeout(&mut self, now: Instant) {
        self.gateway.handle_timeout(now);
    }

    fn poll_transmit(&mut self, now: Instant) -> Option<(PortId, Packet)> {
        self.gateway.poll_transmit(now)
    }

    fn poll_timeout(&self) -> Option<Instant> {
        self.gateway.poll_timeout()
    }
}

impl Middle for Twins {
    fn makes_acks(&self) -> bool {
        self.config.mode != FlowMode::Transparent
    }

    fn turn(&mut self, _: u8) {
        self.move_now();
    }

    fn check(&self) {
        check(&self.moves, &self.config);
        assert_eq!(self.moves.buffered_bytes(), self.stays.buffered_bytes());
    }
}
