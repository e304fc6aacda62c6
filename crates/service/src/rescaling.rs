//! Tells the kernel which flows to rescale and which to reset when this process does not serve them.
//!
//! It runs on its own thread. The kernel changes one rule set at a time, so its answer may take as long as a reload
//! of the machine's firewall. Packets must not wait for that.

use std::collections::HashMap;
use std::os::unix::net::UnixStream;
use std::sync::mpsc::{Receiver, RecvTimeoutError, SyncSender, sync_channel};
use std::thread::{self, JoinHandle};
use std::time::Duration as StdDuration;

use super::handover;
use paceline_linux::nft::{FlowChange, RescaleConfig, RescaleTable};
use paceline_linux::{Fallback, SystemError, clock};
use paceline_wire::{Duration, FlowKey, Instant};

/// A message to the thread.
#[derive(Clone, Copy, Debug)]
pub(super) enum Change {
    /// This flow (client to server) cannot go on without the gateway.
    Opened(FlowKey, Fallback),
    Closed(FlowKey),
    /// The interfaces have changed: create the table again.
    Renew,
    /// The gateway ends in order.
    Finish,
    /// Another process has taken over, and maintains the table from here on.
    Leave,
}

/// Takes changes from the packet thread.
#[derive(Debug)]
pub(super) struct RescalingSender(SyncSender<Change>);

impl RescalingSender {
    /// Sends a change without waiting. If it does not fit, it is lost: a flow then suffers without the gateway, or an
    /// entry stays for a day.
    pub(super) fn tell(&self, change: Change) {
        let _ = self.0.try_send(change);
    }
}

/// The state before the thread is started.
#[derive(Debug)]
pub(super) struct Rescaling {
    sender: SyncSender<Change>,
    changes: Receiver<Change>,
    flows: HashMap<FlowKey, Fallback>,
}

impl Rescaling {
    /// Starts with the flows of an earlier process.
    pub(super) fn new(flows: &[(FlowKey, Fallback)]) -> Rescaling {
        let (sender, changes) = sync_channel(WAITING_MAX);
        Rescaling { sender, changes, flows: flows.iter().copied().collect() }
    }

    pub(super) fn feed(&self) -> RescalingSender {
        RescalingSender(self.sender.clone())
    }

    /// Starts the thread in the calling thread's network namespace. The gateway's own rule must be in force. With a
    /// predecessor, the thread waits until the predecessor has ended.
    pub(super) fn start(self, config: RescaleConfig, predecessor: Option<UnixStream>) -> RescalingThread {
        let Rescaling { sender, changes, flows } = self;
        let thread = thread::spawn(move || {
            if let Some(stream) = predecessor {
                handover::wait_for_end(&stream);
            }
            let told = RescaleUpdater::install(config, flows).and_then(|keeper| keeper.run(&changes));
            if let Err(error) = told {
                tracing::warn!(
                    "{error}; when the gateway ends, flows whose windows it rescales become slow, and split flows hang"
                );
            }
        });
        RescalingThread { sender, thread }
    }
}

/// The running thread.
#[derive(Debug)]
pub(super) struct RescalingThread {
    sender: SyncSender<Change>,
    thread: JoinHandle<()>,
}

impl RescalingThread {
    /// Reports that the gateway has joined its interfaces again. Does not wait. A lost message is made up for when
    /// the table is next created.
    pub(super) fn renew(&self) {
        let _ = self.sender.try_send(Change::Renew);
    }

    /// Leaves the table to another process.
    pub(super) fn leave(self) {
        let _ = self.sender.send(Change::Leave);
        let _ = self.thread.join();
    }

    /// Ends the thread. The table stays if flows need it.
    pub(super) fn finish(self) {
        let _ = self.sender.send(Change::Finish);
        let _ = self.thread.join();
    }
}

/// Maintains the kernel's table.
#[derive(Debug)]
struct RescaleUpdater {
    table: RescaleTable,
    /// Lifetime of an entry.
    timeout: Duration,
    flows: HashMap<FlowKey, Fallback>,
    made: Instant,
    is_right: bool,
}

impl RescaleUpdater {
    fn install(
        config: RescaleConfig,
        flows: HashMap<FlowKey, Fallback>,
    ) -> Result<RescaleUpdater, SystemError> {
        let timeout = config.timeout;
        let table = RescaleTable::open(config)?;
        let mut keeper = RescaleUpdater { table, timeout, flows, made: clock::now(), is_right: false };
        keeper.replace()?;
        Ok(keeper)
    }

    fn run(mut self, changes: &Receiver<Change>) -> Result<(), SystemError> {
        let mut checked = clock::now();
        loop {
            let mut some = Vec::new();
            match changes.recv_timeout(StdDuration::from_nanos(CHECK_INTERVAL.as_nanos())) {
                Ok(first) => some.extend([first].into_iter().chain(changes.try_iter()).take(WAITING_MAX)),
                Err(RecvTimeoutError::Timeout) => {}
                Err(RecvTimeoutError::Disconnected) => return Ok(()),
            }
            let is_last = some.iter().any(|change| matches!(change, Change::Finish));
            let is_left = some.iter().any(|change| matches!(change, Change::Leave));
            let is_renewed = some.iter().any(|change| matches!(change, Change::Renew));
            self.carry_out(some);
            if is_left {
                return Ok(());
            }
            if is_last {
                return if self.flows.is_empty() { self.table.remove() } else { Ok(()) };
            }
            let now = clock::now();
            if is_renewed {
                self.is_right = false;
            }
            if is_renewed || now.saturating_since(checked) >= CHECK_INTERVAL {
                checked = now;
                self.check();
            }
        }
    }

    fn carry_out(&mut self, changes: Vec<Change>) {
        let mut carried = Vec::with_capacity(changes.len());
        for change in changes {
            match change {
                Change::Opened(flow, fallback) => {
                    let before = self.flows.insert(flow, fallback);
                    carried.extend(before.map(|before| FlowChange::Closed(flow, before)));
                    carried.push(FlowChange::Opened(flow, fallback));
                }
                Change::Closed(flow) => {
                    let before = self.flows.remove(&flow);
                    carried.extend(before.map(|before| FlowChange::Closed(flow, before)));
                }
                Change::Renew | Change::Finish | Change::Leave => {}
            }
        }
        // The next check repairs an error.
        self.is_right = self.is_right && self.table.change(&carried).is_ok();
    }

    /// Creates the table again if somebody else has changed it, as a reload of the machine's firewall does. Also
    /// creates it again before its entries expire.
    fn check(&mut self) {
        let is_young = clock::now().saturating_since(self.made) < self.timeout / 2;
        self.is_right = self.is_right && is_young && self.table.exists().unwrap_or(false);
        if !self.is_right {
            // The next check tries again.
            let _ = self.replace();
        }
    }

    fn replace(&mut self) -> Result<(), SystemError> {
        self.table.replace(self.flows.iter().map(|(flow, fallback)| (*flow, *fallback)))?;
        (self.made, self.is_right) = (clock::now(), true);
        Ok(())
    }
}

/// The largest number of changes that wait for the kernel. Our choice: one second of a busy gateway, in half a
/// megabyte.
const WAITING_MAX: usize = 8192;
const CHECK_INTERVAL: Duration = Duration::from_secs(1);

#[cfg(test)]
mod tests {
    use paceline_gateway::Shifts;
    use paceline_lab::netns::{Netns, check_permitted};

    use super::*;

    /// Sends changes to a thread that starts with `flows`, and ends it in order. True if the table still exists.
    fn stays_after(namespace: &Netns, flows: &[(FlowKey, Fallback)], changes: &[Change]) -> bool {
        let config = || RescaleConfig::new("test", &["lo"], None);
        let rescaling = Rescaling::new(flows);
        let feed = rescaling.feed();
        changes.iter().for_each(|change| feed.tell(*change));
        namespace.run(|| rescaling.start(config(), None)).unwrap().finish();
        namespace.run(|| RescaleTable::open(config())).unwrap().unwrap().exists().unwrap()
    }

    #[test]
    fn the_table_stays_only_for_flows() {
        if let Err(error) = check_permitted() {
            eprintln!("skipped: {error}");
            return;
        }
        let namespace = Netns::create("rescaling").unwrap();
        let flow = FlowKey { src: "10.0.0.2:40000".parse().unwrap(), dst: "10.0.0.1:80".parse().unwrap() };
        let shifts = Fallback::Rescale(Shifts { client: 0, shown: 7, server: 7, added: true });
        assert!(!stays_after(&namespace, &[], &[]));
        assert!(stays_after(&namespace, &[], &[Change::Opened(flow, shifts)]));
        assert!(stays_after(&namespace, &[(flow, shifts)], &[]));
        assert!(stays_after(&namespace, &[(flow, shifts)], &[Change::Opened(flow, shifts)]));
        assert!(!stays_after(&namespace, &[(flow, shifts)], &[Change::Closed(flow)]));
    }
}
