//! A gateway that goes on in another process, as when its program is replaced by a newer one.
//!
//! What is written down is everything of transparent flows and their subscribers: payload, positions, estimators, timers. Times are
//! those of the driver's clock, which must be the same in both processes. Of split flows only the names go over; they end.
//!
//! A newer program may read what an older one wrote if the format names its fields: new fields then need `serde(default)`.

use alloc::boxed::Box;
use alloc::collections::VecDeque;
use alloc::vec::Vec;

use paceline_wire::{FlowKey, Packet, PortId};
use serde::{Deserialize, Serialize};

use crate::auto::Memory;
use crate::config::GatewayConfig;
use crate::counters::Counters;
use crate::gateway::Gateway;
use crate::observe::Observer;
use crate::table::Table;

/// The state of a gateway, to be written down.
#[derive(Serialize)]
pub struct State<'a> {
    table: &'a Table,
    split: Vec<FlowKey>,
    counters: &'a Counters,
    out: &'a VecDeque<(PortId, Packet)>,
    buffered: u64,
    promised: u64,
    memory: &'a Memory,
}

/// A [`State`] that was read.
#[derive(Deserialize)]
pub struct TakenOver {
    table: Table,
    split: Vec<FlowKey>,
    counters: Counters,
    out: VecDeque<(PortId, Packet)>,
    buffered: u64,
    promised: u64,
    #[serde(default)]
    memory: Memory,
}

impl Gateway {
    /// Everything that another gateway needs to go on as this one would.
    pub fn state(&self) -> State<'_> {
        State {
            table: &self.table,
            split: self.split.keys().collect(),
            counters: &self.shared.counters,
            out: &self.shared.out,
            buffered: self.shared.buffered.saturating_sub(self.split.buffered()),
            promised: self.shared.promised.saturating_sub(self.split.promised()),
            memory: &self.shared.memory,
        }
    }

    /// Goes on where the gateway stopped whose state this is. New flows and subscribers are served by `config`, those that are there stay
    /// as they are. Split flows are over: each of their ends is told with its next packet.
    pub fn take_over(config: GatewayConfig, observer: Box<dyn Observer + Send>, state: TakenOver) -> Self {
        let mut gateway = Gateway::with_observer(config, observer);
        gateway.table = state.table.continued(&gateway.shared.config);
        for key in state.split {
            gateway.end(key);
        }
        let shared = &mut gateway.shared;
        (shared.counters, shared.out) = (state.counters, state.out);
        (shared.buffered, shared.promised) = (state.buffered, state.promised);
        shared.memory = state.memory;
        gateway
    }
}
