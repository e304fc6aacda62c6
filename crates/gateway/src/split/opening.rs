//! Opens a split flow, from the client's SYN to the answer. The server is asked first, so that the client is told the
//! truth.

use paceline_tcp::{CloseReason, Connection, InitialNumbers, State};
use paceline_wire::{Duration, Flags, FlowKey, Instant, Packet, Seq, Tcp};

use super::SenderConfig;
use super::config::towards_server;
use super::split_flow::{Leg, SplitFlow};
use crate::config::{GatewayConfig, VirtualWindowMode};

/// The client's request, until the server has answered.
#[derive(Debug, serde::Serialize, serde::Deserialize)]
pub(super) struct Opening {
    /// The client's newest SYN.
    syn: Packet,
    sender: SenderConfig,
    server: Option<ServerSyn>,
}

/// Contents of the server's SYN.
#[derive(Clone, Copy, Debug, serde::Serialize, serde::Deserialize)]
struct ServerSyn {
    origin: InitialNumbers,
    mss: u16,
}

/// Effect of a packet on a flow that is being opened.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum OpeningStep {
    /// Nothing to report.
    NotYet,
    /// The server has answered: from here on both ends talk to the gateway.
    Answered,
    /// The packet ends the attempt, and goes unchanged to the other end.
    Ended,
    /// The client has begun again, with another sequence number.
    Restarted,
    /// The packet does not belong to this attempt, and passes.
    Passes,
}

/// Time for which a SYN with another number does not replace an unanswered one: the first timeout of a client (RFC
/// 6298, Section 2.1). With a shorter time, some SYNs in each round trip kept a flow from ever opening.
const PROTECTED: Duration = Duration::from_secs(1);

/// The first window shown to the server, in segments. Our choice, as for the virtual window: the first two flights of a
/// server (RFC 6928). More data would wait here for the client's first ACK, which takes seconds if its uplink is full.
const FIRST_SEGMENTS: u64 = 20;

impl Opening {
    /// Begins the connection with the server in the client's place. Each leg negotiates window scale, SACK and
    /// timestamps for itself. ECN is not requested.
    pub(super) fn begin(
        key: FlowKey,
        config: &GatewayConfig,
        sender: SenderConfig,
        syn: &Packet,
        now: Instant,
    ) -> Option<(Opening, Leg)> {
        let tcp = syn.tcp()?;
        // The server's segments should fit the client, so that they go on as they came.
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

    /// Returns the client's initial sequence number, which the gateway's SYN also has.
    pub(super) fn isn(&self) -> Seq {
        self.syn.tcp().map_or(Seq(0), |tcp| tcp.seq())
    }
}

impl SplitFlow {
    /// Handles a packet of the client before the server has answered.
    pub(super) fn while_asking(&mut self, now: Instant, packet: &Packet) -> OpeningStep {
        let (Some(opening), Some(tcp)) = (&mut self.opening, packet.tcp()) else {
            return OpeningStep::Passes;
        };
        let flags = tcp.flags();
        if flags.contains(Flags::RST) {
            // RFC 5961, Section 3: the exact number only.
            let is_exact = tcp.seq() == opening.isn().add(1);
            if is_exact {
                self.server.connection.abort();
            }
            return if is_exact { OpeningStep::Ended } else { OpeningStep::NotYet };
        }
        // A SYN with FIN requests nothing, and cannot be answered.
        if !flags.contains(Flags::SYN) || flags.intersects(Flags::ACK | Flags::FIN) {
            return OpeningStep::Passes;
        }
        if tcp.seq() != opening.isn() {
            // Anybody may have sent it. The server has the first SYN and would keep to it. A client that does begin
            // again repeats its SYN, and a later copy replaces the first SYN.
            let is_young = now.saturating_since(self.since) < PROTECTED;
            return if is_young { OpeningStep::Passes } else { OpeningStep::Restarted };
        }
        // The client repeated its SYN, so the gateway repeats its own. If the client is gone, the server gets no more
        // SYNs than without a gateway.
        opening.syn.clone_from(packet);
        self.server.connection.retransmit_syn();
        OpeningStep::NotYet
    }

    /// Handles a packet of the server before it has answered.
    pub(super) fn on_answer(&mut self, now: Instant, packet: &Packet, config: &GatewayConfig) -> OpeningStep {
        let (Some(opening), Some(tcp)) = (&mut self.opening, packet.tcp()) else {
            return OpeningStep::Passes;
        };
        if tcp.flags().contains(Flags::SYN) && !tcp.flags().contains(Flags::ACK) {
            // Anybody may have sent it. In a simultaneous open the server also answers the SYN (RFC 9293, Section 3.5).
            return OpeningStep::NotYet;
        }
        if tcp.flags().contains(Flags::SYN) {
            opening.server = Some(ServerSyn { origin: origin_of(tcp), mss: mss_of(tcp, &self.key) });
        }
        let server = &mut self.server.connection;
        server.handle_packet(now, packet);
        match server.state() {
            State::SynSent | State::SynReceived => OpeningStep::NotYet,
            State::Closed if server.close_reason() == Some(CloseReason::Refused) => OpeningStep::Ended,
            State::Closed => OpeningStep::NotYet,
            _ => self.answer(now, packet, config),
        }
    }

    fn answer(&mut self, now: Instant, packet: &Packet, config: &GatewayConfig) -> OpeningStep {
        let (Some(opening), Some(marks)) = (self.opening.take(), packet.path_marks()) else {
            return OpeningStep::NotYet;
        };
        let Some(theirs) = opening.server else { return OpeningStep::NotYet };
        let radio = opening.sender.towards_client(&config.split, &config.limits);
        let radio = paceline_tcp::Config { mss: theirs.mss, ..radio };
        let connection = Connection::accept_as(&radio, &opening.syn, theirs.origin, now);
        self.client = connection.map(|mut connection| {
            // Data leaves only in the turns of the subscriber's flows.
            connection.set_allowance(0);
            Leg::new(connection, marks)
        });
        self.relay(now);
        OpeningStep::Answered
    }
}

/// Returns the initial numbers of an end. Without timestamps its clock starts at zero.
fn origin_of(tcp: Tcp<'_>) -> InitialNumbers {
    InitialNumbers { isn: tcp.seq(), tsval: tcp.timestamps().map_or(0, |(value, _)| value) }
}

/// Returns the segment size that an end accepts (RFC 9293, Section 3.7.1: without the option 536 bytes, in IPv6 1,220).
fn mss_of(tcp: Tcp<'_>, key: &FlowKey) -> u16 {
    let otherwise = if key.src.is_ipv6() { 1_220 } else { 536 };
    tcp.mss().unwrap_or(otherwise).max(64)
}
