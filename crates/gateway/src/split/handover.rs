//! Hands split flows to another process.

use alloc::boxed::Box;
use alloc::vec::Vec;

use paceline_wire::FlowKey;
use serde::{Deserialize, Serialize};

use super::Split;
use super::split_flow::SplitFlow;
use crate::ids::{EntryId, SplitFlowId};
use crate::table::Table;
use crate::timers::Timers;

/// The state of one split flow, to be serialised: both connections, their data, and what is between them.
///
/// Each is serialised separately. If one cannot be read, only that one is lost.
#[derive(Serialize)]
pub struct SplitState<'a> {
    id: SplitFlowId,
    #[serde(rename = "pair")]
    flow: &'a SplitFlow,
    /// One value for the server's leg, one for the client's. True if its unread data lies in memory directly behind the
    /// data last written to the other leg.
    seams: [bool; 2],
}

/// A [`SplitState`] that was read.
#[derive(Debug, Deserialize)]
pub struct RestoredSplitFlow {
    id: SplitFlowId,
    #[serde(rename = "pair")]
    flow: Box<SplitFlow>,
    #[serde(default)]
    seams: [bool; 2],
}

/// The order of turns, and the timers.
#[derive(Debug, Default, Serialize, Deserialize)]
pub(crate) struct TurnOrder {
    ready: Vec<SplitFlowId>,
    turn: Option<(SplitFlowId, u32)>,
    timers: Timers<SplitFlowId>,
}

impl Split {
    pub(crate) fn states(&self) -> impl Iterator<Item = SplitState<'_>> {
        self.flows.iter().map(|(id, flow)| SplitState { id, flow, seams: flow.seams() })
    }

    pub(crate) fn order(&self) -> TurnOrder {
        TurnOrder {
            ready: self.ready.ids(|id| self.flows[id].links).collect(),
            turn: self.turn,
            timers: self.timers.clone(),
        }
    }

    /// Returns all flows that cannot go on without this process, or without an earlier one.
    pub(crate) fn keys(&self) -> impl Iterator<Item = FlowKey> {
        let told = self.flows.values().filter(|flow| flow.client.is_some());
        told.map(|flow| flow.key).chain(self.lapsed.keys())
    }

    /// Returns the bytes that split flows keep.
    pub(crate) fn buffered(&self) -> u64 {
        self.flows.values().map(|flow| flow.counted).sum()
    }

    /// Returns the bytes that servers of split flows may send by the windows that they were shown.
    pub(crate) fn advertised(&self) -> u64 {
        self.flows.values().map(|flow| flow.advertised).sum()
    }

    /// Continues those flows that have a place in the table and are consistent.
    pub(crate) fn continued(flows: Vec<RestoredSplitFlow>, order: TurnOrder, table: &Table) -> Split {
        let has_place = |taken: &RestoredSplitFlow| table.has_split(taken.flow.place, taken.id);
        let whole = |mut taken: RestoredSplitFlow| {
            taken.flow.lay_seams(taken.seams);
            (taken.id, taken.flow)
        };
        let flows = flows.into_iter().filter(has_place).filter(|taken| taken.flow.is_sound()).map(whole);
        let mut split = Split { flows: flows.collect(), timers: order.timers, ..Split::default() };
        split.by_key = split.flows.iter().map(|(id, flow)| (flow.key, id)).collect();
        split.turn = order.turn.filter(|&(id, _)| split.flows.contains(id));
        for id in order.ready {
            if split.flows.contains(id) {
                split.mark_ready(id);
            }
        }
        split
    }

    /// True if flow `id` is here, with this place in the table.
    pub(crate) fn goes_on(&self, place: EntryId, id: SplitFlowId) -> bool {
        self.flows.get(id).is_some_and(|flow| flow.place == place)
    }
}

/// No flow keeps this many bytes, or has this many advertised: a terabyte.
const KEPT_MAX: u64 = 1 << 40;

/// The number of memory pieces counts (`SplitFlow::buffered`). Seams keep it the same over a handover.
impl SplitFlow {
    /// True if both connections and the counted bytes are plausible.
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
