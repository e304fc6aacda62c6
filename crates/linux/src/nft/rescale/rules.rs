//! Content of the table besides flows. It leads from a packet to its flow, and on to the chain that shifts the window.
//!
//! A map gives each direction of a flow a number. A second map leads from the number to the chain that shifts by that
//! many bits. (One map from flows to chains would suffice, but rules cannot remove elements from such maps.)

use super::RescaleConfig;
use crate::nft::batch::Batch;
use crate::nft::expression::{
    Comparison, Expression, Header, Meta, Register, Shift, Verdict, compare, end, equals, forget,
    load_header, load_header_to, load_meta, load_meta_to, load_value, load_value_to, look_up,
    look_up_verdict, mask, reject_with_reset, set_mark_from, shift, store_u16, swap_u16, verdict_of,
};
use crate::nft::table::{Data, Key, Set, TYPE_MARK, Table, entry};

/// One direction of flows, and the direction of the shift of its windows.
#[derive(Clone, Copy, Debug)]
pub(super) struct Direction {
    chains: &'static str,
    code: u32,
}

impl Direction {
    /// Returns the value that the map of flows holds.
    pub(super) fn code(self, bits: u8) -> u32 {
        self.code + u32::from(bits)
    }

    fn chain(self, bits: u8) -> String {
        format!("{}-{bits}", self.chains)
    }
}

/// From client to server.
pub(super) const RIGHT: Direction = Direction { chains: "right", code: 0x100 };
/// From server to client.
pub(super) const LEFT: Direction = Direction { chains: "left", code: 0x200 };
/// The value of both directions of a split flow in the map.
pub(super) const RESET: u32 = 0x300;
const RESET_CHAIN: &str = "reset-0";
/// RFC 7323, Section 2.3.
pub(super) const SHIFT_MAX: u8 = 14;

pub(super) fn add(table: &Table, batch: &mut Batch, config: &RescaleConfig) {
    for (number, set) in [FLOWS_IPV4, FLOWS_IPV6].into_iter().enumerate() {
        let set = Set { timeout: Some(config.timeout), ..set };
        table.add_set(batch, 1 + number as u32, &set);
    }
    table.add_set(batch, 3, &CHAINS);
    for bits in 1..=SHIFT_MAX {
        add_right(table, batch, bits);
        add_left(table, batch, bits);
        let chains = [RIGHT, LEFT].map(|direction| {
            let verdict = verdict_of(Verdict::Goto(direction.chains, bits));
            entry(&direction.code(bits).to_ne_bytes(), &verdict)
        });
        table.add_elements(batch, CHAINS.name, chains);
    }
    table.add_chain(batch, RESET_CHAIN);
    table.add_rule(batch, RESET_CHAIN, [reject_with_reset()]);
    let reset = verdict_of(Verdict::Goto("reset", 0));
    table.add_elements(batch, CHAINS.name, [entry(&RESET.to_ne_bytes(), &reset)]);
    table.add_ingress(batch, INGRESS, &config.ports, PRIORITY);
    if let Some(bits) = config.mark {
        let bits = bits.to_ne_bytes();
        let is_marked = [load_meta(Meta::Mark), mask(&bits, &[0; 4]), compare(Comparison::NotEqual, &[0; 4])];
        table.add_rule(batch, INGRESS, is_marked.into_iter().chain([end(Verdict::Accept)]));
    }
    add_family(table, batch, &FLOWS_IPV4, &IPV4);
    add_family(table, batch, &FLOWS_IPV6, &IPV6);
}

/// Place of the addresses in an IP header.
struct Family {
    ethertype: [u8; 2],
    offset: u32,
    /// Length of both addresses together.
    length: u32,
}

/// Adds the rules that lead packets of known flows to their chains.
fn add_family(table: &Table, batch: &mut Batch, flows: &Set, family: &Family) {
    let ports = family.length / 4;
    let is_tcp = || {
        let ip = [load_meta(Meta::Protocol), equals(&family.ethertype)];
        ip.into_iter().chain([load_meta(Meta::TransportProtocol), equals(&[PROTOCOL_TCP])])
    };
    let key = || {
        [
            load_header_to(KEY, Header::Network, family.offset, family.length),
            load_header_to(Register::new(ports), Header::Transport, 0, 2),
            load_header_to(Register::new(ports + 1), Header::Transport, 2, 2),
        ]
    };
    // A SYN begins another flow, which no gateway has changed. It may also be a retransmission whose answer was lost
    // at the moment of the lapse. Such a flow stays slow.
    let is_syn = [load_header(Header::Transport, FLAGS, 1), mask(&[FLAG_SYN], &[0]), equals(&[FLAG_SYN])];
    // The kernel requires a value; any will do.
    let forget_it = [load_value_to(CODE, &[0; 4]), forget(flows.name, KEY, CODE), end(Verdict::Accept)];
    table.add_rule(batch, INGRESS, is_tcp().chain(is_syn).chain(key()).chain(forget_it));
    // The number goes through the packet's mark, which is restored afterwards. For nft 1.0.6 (Debian 12) the result
    // of a map look-up has no length. At a second look-up by such a result, the program aborts, whatever it has to
    // list (`netlink_parse_concat_expr`). A mark has a length.
    let chain = [
        look_up(flows.name, KEY, CODE),
        load_meta_to(MARK, Meta::Mark),
        set_mark_from(CODE),
        load_meta_to(CODE, Meta::Mark),
        set_mark_from(MARK),
        look_up_verdict(CHAINS.name, CODE),
    ];
    table.add_rule(batch, INGRESS, is_tcp().chain(key()).chain(chain));
}

/// Towards the server. A window smaller than one unit becomes one. Only zero stays zero.
fn add_right(table: &Table, batch: &mut Batch, bits: u8) {
    let chain = RIGHT.chain(bits);
    table.add_chain(batch, &chain);
    let window = || load_header(Header::Transport, WINDOW, 2);
    table.add_rule(batch, &chain, [window(), equals(&[0; 2]), end(Verdict::Accept)]);
    let is_small = compare(Comparison::Less, &(1u16 << bits).to_be_bytes());
    let one = load_value(&1u16.to_be_bytes());
    table.add_rule(batch, &chain, [window(), is_small, one, store_window(), end(Verdict::Accept)]);
    table.add_rule(batch, &chain, shift_window(Shift::Right(bits)));
}

/// Towards the client. A window too large for the field becomes the largest window.
fn add_left(table: &Table, batch: &mut Batch, bits: u8) {
    let chain = LEFT.chain(bits);
    table.add_chain(batch, &chain);
    let window = load_header(Header::Transport, WINDOW, 2);
    let is_large = compare(Comparison::NotLess, &(1u16 << (16 - bits)).to_be_bytes());
    let largest = load_value(&u16::MAX.to_be_bytes());
    table.add_rule(batch, &chain, [window, is_large, largest, store_window(), end(Verdict::Accept)]);
    table.add_rule(batch, &chain, shift_window(Shift::Left(bits)));
}

fn shift_window(by: Shift) -> [Expression; 5] {
    [load_header(Header::Transport, WINDOW, 2), swap_u16(), shift(by), swap_u16(), store_window()]
}

fn store_window() -> Expression {
    store_u16(WINDOW, CHECKSUM)
}

/// Keys are concatenations of two addresses and two ports. The `nft` program prints them in this form.
pub(super) const FLOWS_IPV4: Set =
    Set { data: Some(Data::Number), dynamic: true, ..Set::new("flows-ipv4", concatenation(16, TYPE_IPV4)) };
pub(super) const FLOWS_IPV6: Set =
    Set { data: Some(Data::Number), dynamic: true, ..Set::new("flows-ipv6", concatenation(40, TYPE_IPV6)) };
const CHAINS: Set =
    Set { data: Some(Data::Verdict), ..Set::new("chains", Key { length: 4, kind: TYPE_MARK }) };

const fn concatenation(length: u32, address: u32) -> Key {
    Key { length, kind: ((address << 6 | address) << 6 | TYPE_PORT) << 6 | TYPE_PORT }
}

const INGRESS: &str = "ingress";
/// After the gateway's own rule.
const PRIORITY: u32 = 10;
const IPV4: Family = Family { ethertype: [0x08, 0x00], offset: 12, length: 8 };
const IPV6: Family = Family { ethertype: [0x86, 0xdd], offset: 8, length: 32 };
const KEY: Register = Register::new(0);
/// The first register behind the longest key.
const CODE: Register = Register::new(10);
const MARK: Register = Register::new(11);
const TYPE_IPV4: u32 = 7;
const TYPE_IPV6: u32 = 8;
const TYPE_PORT: u32 = 13;
const PROTOCOL_TCP: u8 = 6;
/// Offsets in the TCP header.
const FLAGS: u32 = 13;
const WINDOW: u32 = 14;
const CHECKSUM: u32 = 16;
const FLAG_SYN: u8 = 0x02;
