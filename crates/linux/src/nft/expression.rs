//! The expressions of a rule, each of which lets a packet go on or ends the rule for it.

use super::batch::Attributes;

/// One expression.
#[derive(Clone, Debug)]
pub(super) struct Expression {
    name: &'static str,
    data: Attributes,
}

impl Expression {
    pub(super) fn into_attributes(self) -> Attributes {
        Attributes::new().text(NFTA_EXPR_NAME, self.name).nested(NFTA_EXPR_DATA, &self.data)
    }
}

/// A part of a packet's description.
#[derive(Clone, Copy, Debug)]
pub(super) enum Meta {
    /// EtherType, in network byte order; that of the inner header if a VLAN tag was taken off.
    Protocol = 1,
    /// Number of the interface that received it, in the host's byte order.
    InputInterface = 4,
}

/// A header in a packet.
#[derive(Clone, Copy, Debug)]
pub(super) enum Header {
    Link = 0,
    Network = 1,
}

/// Loads a part of the description.
pub(super) fn load_meta(key: Meta) -> Expression {
    let data = Attributes::new().u32(1, REGISTER).u32(2, key as u32);
    Expression { name: "meta", data }
}

/// Loads bytes of a header.
pub(super) fn load_header(header: Header, offset: u32, length: u32) -> Expression {
    let data = Attributes::new().u32(1, REGISTER).u32(2, header as u32).u32(3, offset).u32(4, length);
    Expression { name: "payload", data }
}

/// Goes on if what was loaded equals `value`.
pub(super) fn equals(value: &[u8]) -> Expression {
    let data = Attributes::new().u32(1, REGISTER).u32(2, CMP_EQ).nested(3, &value_of(value));
    Expression { name: "cmp", data }
}

/// Goes on if what was loaded is in the set, or is not.
pub(super) fn in_set(name: &str, is_in: bool) -> Expression {
    let data = Attributes::new().text(1, name).u32(2, REGISTER).u32(5, u32::from(!is_in));
    Expression { name: "lookup", data }
}

/// Drops the packet.
pub(super) fn drop_packet() -> Expression {
    let verdict = Attributes::new().u32(1, NF_DROP);
    let data = Attributes::new().u32(1, VERDICT_REGISTER).nested(2, &Attributes::new().nested(2, &verdict));
    Expression { name: "immediate", data }
}

/// `NFTA_DATA_VALUE`: a constant.
pub(super) fn value_of(value: &[u8]) -> Attributes {
    Attributes::new().bytes(1, value)
}

const NFTA_EXPR_NAME: u16 = 1;
const NFTA_EXPR_DATA: u16 = 2;
const CMP_EQ: u32 = 0;
const NF_DROP: u32 = 0;
const VERDICT_REGISTER: u32 = 0;
/// One 16-byte register is enough: it is read right after it was loaded.
const REGISTER: u32 = 1;
