//! Split flows that go on in another process.

use alloc::boxed::Box;
use alloc::vec::Vec;

use paceline_wire::FlowKey;
use serde::{Deserialize, Serialize};

use super::Split;
use super::split_flow::SplitFlow;
use crate::table::Table;
use crate::timers::Timers;

/// All of one split flow, to be written down: both connections, what they keep, and what is between them.
///
/// Each is written by itself, so that one that cannot be read is all that is lost.
#[derive(Serialize)]
pub struct SplitState<'a> {
    id: u32,
    #[serde(rename = "pair")]
    flow: &'a SplitFlow,
    /// Whether what the server's leg, and the client's, has not read lies in memory right behind what the other one was given.
    seams: [bool; 2],
}

/// A [`SplitState`] that was read.
#[derive(Debug, Deserialize)]
pub struct SplitTakenOver {
    id: u32,
    #[serde(rename = "pair")]
    flow: Box<SplitFlow>,
    #[serde(default)]
    seams: [bool; 2],
}

/// Whose turn it is and whose timer is next.
#[derive(Debug, Default, Serialize, Deserialize)]
pub(crate) struct Order {
    ready: Vec<u32>,
    turn: Option<(u32, u32)>,
    timers: Timers,
}

impl Split {
    pub(crate) fn states(&self) -> impl Iterator<Item = SplitState<'_>> {
        self.flows.iter().map(|(id, flow)| SplitState { id: id as u32, flow, seams: flow.seams() })
    }

    pub(crate) fn order(&self) -> Order {
        Order {
            ready: self.ready.ids(|id| self.flows[id as usize].links).collect(),
            turn: self.turn,
            timers: self.timers.clone(),
        }
    }

    /// All flows that could not go on without this process, or one before it.
    pub(crate) fn keys(&self) -> impl Iterator<Item = FlowKey> {
        let told = self.flows.iter().filter(|(_, flow)| flow.client.is_some());
        told.map(|(_, flow)| flow.key).chain(self.lapsed.keys())
    }

    /// What they keep, of that of all flows.
    pub(crate) fn buffered(&self) -> u64 {
        self.flows.iter().map(|(_, flow)| flow.counted).sum()
    }

    /// What their servers may have on their way, of that of all flows.
    pub(crate) fn advertised(&self) -> u64 {
        self.flows.iter().map(|(_, flow)| flow.advertised).sum()
    }

    /// These flows, of those that have a place in the table and can be flows.
    pub(crate) fn continued(flows: Vec<SplitTakenOver>, order: Order, table: &Table) -> Split {
        let has_place = |taken: &SplitTakenOver| table.has_split(taken.flow.place, taken.id);
        let whole = |mut taken: SplitTakenOver| {
            taken.flow.lay_seams(taken.seams);
            (taken.id as usize, taken.flow)
        };
        let flows = flows.into_iter().filter(has_place).filter(|taken| taken.flow.is_sound()).map(whole);
        let mut split = Split { flows: flows.collect(), timers: order.timers, ..Split::default() };
        split.by_key = split.flows.iter().map(|(id, flow)| (flow.key, id as u32)).collect();
        split.turn = order.turn.filter(|&(id, _)| split.flows.contains(id as usize));
        for id in order.ready {
            if split.flows.contains(id as usize) {
                split.mark_ready(id);
            }
        }
        split
    }

    /// Whether flow `id` is here, with this place in the table.
    pub(crate) fn goes_on(&self, place: u32, id: u32) -> bool {
        self.flows.get(id as usize).is_some_and(|flow| flow.place == place)
    }
}

/// No flow keeps, or has on its way, as much: a terabyte.
const KEPT_MAX: u64 = 1 << 40;

/// Pieces of memory count (`SplitFlow::buffered`), so that a flow that goes on has as many as one that stays.
impl SplitFlow {
    /// Whether both connections can be, and what they were counted for.
    fn is_sound(&self) -> bool {
        let client = self.client.as_ref().map(|leg| &leg.connection);
        self.server.connection.is_sound()
            && client.is_none_or(|client| client.is_sound() && self.timeouts <= client.timeouts())
            && self.counted.max(self.advertised) < KEPT_MAX
    }

    fn seams(&self) -> [bool; 2] {
        let Some(client) = &self.client else { return [false; 2] };
        let (server, client) = (&self.server.connection, &client.connection);
        [server.lies_behind(client), client.lies_behind(server)]
    }

    fn lay_seams(&mut self, [server_side, client_side]: [bool; 2]) {
        let Some(client) = &mut self.client else { return };
        let (server, client) = (&mut self.server.connection, &mut client.connection);
        if server_side {
            server.lay_behind(client);
        }
        if client_side {
            client.lay_behind(server);
        }
    }
}
