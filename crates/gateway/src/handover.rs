//! Hands all flows of a gateway to another process, for example to a newer program.
//!
//! The state has everything of flows and subscribers: payload, positions, estimators, timers. Its times are readings of
//! the driver's clock, which must be the same in both processes. Each split flow is written separately. If the other
//! program cannot read one, only that flow ends.
//!
//! A newer program can read an older state if the format names its fields. New fields then need `serde(default)`. A
//! field that is renamed here keeps its written name (`serde(rename)`), so that both programs read each other.

use alloc::boxed::Box;
use alloc::collections::VecDeque;
use alloc::vec::Vec;

use paceline_wire::{FlowKey, Instant, Packet, PortId};
use serde::de::Error as _;
use serde::{Deserialize, Deserializer, Serialize};

use crate::auto::PathHistory;
use crate::config::GatewayConfig;
use crate::counters::Counters;
use crate::gateway::Gateway;
use crate::observe::Observer;
use crate::passed_syns::PassedSyns;
use crate::split::Split;
use crate::split::handover::TurnOrder;
pub use crate::split::handover::{RestoredSplitFlow, SplitState};
use crate::table::Table;

/// The state of a gateway, to be serialised.
#[derive(Serialize)]
pub struct GatewayState<'a> {
    table: &'a Table,
    /// Addresses and ports of split flows, for a program that cannot take them over.
    split: Vec<FlowKey>,
    split_order: TurnOrder,
    counters: &'a Counters,
    out: &'a VecDeque<(PortId, Packet)>,
    buffered: u64,
    #[serde(rename = "promised")]
    advertised: u64,
    memory: &'a PathHistory,
    passed_syns: &'a PassedSyns,
}

/// A [`GatewayState`] that was read.
#[derive(Deserialize)]
pub struct RestoredGateway {
    #[serde(deserialize_with = "checked_table")]
    table: Table,
    split: Vec<FlowKey>,
    #[serde(default)]
    split_order: TurnOrder,
    counters: Counters,
    out: VecDeque<(PortId, Packet)>,
    #[serde(rename = "promised")]
    advertised: u64,
    #[serde(default)]
    memory: PathHistory,
    #[serde(default)]
    passed_syns: PassedSyns,
}

/// Refuses a table that contradicts itself. A digest shows only that nothing was damaged on the way.
fn checked_table<'de, D: Deserializer<'de>>(from: D) -> Result<Table, D::Error> {
    Table::deserialize(from)?.checked().map_err(D::Error::custom)
}

impl RestoredGateway {
    /// Number of flows that were split.
    pub fn split_flows(&self) -> usize {
        self.table.split_len()
    }
}

/// Our choice: the number of half-open flows that are handed over. An honest handshake is among the newest, even in a
/// flood of some thousand SYNs a second. Handing over 20,000 took longer than the two processes wait for each other: a
/// flood prevented the replacement of the gateway.
const HALF_OPEN_MAX: usize = 1_024;

impl Gateway {
    /// Drops all half-open flows but the newest. Call it before the state is written.
    pub fn prepare_handover(&mut self, now: Instant) {
        while let Some(oldest) = self.table.oldest_beyond(HALF_OPEN_MAX) {
            self.drop_half_open(now, oldest);
        }
    }

    /// Returns everything that another gateway needs to go on, except its [split flows](Self::split_states).
    pub fn state(&self) -> GatewayState<'_> {
        GatewayState {
            table: &self.table,
            split: self.split.keys().collect(),
            split_order: self.split.order(),
            counters: &self.shared.counters,
            out: &self.shared.out,
            buffered: self.shared.buffered.saturating_sub(self.split.buffered()),
            advertised: self.shared.advertised.saturating_sub(self.split.advertised()),
            memory: &self.shared.memory,
            passed_syns: &self.passed_syns,
        }
    }

    /// Returns every split flow.
    pub fn split_states(&self) -> impl Iterator<Item = SplitState<'_>> {
        self.split.states()
    }

    /// Continues the gateway that wrote `state`. `config` serves new flows and subscribers; existing ones stay as they
    /// are. Split flows that could not be read end. Each of their ends is told with its next packet.
    pub fn take_over(
        config: GatewayConfig,
        observer: Box<dyn Observer + Send>,
        state: RestoredGateway,
        split: Vec<RestoredSplitFlow>,
    ) -> Self {
        let mut gateway = Gateway::with_observer(config, observer);
        let before = state.split_flows();
        gateway.split = Split::continued(split, state.split_order, &state.table);
        gateway.table =
            state.table.continued(&gateway.shared.config, |place, flow| gateway.split.goes_on(place, flow));
        for key in state.split {
            gateway.end(key);
        }
        let shared = &mut gateway.shared;
        (shared.counters, shared.out) = (state.counters, state.out);
        shared.counters.split_let_go += before.saturating_sub(gateway.split.len()) as u64;
        shared.buffered = gateway.table.recount().saturating_add(gateway.split.buffered());
        shared.advertised = state.advertised.saturating_add(gateway.split.advertised());
        shared.memory = state.memory.checked();
        gateway.passed_syns = state.passed_syns.continued();
        gateway
    }
}
