//! The fates of one flow's packets: the events of Table II, seen at the links and not at the sender.

use std::cell::RefCell;
use std::collections::{BTreeMap, VecDeque};
use std::rc::Rc;

use paceline_path::Delivered;
use paceline_wire::{Duration, FlowKey, Instant, Packet};

use crate::network::Tap;

/// Watches the first flow that sends. Clones share the observations.
#[derive(Clone, Debug, Default)]
pub(super) struct StsMeter(Rc<RefCell<State>>);

/// Tap on the bottleneck: packets that leave the sender, and packets that pass the queue.
#[derive(Debug)]
pub(super) struct Bottleneck(StsMeter);

/// Tap on the link that loses packets without congestion.
#[derive(Debug)]
pub(super) struct Radio(StsMeter);

/// Tap on the link by which ACKs reach the sender.
#[derive(Debug)]
pub(super) struct Acks(StsMeter);

/// A packet P_i and its retransmission.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct RetransmittedPacket {
    /// Time of the first transmission.
    pub(super) sent: Instant,
    /// CL: lost in the queue.
    pub(super) congestive: bool,
    /// NL: lost behind the queue.
    pub(super) other: bool,
    /// Time from the first transmission to the ACK; `None` if the first transmission was lost.
    pub(super) rtt: Option<Duration>,
    /// RTX: time from the second transmission to the ACK; `None` if there was no second one.
    pub(super) unacknowledged: Option<Duration>,
    /// TO: sent a third time, which only a timeout does.
    pub(super) timed_out: bool,
    /// Number of transmissions.
    pub(super) times: u32,
}

#[derive(Debug, Default)]
struct State {
    flow: Option<FlowKey>,
    packets: BTreeMap<u32, Record>,
    /// Packets that are not acknowledged.
    open: BTreeMap<u32, ()>,
    acked: VecDeque<(Instant, u32)>,
    fates: Vec<RetransmittedPacket>,
}

#[derive(Debug, Default)]
struct Record {
    transmissions: Vec<Transmission>,
    acked: Option<Instant>,
    /// A timeout of another packet has cleared this packet's timer. If it is sent again, the model does not cover it.
    cleared: bool,
}

#[derive(Clone, Copy, Debug)]
struct Transmission {
    sent: Instant,
    /// Time at which it left the queue.
    passed: Option<Instant>,
    arrived: bool,
}

/// Time after its ACK at which a packet is settled. Until then a late copy may arrive.
const SETTLED: Duration = Duration::from_secs(5);

impl StsMeter {
    pub(super) fn bottleneck(&self) -> Box<dyn Tap> {
        Box::new(Bottleneck(self.clone()))
    }

    pub(super) fn radio(&self) -> Box<dyn Tap> {
        Box::new(Radio(self.clone()))
    }

    pub(super) fn acks(&self) -> Box<dyn Tap> {
        Box::new(Acks(self.clone()))
    }

    /// Takes the fates of all settled packets that the model covers.
    pub(super) fn fates(&self) -> Vec<RetransmittedPacket> {
        std::mem::take(&mut self.0.borrow_mut().fates)
    }
}

impl State {
    /// Returns the number of a data packet of the flow.
    fn number(&self, packet: &Packet) -> Option<u32> {
        let tcp = packet.tcp().filter(|tcp| tcp.payload_len() > 0)?;
        (packet.flow_key() == self.flow).then_some(tcp.seq().0)
    }

    fn on_sent(&mut self, now: Instant, number: u32) {
        let record = self.packets.entry(number).or_default();
        record.transmissions.push(Transmission { sent: now, passed: None, arrived: false });
        self.open.insert(number, ());
        if record.transmissions.len() > 2 {
            for other in self.open.keys() {
                let Some(record) = self.packets.get_mut(other) else { continue };
                record.cleared |= record.transmissions.len() < 2;
            }
        }
    }

    fn on_acked(&mut self, now: Instant, numbers: &[u32]) {
        for number in numbers {
            self.open.remove(number);
            if let Some(record) = self.packets.get_mut(number) {
                record.acked = Some(now);
                self.acked.push_back((now, *number));
            }
        }
        while let Some(&(at, number)) = self.acked.front().filter(|(at, _)| *at + SETTLED < now) {
            self.acked.pop_front();
            let fate = self.packets.remove(&number).and_then(|record| record.fate(at));
            self.fates.extend(fate);
        }
    }
}

impl Record {
    fn fate(&self, acked: Instant) -> Option<RetransmittedPacket> {
        let (first, again) = (self.transmissions.first()?, self.transmissions.get(1));
        // A timeout of another packet sent this one again. Its own timer would not have done so.
        if self.cleared && again.is_some() {
            return None;
        }
        Some(RetransmittedPacket {
            sent: first.sent,
            congestive: first.passed.is_none(),
            other: first.passed.is_some() && !first.arrived,
            rtt: first.arrived.then(|| acked.saturating_since(first.sent)),
            unacknowledged: again.map(|again| acked.saturating_since(again.sent)),
            timed_out: self.transmissions.len() > 2,
            times: self.transmissions.len() as u32,
        })
    }
}

impl Tap for Bottleneck {
    fn sent(&mut self, now: Instant, packet: &Packet) {
        let state = &mut *self.0.0.borrow_mut();
        if packet.tcp().is_some_and(|tcp| tcp.payload_len() > 0) {
            state.flow = state.flow.or(packet.flow_key());
        }
        if let Some(number) = state.number(packet) {
            state.on_sent(now, number);
        }
    }

    fn delivered(&mut self, delivered: &Delivered) {
        let state = &mut *self.0.0.borrow_mut();
        let Some(number) = state.number(&delivered.packet) else { return };
        let Some(record) = state.packets.get_mut(&number) else { return };
        if let Some(own) = record.transmissions.iter_mut().find(|own| own.sent == delivered.sent) {
            own.passed = Some(delivered.at);
        }
    }
}

impl Tap for Radio {
    fn delivered(&mut self, delivered: &Delivered) {
        let state = &mut *self.0.0.borrow_mut();
        let Some(number) = state.number(&delivered.packet) else { return };
        let Some(record) = state.packets.get_mut(&number) else { return };
        if let Some(own) = record.transmissions.iter_mut().find(|own| own.passed == Some(delivered.sent)) {
            own.arrived = true;
        }
    }

    fn hears_sent(&self) -> bool {
        false
    }
}

impl Tap for Acks {
    fn delivered(&mut self, delivered: &Delivered) {
        let state = &mut *self.0.0.borrow_mut();
        if delivered.packet.flow_key().map(|key| key.reversed()) != state.flow {
            return;
        }
        let Some(tcp) = delivered.packet.tcp() else { return };
        let (ack, sacks): (u32, Vec<_>) = (tcp.ack().0, tcp.sack_blocks().collect());
        let has = |number: u32| {
            let before = |edge: u32| (number.wrapping_sub(edge) as i32) < 0;
            before(ack) || sacks.iter().any(|(from, to)| !before(from.0) && before(to.0))
        };
        let numbers: Vec<u32> = state.open.keys().copied().filter(|&number| has(number)).collect();
        state.on_acked(delivered.at, &numbers);
    }

    fn hears_sent(&self) -> bool {
        false
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const fn at(ms: u64) -> Instant {
        Instant::from_nanos(ms * 1_000_000)
    }

    fn sent(ms: u64, passed: Option<u64>, arrived: bool) -> Transmission {
        Transmission { sent: at(ms), passed: passed.map(at), arrived }
    }

    #[test]
    fn a_packet_is_what_became_of_its_transmissions() {
        let of = |transmissions: &[Transmission]| {
            Record { transmissions: transmissions.to_vec(), acked: None, cleared: false }.fate(at(500))
        };
        let fate = of(&[sent(100, None, false), sent(300, Some(350), true)]).unwrap();
        assert!(fate.congestive && !fate.other && !fate.timed_out);
        assert_eq!((fate.rtt, fate.unacknowledged), (None, Some(Duration::from_millis(200))));
        let fate = of(&[sent(100, Some(110), true)]).unwrap();
        assert_eq!((fate.rtt, fate.unacknowledged), (Some(Duration::from_millis(400)), None));
        let lost = sent(100, Some(110), false);
        let fate = of(&[lost, sent(200, Some(210), false), sent(400, Some(410), true)]).unwrap();
        assert!(fate.other && !fate.congestive && fate.timed_out);
    }

    #[test]
    fn what_another_timeout_sent_again_does_not_count() {
        let mut state = State::default();
        for (ms, number) in [(0, 1), (1, 2), (2, 3), (100, 1), (400, 1), (401, 2)] {
            state.on_sent(at(ms), number);
        }
        state.on_acked(at(500), &[1, 2, 3]);
        state.on_acked(at(6_000), &[]);
        // The third packet was not sent again, so it counts as if nothing had happened.
        let times: Vec<u32> = state.fates.iter().map(|fate| fate.times).collect();
        assert_eq!(times, [3, 1]);
    }
}
