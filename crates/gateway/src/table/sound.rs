//! Checks that a table from another process is consistent: the links of each circle, and the subscriber of each flow.
//! Sums are counted again.

use alloc::collections::BTreeMap;
use alloc::vec::Vec;

use super::Table;
use crate::ids::{EntryId, SubscriberId};
use crate::pool::MemoryUse;
use crate::scheduler_entry::SchedulerEntry;
use crate::share::{CLASSES, Share};

impl Table {
    /// Returns the table if it is consistent.
    pub(crate) fn checked(mut self) -> Result<Table, &'static str> {
        if !self.entries.iter().all(|(_, entry)| self.subscribers.contains(entry.scheduled.subscriber())) {
            return Err("a flow has no subscriber");
        }
        let flows = || self.entries.values().map(|entry| &entry.scheduled);
        if flows().any(|scheduled| matches!(scheduled, SchedulerEntry::Flow(flow) if !flow.is_sound())) {
            return Err("a flow's numbers contradict each other");
        }
        let classes = self.entries.values().map(|entry| entry.class);
        let classes = classes.chain(self.subscribers.values().map(|subscriber| subscriber.class));
        if classes.flatten().any(|class| class >= CLASSES) {
            return Err("there is no such class");
        }
        let shares = self.entries.values().map(|entry| &entry.share);
        let shares_are_sound =
            shares.chain(self.subscribers.values().map(|subscriber| &subscriber.share)).all(Share::is_sound);
        if !shares_are_sound {
            return Err("there is no such priority");
        }
        if !self.circles_are_consistent() {
            return Err("a circle is broken");
        }
        self.count_anew();
        Ok(self)
    }

    fn circles_are_consistent(&self) -> bool {
        let mut rings_of: BTreeMap<SubscriberId, Vec<(EntryId, usize, bool)>> = BTreeMap::new();
        for (id, entry) in self.entries.iter() {
            let of_subscriber = rings_of.entry(entry.scheduled.subscriber()).or_default();
            of_subscriber.extend(entry.class.map(|class| (id, class, entry.free)));
        }
        let own = |index: SubscriberId| rings_of.get(&index).map_or(&[][..], Vec::as_slice);
        let links = |id: EntryId| self.entries.get(id).map(|entry| entry.links);
        let active = self.subscribers.iter().filter_map(|(id, one)| Some((id, one.class?)));
        let active: Vec<(SubscriberId, usize)> = active.collect();
        let links_of_active = |id: SubscriberId| self.subscribers.get(id).map(|one| one.links);
        self.subscribers.iter().all(|(index, one)| one.circles_are_consistent(own(index), links))
            && self.active.are_whole(&active, links_of_active)
    }

    /// Counts the sums over flows again.
    fn count_anew(&mut self) {
        for subscriber in self.subscribers.values_mut() {
            (subscriber.flows, subscriber.ended, subscriber.repairing) = (0, 0, 0);
            subscriber.memory_use = MemoryUse::default();
        }
        for entry in self.entries.values() {
            let subscriber = &mut self.subscribers[entry.scheduled.subscriber()];
            subscriber.flows += 1;
            subscriber.ended += u32::from(entry.has_ended);
            subscriber.repairing += u32::from(entry.repairing);
            subscriber.memory_use.replace(MemoryUse::default(), entry.memory_use);
        }
    }
}
