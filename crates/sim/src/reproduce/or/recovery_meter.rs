//! The used share of the bottleneck during loss recovery: Tables 1, 2, 4 and 5.
//!
//! The span of Section III starts when the bottleneck begins to send the first retransmission. The sender gets the ACK
//! of that retransmission and then sends a packet. The span ends when the bottleneck begins to send this packet.

use std::cell::RefCell;
use std::rc::Rc;

use paceline_path::Delivered;
use paceline_wire::{Duration, Flags, Instant, Packet, Rate, Seq};

use crate::network::Tap;

/// Measures one flow over one bottleneck. Clones share the measurement.
#[derive(Clone, Debug)]
pub struct RecoveryMeter(Rc<RefCell<State>>);

/// One recovery.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct RecoveryUse {
    /// Time at which the bottleneck began to send the first retransmission.
    pub from: Instant,
    /// Time at which it began to send the first packet that the ACK released.
    pub to: Instant,
    /// Time in between during which it was sending.
    pub busy: Duration,
}

/// Tap on the bottleneck.
#[derive(Clone, Debug)]
struct DataSide(RecoveryMeter);

/// Tap on the link by which ACKs reach the sender.
#[derive(Clone, Debug)]
struct AckSide(RecoveryMeter);

#[derive(Debug)]
struct State {
    rate: Rate,
    /// The highest sequence number sent.
    highest: Option<Seq>,
    phase: Phase,
    busy: Duration,
    from: Option<Instant>,
    recoveries: Vec<RecoveryUse>,
}

#[derive(Clone, Copy, Debug, PartialEq)]
enum Phase {
    /// Nothing is being repaired.
    Open,
    /// The first retransmission was handed to the bottleneck.
    Sent(Handed),
    /// Its ACK has come back.
    Acknowledged(Handed),
    /// The ACK released this packet.
    Released(Handed, Handed),
}

/// A packet, identified by its sequence number and the time at which it was handed to the bottleneck.
#[derive(Clone, Copy, Debug, PartialEq)]
struct Handed {
    at: Instant,
    seq: Seq,
}

impl RecoveryMeter {
    /// A meter for a bottleneck of a constant rate.
    pub fn new(rate: Rate) -> Self {
        RecoveryMeter(Rc::new(RefCell::new(State {
            rate,
            highest: None,
            phase: Phase::Open,
            busy: Duration::ZERO,
            from: None,
            recoveries: Vec::new(),
        })))
    }

    /// Returns a tap for the bottleneck.
    pub fn data_side(&self) -> Box<dyn Tap> {
        Box::new(DataSide(self.clone()))
    }

    /// Returns a tap for the link by which ACKs reach the sender.
    pub fn ack_side(&self) -> Box<dyn Tap> {
        Box::new(AckSide(self.clone()))
    }

    /// All recoveries that are over.
    pub fn recoveries(&self) -> Vec<RecoveryUse> {
        self.0.borrow().recoveries.clone()
    }
}

impl RecoveryUse {
    /// The busy share of the span.
    pub fn utilization(&self) -> f64 {
        self.busy.as_secs_f64() / self.to.saturating_since(self.from).as_secs_f64()
    }
}

impl Tap for DataSide {
    fn sent(&mut self, now: Instant, packet: &Packet) {
        let Some(tcp) = packet.tcp().filter(|tcp| tcp.payload_len() > 0) else { return };
        let state = &mut *self.0.0.borrow_mut();
        let handed = Handed { at: now, seq: tcp.seq() };
        let sent_before = state.highest.is_some_and(|highest| tcp.seq().before(highest));
        match state.phase {
            Phase::Open if sent_before => state.phase = Phase::Sent(handed),
            Phase::Acknowledged(first) => state.phase = Phase::Released(first, handed),
            _ => {}
        }
        if !sent_before {
            state.highest = Some(tcp.end_seq());
        }
    }

    fn delivered(&mut self, delivered: &Delivered) {
        let Some(tcp) = delivered.packet.tcp().filter(|tcp| tcp.payload_len() > 0) else { return };
        let handed = Handed { at: delivered.sent, seq: tcp.seq() };
        self.0.0.borrow_mut().left(handed, delivered);
    }
}

impl Tap for AckSide {
    fn delivered(&mut self, delivered: &Delivered) {
        let Some(tcp) = delivered.packet.tcp().filter(|tcp| tcp.flags().contains(Flags::ACK)) else { return };
        let state = &mut *self.0.0.borrow_mut();
        if let Phase::Sent(first) = state.phase
            && first.seq.before(tcp.ack())
        {
            state.phase = Phase::Acknowledged(first);
        }
    }
}

impl State {
    /// A packet has left the bottleneck. Its wait tells when the bottleneck began to send it.
    fn left(&mut self, handed: Handed, delivered: &Delivered) {
        let start = delivered.sent + delivered.queue_delay;
        let (Phase::Sent(first) | Phase::Acknowledged(first) | Phase::Released(first, _)) = self.phase else {
            return;
        };
        if handed == first {
            self.from = Some(start);
        }
        let Some(from) = self.from else { return };
        match self.phase {
            Phase::Released(_, released) if handed == released => {
                self.recoveries.push(RecoveryUse { from, to: start, busy: self.busy });
                (self.phase, self.busy, self.from) = (Phase::Open, Duration::ZERO, None);
            }
            _ => self.busy += self.rate.time_for(delivered.packet.ip_len() as u64),
        }
    }
}

#[cfg(test)]
mod tests {
    use std::net::{Ipv4Addr, SocketAddr};

    use paceline_wire::{FlowKey, Payload, TcpRepr};

    use super::*;

    const fn at(ms: u64) -> Instant {
        Instant::from_nanos(ms * 1_000_000)
    }

    fn packet(seq: u32, ack: u32, payload: u32) -> Packet {
        let [src, dst] = [1, 2].map(|host| SocketAddr::from((Ipv4Addr::new(10, 0, 0, host), 80)));
        let tcp = TcpRepr { seq: Seq(seq), ack: Seq(ack), flags: Flags::ACK, ..TcpRepr::default() };
        Packet::build_tcp(FlowKey::new(src, dst), &tcp, Payload::Length(payload))
    }

    fn delivered(packet: Packet, sent: Instant, waited_ms: u64) -> Delivered {
        let queue_delay = Duration::from_millis(waited_ms);
        Delivered { at: sent + queue_delay + Duration::from_millis(51), packet, sent, queue_delay }
    }

    /// Packets of 1,000 IP bytes take a millisecond. Two packets of a window are lost. Their repairs leave back to
    /// back. Then nothing leaves until the ACK has come.
    #[test]
    fn from_the_first_repair_to_what_its_ack_releases() {
        let meter = RecoveryMeter::new(Rate::from_bytes_per_sec(1_000_000));
        let (mut data, mut ack) = (meter.data_side(), meter.ack_side());
        for n in 0..10u32 {
            data.sent(at(0), &packet(n * 960, 0, 960));
        }
        for (seq, sent_ms) in [(1_920, 100), (2_880, 101)] {
            data.sent(at(sent_ms), &packet(seq, 0, 960));
        }
        // The first repair waited for 10 ms behind the rest of the window.
        data.delivered(&delivered(packet(8_640, 0, 960), at(0), 109));
        data.delivered(&delivered(packet(1_920, 0, 960), at(100), 10));
        data.delivered(&delivered(packet(2_880, 0, 960), at(101), 10));
        ack.delivered(&delivered(packet(0, 1_920, 0), at(150), 0));
        assert_eq!(meter.recoveries(), []);
        ack.delivered(&delivered(packet(0, 9_600, 0), at(160), 0));
        data.sent(at(210), &packet(9_600, 0, 960));
        data.delivered(&delivered(packet(9_600, 0, 960), at(210), 0));
        let expected = RecoveryUse { from: at(110), to: at(210), busy: Duration::from_millis(2) };
        assert_eq!(meter.recoveries(), [expected]);
        assert!((expected.utilization() - 0.02).abs() < 1e-12);
    }
}
