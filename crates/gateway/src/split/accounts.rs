//! What a split flow tells of itself: to its subscriber, to the memory that all share, and to whoever watches.

use paceline_tcp::{CongestionName, Connection};
use paceline_wire::{Duration, Instant, Rate};

use super::split_flow::SplitFlow;
use crate::config::VirtualWindowMode;
use crate::context::SplitContext as Context;
use crate::link_report::LinkReport;
use crate::observe::Event;
use crate::pool::{MemoryUse, most_advertised, most_on_the_way};
use crate::scheduler_entry::SendDemand;
use crate::subscriber::LimitShare;

impl SplitFlow {
    /// What the client has reported since the last call, and how many timeouts there were.
    pub(super) fn report(&mut self, now: Instant) -> (LinkReport, u64) {
        // Who goes by the client's clock is not bounded.
        let may_be_held = !self.measures_one_way();
        let upload = self.take_upload_report();
        let Some(client) = &mut self.client else { return Default::default() };
        let delivery = client.connection.take_delivery();
        let timeouts = client.connection.timeouts();
        let newly = timeouts - core::mem::replace(&mut self.timeouts, timeouts);
        let report = LinkReport {
            delivered: delivery.delivered,
            lost: delivery.lost,
            lost_sent: None,
            rtt: delivery.rtt,
            age: delivery.sent_at.map(|sent| now.saturating_since(sent)),
            server_rtt: Duration::ZERO,
            uplink: self.uplink.queue(),
            paced: may_be_held && client.connection.is_paced(),
            upload,
        };
        (report, newly)
    }

    /// Enters what it keeps, and what was advertised to its server, among that of all flows.
    pub(super) fn settle(&mut self, ctx: &mut Context<'_>) {
        // Nothing comes before the client has answered: a flood of SYNs takes nothing from those who have.
        let advertised = if self.opening.is_some() || self.awaits_client() {
            0
        } else {
            let server = &self.server.connection;
            server.advertised().min(most_on_the_way(server.peer_segment(), server.bytes_received()))
        };
        let buffered = self.buffered();
        *ctx.buffered = (*ctx.buffered + buffered).saturating_sub(self.counted);
        *ctx.advertised = (*ctx.advertised + advertised).saturating_sub(self.advertised);
        (self.counted, self.advertised) = (buffered, advertised);
        ctx.counters.peak_buffered_bytes = ctx.counters.peak_buffered_bytes.max(*ctx.buffered);
    }

    /// What bounds it, as of now: `subscriber` holds so much memory; this flow may have `limit` of its link.
    pub(super) fn bound(&mut self, ctx: &Context<'_>, subscriber: MemoryUse, limit: LimitShare) {
        let free = self.measures_one_way();
        self.bounds.in_flight = if free { u64::MAX } else { limit.in_flight };
        self.bounds.at_once = if free { u64::MAX } else { limit.at_once };
        if ctx.config.virtual_window.mode != VirtualWindowMode::Sized {
            return;
        }
        let pool = ctx.config.limits.max_buffer_bytes as u64;
        let share = most_advertised(pool, *ctx.advertised, subscriber, self.advertised);
        // As transparent flows: never less than ten segments, with which it goes on.
        let least = 10 * self.server.connection.peer_segment();
        self.bounds.window = share.max(least).min(u64::from(u32::MAX));
    }

    fn measures_one_way(&self) -> bool {
        let client = self.client.as_ref().map(|leg| leg.connection.config().congestion);
        client == Some(CongestionName::Rre)
    }

    /// What it wants of its subscriber's link, if `wants` is said.
    pub(super) fn send_demand(&self, wants: bool) -> SendDemand {
        let client = self.client.as_ref().map(|leg| &leg.connection);
        SendDemand {
            in_flight: client.map_or(0, Connection::pipe),
            memory_use: MemoryUse { kept: self.counted, advertised: self.advertised },
            wants,
            half_open: self.client.is_none() || self.awaits_client(),
            segment: client.map_or(0, Connection::segment),
            piece: client.filter(|_| wants).map_or(0, Connection::next_piece),
            needs_no_room: self.measures_one_way(),
        }
    }

    /// An ACK towards the server, as an event.
    pub(super) fn acked(&self) -> Option<Event> {
        let (server, client) = (&self.server.connection, &self.client.as_ref()?.connection);
        let srtt = client.srtt();
        let rate = if srtt.is_zero() { Rate::ZERO } else { Rate::from_bytes_in(client.pipe(), srtt) };
        Some(Event::Acked {
            client_window: client.peer_window(),
            virtual_window: server.advertised(),
            in_flight: client.pipe(),
            waiting: client.unsent() + server.readable(),
            rate,
            rtt: srtt,
            delay: Duration::ZERO,
        })
    }
}
