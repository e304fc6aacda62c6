//! What a flow is entitled to, and what it holds of the memory that all share.

use super::Context;
use crate::config::GatewayConfig;
use crate::pool::{MemoryUse, may_keep, most_advertised};

/// Whose it is, its weight, and what it holds.
#[derive(Clone, Copy, Debug, serde::Serialize, serde::Deserialize)]
pub(super) struct Account {
    subscriber: u32,
    weight: u32,
    /// The largest window shown to the server, where a rule says one.
    pub(super) window_max_bytes: Option<u64>,
    /// This flow's part of what was advertised to servers.
    #[serde(rename = "promised")]
    advertised: u64,
    /// What it keeps, as counted among that of all flows.
    #[serde(default)]
    charged: u64,
}

impl Account {
    pub(super) fn new(subscriber: u32, weight: u32) -> Self {
        Account { subscriber, weight, window_max_bytes: None, advertised: 0, charged: 0 }
    }

    pub(super) fn subscriber(&self) -> u32 {
        self.subscriber
    }

    pub(super) fn weight(&self) -> u32 {
        self.weight
    }

    /// The largest window that its server may be shown.
    pub(super) fn window_max(&self, config: &GatewayConfig) -> u64 {
        self.window_max_bytes.unwrap_or(u64::MAX).min(config.virtual_window.max_bytes)
    }

    /// As it was counted last.
    pub(super) fn memory_use(&self) -> MemoryUse {
        MemoryUse { kept: self.charged, advertised: self.advertised }
    }

    /// It keeps so much now.
    pub(super) fn charge(&mut self, all_kept: &mut u64, kept: u64) {
        *all_kept = (*all_kept + kept).saturating_sub(core::mem::replace(&mut self.charged, kept));
    }

    /// As if nothing had been charged yet.
    pub(super) fn forget_charge(&mut self) {
        self.charged = 0;
    }

    /// There is memory for `bytes` more of this flow.
    pub(super) fn has_room(&self, ctx: &Context<'_>, bytes: usize) -> bool {
        let limits = &ctx.config.limits;
        let (pool, bytes) = (limits.max_buffer_bytes as u64, bytes as u64);
        self.charged + bytes <= limits.max_flow_buffer_bytes
            && may_keep(pool, *ctx.buffered, ctx.subscriber, bytes)
    }

    /// What the server may have on its way beyond what is acknowledged, which is kept until the client has it.
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
