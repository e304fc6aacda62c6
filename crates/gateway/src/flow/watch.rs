//! What a flow shows of its client and its path, for `auto` (crate::auto) and for rules about round trips.

use paceline_wire::{Duration, Instant, Rate};

use super::trial::Trial;
use crate::auto::{Claim, Decision, Known, Reason, Seen, UplinkDelay, What, is_late};
use crate::status::FlowTotals;
use crate::virtual_window::FIRST_WINDOW;

/// What is watched of one flow.
#[derive(Clone, Copy, Debug, Default, serde::Serialize, serde::Deserialize)]
pub(super) struct Watch {
    /// When the memory was told last, and what of it.
    told_at: Option<Instant>,
    told_delivered: u64,
    told_lost: u64,
    pub(super) uplink: UplinkDelay,
    claim: Claim,
    /// The highest acknowledgement, of what has left or not.
    #[serde(default)]
    claimed: u64,
    /// Copies that the client reported to have had already.
    needless: u64,
    /// Copies of what the client was thought to have discarded, Eq. (12): that it had them says nothing of losses.
    #[serde(default)]
    beyond_window: u64,
    /// Its end was told.
    over: bool,
    /// The server repairs: what was repaired here had not been lost.
    pub(super) server_repairs: bool,
    /// That was known from the beginning.
    was_told: bool,
    /// It passes through, until nothing of its subscriber's path speaks against help any more.
    #[serde(default)]
    pub(super) passes: bool,
    /// What its server was promised because it passes.
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

/// What a server was promised while its flow passed for late ACKs.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
enum Promise {
    #[default]
    None,
    /// It is still shown more.
    Given,
    /// It is shown no more, and has not sent all of it.
    Kept,
    UsedUp,
}

/// How often the memory is told of a flow that goes on.
const INTERVAL: Duration = Duration::from_secs(1);
/// Our choice: twice what the path holds is what slow start brings when it has filled it.
const FIRST_PATHS: u64 = 2;
/// Delayed ACKs and super-packets alone make a round trip so much longer.
const LOADED: Duration = Duration::from_millis(20);
/// Our choice: no single ACK counts for more than a window without scaling. Somebody who does not see the flow may guess one.
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

impl Watch {
    /// `auto` decided so about its flow, by what is known of the client.
    pub(super) fn decided(&mut self, reason: Option<Reason>, known: &Known) {
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

    /// With each ACK, and why the flow is to pass (`reason`): it passes a while longer, until its server has sent what it was promised. A right edge does
    /// not move back (RFC 9293, Section 3.8.6), and what is promised beyond what the path holds would wait here, up to half a second for each of
    /// four flows. Our choice: where ACKs were late, because that begins and ends with each upload.
    pub(super) fn keeps_passing(&mut self, reason: Option<Reason>) -> bool {
        self.promise = match (reason, self.promise) {
            (Some(Reason::LateAcks), _) => Promise::Given,
            (Some(_), _) => Promise::None,
            (None, Promise::Given) if self.passes => Promise::Kept,
            (None, promise) => promise,
        };
        self.promise == Promise::Kept
    }

    /// The right edge that the server is shown moves.
    pub(super) fn on_edge_moved(&mut self) {
        if self.promise == Promise::Kept {
            self.promise = Promise::UsedUp;
        }
    }

    /// It passes because ACKs are late.
    pub(super) fn has_late_acks(&self) -> bool {
        self.promise == Promise::Given
    }

    /// It no longer needs to pass, and is shown no more than others.
    pub(super) fn ends_passing(&self) -> bool {
        matches!(self.promise, Promise::Kept | Promise::UsedUp)
    }

    /// The path asks for it, or a trial does (`reason`), or both no longer do. Returns why, if the flow begins to pass through.
    pub(super) fn set_passes(&mut self, reason: Option<Reason>) -> Option<Decision> {
        self.passes = reason.is_some();
        if !self.passes {
            self.promise = Promise::None;
        }
        reason.map(|reason| Decision { what: What::Passes, reason })
    }

    /// What it showed since the last time is to be told, once a second and at its end.
    pub(super) fn is_due(&mut self, now: Instant, opens: bool, ends: bool) -> bool {
        let since = *self.told_at.get_or_insert(now);
        let due = ends || now.saturating_since(since) >= INTERVAL;
        due && !self.over && !opens
    }

    /// What it showed since the last time, on this path.
    pub(super) fn seen(&mut self, now: Instant, ends: bool, path: &Path, totals: &FlowTotals) -> Seen {
        let Path { rtt, smoothed, server_rtt, rate, window } = *path;
        self.over = ends;
        let queue = self.uplink.standing();
        // Our choice: a queue of a quarter of the round trip is load.
        let loaded = rtt.is_some_and(|rtt| smoothed > rtt + rtt / 4 + LOADED);
        let seen = Seen {
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

    /// The client acknowledges up to `ack`, and perhaps more than has left for it (`sent`). Why the flow is given up, if it is.
    pub(super) fn on_claim(&mut self, una: u64, sent: u64, ack: u64) -> Option<Decision> {
        self.reason?;
        let before = self.claimed.max(una);
        self.claimed = before.max(ack);
        let unsent = ack.saturating_sub(sent.max(before)).min(CLAIM_MAX);
        let is_optimistic = self.claim.on_ack(ack.saturating_sub(before), unsent);
        is_optimistic.then_some(Decision { what: What::Passes, reason: Reason::OptimisticAcks })
    }

    /// The client reported data that it had already (RFC 2883).
    pub(super) fn on_duplicate(&mut self) {
        match self.beyond_window {
            0 => self.needless += 1,
            _ => self.beyond_window -= 1,
        }
    }

    /// So many copies leave because the client has no room for the first ones.
    pub(super) fn on_beyond_window(&mut self, copies: u64) {
        self.beyond_window += copies;
    }

    /// Where delay looks like loss again and again, as on a link with outages, every repair takes the place of data: of so many
    /// retransmissions half were needless. The server's own timeout is longer, and it learns from spurious ones (RFC 5682). Only
    /// between two repairs.
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
        Some(Decision { what: What::ServerRepairs, reason: Reason::NeedlessRepairs })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn after_late_acks_a_flow_passes_until_its_server_has_sent_what_it_was_promised() {
        let passing = |reason: Reason| {
            let mut watch = Watch::default();
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
        // It may lack something, and stay for a while, but is shown no more.
        assert!(!watch.keeps_passing(None) && watch.ends_passing());
        watch.set_passes(None);
        assert!(!watch.keeps_passing(None) && !watch.ends_passing());

        let mut again = passing(Reason::LateAcks);
        assert!(again.keeps_passing(None) && !again.keeps_passing(Some(Reason::LateAcks)));
        assert!(!again.ends_passing());
        assert!(!passing(Reason::ShortBuffer).keeps_passing(None));
    }
}
