//! What flows have of the gateway.

use alloc::collections::VecDeque;

use paceline_wire::{Instant, Packet, PortId};

use crate::auto::Memory;
use crate::config::GatewayConfig;
use crate::counters::Counters;
use crate::observe::Observer;
use crate::pool::MemoryUse;
use crate::ports::{RADIO, WAN};

/// What a flow needs from the gateway while it handles one event. A flow that takes memory has to know what its subscriber holds: code
/// that asks for memory takes only a context that says so. `()` says nothing.
pub(crate) struct Context<'a, S = MemoryUse> {
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
    pub(crate) subscriber: S,
    /// What flows showed.
    pub(crate) memory: &'a mut Memory,
}

/// For an event of whatever split flow: what its subscriber holds, the table tells where memory is asked for.
pub(crate) type SplitContext<'a> = Context<'a, ()>;

impl<'a> Context<'a, ()> {
    /// For a flow of a subscriber that holds so much.
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
