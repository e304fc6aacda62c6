//! An entry of the scheduler at a subscriber's link: a transparent flow, or the client's leg of a split one.

use alloc::boxed::Box;

use paceline_wire::Instant;

use crate::config::ScheduleMode;
use crate::flow::Flow;
use crate::ids::{SplitFlowId, SubscriberId};
use crate::path_estimate::PathEstimate;
use crate::pool::MemoryUse;
use crate::schedule::Departure;
use crate::upload::UploadState;

/// An entry that takes turns in the [round robin](crate::priority_round_robin).
#[derive(serde::Serialize, serde::Deserialize)]
pub(crate) enum SchedulerEntry {
    Flow(Box<Flow>),
    Split(Box<SplitEntry>),
}

/// The entry of a split flow. `crate::split` holds the flow itself and updates `demand` after each event.
#[derive(Clone, Copy, Debug, Default, serde::Serialize, serde::Deserialize)]
pub(crate) struct SplitEntry {
    pub(crate) subscriber: SubscriberId,
    /// Index of the flow among split flows.
    #[serde(rename = "pair")]
    pub(crate) flow: SplitFlowId,
    #[serde(rename = "wish")]
    pub(crate) demand: SendDemand,
    pub(crate) path: PathEstimate,
    /// The state of its upload.
    #[serde(default)]
    pub(crate) upload: UploadState,
}

/// What a split flow tells the scheduler.
#[derive(Clone, Copy, Debug, Default, serde::Serialize, serde::Deserialize)]
pub(crate) struct SendDemand {
    /// Bytes in flight to the client.
    pub(crate) in_flight: u64,
    /// Its part of the shared memory.
    #[serde(rename = "holdings")]
    pub(crate) memory_use: MemoryUse,
    /// Its sender would send, and only waits for its turn.
    pub(crate) wants: bool,
    /// Payload of a full-sized segment.
    pub(crate) segment: u64,
    /// Payload of the super-packet that would leave next.
    #[serde(default)]
    pub(crate) piece: u64,
    /// True until both ends have answered.
    #[serde(default)]
    pub(crate) half_open: bool,
    /// True if its sender keeps the queue short by one-way delays (RRE). The subscriber's bound uses round trips, and
    /// would take a queue on the uplink for one on the downlink. So it holds back other flows, and not this one.
    #[serde(default)]
    pub(crate) needs_no_room: bool,
}

impl SchedulerEntry {
    pub(crate) fn subscriber(&self) -> SubscriberId {
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

    /// True until both ends have answered. Until then, anybody may have sent its SYN.
    pub(crate) fn is_half_open(&self) -> bool {
        match self {
            SchedulerEntry::Flow(flow) => flow.is_half_open(),
            SchedulerEntry::Split(split) => split.demand.half_open,
        }
    }

    /// True if it sends nothing more and is kept only for late packets. A split flow is removed when it ends.
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

    pub(crate) fn set_own_upload(&mut self, own: UploadState) {
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

    /// True if the client waits for a lost segment, which is retransmitted next. A split flow's own sender does that
    /// without a turn.
    pub(crate) fn head_is_lost(&self) -> bool {
        match self {
            SchedulerEntry::Flow(flow) => flow.head_is_lost(),
            SchedulerEntry::Split(_) => false,
        }
    }

    /// True if it needs no room under the subscriber's bound.
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

    /// Returns the time of its next own action. A split flow has its own timers.
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
