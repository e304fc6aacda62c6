//! What a flow has of the gateway.

use alloc::collections::VecDeque;

use paceline_wire::{Instant, Packet, PortId};

use crate::auto::Memory;
use crate::config::GatewayConfig;
use crate::counters::Counters;
use crate::observe::Observer;
use crate::pool::MemoryUse;
use crate::{RADIO, WAN};

/// What a flow needs from the gateway while it handles one event.
pub(crate) struct Context<'a> {
    pub(crate) now: Instant,
    pub(crate) config: &'a GatewayConfig,
    pub(crate) counters: &'a mut Counters,
    pub(crate) observer: &'a mut dyn Observer,
    pub(crate) out: &'a mut VecDeque<(PortId, Packet)>,
    /// Payload bytes kept for all flows.
    pub(crate) buffered: &'a mut u64,
    /// Bytes that servers may have on their way by the windows that they were shown, of all flows.
    pub(crate) advertised: &'a mut u64,
    /// What the flow's subscriber holds of both.
    pub(crate) subscriber: MemoryUse,
    /// What flows showed.
    pub(crate) memory: &'a mut Memory,
}

impl Context<'_> {
    pub(crate) fn pass_to_client(&mut self, packet: Packet) {
        self.out.push_back((RADIO, packet));
    }

    pub(crate) fn pass_to_server(&mut self, packet: Packet) {
        self.out.push_back((WAN, packet));
    }
}
