//! Serialised packets, for example when a gateway hands over to its successor.

use serde::de::Error;
use serde::{Deserialize, Deserializer, Serialize, Serializer};
use serde_bytes::ByteBuf;

use super::{Checksum, HEADER_CAPACITY, LINK_CAPACITY, OpaqueReason, Packet, Payload};

/// The parts of a packet, without unused space.
#[derive(Serialize, Deserialize)]
struct Parts {
    header: ByteBuf,
    link: ByteBuf,
    offload: Option<[u8; 10]>,
    gso_size: Option<u16>,
    tcp_at: u8,
    opaque: Option<OpaqueReason>,
    checksum: Checksum,
}

impl Serialize for Packet {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let parts = Parts {
            header: ByteBuf::from(self.header()),
            link: ByteBuf::from(self.link()),
            offload: self.offload,
            gso_size: self.gso_size,
            tcp_at: self.tcp_at,
            opaque: self.opaque,
            checksum: self.checksum,
        };
        (parts, &self.payload).serialize(serializer)
    }
}

impl<'de> Deserialize<'de> for Packet {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let (parts, payload) = <(Parts, Payload)>::deserialize(deserializer)?;
        let header = parts.header.as_slice();
        let tcp_at = usize::from(parts.tcp_at);
        // Other code relies on this for a packet with a TCP view.
        let is_whole =
            parts.opaque.is_some() || tcp_at >= IP_HEADER_MIN && header.len() >= tcp_at + TCP_HEADER_MIN;
        if header.len() > HEADER_CAPACITY || parts.link.len() > LINK_CAPACITY || !is_whole {
            return Err(D::Error::custom("no packet has such headers"));
        }
        let mut packet = Packet::bare(payload);
        packet.header[..header.len()].copy_from_slice(header);
        packet.header_len = header.len() as u8;
        packet.set_link(&parts.link);
        packet.offload = parts.offload;
        packet.set_gso_size(parts.gso_size);
        packet.tcp_at = parts.tcp_at;
        packet.opaque = parts.opaque;
        packet.checksum = parts.checksum;
        Ok(packet)
    }
}

const IP_HEADER_MIN: usize = 20;
const TCP_HEADER_MIN: usize = 20;
