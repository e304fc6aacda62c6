//! The table with which the kernel rescales windows when the gateway does not, and ends split flows.
//!
//! If the gateway stops rescaling the windows of a flow, their unit changes. The client would read the server's
//! window as a few hundred bytes. So the table lists each rescaled flow, and the kernel shifts its windows. It does
//! this only in packets that the gateway's own rule ([`FailOpen`](super::FailOpen)) has let through. That rule comes
//! first, and lets packets through after it has lapsed.
//!
//! The ends of a split flow do not know which data the other end has. The kernel answers each of their packets with a
//! reset. The reset has the exact sequence number that the sender expects next.
//!
//! The table has no owner, so that it outlives the process. It is not part of the machine's own firewall, but a
//! reload of that firewall may remove it: see [`RescaleTable::exists`].

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

/// Where the kernel rescales, and which packets it leaves alone.
#[derive(Clone, Debug)]
pub struct RescaleConfig {
    /// The name in the gateway's [`FailOpenConfig`](super::FailOpenConfig). The table's name is
    /// `paceline-<name>-windows`.
    pub name: String,
    /// The interfaces between which the gateway stands.
    pub ports: Vec<String>,
    /// Packets with one of these bits in their marks go to the gateway, and are not rescaled.
    pub mark: Option<u32>,
    /// Flows expire after this time, unless the table is created anew. Nobody else removes the flows of a gateway
    /// that never returns.
    pub timeout: Duration,
}

impl RescaleConfig {
    /// Flows expire after a day. Our choice: longer than a restart takes.
    pub fn new(name: &str, ports: &[&str], mark: Option<u32>) -> Self {
        let ports = ports.iter().map(|&port| port.to_owned()).collect();
        RescaleConfig { name: name.to_owned(), ports, mark, timeout: Duration::from_secs(86_400) }
    }
}

/// A flow (client to server) opened or closed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FlowChange {
    /// The flow needs this treatment from here on.
    Opened(FlowKey, Fallback),
    /// The flow had this treatment.
    Closed(FlowKey, Fallback),
}

/// The table. It stays when this value is dropped.
#[derive(Debug)]
pub struct RescaleTable {
    connection: Connection,
    table: Table,
    config: RescaleConfig,
}

impl RescaleTable {
    /// Opens a connection for the table in the calling thread's network namespace. [`replace`](Self::replace) creates
    /// the table.
    pub fn open(config: RescaleConfig) -> Result<RescaleTable, SystemError> {
        let connection = Connection::open(netlink_sys::protocols::NETLINK_NETFILTER)?;
        let table = Table { name: format!("paceline-{}-windows", config.name) };
        Ok(RescaleTable { connection, table, config })
    }

    /// Replaces the table of an earlier gateway by one with only these flows.
    pub fn replace(&self, flows: impl IntoIterator<Item = (FlowKey, Fallback)>) -> Result<(), SystemError> {
        let mut flows = flows.into_iter().map(|(flow, fallback)| FlowChange::Opened(flow, fallback));
        let mut batch = Batch::new();
        // Deleting a table that does not exist is an error, so it is created first.
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

    /// Applies changes in groups of [`CHANGES_MAX`], each group as a whole or not at all. Closing a flow that is not
    /// in the table is an error.
    pub fn change(&self, changes: &[FlowChange]) -> Result<(), SystemError> {
        for some in changes.chunks(CHANGES_MAX) {
            let mut batch = Batch::new();
            self.add_changes(&mut batch, some);
            batch.send(&self.connection).context(|| format!("change table {}", self.table.name))?;
        }
        Ok(())
    }

    /// True if the table exists.
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

    /// Keeps the order: a flow may close, and another with the same addresses may open. Consecutive changes of one
    /// kind share a message.
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

    /// Returns one element for each direction that needs a change.
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

/// Returns addresses and ports as the rules load them. Each takes a multiple of four bytes.
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

/// Largest number of changes in one batch. Two elements a flow, of up to 72 bytes each, must fit into an attribute of
/// 64 KB.
pub const CHANGES_MAX: usize = 256;

const _: () = assert!(CHANGES_MAX * 2 * 72 < 65_536, "an attribute's length has 16 bits");
