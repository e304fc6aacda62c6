//! The table by which the kernel goes on rescaling windows when the gateway does not, and ends split flows.
//!
//! To a flow whose windows the gateway rescales, its end would be a change of units: the client would read the server's window
//! as a few hundred bytes. So the kernel is told of each such flow, and shifts its windows itself, in packets that the gateway's
//! own rule ([`FailOpen`](super::FailOpen)) has let through: after it has lapsed, and behind it in order.
//!
//! The ends of a split flow do not know what the other has: each of their packets is answered with a reset, which has the very
//! number that its sender expects next.
//!
//! The table belongs to nobody, so that it outlives the process. It is no part of the machine's own firewall, but a reload of
//! that may remove it: [`RescaleTable::exists`] tells.

mod rules;

use std::net::IpAddr;

use paceline_wire::{Duration, FlowKey};

use self::rules::{FLOWS_IPV4, FLOWS_IPV6, LEFT, RESET, RIGHT, SHIFT_MAX};
use super::batch::{Attributes, Batch, Kind};
use super::expression::value_of;
use super::table::{Table, element, entry};
use crate::fallback::Fallback;
use crate::netlink::Connection;
use crate::system_error::{Context, SystemError};

/// Where to rescale, and what not.
#[derive(Clone, Debug)]
pub struct RescaleConfig {
    /// That of the gateway's [`FailOpenConfig`](super::FailOpenConfig); the table is called `paceline-<name>-windows`.
    pub name: String,
    /// The interfaces between which the gateway stands.
    pub ports: Vec<String>,
    /// Packets with one of these bits in their marks go to the gateway.
    pub mark: Option<u32>,
    /// Flows are forgotten after it, unless the table is made anew: nobody else removes those of a gateway that never returns.
    pub timeout: Duration,
}

impl RescaleConfig {
    /// Forgets flows after a day: our choice, more than a restart takes.
    pub fn new(name: &str, ports: &[&str], mark: Option<u32>) -> Self {
        let ports = ports.iter().map(|&port| port.to_owned()).collect();
        RescaleConfig { name: name.to_owned(), ports, mark, timeout: Duration::from_secs(86_400) }
    }
}

/// A flow (client to server) comes or goes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FlowChange {
    /// It is to be treated like this.
    Opened(FlowKey, Fallback),
    /// It was to be treated like this.
    Closed(FlowKey, Fallback),
}

/// The table, which stays when this value goes.
#[derive(Debug)]
pub struct RescaleTable {
    connection: Connection,
    table: Table,
    config: RescaleConfig,
}

impl RescaleTable {
    /// For the table in the calling thread's network namespace; it is made by [`replace`](Self::replace).
    pub fn open(config: RescaleConfig) -> Result<RescaleTable, SystemError> {
        let connection = Connection::open(netlink_sys::protocols::NETLINK_NETFILTER)?;
        let table = Table { name: format!("paceline-{}-windows", config.name) };
        Ok(RescaleTable { connection, table, config })
    }

    /// Makes the table, with these flows alone, in place of what an earlier gateway left.
    pub fn replace(&self, flows: impl IntoIterator<Item = (FlowKey, Fallback)>) -> Result<(), SystemError> {
        let mut flows = flows.into_iter().map(|(flow, fallback)| FlowChange::Opened(flow, fallback));
        let mut batch = Batch::new();
        // Deleting what does not exist would be an error.
        self.table.create(&mut batch, 0);
        self.table.delete(&mut batch);
        self.table.create(&mut batch, 0);
        rules::add(&self.table, &mut batch, &self.config);
        loop {
            let some: Vec<FlowChange> = flows.by_ref().take(CHANGES_MAX).collect();
            self.add_changes(&mut batch, &some);
            batch.send(&self.connection).context(|| format!("install table {}", self.table.name))?;
            if some.len() < CHANGES_MAX {
                return Ok(());
            }
            batch = Batch::new();
        }
    }

    /// Carries out changes, all or none of each [`CHANGES_MAX`]. It is an error if a flow that closes is not there.
    pub fn change(&self, changes: &[FlowChange]) -> Result<(), SystemError> {
        for some in changes.chunks(CHANGES_MAX) {
            let mut batch = Batch::new();
            self.add_changes(&mut batch, some);
            batch.send(&self.connection).context(|| format!("change table {}", self.table.name))?;
        }
        Ok(())
    }

    /// Whether the table is there.
    pub fn exists(&self) -> Result<bool, SystemError> {
        match Batch::ask(Kind::GetTable, &self.table.named(), &self.connection) {
            Err(error) if error.raw_os_error() == Some(libc::ENOENT) => Ok(false),
            result => result.map(|()| true).context(|| format!("look for table {}", self.table.name)),
        }
    }

    /// Removes the table.
    pub fn remove(self) -> Result<(), SystemError> {
        let mut batch = Batch::new();
        self.table.delete(&mut batch);
        batch.send(&self.connection).context(|| format!("remove table {}", self.table.name))
    }

    /// In their order: a flow may close and another open with the same addresses. What follows one another is one message.
    fn add_changes(&self, batch: &mut Batch, changes: &[FlowChange]) {
        let same_kind = |a: &FlowChange, b: &FlowChange| {
            std::mem::discriminant(a) == std::mem::discriminant(b) && a.set() == b.set()
        };
        for run in changes.chunk_by(same_kind) {
            let elements: Vec<Attributes> = run.iter().flat_map(|change| change.elements()).collect();
            match run[0] {
                _ if elements.is_empty() => {}
                FlowChange::Opened(..) => self.table.add_elements(batch, run[0].set(), elements),
                FlowChange::Closed(..) => self.table.delete_elements(batch, run[0].set(), elements),
            }
        }
    }
}

impl FlowChange {
    fn set(&self) -> &'static str {
        let (FlowChange::Opened(flow, _) | FlowChange::Closed(flow, _)) = self;
        if flow.src.is_ipv4() { FLOWS_IPV4.name } else { FLOWS_IPV6.name }
    }

    /// One for each direction that is changed at all.
    fn elements(&self) -> impl Iterator<Item = Attributes> {
        let (FlowChange::Opened(flow, fallback) | FlowChange::Closed(flow, fallback)) = *self;
        let is_opened = matches!(self, FlowChange::Opened(..));
        let codes = match fallback {
            Fallback::Reset => [Some(RESET), Some(RESET)],
            Fallback::Rescale(shifts) => {
                let (right, left) = shifts.corrections();
                [(RIGHT, right), (LEFT, left)]
                    .map(|(side, bits)| (1..=SHIFT_MAX).contains(&bits).then(|| side.code(bits)))
            }
        };
        let directions = [flow, flow.reversed()].into_iter().zip(codes);
        directions.filter_map(move |(flow, code)| {
            let key = key_of(&flow);
            let code = code?.to_ne_bytes();
            Some(if is_opened { entry(&key, &value_of(&code)) } else { element(&key) })
        })
    }
}

/// Addresses and ports as the rules load them; each takes a multiple of four bytes.
fn key_of(flow: &FlowKey) -> Vec<u8> {
    let mut key = Vec::with_capacity(40);
    for address in [flow.src.ip(), flow.dst.ip()] {
        match address {
            IpAddr::V4(address) => key.extend(address.octets()),
            IpAddr::V6(address) => key.extend(address.octets()),
        }
    }
    for port in [flow.src.port(), flow.dst.port()] {
        let [high, low] = port.to_be_bytes();
        key.extend([high, low, 0, 0]);
    }
    key
}

/// Flows in one batch: two elements of up to 72 bytes each must fit into an attribute of 64 KB.
pub const CHANGES_MAX: usize = 256;

const _: () = assert!(CHANGES_MAX * 2 * 72 < 65_536, "an attribute's length has 16 bits");
