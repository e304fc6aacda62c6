//! A datagram that travels from station to station with its route: a packet or a routing message.

use paceline_wire::Packet;

use super::super::StationId;
use super::route::Route;

#[derive(Clone, Debug, Default)]
pub(crate) struct Datagram {
    pub(crate) kind: Kind,
    /// The source route. For a request, the stations that it has passed.
    pub(crate) route: Route,
}

#[derive(Clone, Debug)]
#[expect(clippy::large_enum_variant, reason = "nearly all are packets")]
pub(crate) enum Kind {
    /// A packet of the hosts.
    Data {
        packet: Packet,
        /// Number of times that it was salvaged.
        salvaged: u8,
    },
    /// Asks for a route to `target`.
    Request {
        target: StationId,
        number: u32,
        /// Number of stations that may still forward it.
        hops_left: u8,
    },
    /// Answers a request with a route.
    Reply { found: Route },
    /// Reports that the link between these two is broken.
    Error { link: (StationId, StationId) },
}

impl Default for Kind {
    fn default() -> Self {
        Kind::Error { link: (0, 0) }
    }
}

const IP_HEADER: usize = 20;
/// RFC 4728, Section 6.1.
const FIXED: usize = 4;
const ADDRESS: usize = 4;

impl Datagram {
    pub(crate) fn is_routing(&self) -> bool {
        !matches!(self.kind, Kind::Data { .. })
    }

    /// Bytes on the air by RFC 4728 (Sections 6.2 to 6.7), without the headers of the medium.
    pub(crate) fn bytes(&self) -> u32 {
        // The IP header has both ends.
        let source_route = 4 + ADDRESS * self.route.len().saturating_sub(2);
        let bytes = match &self.kind {
            Kind::Data { packet, .. } => packet.ip_len() + FIXED + source_route,
            Kind::Request { .. } => IP_HEADER + FIXED + 8 + ADDRESS * self.route.len().saturating_sub(1),
            Kind::Reply { found } => {
                IP_HEADER + FIXED + 3 + ADDRESS * found.len().saturating_sub(1) + source_route
            }
            Kind::Error { .. } => IP_HEADER + FIXED + 16 + source_route,
        };
        u32::try_from(bytes).unwrap_or(u32::MAX)
    }
}
