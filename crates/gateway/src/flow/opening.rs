//! The SYNs of a flow, in either direction.

use paceline_wire::{Flags, Packet, Seq};

use super::client_stream::Uplink;
use super::{Context, Flow, Phase};
use crate::observe::Event;
use crate::{RADIO, WAN};

/// Streams start one wrap up, so that positions before the first byte exist.
const FIRST_WRAP: u64 = 1 << 32;

impl Flow {
    /// A SYN or SYN-ACK of the client; `wanted` is the window scale that it should have at least.
    pub(crate) fn on_client_syn(&mut self, ctx: &mut Context<'_>, mut packet: Packet, wanted: Option<u8>) {
        // What a late copy of the SYN says of windows and numbers is no longer so: RFC 9293, Section 3.10.7.4, takes nothing from it.
        let opens = self.life.phase() == Phase::Opening;
        if let Some(tcp) = packet.tcp() {
            if opens {
                self.proof.on_client_syn(tcp.seq());
                self.upstream.uplink = Some(Uplink::opened(tcp.seq(), tcp.seq_len()));
                self.clocks.on_syn(ctx.now, RADIO, tcp);
                // Windows of SYNs are not scaled (RFC 7323, Section 2.2).
                self.client.on_first(u64::from(tcp.window()));
            } else if tcp.flags().contains(Flags::ACK) {
                self.clocks.on_client_answer(tcp);
            }
            self.watch_uplink(ctx, tcp);
        }
        self.life.on_packet(ctx.now);
        self.handshake.on_client_syn(&mut packet, wanted, ctx.counters);
        self.round_trips.server.on_handshake_sent(ctx.now);
        if self.proof.isn(WAN).is_some() && opens {
            self.client.start(self.board.una());
            self.open(ctx);
        }
        ctx.pass_to_server(packet);
    }

    /// A SYN or SYN-ACK of the server.
    pub(crate) fn on_server_syn(&mut self, ctx: &mut Context<'_>, mut packet: Packet) {
        self.life.on_packet(ctx.now);
        self.handshake.on_server_syn(&mut packet);
        self.round_trips.server.on_handshake_answered(ctx.now);
        // Where the radio loses one SYN-ACK, the client echoes the clock of the next.
        let tcp = packet.tcp().inspect(|tcp| self.clocks.on_syn(ctx.now, WAN, *tcp));
        if let Some(tcp) = tcp
            && self.proof.on_server_syn(ctx.now, tcp.seq())
        {
            let isn = tcp.seq();
            if let Some(uplink) = self.upstream.uplink.as_mut().filter(|_| tcp.flags().contains(Flags::ACK)) {
                uplink.on_syn_ack(tcp.ack(), tcp.window());
            }
            // Data in a SYN (RFC 7413) is data, and passes with it.
            let first = FIRST_WRAP + u64::from(isn.0) + u64::from(tcp.seq_len());
            self.start_stream(first);
        }
        if self.proof.isn(RADIO).is_some() {
            self.open(ctx);
        }
        ctx.pass_to_client(packet);
    }

    fn open(&mut self, ctx: &mut Context<'_>) {
        if self.life.phase() != Phase::Opening {
            return;
        }
        self.life.open();
        self.shifts = self.handshake.shifts();
        ctx.counters.flows_accelerated += 1;
        ctx.counters.flows_rescaled += u64::from(self.shifts.rescaled());
        ctx.observer.on_event(ctx.now, &self.key, &Event::Opened(self.shifts));
    }

    /// The client's first ACK answers the server's SYN.
    pub(super) fn sample_handshake(&mut self, ctx: &Context<'_>, ack: Seq) {
        if let Some(sent_at) = self.proof.take_syn_sent_at()
            && Seq::from(self.board.una()) == ack
        {
            let rtt = self.round_trips.on_handshake(sent_at, ctx.now);
            self.totals.on_rtt(rtt);
        }
    }
}
