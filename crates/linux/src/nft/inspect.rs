//! Base chains of every family that others have installed in the kernel. The gateway must know them.

use super::batch::Batch;
use crate::netlink::Connection;
use crate::system_error::{Context, SystemError};

/// A chain that sees packets from a hook, not by a rule that jumps to it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct BaseChain {
    /// `ip`, `ip6`, `inet`, `bridge`, `netdev` or `arp`.
    pub family: &'static str,
    /// The table's name.
    pub table: String,
    /// The chain's name.
    pub chain: String,
    /// The hook: 0 prerouting (or ingress), 1 input, 2 forward, 3 output, 4 postrouting.
    pub hook: u32,
    /// In the family `netdev`: the interfaces at whose ingress the chain is.
    pub interfaces: Vec<String>,
    /// Packets that no rule decides are dropped.
    pub drops: bool,
    /// Number of rules in the chain.
    pub rules: usize,
}

/// Returns every base chain of the calling thread's network namespace.
pub fn base_chains() -> Result<Vec<BaseChain>, SystemError> {
    let connection = Connection::open(netlink_sys::protocols::NETLINK_NETFILTER)?;
    let dump = |kind| Batch::dump(kind, &connection).context(|| "list nftables' chains and rules".to_owned());
    let mut chains: Vec<BaseChain> =
        dump(GET_CHAIN)?.iter().filter_map(|message| base_chain(message)).collect();
    for message in dump(GET_RULE)? {
        let (Some(family), rule) = (family(&message), attributes(&message)) else { continue };
        let (table, chain) = (text(&rule, RULE_TABLE), text(&rule, RULE_CHAIN));
        let of = |known: &&mut BaseChain| {
            known.family == family
                && Some(known.table.as_str()) == table.as_deref()
                && Some(known.chain.as_str()) == chain.as_deref()
        };
        if let Some(known) = chains.iter_mut().find(of) {
            known.rules += 1;
        }
    }
    Ok(chains)
}

pub(crate) fn base_chain(message: &[u8]) -> Option<BaseChain> {
    let chain = attributes(message);
    let hook = nested(find(&chain, CHAIN_HOOK)?);
    Some(BaseChain {
        family: family(message)?,
        table: text(&chain, CHAIN_TABLE)?,
        chain: text(&chain, CHAIN_NAME)?,
        hook: number(&hook, HOOK_NUMBER)?,
        interfaces: find(&hook, HOOK_DEVICES)
            .map(|list| nested(list).into_iter().map(|(_, name)| name_of(name)).collect())
            .unwrap_or_default(),
        drops: number(&chain, CHAIN_POLICY) == Some(NF_DROP),
        rules: 0,
    })
}

/// Reads the family from the header of a netfilter message.
fn family(message: &[u8]) -> Option<&'static str> {
    match *message.get(16)? {
        1 => Some("inet"),
        2 => Some("ip"),
        3 => Some("arp"),
        5 => Some("netdev"),
        7 => Some("bridge"),
        10 => Some("ip6"),
        _ => None,
    }
}

type List<'a> = Vec<(u16, &'a [u8])>;

/// Returns the attributes behind the headers of netlink (16 bytes) and netfilter (4 bytes).
fn attributes(message: &[u8]) -> List<'_> {
    nested(message.get(20..).unwrap_or_default())
}

fn nested(mut bytes: &[u8]) -> List<'_> {
    let mut list = Vec::new();
    while let Some(&[a, b, c, d]) = bytes.first_chunk::<4>() {
        let length = usize::from(u16::from_ne_bytes([a, b]));
        let Some(value) = bytes.get(4..length) else { break };
        list.push((u16::from_ne_bytes([c, d]) & NLA_TYPE_MASK, value));
        bytes = bytes.get(length.next_multiple_of(4)..).unwrap_or_default();
    }
    list
}

fn find<'a>(list: &List<'a>, kind: u16) -> Option<&'a [u8]> {
    list.iter().find(|(found, _)| *found == kind).map(|(_, value)| *value)
}

fn text(list: &List<'_>, kind: u16) -> Option<String> {
    find(list, kind).map(name_of)
}

/// Returns the text before the zero byte at its end.
fn name_of(value: &[u8]) -> String {
    let end = value.iter().position(|byte| *byte == 0).unwrap_or(value.len());
    String::from_utf8_lossy(&value[..end]).into_owned()
}

fn number(list: &List<'_>, kind: u16) -> Option<u32> {
    Some(u32::from_be_bytes(*find(list, kind)?.first_chunk()?))
}

/// `enum nf_tables_msg_types`.
const GET_CHAIN: u16 = 4;
const GET_RULE: u16 = 7;
const CHAIN_TABLE: u16 = 1;
const CHAIN_NAME: u16 = 3;
const CHAIN_HOOK: u16 = 4;
const CHAIN_POLICY: u16 = 5;
const HOOK_NUMBER: u16 = 1;
const HOOK_DEVICES: u16 = 4;
const RULE_TABLE: u16 = 1;
const RULE_CHAIN: u16 = 2;
const NF_DROP: u32 = 0;
const NLA_TYPE_MASK: u16 = 0x3fff;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn cut_short_answers_are_no_chains() {
        let mut message = vec![0; 20];
        message[16] = 2;
        message.extend_from_slice(&[200, 0, 4, 0x80, 1]);
        for length in 0..message.len() {
            assert_eq!(base_chain(&message[..length]), None);
        }
    }
}
