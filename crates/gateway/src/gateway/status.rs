//! Lists of flows and subscribers for an operator.

use super::Gateway;
use crate::status::{FlowStatus, Page, SubscriberStatus};

/// First place of split flows in lists. No table has as many places.
const SPLIT_PLACES: usize = usize::MAX / 2;

impl Gateway {
    /// Returns the flows from place `from` of the table on. It looks at no more than `places` places.
    pub fn flow_statuses(&self, from: usize, places: usize) -> Page<FlowStatus> {
        let config = &self.shared.config;
        // Split flows come after all places that a table can have.
        if let Some(from) = from.checked_sub(SPLIT_PLACES) {
            let page = self.split.statuses(config, from, places);
            return Page { next: page.next.map(|next| next + SPLIT_PLACES), ..page };
        }
        let page = self.table.flow_statuses(config, from, places);
        Page { next: page.next.or((self.split.len() > 0).then_some(SPLIT_PLACES)), ..page }
    }

    /// Returns the subscribers from place `from` on. It looks at no more than `places` places.
    pub fn subscriber_statuses(&self, from: usize, places: usize) -> Page<SubscriberStatus> {
        self.table.subscriber_statuses(from, places)
    }
}
