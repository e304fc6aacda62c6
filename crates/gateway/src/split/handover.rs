//! Split flows that go on in another process.

use alloc::boxed::Box;
use alloc::vec::Vec;

use paceline_wire::FlowKey;
use serde::{Deserialize, Serialize};

use super::Split;
use super::pair::Pair;
use crate::table::Table;
use crate::timers::Timers;

/// All of one split flow, to be written down: both connections, what they keep, and what is between them.
///
/// Each is written by itself, so that one that cannot be read is all that is lost.
#[derive(Serialize)]
pub struct SplitState<'a> {
    id: u32,
    pair: &'a Pair,
    /// Whether what the server's side, and the client's, has not read lies in memory right behind what the other one was given.
    seams: [bool; 2],
}

/// A [`SplitState`] that was read.
#[derive(Debug, Deserialize)]
pub struct SplitTakenOver {
    id: u32,
    pair: Box<Pair>,
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
        self.pairs.iter().map(|(id, pair)| SplitState { id: id as u32, pair, seams: pair.seams() })
    }

    pub(crate) fn order(&self) -> Order {
        Order {
            ready: self.ready.ids(|id| self.pairs[id as usize].links).collect(),
            turn: self.turn,
            timers: self.timers.clone(),
        }
    }

    /// All flows that could not go on without this process, or one before it.
    pub(crate) fn keys(&self) -> impl Iterator<Item = FlowKey> {
        let told = self.pairs.iter().filter(|(_, pair)| pair.client.is_some());
        told.map(|(_, pair)| pair.key).chain(self.lapsed.keys())
    }

    /// What they keep, of that of all flows.
    pub(crate) fn buffered(&self) -> u64 {
        self.pairs.iter().map(|(_, pair)| pair.counted).sum()
    }

    /// What their servers may have on their way, of that of all flows.
    pub(crate) fn promised(&self) -> u64 {
        self.pairs.iter().map(|(_, pair)| pair.promised).sum()
    }

    /// These flows, of those that have a place in the table.
    pub(crate) fn continued(flows: Vec<SplitTakenOver>, order: Order, table: &Table) -> Split {
        let has_place = |flow: &SplitTakenOver| table.has_split(flow.pair.place, flow.id);
        let whole = |mut flow: SplitTakenOver| {
            flow.pair.lay_seams(flow.seams);
            (flow.id as usize, flow.pair)
        };
        let pairs = flows.into_iter().filter(has_place).map(whole);
        let mut split = Split { pairs: pairs.collect(), timers: order.timers, ..Split::default() };
        split.by_key = split.pairs.iter().map(|(id, pair)| (pair.key, id as u32)).collect();
        split.turn = order.turn.filter(|&(id, _)| split.pairs.contains(id as usize));
        for id in order.ready {
            if split.pairs.contains(id as usize) {
                split.mark_ready(id);
            }
        }
        split
    }

    /// Whether flow `id` is here, with this place in the table.
    pub(crate) fn goes_on(&self, place: u32, id: u32) -> bool {
        self.pairs.get(id as usize).is_some_and(|pair| pair.place == place)
    }
}

/// Pieces of memory count (`Pair::buffered`), so that a flow that goes on has as many as one that stays.
impl Pair {
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
