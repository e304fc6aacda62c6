//! The SYNs of a flow in both directions, and what replaces them for a flow that was open before a restart.

use paceline_wire::{Flags, Packet, PortId, Seq, Tcp};

use super::client_stream::Uplink;
use super::resumption::StreamPositions;
use super::{Context, Flow, Phase};
use crate::observe::Event;
use crate::{RADIO, WAN};

/// Streams start at the second wrap of the sequence numbers, so that positions before the first byte exist.
const FIRST_WRAP: u64 = 1 << 32;

impl Flow {
    /// Handles a SYN or SYN-ACK of the client. Its window scale should be at least `wanted`.
    pub(crate) fn on_client_syn(&mut self, ctx: &mut Context<'_>, mut packet: Packet, wanted: Option<u8>) {
        // A late copy of the SYN tells old windows and numbers. RFC 9293, Section 3.10.7.4, takes nothing from it.
        let opens = self.life.phase() == Phase::Opening;
        if let Some(tcp) = packet.tcp() {
            if opens {
                self.proof.on_client_syn(tcp.seq());
                self.upstream.uplink = Some(Uplink::opened(tcp.seq(), tcp.seq_len()));
                self.clocks.on_syn(ctx.now, RADIO, tcp);
                // Windows of SYNs are not scaled (RFC 7323, Section 2.2).
                self.client.on_first(u64::from(tcp.window()));
            } else if tcp.flags().contains(Flags::ACK) {
                self.clocks.on_client_answer(ctx.now, tcp);
            }
            if let Some((value, _)) = tcp.timestamps() {
                self.note_uplink(ctx.now, value);
            }
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

    /// Handles a SYN or SYN-ACK of the server.
    pub(crate) fn on_server_syn(&mut self, ctx: &mut Context<'_>, mut packet: Packet) {
        self.life.on_packet(ctx.now);
        self.handshake.on_server_syn(&mut packet);
        self.round_trips.server.on_handshake_answered(ctx.now);
        // If the radio loses a SYN-ACK, the client echoes the timestamp of the next one.
        let tcp = packet.tcp().inspect(|tcp| self.clocks.on_syn(ctx.now, WAN, *tcp));
        if let Some(tcp) = tcp
            && self.proof.on_server_syn(ctx.now, tcp.seq())
        {
            let isn = tcp.seq();
            if let Some(uplink) = self.upstream.uplink.as_mut().filter(|_| tcp.flags().contains(Flags::ACK)) {
                uplink.on_syn_ack(tcp.ack(), tcp.window());
            }
            // Data in a SYN (RFC 7413) passes with it. The stream starts behind this data.
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

    /// Handles a packet of a flow that was open before a restart. True if it tells, with the other end's packet, where
    /// the streams are.
    pub(super) fn resumes(&mut self, ctx: &Context<'_>, from: PortId, tcp: Tcp<'_>) -> bool {
        if !tcp.flags().contains(Flags::ACK) || tcp.flags().intersects(Flags::RST | Flags::SYN) {
            return false;
        }
        let shift = if from == WAN { self.shifts.server } else { self.shifts.client };
        let ends = self.proof.resumption.get_or_insert_default();
        let said = ends.on_packet(from, StreamPositions::by(tcp, shift), ctx.config.virtual_window.max_bytes);
        let Some((server, client)) = said else { return false };
        self.proof.resumption = None;
        self.life.open();
        self.client.resume(ctx.now, client.window);
        self.start_stream(client.ack.unwrap_near(1 << 32));
        // This data passed, and more may have passed before.
        self.stream.set_passed(server.end.unwrap_near(self.stream.received()));
        let uplink = self.upstream.uplink.insert(Uplink::at(server.ack.unwrap_near(1 << 32)));
        uplink.goes_on(client.end, server.ack, server.window);
        true
    }

    /// Takes an RTT sample if the client's first ACK answers the server's SYN.
    pub(super) fn sample_handshake(&mut self, ctx: &Context<'_>, ack: Seq) {
        if let Some(sent_at) = self.proof.take_syn_sent_at()
            && Seq::from(self.board.una()) == ack
        {
            let rtt = self.round_trips.on_handshake(sent_at, ctx.now);
            self.totals.on_rtt(rtt);
        }
    }
}
