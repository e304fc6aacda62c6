//! The parts of the gateway that a flow uses while it handles one event.

use alloc::collections::VecDeque;

use paceline_wire::{Instant, Packet, PortId};

use crate::auto::PathHistory;
use crate::config::GatewayConfig;
use crate::counters::Counters;
use crate::observe::Observer;
use crate::pool::MemoryUse;
use crate::ports::{RADIO, WAN};

/// The parts of the gateway that a flow uses while it handles one event. A flow that asks for memory must know how much
/// its subscriber holds. Code that asks for memory therefore takes only a context with a `MemoryUse`; `()` has none.
pub(crate) struct Context<'a, S = MemoryUse> {
    pub(crate) now: Instant,
    pub(crate) config: &'a GatewayConfig,
    pub(crate) counters: &'a mut Counters,
    pub(crate) observer: &'a mut dyn Observer,
    pub(crate) out: &'a mut VecDeque<(PortId, Packet)>,
    /// Payload bytes kept for all flows.
    pub(crate) buffered: &'a mut u64,
    /// Bytes that servers may send by the windows that they were shown, for all flows.
    pub(crate) advertised: &'a mut u64,
    /// Memory of both kinds that the flow's subscriber holds.
    pub(crate) subscriber: S,
    /// What earlier flows showed of clients and servers.
    pub(crate) memory: &'a mut PathHistory,
}

/// Context of an event of any split flow. Where the flow asks for memory, the table tells what its subscriber holds.
pub(crate) type SplitContext<'a> = Context<'a, ()>;

impl<'a> Context<'a, ()> {
    /// Adds the memory that the flow's subscriber holds.
    pub(crate) fn of(self, subscriber: MemoryUse) -> Context<'a> {
        let Context { now, config, counters, observer, out, buffered, advertised, subscriber: (), memory } =
            self;
        Context { now, config, counters, observer, out, buffered, advertised, subscriber, memory }
    }
}

impl<S> Context<'_, S> {
    pub(crate) fn pass_to_client(&mut self, packet: Packet) {
        self.out.push_back((RADIO, packet));
    }

    pub(crate) fn pass_to_server(&mut self, packet: Packet) {
        self.out.push_back((WAN, packet));
    }
}
