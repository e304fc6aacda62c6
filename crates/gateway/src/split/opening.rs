//! From the client's SYN to the answer. The server is asked first, so that what the client is told is true.

use paceline_tcp::{CloseReason, Connection, Origin, State};
use paceline_wire::{Duration, Flags, FlowKey, Instant, Packet, Seq, Tcp};

use super::SenderConfig;
use super::config::towards_server;
use super::split_flow::{Leg, SplitFlow};
use crate::config::{GatewayConfig, VirtualWindowMode};

/// What a client wants, until the server has answered.
#[derive(Debug, serde::Serialize, serde::Deserialize)]
pub(super) struct Opening {
    /// The client's newest SYN.
    syn: Packet,
    sender: SenderConfig,
    server: Option<ServerSyn>,
}

/// What the server's SYN said.
#[derive(Clone, Copy, Debug, serde::Serialize, serde::Deserialize)]
struct ServerSyn {
    origin: Origin,
    mss: u16,
}

/// What a packet did to a flow that is being opened.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Opened {
    /// Nothing to tell.
    NotYet,
    /// The server has answered: from here on both ends talk to the gateway.
    Answered,
    /// The packet ends the attempt, and is for the other end as it is.
    Ended,
    /// The client has begun anew, with another number.
    Anew,
    /// It is not about this attempt, and passes.
    Passes,
}

/// A SYN with another number takes the place of one that the server has not answered for so long: the first timeout of who repeats it
/// (RFC 6298, Section 2.1). Sooner, some SYNs a round trip kept a flow from ever opening.
const PROTECTED: Duration = Duration::from_secs(1);

/// Our choice, as of the virtual window: the first two flights of a server (RFC 6928). What more it was shown in the SYN would wait here
/// for as long as the client's first ACK takes, which is seconds where its uplink is full.
const FIRST_SEGMENTS: u64 = 20;

impl Opening {
    /// The connection with the server, which is the client's but for what each leg settles for itself: the window's scale, SACK,
    /// timestamps. ECN is not asked for.
    pub(super) fn begin(
        key: FlowKey,
        config: &GatewayConfig,
        sender: SenderConfig,
        syn: &Packet,
        now: Instant,
    ) -> Option<(Opening, Leg)> {
        let tcp = syn.tcp()?;
        // Segments of the server should fit on, as they came.
        let wired =
            paceline_tcp::Config { mss: mss_of(tcp, &key), ..towards_server(&config.split, &config.limits) };
        let mut connection = Connection::connect_as(&wired, key, origin_of(tcp), now);
        if config.virtual_window.mode == VirtualWindowMode::Sized {
            connection.limit_window(FIRST_SEGMENTS * u64::from(wired.mss));
        }
        connection.set_syn_on_demand();
        let opening = Opening { syn: syn.clone(), sender, server: None };
        Some((opening, Leg::new(connection, syn.path_marks()?)))
    }

    /// The client's first number, which the gateway's SYN has, too.
    pub(super) fn isn(&self) -> Seq {
        self.syn.tcp().map_or(Seq(0), |tcp| tcp.seq())
    }
}

impl SplitFlow {
    /// A packet of the client, which the server has not answered yet.
    pub(super) fn while_asking(&mut self, now: Instant, packet: &Packet) -> Opened {
        let (Some(opening), Some(tcp)) = (&mut self.opening, packet.tcp()) else { return Opened::Passes };
        let flags = tcp.flags();
        if flags.contains(Flags::RST) {
            // RFC 5961, Section 3: the exact number only.
            let is_exact = tcp.seq() == opening.isn().add(1);
            if is_exact {
                self.server.connection.abort();
            }
            return if is_exact { Opened::Ended } else { Opened::NotYet };
        }
        // With a FIN it asks for nothing, and could not be answered.
        if !flags.contains(Flags::SYN) || flags.intersects(Flags::ACK | Flags::FIN) {
            return Opened::Passes;
        }
        if tcp.seq() != opening.isn() {
            // Anybody may have sent it. The server, which has the first SYN, would keep to that; and a client that does begin anew sends its
            // SYN again, when nothing has come of the first one.
            let is_young = now.saturating_since(self.since) < PROTECTED;
            return if is_young { Opened::Passes } else { Opened::Anew };
        }
        // Sent again, and so is ours: a client that is gone has asked once, and the server hears no more of it than without a gateway.
        opening.syn.clone_from(packet);
        self.server.connection.retransmit_syn();
        Opened::NotYet
    }

    /// A packet of the server, which has not answered yet.
    pub(super) fn on_answer(&mut self, now: Instant, packet: &Packet, config: &GatewayConfig) -> Opened {
        let (Some(opening), Some(tcp)) = (&mut self.opening, packet.tcp()) else { return Opened::Passes };
        if tcp.flags().contains(Flags::SYN) && !tcp.flags().contains(Flags::ACK) {
            // Anybody may have sent it. A server that opens at the same time answers as well (RFC 9293, Section 3.5).
            return Opened::NotYet;
        }
        if tcp.flags().contains(Flags::SYN) {
            opening.server = Some(ServerSyn { origin: origin_of(tcp), mss: mss_of(tcp, &self.key) });
        }
        let server = &mut self.server.connection;
        server.handle_packet(now, packet);
        match server.state() {
            State::SynSent | State::SynReceived => Opened::NotYet,
            State::Closed if server.close_reason() == Some(CloseReason::Refused) => Opened::Ended,
            State::Closed => Opened::NotYet,
            _ => self.answer(now, packet, config),
        }
    }

    fn answer(&mut self, now: Instant, packet: &Packet, config: &GatewayConfig) -> Opened {
        let (Some(opening), Some(marks)) = (self.opening.take(), packet.path_marks()) else {
            return Opened::NotYet;
        };
        let Some(theirs) = opening.server else { return Opened::NotYet };
        let radio = opening.sender.towards_client(&config.split, &config.limits);
        let radio = paceline_tcp::Config { mss: theirs.mss, ..radio };
        let connection = Connection::accept_as(&radio, &opening.syn, theirs.origin, now);
        self.client = connection.map(|mut connection| {
            // Data leaves in the turns that the subscriber's flows take.
            connection.set_allowance(0);
            Leg::new(connection, marks)
        });
        self.relay(now);
        Opened::Answered
    }
}

/// The numbers of an end; its clock starts at zero if it shows none.
fn origin_of(tcp: Tcp<'_>) -> Origin {
    Origin { isn: tcp.seq(), tsval: tcp.timestamps().map_or(0, |(value, _)| value) }
}

/// The segments that an end takes (RFC 9293, Section 3.7.1: 536 bytes, in IPv6 1,220, if it does not say).
fn mss_of(tcp: Tcp<'_>, key: &FlowKey) -> u16 {
    let otherwise = if key.src.is_ipv6() { 1_220 } else { 536 };
    tcp.mss().unwrap_or(otherwise).max(64)
}
