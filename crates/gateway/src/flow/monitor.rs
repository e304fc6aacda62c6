//! What a flow shows of its client and its path, for `auto` (crate::auto) and for rules about round trips.

use paceline_wire::{Duration, Instant, Rate};

use super::trial::Trial;
use crate::auto::{
    Decision, DecisionKind, FlowObservation, KnownPath, OptimisticAcks, Reason, UplinkDelay, is_late,
};
use crate::status::FlowTotals;
use crate::virtual_window::FIRST_WINDOW;

/// What is watched of one flow.
#[derive(Clone, Copy, Debug, Default, serde::Serialize, serde::Deserialize)]
pub(super) struct FlowMonitor {
    /// When the memory was last told of the flow, and the totals then.
    told_at: Option<Instant>,
    told_delivered: u64,
    told_lost: u64,
    pub(super) uplink: UplinkDelay,
    claim: OptimisticAcks,
    /// The highest acknowledgement, even of data that has not left.
    #[serde(default)]
    claimed: u64,
    /// Copies that the client had already, by its reports.
    needless: u64,
    /// Copies of data that the client was thought to have discarded, Eq. (12). A D-SACK for one says nothing of losses.
    #[serde(default)]
    beyond_window: u64,
    /// True if its end was told.
    over: bool,
    /// True if the server repairs: repairs from here were needless.
    pub(super) server_repairs: bool,
    /// True if that was known from the beginning.
    was_told: bool,
    /// True if it passes through, until nothing of its subscriber's path speaks against help any more.
    #[serde(default)]
    pub(super) passes: bool,
    /// Whether its server was promised a larger window because it passes.
    #[serde(default)]
    promise: Promise,
    /// Whether it passes through for a trial.
    #[serde(default)]
    pub(super) trial: Trial,
    /// The most that is advertised before there is a rate, where something is known of the link.
    first_window: Option<u64>,
    /// The newest decision.
    pub(super) reason: Option<Reason>,
}

/// The window that a server was promised while its flow passed because of late ACKs.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
enum Promise {
    #[default]
    None,
    /// The server is still shown more.
    Given,
    /// The server is shown no more, and has not sent all of it.
    Kept,
    UsedUp,
}

/// How often the memory is told of a flow that goes on.
const INTERVAL: Duration = Duration::from_secs(1);
/// Our choice: slow start brings twice what the path holds when it has filled it.
const FIRST_PATHS: u64 = 2;
/// Delayed ACKs and super-packets alone make a round trip this much longer.
const LOADED: Duration = Duration::from_millis(20);
/// Our choice: the most that a single ACK counts, a window without scaling. Whoever does not see the flow may guess
/// one.
const CLAIM_MAX: u64 = 65_535;
/// Our choice: fewer needless copies than this cost nothing.
const NEEDLESS_MIN: u64 = 64;

/// What the other parts of a flow tell of its path.
pub(super) struct Path {
    /// The shortest round trip to the client, the usual one, and that to the server.
    pub(super) rtt: Option<Duration>,
    pub(super) smoothed: Duration,
    pub(super) server_rtt: Duration,
    pub(super) rate: Rate,
    /// The largest window of the client.
    pub(super) window: u64,
}

impl FlowMonitor {
    /// Sets what `auto` decided about the flow, by what is known of its client.
    pub(super) fn decided(&mut self, reason: Option<Reason>, known: &KnownPath) {
        self.reason = reason;
        if let Some(client) = known.client.filter(|_| reason.is_some()) {
            self.server_repairs = known.has_needless_repairs();
            self.was_told = self.server_repairs;
            let rtt = client.rtt.map(|rtt| rtt + known.server_rtt.unwrap_or_default());
            let path = rtt.map_or(0, |rtt| client.rate.bytes_in(rtt));
            self.first_window = (path > 0).then_some(FIRST_PATHS * path);
        }
    }

    /// The most that is advertised before there is a rate.
    pub(super) fn first_window(&self) -> u64 {
        self.first_window.unwrap_or(FIRST_WINDOW).min(FIRST_WINDOW)
    }

    /// True if the flow keeps passing without a `reason`, until its server has sent what it was promised. A right edge
    /// does not move back (RFC 9293, Section 3.8.6). Promised data beyond what the path holds would wait here, up to
    /// half a second for each of four flows. Our choice: only after late ACKs, because these begin and end with each
    /// upload.
    pub(super) fn keeps_passing(&mut self, reason: Option<Reason>) -> bool {
        self.promise = match (reason, self.promise) {
            (Some(Reason::LateAcks), _) => Promise::Given,
            (Some(_), _) => Promise::None,
            (None, Promise::Given) if self.passes => Promise::Kept,
            (None, promise) => promise,
        };
        self.promise == Promise::Kept
    }

    /// Notes that the right edge that the server is shown moves.
    pub(super) fn on_edge_moved(&mut self) {
        if self.promise == Promise::Kept {
            self.promise = Promise::UsedUp;
        }
    }

    /// True if it passes because ACKs are late.
    pub(super) fn has_late_acks(&self) -> bool {
        self.promise == Promise::Given
    }

    /// True if it no longer needs to pass, and is shown no more than others.
    pub(super) fn ends_passing(&self) -> bool {
        matches!(self.promise, Promise::Kept | Promise::UsedUp)
    }

    /// Lets the flow pass through for a `reason`, or ends that without one. Returns the decision if it begins.
    pub(super) fn set_passes(&mut self, reason: Option<Reason>) -> Option<Decision> {
        self.passes = reason.is_some();
        if !self.passes {
            self.promise = Promise::None;
        }
        reason.map(|reason| Decision { what: DecisionKind::Passes, reason })
    }

    /// True if what it showed since the last time is to be told: once a second and at its end.
    pub(super) fn is_due(&mut self, now: Instant, opens: bool, ends: bool) -> bool {
        let since = *self.told_at.get_or_insert(now);
        let due = ends || now.saturating_since(since) >= INTERVAL;
        due && !self.over && !opens
    }

    /// Returns what it showed since the last time, on this path.
    pub(super) fn seen(
        &mut self,
        now: Instant,
        ends: bool,
        path: &Path,
        totals: &FlowTotals,
    ) -> FlowObservation {
        let Path { rtt, smoothed, server_rtt, rate, window } = *path;
        self.over = ends;
        let queue = self.uplink.standing();
        // Our choice: a queue of a quarter of the round trip is load.
        let loaded = rtt.is_some_and(|rtt| smoothed > rtt + rtt / 4 + LOADED);
        let seen = FlowObservation {
            delivered: totals.downlink_bytes.saturating_sub(self.told_delivered),
            lost: if loaded { 0 } else { totals.lost_bytes.saturating_sub(self.told_lost) },
            rate,
            rtt,
            server_rtt,
            window,
            late_acks: queue.is_some_and(|queue| is_late(queue, rtt)),
            needless_repairs: self.server_repairs && !self.was_told,
            split: false,
        };
        self.told_at = Some(now);
        (self.told_delivered, self.told_lost) = (totals.downlink_bytes, totals.lost_bytes);
        seen
    }

    /// Checks an ACK up to `ack`, perhaps beyond what has left (`sent`). Returns why the flow is given up, if it is.
    pub(super) fn check_claimed_ack(&mut self, una: u64, sent: u64, ack: u64) -> Option<Decision> {
        self.reason?;
        let before = self.claimed.max(una);
        self.claimed = before.max(ack);
        let unsent = ack.saturating_sub(sent.max(before)).min(CLAIM_MAX);
        let is_optimistic = self.claim.on_ack(ack.saturating_sub(before), unsent);
        is_optimistic.then_some(Decision { what: DecisionKind::Passes, reason: Reason::OptimisticAcks })
    }

    /// Notes that the client reported data that it had already (RFC 2883).
    pub(super) fn on_duplicate(&mut self) {
        match self.beyond_window {
            0 => self.needless += 1,
            _ => self.beyond_window -= 1,
        }
    }

    /// Notes that `copies` leave because the client has no room for the first ones.
    pub(super) fn on_beyond_window(&mut self, copies: u64) {
        self.beyond_window += copies;
    }

    /// Leaves repair to the server if more than half of the `retransmissions` were needless. Where delay looks like
    /// loss again and again, as on a link with outages, every repair takes the place of data. The server's own timeout
    /// is longer, and it learns from spurious ones (RFC 5682). This happens only between two repairs.
    pub(super) fn stop_needless_repairs(
        &mut self,
        is_repairing: bool,
        retransmissions: u64,
    ) -> Option<Decision> {
        let is_idle = self.reason.is_some() && !self.server_repairs && !is_repairing;
        if !is_idle || self.needless < NEEDLESS_MIN || 2 * self.needless <= retransmissions {
            return None;
        }
        self.server_repairs = true;
        Some(Decision { what: DecisionKind::ServerRepairs, reason: Reason::NeedlessRepairs })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn after_late_acks_a_flow_passes_until_its_server_has_sent_what_it_was_promised() {
        let passing = |reason: Reason| {
            let mut watch = FlowMonitor::default();
            assert!(!watch.keeps_passing(Some(reason)));
            watch.set_passes(Some(reason));
            // Its window is that of its client, and moves.
            watch.on_edge_moved();
            watch
        };
        let mut watch = passing(Reason::LateAcks);
        assert!(!watch.ends_passing());
        assert!(watch.keeps_passing(None) && watch.keeps_passing(None) && watch.ends_passing());
        watch.on_edge_moved();
        // It may lack something and so pass for a while, but is shown no more.
        assert!(!watch.keeps_passing(None) && watch.ends_passing());
        watch.set_passes(None);
        assert!(!watch.keeps_passing(None) && !watch.ends_passing());

        let mut again = passing(Reason::LateAcks);
        assert!(again.keeps_passing(None) && !again.keeps_passing(Some(Reason::LateAcks)));
        assert!(!again.ends_passing());
        assert!(!passing(Reason::ServerRecovers).keeps_passing(None));
    }
}
