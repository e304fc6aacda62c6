//! Requests of the routing family: encoded, exchanged, decoded.

use std::io;

use netlink_packet_core::{
    NLM_F_ACK, NLM_F_DUMP, NLM_F_REQUEST, NetlinkHeader, NetlinkMessage, NetlinkPayload,
};
use netlink_packet_route::RouteNetlinkMessage;

use super::Netlink;

impl Netlink {
    /// Requests a change and waits for the kernel's answer.
    pub(super) fn request(&self, message: RouteNetlinkMessage, flags: u16) -> io::Result<()> {
        let mut bytes = encode(message, NLM_F_REQUEST | NLM_F_ACK | flags);
        self.connection.exchange(&mut bytes, 1).map(drop)
    }

    /// Queries one object, or all objects if `dump` is set.
    pub(super) fn query(
        &self,
        message: RouteNetlinkMessage,
        dump: bool,
    ) -> io::Result<Vec<RouteNetlinkMessage>> {
        let flags = if dump { NLM_F_DUMP } else { NLM_F_ACK };
        let mut bytes = encode(message, NLM_F_REQUEST | flags);
        Ok(self.connection.exchange(&mut bytes, 1)?.iter().filter_map(|answer| decode(answer)).collect())
    }
}

fn encode(message: RouteNetlinkMessage, flags: u16) -> Vec<u8> {
    let mut header = NetlinkHeader::default();
    header.flags = flags;
    let mut message = NetlinkMessage::new(header, NetlinkPayload::InnerMessage(message));
    message.finalize();
    let mut bytes = vec![0; message.buffer_len()];
    message.serialize(&mut bytes);
    bytes
}

fn decode(bytes: &[u8]) -> Option<RouteNetlinkMessage> {
    match NetlinkMessage::<RouteNetlinkMessage>::deserialize(bytes).ok()?.payload {
        NetlinkPayload::InnerMessage(message) => Some(message),
        _ => None,
    }
}
