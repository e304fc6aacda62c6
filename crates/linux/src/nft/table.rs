//! A table of the netdev family, and the messages that fill it.

use paceline_wire::Duration;

use super::batch::{Attributes, Batch, Kind, NLM_F_APPEND, NLM_F_CREATE};
use super::expression::{Expression, value_of};

/// A table's name, which is in each message about the table.
#[derive(Clone, Debug)]
pub(super) struct Table {
    pub(super) name: String,
}

/// A set. With data it is a map.
#[derive(Clone, Copy, Debug)]
pub(super) struct Set {
    pub(super) name: &'static str,
    pub(super) key: Key,
    pub(super) data: Option<Data>,
    /// Time after which an element expires.
    pub(super) timeout: Option<Duration>,
    /// Rules remove elements.
    pub(super) dynamic: bool,
}

/// The length of a key in bytes, and its type number for the output of the `nft` program.
#[derive(Clone, Copy, Debug)]
pub(super) struct Key {
    pub(super) length: u32,
    pub(super) kind: u32,
}

/// Type of the values of a map.
#[derive(Clone, Copy, Debug)]
pub(super) enum Data {
    /// A number of four bytes.
    Number,
    Verdict,
}

impl Set {
    pub(super) const fn new(name: &'static str, key: Key) -> Self {
        Set { name, key, data: None, timeout: None, dynamic: false }
    }
}

impl Table {
    /// Creates the table if it does not exist.
    pub(super) fn create(&self, batch: &mut Batch, flags: u32) {
        batch.add(Kind::NewTable, NLM_F_CREATE, &Attributes::new().text(1, &self.name).u32(2, flags));
    }

    pub(super) fn delete(&self, batch: &mut Batch) {
        batch.add(Kind::DeleteTable, 0, &self.named());
    }

    pub(super) fn named(&self) -> Attributes {
        Attributes::new().text(1, &self.name)
    }

    /// Adds a set. `number` would serve references within the batch, but they are by name here.
    pub(super) fn add_set(&self, batch: &mut Batch, number: u32, set: &Set) {
        let mut flags = 0;
        for (is_set, flag) in [
            (set.data.is_some(), NFT_SET_MAP),
            (set.timeout.is_some(), NFT_SET_TIMEOUT),
            (set.dynamic, NFT_SET_EVAL),
        ] {
            flags |= if is_set { flag } else { 0 };
        }
        let mut message = self.part(set.name).u32(3, flags).u32(4, set.key.kind).u32(5, set.key.length);
        message = match set.data {
            None => message,
            Some(Data::Number) => message.u32(6, TYPE_MARK).u32(7, 4),
            Some(Data::Verdict) => message.u32(6, NFT_DATA_VERDICT),
        };
        message = message.u32(10, number);
        if let Some(timeout) = set.timeout {
            message = message.u64(11, timeout.as_millis());
        }
        batch.add(Kind::NewSet, NLM_F_CREATE, &message);
    }

    pub(super) fn add_elements(
        &self,
        batch: &mut Batch,
        set: &str,
        elements: impl IntoIterator<Item = Attributes>,
    ) {
        let message = self.part(set).list(3, LIST_ELEMENT, elements);
        batch.add(Kind::NewElements, NLM_F_CREATE, &message);
    }

    pub(super) fn delete_elements(
        &self,
        batch: &mut Batch,
        set: &str,
        elements: impl IntoIterator<Item = Attributes>,
    ) {
        batch.add(Kind::DeleteElements, 0, &self.part(set).list(3, LIST_ELEMENT, elements));
    }

    pub(super) fn delete_all_elements(&self, batch: &mut Batch, set: &str) {
        batch.add(Kind::DeleteElements, 0, &self.part(set));
    }

    /// Adds a chain for all packets that arrive at `ports`. A smaller priority comes first.
    pub(super) fn add_ingress(&self, batch: &mut Batch, chain: &str, ports: &[String], priority: u32) {
        let devices = ports.iter().fold(Attributes::new(), |list, port| list.text(1, port));
        let hook = Attributes::new().u32(1, NF_NETDEV_INGRESS).u32(2, priority).nested(4, &devices);
        let message = self.named().text(3, chain).nested(4, &hook).text(7, "filter");
        batch.add(Kind::NewChain, NLM_F_CREATE, &message);
    }

    /// Adds a chain that rules jump to.
    pub(super) fn add_chain(&self, batch: &mut Batch, chain: &str) {
        batch.add(Kind::NewChain, NLM_F_CREATE, &self.named().text(3, chain));
    }

    /// Adds a rule at the end of a chain.
    pub(super) fn add_rule(
        &self,
        batch: &mut Batch,
        chain: &str,
        expressions: impl IntoIterator<Item = Expression>,
    ) {
        let expressions = expressions.into_iter().map(Expression::into_attributes);
        let rule = self.part(chain).list(4, LIST_ELEMENT, expressions);
        batch.add(Kind::NewRule, NLM_F_CREATE | NLM_F_APPEND, &rule);
    }

    fn part(&self, name: &str) -> Attributes {
        self.named().text(2, name)
    }
}

/// Returns an element of a set: its key.
pub(super) fn element(key: &[u8]) -> Attributes {
    Attributes::new().nested(1, &value_of(key))
}

/// Returns an element that lapses after this time instead of the set's.
pub(super) fn element_for(key: &[u8], timeout: Duration) -> Attributes {
    element(key).u64(NFTA_SET_ELEM_TIMEOUT, timeout.as_millis())
}

/// Returns an element of a map.
pub(super) fn entry(key: &[u8], data: &Attributes) -> Attributes {
    element(key).nested(2, data)
}

const LIST_ELEMENT: u16 = 1;
const NFTA_SET_ELEM_TIMEOUT: u16 = 4;
const NFT_SET_MAP: u32 = 0x8;
const NFT_SET_TIMEOUT: u32 = 0x10;
const NFT_SET_EVAL: u32 = 0x20;
const NFT_DATA_VERDICT: u32 = 0xffff_ff00;
const NF_NETDEV_INGRESS: u32 = 0;
pub(super) const TYPE_MARK: u32 = 19;
