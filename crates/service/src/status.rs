//! The status that the packet thread leaves for other threads.
//!
//! The packet thread never waits for a reader. It leaves a whole copy if nobody holds the lock. Otherwise it tries
//! again in its next turn. Lists of flows are built only on request, a part at a time.

use std::os::unix::net::UnixStream;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Condvar, Mutex, PoisonError, TryLockError};
use std::time::{Duration as StdDuration, Instant as StdInstant};

use paceline_gateway::{Counters, FlowStatus, Gateway, SubscriberStatus};
use paceline_linux::PortCounters;
use paceline_wire::Instant;

use super::totals::Totals;

/// Numbers at one moment.
#[derive(Clone, Debug)]
pub(super) struct Snapshot {
    pub(super) taken: Instant,
    pub(super) started: Instant,
    pub(super) counters: Counters,
    pub(super) totals: Totals,
    pub(super) flows: usize,
    pub(super) split_flows: usize,
    pub(super) subscribers: usize,
    pub(super) buffered_bytes: u64,
    pub(super) packet_memory_bytes: usize,
    pub(super) ports: Vec<PortCounters>,
    pub(super) reloads: Reloads,
    /// Why the gateway is not in place, or `None` if it is.
    pub(super) absence: Option<String>,
}

/// The number of reloads of the configuration.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Reloads {
    pub(super) done: u64,
    pub(super) refused: u64,
}

/// All flows and subscribers, collected over several turns.
#[derive(Clone, Debug, Default)]
pub(super) struct Lists {
    pub(super) taken: Instant,
    pub(super) flows: Vec<FlowStatus>,
    pub(super) subscribers: Vec<SubscriberStatus>,
}

/// Access to the gateway for threads other than the packet thread.
#[derive(Debug, Default)]
pub(super) struct Status {
    shown: Mutex<Shown>,
    changed: Condvar,
    wanted: AtomicBool,
    /// A process that asks to take over.
    successor: Mutex<Option<UnixStream>>,
}

#[derive(Debug, Default)]
struct Shown {
    snapshot: Option<Arc<Snapshot>>,
    /// The newest requested lists, and the number of lists built so far.
    lists: Arc<Lists>,
    made: u64,
}

impl Status {
    /// Returns the newest numbers, or `None` before the first turn.
    pub(super) fn snapshot(&self) -> Option<Arc<Snapshot>> {
        self.shown.lock().unwrap_or_else(PoisonError::into_inner).snapshot.clone()
    }

    /// Requests lists and waits for them. Returns `None` if the packet thread takes too long.
    pub(super) fn lists(&self, patience: StdDuration) -> Option<Arc<Lists>> {
        let mut shown = self.shown.lock().unwrap_or_else(PoisonError::into_inner);
        let before = shown.made;
        self.wanted.store(true, Ordering::Release);
        let deadline = StdInstant::now() + patience;
        while shown.made == before {
            let left = deadline.checked_duration_since(StdInstant::now())?;
            shown = self.changed.wait_timeout(shown, left).unwrap_or_else(PoisonError::into_inner).0;
        }
        Some(shown.lists.clone())
    }

    /// Notes a request to take over. An earlier request is refused by closing its connection.
    pub(super) fn ask_to_take_over(&self, stream: UnixStream) {
        *self.successor.lock().unwrap_or_else(PoisonError::into_inner) = Some(stream);
    }

    /// Returns the process that asked to take over since the last call.
    pub(super) fn successor(&self) -> Option<UnixStream> {
        self.successor.try_lock().ok()?.take()
    }

    /// Publishes new numbers. False if a reader holds the lock.
    pub(super) fn show(&self, snapshot: Snapshot) -> bool {
        self.put(|shown| shown.snapshot = Some(Arc::new(snapshot)))
    }

    fn put(&self, change: impl FnOnce(&mut Shown)) -> bool {
        match self.shown.try_lock() {
            Ok(mut shown) => change(&mut shown),
            Err(TryLockError::Poisoned(poisoned)) => change(&mut poisoned.into_inner()),
            Err(TryLockError::WouldBlock) => return false,
        }
        true
    }
}

/// The packet thread's part of building lists.
#[derive(Debug, Default)]
pub(super) struct Collector {
    partial: Option<Partial>,
}

#[derive(Debug, Default)]
struct Partial {
    lists: Lists,
    next_flow: Option<usize>,
    next_subscriber: Option<usize>,
}

impl Collector {
    /// Continues to build the requested lists. Called eight times a second.
    pub(super) fn turn(&mut self, status: &Status, node: &Gateway, now: Instant) {
        if self.partial.is_none() {
            if !status.wanted.swap(false, Ordering::Acquire) {
                return;
            }
            let start = Partial { next_flow: Some(0), next_subscriber: Some(0), ..Partial::default() };
            self.partial = Some(start);
        }
        let Some(partial) = &mut self.partial else { return };
        if let Some(from) = partial.next_flow {
            let page = node.flow_statuses(from, PLACES);
            partial.lists.flows.extend(page.items);
            partial.next_flow = page.next;
        } else if let Some(from) = partial.next_subscriber {
            let page = node.subscriber_statuses(from, PLACES);
            partial.lists.subscribers.extend(page.items);
            partial.next_subscriber = page.next;
        }
        // A short table is complete in one turn.
        if partial.next_flow.is_none() && partial.next_subscriber == Some(0) {
            let page = node.subscriber_statuses(0, PLACES);
            partial.lists.subscribers = page.items;
            partial.next_subscriber = page.next;
        }
        if partial.next_flow.is_some() || partial.next_subscriber.is_some() {
            return;
        }
        partial.lists.taken = now;
        let lists = Arc::new(std::mem::take(&mut partial.lists));
        let is_shown = status.put(|shown| {
            shown.lists = lists.clone();
            shown.made += 1;
        });
        if is_shown {
            self.partial = None;
            status.changed.notify_all();
        } else if let Some(lists) = Arc::into_inner(lists) {
            partial.lists = lists;
        }
    }
}

/// Table places examined in one turn. Our choice: copying two thousand flows takes well under a millisecond, and a
/// full table of 65,536 takes four seconds.
const PLACES: usize = 2048;

#[cfg(test)]
mod tests {
    use paceline_gateway::GatewayConfig;
    use paceline_wire::Duration;

    use super::*;

    #[test]
    fn lists_are_made_when_asked_for_and_only_then() {
        let status = Arc::new(Status::default());
        let node = Gateway::new(GatewayConfig::default());
        let mut collector = Collector::default();
        collector.turn(&status, &node, Instant::ZERO);
        assert_eq!(status.shown.lock().unwrap().made, 0);
        let asking = std::thread::spawn({
            let status = status.clone();
            move || status.lists(StdDuration::from_secs(60))
        });
        let now = Instant::ZERO + Duration::from_secs(7);
        while !asking.is_finished() {
            collector.turn(&status, &node, now);
            std::thread::yield_now();
        }
        assert_eq!(asking.join().unwrap().unwrap().taken, now);
    }

    #[test]
    fn a_reader_never_blocks_the_packet_thread() {
        let status = Status::default();
        let reader = status.shown.lock().unwrap();
        assert!(!status.put(|_| ()));
        drop(reader);
        assert!(status.put(|_| ()));
    }
}
