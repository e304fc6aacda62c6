//! The entries of split flows in the table.

use alloc::boxed::Box;

use paceline_wire::{FlowKey, Instant};

use super::Table;
use crate::config::GatewayConfig;
use crate::ids::{EntryId, Id, SplitFlowId};
use crate::link_report::LinkReport;
use crate::path_estimate::PathEstimate;
use crate::scheduler_entry::{SchedulerEntry, SendDemand, SplitEntry};
use crate::share::Share;
use crate::upload::UploadState;

impl Table {
    /// Number of split flows.
    pub(crate) fn split_len(&self) -> usize {
        self.entries.values().filter(|entry| matches!(entry.scheduled, SchedulerEntry::Split(_))).count()
    }

    /// True if split flow `flow` has this place. Its number is then one that a table can have.
    pub(crate) fn has_split(&self, place: EntryId, flow: SplitFlowId) -> bool {
        let scheduled = self.entries.get(place).map(|entry| &entry.scheduled);
        flow.index() < self.max_flows
            && matches!(scheduled, Some(SchedulerEntry::Split(own)) if own.flow == flow)
    }

    /// Returns the entry of the split flow in this place, if there is one.
    pub(crate) fn split(&self, id: EntryId) -> Option<SplitEntry> {
        match &self.entries[id].scheduled {
            SchedulerEntry::Flow(_) => None,
            SchedulerEntry::Split(own) => Some(**own),
        }
    }

    /// Returns the newest path estimate of the subscriber of this entry.
    pub(crate) fn newest_path(&self, id: EntryId) -> PathEstimate {
        self.subscribers[self.entries[id].scheduled.subscriber()].path()
    }

    /// Returns the path to the client of the split flow in this place, as of its last event.
    pub(crate) fn split_path(&self, id: EntryId) -> PathEstimate {
        self.split(id).map(|own| own.path).unwrap_or_default()
    }

    /// Adds an entry for split flow `flow` of a client. None if the table is full.
    pub(crate) fn insert_split(
        &mut self,
        config: &GatewayConfig,
        key: &FlowKey,
        share: Share,
        flow: SplitFlowId,
    ) -> Option<EntryId> {
        if self.entries.len() >= self.max_flows {
            return None;
        }
        let subscriber = self.subscriber_of(config, key.src.ip());
        let demand = SendDemand { half_open: true, ..SendDemand::default() };
        let own = SplitEntry { subscriber, flow, demand, ..SplitEntry::default() };
        let id = self.enter(subscriber, share, SchedulerEntry::Split(Box::new(own)));
        self.begin_half_open(id, key.dst.ip());
        Some(id)
    }

    /// Runs after every packet or timeout of the split flow in place `id`, which wants `demand` from here on. Returns
    /// the path to its client, and the state of its upload.
    pub(crate) fn after_split_event(
        &mut self,
        id: EntryId,
        now: Instant,
        demand: SendDemand,
        report: &LinkReport,
    ) -> (PathEstimate, UploadState) {
        let before = self.set_demand(id, demand);
        self.after_event(id, now, before, report, false);
        self.split(id).map(|own| (own.path, own.upload)).unwrap_or_default()
    }

    /// Runs after a packet of a split flow, of `bytes`, left for its client.
    pub(crate) fn after_split_sent(&mut self, id: EntryId, now: Instant, demand: SendDemand, bytes: u64) {
        let before = self.set_demand(id, demand);
        self.after_sent(id, now, before, bytes, false);
    }

    /// Sets the demand of a split flow. Returns the bytes in flight of the previous one.
    fn set_demand(&mut self, id: EntryId, demand: SendDemand) -> u64 {
        match &mut self.entries[id].scheduled {
            SchedulerEntry::Split(own) => core::mem::replace(&mut own.demand, demand).in_flight,
            SchedulerEntry::Flow(flow) => flow.in_flight(),
        }
    }
}
