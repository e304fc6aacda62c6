//! Checks that a table from another process is consistent: the links of each circle, and the subscriber of each flow.
//! Sums are counted again.

use alloc::collections::BTreeMap;
use alloc::vec::Vec;

use super::Table;
use crate::pool::MemoryUse;
use crate::scheduler_entry::SchedulerEntry;
use crate::share::CLASSES;

impl Table {
    /// Returns the table if it is consistent.
    pub(crate) fn checked(mut self) -> Result<Table, &'static str> {
        if !self
            .entries
            .iter()
            .all(|(_, entry)| self.subscribers.contains(entry.scheduled.subscriber() as usize))
        {
            return Err("a flow has no subscriber");
        }
        let flows = || self.entries.iter().map(|(_, entry)| &entry.scheduled);
        if flows().any(|scheduled| matches!(scheduled, SchedulerEntry::Flow(flow) if !flow.is_sound())) {
            return Err("a flow's numbers contradict each other");
        }
        let classes = self.entries.iter().map(|(_, entry)| entry.class);
        let classes = classes.chain(self.subscribers.iter().map(|(_, subscriber)| subscriber.class));
        if classes.flatten().any(|class| class >= CLASSES) {
            return Err("there is no such class");
        }
        let shares = self.entries.iter().map(|(_, entry)| &entry.share);
        let mut shares = shares.chain(self.subscribers.iter().map(|(_, subscriber)| &subscriber.share));
        if !shares.all(|share| share.is_sound()) {
            return Err("there is no such priority");
        }
        if !self.circles_are_whole() {
            return Err("a circle is broken");
        }
        self.count_anew();
        Ok(self)
    }

    fn circles_are_whole(&self) -> bool {
        let mut rings_of: BTreeMap<u32, Vec<(u32, usize, bool)>> = BTreeMap::new();
        for (id, entry) in &self.entries {
            let of_subscriber = rings_of.entry(entry.scheduled.subscriber()).or_default();
            of_subscriber.extend(entry.class.map(|class| (id as u32, class, entry.free)));
        }
        let own = |index: usize| rings_of.get(&(index as u32)).map_or(&[][..], Vec::as_slice);
        let links = |id: u32| self.entries.get(id as usize).map(|entry| entry.links);
        let active = self.subscribers.iter().filter_map(|(id, one)| Some((id as u32, one.class?)));
        let active: Vec<(u32, usize)> = active.collect();
        let links_of_active = |id: u32| self.subscribers.get(id as usize).map(|one| one.links);
        self.subscribers.iter().all(|(index, one)| one.circles_are_whole(own(index), links))
            && self.active.are_whole(&active, links_of_active)
    }

    /// Counts the sums over flows again.
    fn count_anew(&mut self) {
        for (_, subscriber) in &mut self.subscribers {
            (subscriber.flows, subscriber.ended, subscriber.repairing) = (0, 0, 0);
            subscriber.memory_use = MemoryUse::default();
        }
        for (_, entry) in &self.entries {
            let subscriber = &mut self.subscribers[entry.scheduled.subscriber() as usize];
            subscriber.flows += 1;
            subscriber.ended += u32::from(entry.has_ended);
            subscriber.repairing += u32::from(entry.repairing);
            subscriber.memory_use.replace(MemoryUse::default(), entry.memory_use);
        }
    }
}
