//! Messages of the kernel's nf_tables interface (`include/uapi/linux/netfilter/nf_tables.h`).

use std::io;

use crate::netlink::Connection;

/// Messages that take effect all together or not at all.
#[derive(Debug, Default)]
pub(super) struct Batch {
    bytes: Vec<u8>,
    last: Option<usize>,
}

impl Batch {
    pub(super) fn new() -> Self {
        let mut batch = Batch::default();
        batch.begin(NFNL_MSG_BATCH_BEGIN, 0, NFPROTO_UNSPEC, NFNL_SUBSYS_NFTABLES);
        batch
    }

    /// Adds a message about the netdev family.
    pub(super) fn add(&mut self, kind: Kind, flags: u16, attributes: &Attributes) {
        let start = self.begin(NFNL_SUBSYS_NFTABLES << 8 | kind as u16, flags, NFPROTO_NETDEV, 0);
        self.bytes.extend_from_slice(&attributes.bytes);
        let length = (self.bytes.len() - start) as u32;
        self.bytes[start..start + 4].copy_from_slice(&length.to_ne_bytes());
        self.last = Some(start);
    }

    /// Sends all messages and waits for the answer. An error of any message comes in place of the last message's
    /// success.
    pub(super) fn send(mut self, connection: &Connection) -> io::Result<()> {
        let Some(last) = self.last else { return Ok(()) };
        let flags = u16::from_ne_bytes([self.bytes[last + 6], self.bytes[last + 7]]) | NLM_F_ACK;
        self.bytes[last + 6..last + 8].copy_from_slice(&flags.to_ne_bytes());
        self.begin(NFNL_MSG_BATCH_END, 0, NFPROTO_UNSPEC, NFNL_SUBSYS_NFTABLES);
        connection.exchange(&mut self.bytes, 1).map(drop)
    }

    /// Sends one message outside a batch. Ignores the answer except for its acknowledgement.
    pub(super) fn ask(kind: Kind, attributes: &Attributes, connection: &Connection) -> io::Result<()> {
        let mut single = Batch::default();
        single.add(kind, NLM_F_ACK, attributes);
        connection.exchange(&mut single.bytes, 1).map(drop)
    }

    /// Returns all objects of one kind (`enum nf_tables_msg_types`), of all families.
    pub(super) fn dump(kind: u16, connection: &Connection) -> io::Result<Vec<Vec<u8>>> {
        let mut single = Batch::default();
        single.begin(NFNL_SUBSYS_NFTABLES << 8 | kind, NLM_F_DUMP, NFPROTO_UNSPEC, 0);
        connection.exchange(&mut single.bytes, 1)
    }

    /// Writes the headers of netlink and netfilter. The length is right for a message without attributes.
    fn begin(&mut self, kind: u16, flags: u16, family: u8, resource: u16) -> usize {
        let start = self.bytes.len();
        self.bytes.extend_from_slice(&20u32.to_ne_bytes());
        self.bytes.extend_from_slice(&kind.to_ne_bytes());
        self.bytes.extend_from_slice(&(NLM_F_REQUEST | flags).to_ne_bytes());
        // Sequence number and port: filled in later, or by the kernel.
        self.bytes.extend_from_slice(&[0; 8]);
        self.bytes.extend_from_slice(&[family, 0]);
        self.bytes.extend_from_slice(&resource.to_be_bytes());
        start
    }
}

/// `enum nf_tables_msg_types`.
#[derive(Clone, Copy, Debug)]
pub(super) enum Kind {
    NewTable = 0,
    GetTable = 1,
    DeleteTable = 2,
    NewChain = 3,
    NewRule = 6,
    NewSet = 9,
    NewElements = 12,
    DeleteElements = 14,
}

/// A list of netlink attributes. Numbers are in network byte order, as in nf_tables.
#[derive(Clone, Debug, Default)]
pub(super) struct Attributes {
    bytes: Vec<u8>,
}

impl Attributes {
    pub(super) fn new() -> Self {
        Self::default()
    }

    pub(super) fn bytes(mut self, kind: u16, value: &[u8]) -> Self {
        let length = (4 + value.len()) as u16;
        self.bytes.extend_from_slice(&length.to_ne_bytes());
        self.bytes.extend_from_slice(&kind.to_ne_bytes());
        self.bytes.extend_from_slice(value);
        self.bytes.resize(self.bytes.len().next_multiple_of(4), 0);
        self
    }

    pub(super) fn text(self, kind: u16, value: &str) -> Self {
        let mut bytes = value.as_bytes().to_vec();
        bytes.push(0);
        self.bytes(kind, &bytes)
    }

    pub(super) fn u32(self, kind: u16, value: u32) -> Self {
        self.bytes(kind, &value.to_be_bytes())
    }

    pub(super) fn u64(self, kind: u16, value: u64) -> Self {
        self.bytes(kind, &value.to_be_bytes())
    }

    pub(super) fn nested(self, kind: u16, value: &Attributes) -> Self {
        self.bytes(kind | NLA_F_NESTED, &value.bytes)
    }

    /// Adds a list: one attribute that holds all items, each with the same kind.
    pub(super) fn list(self, kind: u16, item_kind: u16, items: impl IntoIterator<Item = Attributes>) -> Self {
        let list = items.into_iter().fold(Attributes::new(), |list, item| list.nested(item_kind, &item));
        self.nested(kind, &list)
    }
}

const NLM_F_REQUEST: u16 = 0x1;
const NLM_F_ACK: u16 = 0x4;
/// NLM_F_ROOT and NLM_F_MATCH.
const NLM_F_DUMP: u16 = 0x300;
/// Create the object if it does not exist.
pub(super) const NLM_F_CREATE: u16 = 0x400;
/// Append behind existing objects.
pub(super) const NLM_F_APPEND: u16 = 0x800;
const NLA_F_NESTED: u16 = 0x8000;
const NFNL_SUBSYS_NFTABLES: u16 = 10;
const NFNL_MSG_BATCH_BEGIN: u16 = 0x10;
const NFNL_MSG_BATCH_END: u16 = 0x11;
const NFPROTO_UNSPEC: u8 = 0;
const NFPROTO_NETDEV: u8 = 5;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn attributes_are_padded_and_nested() {
        let inner = Attributes::new().text(1, "ab");
        let outer = Attributes::new().nested(2, &inner).u32(3, 5);
        let expected = [12, 0, 2, 0x80, 7, 0, 1, 0, b'a', b'b', 0, 0, 8, 0, 3, 0, 0, 0, 0, 5];
        assert_eq!(
            outer.bytes,
            if cfg!(target_endian = "little") { expected.to_vec() } else { outer.bytes.clone() }
        );
    }

    #[test]
    fn a_message_states_its_length() {
        let mut batch = Batch::new();
        batch.add(Kind::NewTable, NLM_F_CREATE, &Attributes::new().text(1, "paceline"));
        let length = u32::from_ne_bytes(batch.bytes[20..24].try_into().unwrap());
        assert_eq!(length as usize, batch.bytes.len() - 20);
        assert_eq!(&batch.bytes[24..26], (0x0a00u16).to_ne_bytes());
    }
}
