//! The places of split flows.

use paceline_wire::{FlowKey, Instant};

use super::Table;
use crate::config::GatewayConfig;
use crate::flow::LinkReport;
use crate::member::{Member, SplitMember, Wish};
use crate::share::Share;
use crate::subscriber::PathEstimate;

impl Table {
    /// Split flows.
    #[cfg(feature = "serde")]
    pub(crate) fn split_len(&self) -> usize {
        self.entries.iter().filter(|(_, entry)| matches!(entry.member, Member::Split(_))).count()
    }

    /// Whether the split flow `pair` has this place, and so a number that a table can have.
    #[cfg(feature = "serde")]
    pub(crate) fn has_split(&self, place: u32, pair: u32) -> bool {
        let member = self.entries.get(place as usize).map(|entry| &entry.member);
        (pair as usize) < self.max_flows
            && matches!(member, Some(Member::Split(member)) if member.pair == pair)
    }

    /// The place of a split flow, if a split flow has this one.
    pub(crate) fn split(&self, id: u32) -> Option<SplitMember> {
        match self.entries[id as usize].member {
            Member::Flow(_) => None,
            Member::Split(member) => Some(member),
        }
    }

    /// What the subscriber of the member in this place has sent up.
    pub(crate) fn uploaded(&self, id: u32) -> u64 {
        self.subscribers[self.entries[id as usize].member.subscriber() as usize].uploaded()
    }

    /// Adds a place for the split flow `pair` of a client; none if the table is full.
    pub(crate) fn insert_split(
        &mut self,
        config: &GatewayConfig,
        key: &FlowKey,
        share: Share,
        pair: u32,
    ) -> Option<u32> {
        if self.entries.len() >= self.max_flows {
            return None;
        }
        let subscriber = self.subscriber_of(config, key.src.ip());
        let wish = Wish { half_open: true, ..Wish::default() };
        let member = SplitMember { subscriber, pair, wish, ..SplitMember::default() };
        let id = self.enter(subscriber, share, Member::Split(member));
        self.begin_half_open(id, key.dst.ip());
        Some(id)
    }

    /// After a packet or timeout of a split flow, whose place is `id`: what it wants from here on. Returns the path to its client.
    pub(crate) fn after_split_event(
        &mut self,
        id: u32,
        now: Instant,
        wish: Wish,
        report: &LinkReport,
    ) -> PathEstimate {
        let before = self.set_wish(id, wish);
        self.after_event(id, now, before, report, false);
        self.split(id).map(|member| member.path).unwrap_or_default()
    }

    /// After a packet of a split flow, of `bytes`, left for its client.
    pub(crate) fn after_split_sent(&mut self, id: u32, now: Instant, wish: Wish, bytes: u64) {
        let before = self.set_wish(id, wish);
        self.after_sent(id, now, before, bytes, false);
    }

    /// Returns the bytes in flight that were told before.
    fn set_wish(&mut self, id: u32, wish: Wish) -> u64 {
        match &mut self.entries[id as usize].member {
            Member::Split(member) => core::mem::replace(&mut member.wish, wish).in_flight,
            Member::Flow(flow) => flow.in_flight(),
        }
    }
}
