//! The weight and limits of a flow, and its part of the shared memory.

use super::Context;
use crate::config::GatewayConfig;
use crate::ids::SubscriberId;
use crate::pool::{MemoryUse, may_keep, most_advertised};

/// Subscriber, weight and memory of a flow.
#[derive(Clone, Copy, Debug, serde::Serialize, serde::Deserialize)]
pub(super) struct Account {
    subscriber: SubscriberId,
    weight: u32,
    /// The largest window shown to the server, if a rule sets one.
    pub(super) window_max_bytes: Option<u64>,
    /// This flow's part of what was advertised to servers.
    #[serde(rename = "promised")]
    advertised: u64,
    /// Bytes that it keeps, as charged to the memory of all flows.
    #[serde(default)]
    charged: u64,
}

impl Account {
    pub(super) fn new(subscriber: SubscriberId, weight: u32) -> Self {
        Account { subscriber, weight, window_max_bytes: None, advertised: 0, charged: 0 }
    }

    pub(super) fn subscriber(&self) -> SubscriberId {
        self.subscriber
    }

    pub(super) fn weight(&self) -> u32 {
        self.weight
    }

    /// The largest window that its server may be shown.
    pub(super) fn window_max(&self, config: &GatewayConfig) -> u64 {
        self.window_max_bytes.unwrap_or(u64::MAX).min(config.virtual_window.max_bytes)
    }

    /// Returns its memory use as it was counted last.
    pub(super) fn memory_use(&self) -> MemoryUse {
        MemoryUse { kept: self.charged, advertised: self.advertised }
    }

    /// Charges the flow for `kept` bytes.
    pub(super) fn charge(&mut self, all_kept: &mut u64, kept: u64) {
        *all_kept = (*all_kept + kept).saturating_sub(core::mem::replace(&mut self.charged, kept));
    }

    /// Forgets the charge, as if nothing had been charged yet.
    pub(super) fn forget_charge(&mut self) {
        self.charged = 0;
    }

    /// True if there is memory for `bytes` more of this flow.
    pub(super) fn has_room(&self, ctx: &Context<'_>, bytes: usize) -> bool {
        let limits = &ctx.config.limits;
        let (pool, bytes) = (limits.max_buffer_bytes as u64, bytes as u64);
        self.charged + bytes <= limits.max_flow_buffer_bytes
            && may_keep(pool, *ctx.buffered, ctx.subscriber, bytes)
    }

    /// Notes the bytes that the server may have in flight. The gateway keeps them until the client has them.
    pub(super) fn advertise(&mut self, ctx: &mut Context<'_>, bytes: u64) {
        *ctx.advertised = ctx.advertised.saturating_sub(self.advertised) + bytes;
        self.advertised = bytes;
    }

    /// The most that it may advertise.
    pub(super) fn most_advertised(&self, ctx: &Context<'_>) -> u64 {
        let pool = ctx.config.limits.max_buffer_bytes as u64;
        most_advertised(pool, *ctx.advertised, ctx.subscriber, self.advertised)
    }
}
