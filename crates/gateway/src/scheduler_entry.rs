//! What the scheduler serves at a subscriber's link: a transparent flow, or the client's leg of a split one.

use alloc::boxed::Box;

use paceline_wire::Instant;

use crate::config::ScheduleMode;
use crate::flow::Flow;
use crate::path_estimate::PathEstimate;
use crate::pool::MemoryUse;
use crate::schedule::Departure;
use crate::upload::Own;

/// One that takes turns in the [round robin](crate::priority_round_robin).
#[derive(serde::Serialize, serde::Deserialize)]
pub(crate) enum SchedulerEntry {
    Flow(Box<Flow>),
    Split(Box<SplitEntry>),
}

/// A split flow's entry; the flow itself is with those of its kind, and tells what it wants after each event.
#[derive(Clone, Copy, Debug, Default, serde::Serialize, serde::Deserialize)]
pub(crate) struct SplitEntry {
    pub(crate) subscriber: u32,
    /// Its number among split flows.
    #[serde(rename = "pair")]
    pub(crate) flow: u32,
    #[serde(rename = "wish")]
    pub(crate) demand: SendDemand,
    pub(crate) path: PathEstimate,
    /// What is known of its upload.
    #[serde(default)]
    pub(crate) upload: Own,
}

/// What a split flow wants of its subscriber's link.
#[derive(Clone, Copy, Debug, Default, serde::Serialize, serde::Deserialize)]
pub(crate) struct SendDemand {
    /// Bytes in flight to the client.
    pub(crate) in_flight: u64,
    /// Its part of the shared memory.
    #[serde(rename = "holdings")]
    pub(crate) memory_use: MemoryUse,
    /// Its sender would send, and only the subscriber holds it back.
    pub(crate) wants: bool,
    /// Payload of a full-sized segment.
    pub(crate) segment: u64,
    /// Payload of what would leave next as one super-packet.
    #[serde(default)]
    pub(crate) piece: u64,
    /// Not both ends have answered.
    #[serde(default)]
    pub(crate) half_open: bool,
    /// Its sender keeps the queue short by one-way delays (RRE). The subscriber's bound goes by round trips, and would take a queue of
    /// the uplink for one of the downlink; so it holds others back, not this one.
    #[serde(default)]
    pub(crate) needs_no_room: bool,
}

impl SchedulerEntry {
    pub(crate) fn subscriber(&self) -> u32 {
        match self {
            SchedulerEntry::Flow(flow) => flow.subscriber(),
            SchedulerEntry::Split(split) => split.subscriber,
        }
    }

    pub(crate) fn in_flight(&self) -> u64 {
        match self {
            SchedulerEntry::Flow(flow) => flow.in_flight(),
            SchedulerEntry::Split(split) => split.demand.in_flight,
        }
    }

    pub(crate) fn memory_use(&self) -> MemoryUse {
        match self {
            SchedulerEntry::Flow(flow) => flow.memory_use(),
            SchedulerEntry::Split(split) => split.demand.memory_use,
        }
    }

    /// Not both ends have answered, so anybody may have sent its SYN.
    pub(crate) fn is_half_open(&self) -> bool {
        match self {
            SchedulerEntry::Flow(flow) => flow.is_half_open(),
            SchedulerEntry::Split(split) => split.demand.half_open,
        }
    }

    /// It sends nothing more, but is kept for what comes late. A split flow goes when it ends.
    pub(crate) fn has_ended(&self) -> bool {
        match self {
            SchedulerEntry::Flow(flow) => flow.has_ended(),
            SchedulerEntry::Split(_) => false,
        }
    }

    pub(crate) fn set_path(&mut self, path: PathEstimate) {
        match self {
            SchedulerEntry::Flow(flow) => flow.set_path(path),
            SchedulerEntry::Split(split) => split.path = path,
        }
    }

    pub(crate) fn set_own_upload(&mut self, own: Own) {
        match self {
            SchedulerEntry::Flow(flow) => flow.set_own_upload(own),
            SchedulerEntry::Split(split) => split.upload = own,
        }
    }

    pub(crate) fn wants_to_send(&self) -> bool {
        match self {
            SchedulerEntry::Flow(flow) => flow.wants_to_send(),
            SchedulerEntry::Split(split) => split.demand.wants,
        }
    }

    /// What its client waits for is to be sent again. A split flow's own sender does that without asking.
    pub(crate) fn head_is_lost(&self) -> bool {
        match self {
            SchedulerEntry::Flow(flow) => flow.head_is_lost(),
            SchedulerEntry::Split(_) => false,
        }
    }

    /// Nothing holds it back.
    pub(crate) fn needs_no_room(&self) -> bool {
        match self {
            SchedulerEntry::Flow(flow) => flow.needs_no_room(),
            SchedulerEntry::Split(split) => split.demand.wants && split.demand.needs_no_room,
        }
    }

    pub(crate) fn next_departure(&self, mode: ScheduleMode, now: Instant) -> Option<Departure> {
        match self {
            SchedulerEntry::Flow(flow) => flow.next_departure(mode, now),
            SchedulerEntry::Split(split) => split.demand.wants.then_some(Departure::Now),
        }
    }

    pub(crate) fn next_bytes(&self, quantum: u64) -> u64 {
        match self {
            SchedulerEntry::Flow(flow) => flow.next_bytes(quantum),
            SchedulerEntry::Split(split) => split.demand.piece.min(quantum).max(split.demand.segment),
        }
    }

    /// When it has something to do by itself; a split flow has timers of its own.
    pub(crate) fn deadline(&self, repairs: bool, idle_timeout_s: u64) -> Option<Instant> {
        match self {
            SchedulerEntry::Flow(flow) => {
                let expiry = flow.expires_at(idle_timeout_s);
                Some(flow.deadline(repairs).map_or(expiry, |at| at.min(expiry)))
            }
            SchedulerEntry::Split(_) => None,
        }
    }
}
