//! The expressions of a rule. Each lets a packet continue in the rule, or ends the rule for it.

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

/// A register. Longer data also take the following registers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Register(u32);

impl Register {
    /// One of the 16 registers of four bytes, from `NFT_REG32_00` on.
    pub(super) const fn new(number: u32) -> Self {
        Register(8 + number)
    }

    const VERDICT: Register = Register(0);
}

/// The register for values that the next expression reads.
pub(super) const SCRATCH: Register = Register::new(0);

/// A field of a packet's metadata.
#[derive(Clone, Copy, Debug)]
pub(super) enum Meta {
    /// EtherType, in network byte order. If a VLAN tag was removed, that of the inner header.
    Protocol = 1,
    /// The mark, in the host's byte order.
    Mark = 3,
    /// Number of the receiving interface, in the host's byte order.
    InputInterface = 4,
    /// Protocol number of the transport header, behind extension headers.
    TransportProtocol = 16,
}

/// A header of a packet.
#[derive(Clone, Copy, Debug)]
pub(super) enum Header {
    Link = 0,
    Network = 1,
    Transport = 2,
}

/// Comparison of the loaded bytes with a value of the same length, as numbers in network byte order.
#[derive(Clone, Copy, Debug)]
pub(super) enum Comparison {
    Equal = 0,
    NotEqual = 1,
    Less = 2,
    NotLess = 5,
}

/// A decision that ends the evaluation of a rule.
#[derive(Clone, Copy, Debug)]
pub(super) enum Verdict {
    /// Drops the packet.
    Drop,
    /// Accepts the packet in this table.
    Accept,
    /// Continues in another chain, without return.
    Goto(&'static str, u8),
}

/// Direction of a shift, and the number of bits.
#[derive(Clone, Copy, Debug)]
pub(super) enum Shift {
    Left(u8),
    Right(u8),
}

/// Loads a metadata field.
pub(super) fn load_meta(key: Meta) -> Expression {
    load_meta_to(SCRATCH, key)
}

/// Loads a metadata field into another register.
pub(super) fn load_meta_to(register: Register, key: Meta) -> Expression {
    let data = Attributes::new().u32(1, register.0).u32(2, key as u32);
    Expression { name: "meta", data }
}

/// Sets the mark to the loaded value.
pub(super) fn set_mark() -> Expression {
    set_mark_from(SCRATCH)
}

/// Sets the mark from another register.
pub(super) fn set_mark_from(register: Register) -> Expression {
    let data = Attributes::new().u32(2, Meta::Mark as u32).u32(3, register.0);
    Expression { name: "meta", data }
}

/// Loads bytes of a header.
pub(super) fn load_header(header: Header, offset: u32, length: u32) -> Expression {
    load_header_to(SCRATCH, header, offset, length)
}

/// Loads bytes of a header into a register. The rest of its last four bytes becomes zero.
pub(super) fn load_header_to(register: Register, header: Header, offset: u32, length: u32) -> Expression {
    let data = Attributes::new().u32(1, register.0).u32(2, header as u32).u32(3, offset).u32(4, length);
    Expression { name: "payload", data }
}

/// Writes two loaded bytes into the transport header, and updates its checksum at `checksum_offset`.
pub(super) fn store_u16(offset: u32, checksum_offset: u32) -> Expression {
    let place = Attributes::new().u32(2, Header::Transport as u32).u32(3, offset).u32(4, 2);
    let data = place.u32(5, SCRATCH.0).u32(6, CSUM_INET).u32(7, checksum_offset);
    Expression { name: "payload", data }
}

/// Loads a constant.
pub(super) fn load_value(value: &[u8]) -> Expression {
    load_value_to(SCRATCH, value)
}

/// Loads a constant into another register.
pub(super) fn load_value_to(register: Register, value: &[u8]) -> Expression {
    let data = Attributes::new().u32(1, register.0).nested(2, &value_of(value));
    Expression { name: "immediate", data }
}

/// Continues if the loaded bytes equal `value`.
pub(super) fn equals(value: &[u8]) -> Expression {
    compare(Comparison::Equal, value)
}

/// Continues if the comparison of the loaded bytes with `value` holds.
pub(super) fn compare(is: Comparison, value: &[u8]) -> Expression {
    let data = Attributes::new().u32(1, SCRATCH.0).u32(2, is as u32).nested(3, &value_of(value));
    Expression { name: "cmp", data }
}

/// Keeps the bits of `mask`, then inverts those of `invert`.
pub(super) fn mask(mask: &[u8], invert: &[u8]) -> Expression {
    let data = Attributes::new().u32(1, SCRATCH.0).u32(2, SCRATCH.0).u32(3, mask.len() as u32);
    let data = data.nested(4, &value_of(mask)).nested(5, &value_of(invert));
    Expression { name: "bitwise", data }
}

/// Shifts a number of four bytes in the host's byte order. The kernel refuses a shift by zero.
pub(super) fn shift(by: Shift) -> Expression {
    let (operation, bits) = match by {
        Shift::Left(bits) => (1, bits),
        Shift::Right(bits) => (2, bits),
    };
    let data = Attributes::new().u32(1, SCRATCH.0).u32(2, SCRATCH.0).u32(3, 4).u32(6, operation);
    let data = data.nested(7, &value_of(&u32::from(bits).to_ne_bytes()));
    Expression { name: "bitwise", data }
}

/// Converts a number of two bytes from network byte order to the host's, or back.
pub(super) fn swap_u16() -> Expression {
    let data = Attributes::new().u32(1, SCRATCH.0).u32(2, SCRATCH.0).u32(3, 0).u32(4, 2).u32(5, 2);
    Expression { name: "byteorder", data }
}

/// Continues if the loaded bytes are in the set, or if they are not.
pub(super) fn in_set(name: &str, is_in: bool) -> Expression {
    let data = Attributes::new().text(1, name).u32(2, SCRATCH.0).u32(5, u32::from(!is_in));
    Expression { name: "lookup", data }
}

/// Continues if the key is in the map, and loads the key's value.
pub(super) fn look_up(name: &str, key: Register, value: Register) -> Expression {
    let data = Attributes::new().text(1, name).u32(2, key.0).u32(3, value.0);
    Expression { name: "lookup", data }
}

/// If the key is in the map, ends the rule with the verdict of the key.
pub(super) fn look_up_verdict(name: &str, key: Register) -> Expression {
    look_up(name, key, Register::VERDICT)
}

/// Removes the key from the map, which holds it with this value.
pub(super) fn forget(name: &str, key: Register, value: Register) -> Expression {
    let data = Attributes::new().text(1, name).u32(3, DYNSET_DELETE).u32(4, key.0).u32(5, value.0);
    Expression { name: "dynset", data }
}

/// Ends the rule.
pub(super) fn end(verdict: Verdict) -> Expression {
    let data = Attributes::new().u32(1, Register::VERDICT.0).nested(2, &verdict_of(verdict));
    Expression { name: "immediate", data }
}

/// Answers a TCP packet with a reset, and drops it.
pub(super) fn reject_with_reset() -> Expression {
    Expression { name: "reject", data: Attributes::new().u32(1, NFT_REJECT_TCP_RST) }
}

/// `NFTA_DATA_VERDICT`.
pub(super) fn verdict_of(verdict: Verdict) -> Attributes {
    let attributes = match verdict {
        Verdict::Drop => Attributes::new().u32(1, 0),
        Verdict::Accept => Attributes::new().u32(1, 1),
        Verdict::Goto(name, number) => {
            Attributes::new().u32(1, NFT_GOTO).text(2, &format!("{name}-{number}"))
        }
    };
    Attributes::new().nested(2, &attributes)
}

/// `NFTA_DATA_VALUE`: a constant.
pub(super) fn value_of(value: &[u8]) -> Attributes {
    Attributes::new().bytes(1, value)
}

const NFTA_EXPR_NAME: u16 = 1;
const NFTA_EXPR_DATA: u16 = 2;
const NFT_GOTO: u32 = -4i32 as u32;
const NFT_REJECT_TCP_RST: u32 = 1;
const CSUM_INET: u32 = 1;
const DYNSET_DELETE: u32 = 2;
