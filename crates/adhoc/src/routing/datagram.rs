//! What travels from station to station: a packet, or a word about routes, and the way it goes.

use paceline_wire::Packet;

use super::super::StationId;
use super::route::Route;

#[derive(Clone, Debug, Default)]
pub(crate) struct Datagram {
    pub(crate) kind: Kind,
    /// The source route; of a request the way that it has come.
    pub(crate) route: Route,
}

#[derive(Clone, Debug)]
#[expect(clippy::large_enum_variant, reason = "nearly all are packets")]
pub(crate) enum Kind {
    /// A packet of the hosts.
    Data {
        packet: Packet,
        /// How often it was saved on its way.
        salvaged: u8,
    },
    /// Who knows the way to `target`?
    Request {
        target: StationId,
        number: u32,
        /// How many stations may still pass it on.
        hops_left: u8,
    },
    /// This is one.
    Reply { found: Route },
    /// The link between these two is broken.
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

    /// Bytes on the air, as RFC 4728 writes them (Sections 6.2 to 6.7), headers of the medium apart.
    pub(crate) fn bytes(&self) -> u32 {
        // Both ends stand in the IP header.
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
