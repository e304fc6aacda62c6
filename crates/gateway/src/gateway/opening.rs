//! Handles a SYN and opens its flow: split, transparent, or none.

use paceline_wire::{Flags, FlowKey, Instant, Packet, PortId};

use super::{Gateway, Shared};
use crate::auto::{Decision, DecisionKind, Reason, may_open};
use crate::config::VirtualWindowMode;
use crate::counters::PassReason;
use crate::flow::{Flow, SynMatch};
use crate::ids::EntryId;
use crate::link_report::LinkReport;
use crate::mode::Mode;
use crate::observe::Event;
use crate::ports::{RADIO, WAN};
use crate::share::Share;
use crate::status::FlowStage;

/// A new flow, in the mode chosen for it.
enum Admitted {
    Transparent(EntryId),
    Split,
}

impl Gateway {
    /// Returns the window scale that a client's SYN needs: the smallest that can show the largest virtual window.
    fn shift_wanted(&self) -> Option<u8> {
        let window = &self.shared.config.virtual_window;
        let raises = matches!(window.mode, VirtualWindowMode::Fixed | VirtualWindowMode::Sized);
        if !window.add_window_scale || !raises {
            return None;
        }
        // RFC 7323, Section 2.3: 14 is the largest shift. It shows up to 16 KiB less than the largest window that can
        // be set.
        (0..14).find(|&shift| 65_535u64 << shift >= window.max_bytes).or(Some(14))
    }

    /// Handles the SYN of a new connection, or another SYN of a known one.
    pub(super) fn on_syn(&mut self, now: Instant, from: PortId, key: FlowKey, packet: Packet) {
        let Some(tcp) = packet.tcp() else { return };
        if !packet.verify_checksum() {
            // RFC 9293, Section 3.1: the receiver discards it. The next copy begins the flow.
            self.shared.counters.pass(PassReason::BadChecksum);
            return self.shared.forward(from, packet);
        }
        let known = self.table.find(&key).and_then(|id| Some((id, self.at(now, id)?.0.judge_syn(from, tcp))));
        let id = match known {
            Some((id, SynMatch::ThisFlow)) => id,
            Some((_, SynMatch::Unacceptable)) => {
                self.shared.counters.pass(PassReason::Unacceptable);
                return self.shared.forward(from, packet);
            }
            Some((_, SynMatch::NewFlow)) | None => match self.admit(now, from, &key, &packet) {
                Ok(Admitted::Split) => return,
                Ok(Admitted::Transparent(id)) => id,
                Err(reason) => {
                    // No receiver takes an unacceptable SYN for a SYN, so it does not come again.
                    if !tcp.flags().contains(Flags::ACK) && reason != PassReason::Unacceptable {
                        self.passed_syns.note(now, &key, tcp.seq());
                    }
                    self.shared.counters.pass(reason);
                    return self.shared.forward(from, packet);
                }
            },
        };
        let shift = self.shift_wanted();
        // A copy of a SYN may come at any time, so the flow may be past its opening.
        let Some((flow, mut ctx)) = self.at(now, id) else { return };
        let before = flow.in_flight();
        if from == WAN {
            flow.on_server_syn(&mut ctx, packet)
        } else {
            flow.on_client_syn(&mut ctx, packet, shift)
        }
        self.after(id, now, before, LinkReport::default());
    }

    /// Opens the flow that `syn` begins, unless it is to pass.
    fn admit(
        &mut self,
        now: Instant,
        from: PortId,
        key: &FlowKey,
        syn: &Packet,
    ) -> Result<Admitted, PassReason> {
        if let Some(old) = self.table.find(key) {
            self.remove(now, old, FlowStage::Replaced);
        }
        let begins = syn.tcp().filter(|tcp| !tcp.flags().contains(Flags::ACK));
        if begins.is_none_or(|tcp| self.passed_syns.knows(now, key, tcp.seq())) {
            return Err(PassReason::MidFlow);
        }
        let Shared { config, memory, .. } = &self.shared;
        let known = memory.known(now, &config.sharing, key);
        let choice = config.choose(key, syn, &known);
        if let Mode::Pass(reason) = choice.mode {
            return Err(reason);
        }
        self.make_room(now, key)?;
        // If the server opens, its sender is behind the radio link. Splitting would not help it.
        if let (Mode::Split(sender), true) = (choice.mode, from == RADIO)
            && self.split.open(
                &mut self.shared.context(now),
                &mut self.table,
                *key,
                sender,
                &choice.share,
                syn,
            )
        {
            self.tell(now, key, choice.mode, choice.reason);
            self.split.set_reason(key, choice.reason);
            return Ok(Admitted::Split);
        }
        self.tell(now, key, Mode::Transparent, choice.reason);
        let interval = self.shared.config.schedule.ack_interval;
        let make = |subscriber| {
            Flow::new(*key, subscriber, choice.share.weight, interval, now)
                .bounded(choice.window_max_bytes)
                .decided(choice.reason, &known)
        };
        let id = self.table.insert(&self.shared.config, *key, Share::new(&choice.share), make);
        id.map(Admitted::Transparent).ok_or(PassReason::TableFull)
    }

    /// Removes half-open flows for a new one, if the table is full or the subscriber or the network has too many of
    /// them.
    fn make_room(&mut self, now: Instant, key: &FlowKey) -> Result<(), PassReason> {
        let max_flows = self.shared.config.limits.max_flows;
        let subscriber = self.shared.config.sharing.subscriber(key.src.ip());
        let is_full = self.flows() >= max_flows;
        if let Some(oldest) = self.table.next_to_go(subscriber, key.dst.ip(), is_full) {
            self.drop_half_open(now, oldest);
        }
        if !may_open(max_flows, self.flows(), self.table.flows_of(subscriber))
            && let Some(oldest) = self.table.oldest_of(subscriber)
        {
            self.drop_half_open(now, oldest);
        }
        if self.flows() >= max_flows {
            return Err(PassReason::TableFull);
        }
        let may_open = may_open(max_flows, self.flows(), self.table.flows_of(subscriber));
        if may_open { Ok(()) } else { Err(PassReason::TooManyFlows) }
    }

    pub(crate) fn drop_half_open(&mut self, now: Instant, id: EntryId) {
        self.shared.counters.half_open_dropped += 1;
        match self.table.split(id) {
            Some(entry) => self.split.remove(&mut self.shared.context(now), &mut self.table, entry.flow),
            None => self.remove(now, id, FlowStage::Idle),
        }
    }

    /// Counts and reports the decision of `auto` about a new flow.
    fn tell(&mut self, now: Instant, key: &FlowKey, mode: Mode, reason: Option<Reason>) {
        let Some(reason) = reason else { return };
        self.shared.counters.decide(reason);
        let decision = Decision { what: DecisionKind::Mode(mode), reason };
        self.shared.observer.on_event(now, key, &Event::Decided(decision));
    }
}
