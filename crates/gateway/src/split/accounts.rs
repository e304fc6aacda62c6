//! Accounts of a split flow: its reports to the subscriber, to the shared memory and to observers.

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
    /// Returns what the client reported since the last call, and the number of new timeouts.
    pub(super) fn report(&mut self, now: Instant) -> (LinkReport, u64) {
        // The bound does not hold back a sender that measures one-way delays (RRE).
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

    /// Updates its part of all bytes kept, and of all bytes advertised to servers.
    pub(super) fn settle(&mut self, ctx: &mut Context<'_>) {
        // No data comes before the client has answered. So a flood of SYNs takes no memory from flows that are open.
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

    /// Updates its bounds. `subscriber` is the memory that its subscriber holds, `limit` this flow's part of the link.
    pub(super) fn bound(&mut self, ctx: &Context<'_>, subscriber: MemoryUse, limit: LimitShare) {
        let free = self.measures_one_way();
        self.bounds.in_flight = if free { u64::MAX } else { limit.in_flight };
        self.bounds.at_once = if free { u64::MAX } else { limit.at_once };
        if ctx.config.virtual_window.mode != VirtualWindowMode::Sized {
            return;
        }
        let pool = ctx.config.limits.max_buffer_bytes as u64;
        let share = most_advertised(pool, *ctx.advertised, subscriber, self.advertised);
        // As for transparent flows: at least ten segments, with which the flow moves on.
        let least = 10 * self.server.connection.peer_segment();
        self.bounds.window = share.max(least).min(u64::from(u32::MAX));
    }

    fn measures_one_way(&self) -> bool {
        let client = self.client.as_ref().map(|leg| leg.connection.config().congestion);
        client == Some(CongestionName::Rre)
    }

    /// Returns what it wants of its subscriber's link. `wants` tells whether it would send.
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

    /// Returns the event of an ACK towards the server.
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
