//! The queueing delay of the path: a packet's wait in the gateway and before the radio link together.
//!
//! As in the lab, the probe recognises a segment by flow and sequence number. The delay begins when the segment last
//! left the wired link. It ends when the radio link began to send the copy that arrived first. A gateway that splits
//! flows cuts segments anew. Then the probe takes the segment of the wired link that has the first byte.

use std::cell::RefCell;
use std::collections::VecDeque;
use std::fmt;
use std::rc::Rc;

use paceline_path::Delivered;
use paceline_wire::{Duration, FlowKey, Instant, Packet};
use rustc_hash::FxHashMap;

use super::Quantiles;
use crate::network::Tap;

/// Measures between two links. Clones share the measurement.
#[derive(Clone, Debug, Default)]
pub struct PathProbe(Rc<RefCell<State>>);

/// The probe's end at the link into the gateway.
#[derive(Clone, Debug)]
pub struct WiredSide(PathProbe);

/// The probe's end at the link out of the gateway.
#[derive(Clone, Debug)]
pub struct RadioSide(PathProbe);

/// A flow's number and a sequence number.
type Segment = (u32, u32);

#[derive(Debug, Default)]
struct State {
    /// Numbers of flows. They keep the keys of segments small: with addresses a key is eight times as long, and there
    /// are many.
    flows: FxHashMap<FlowKey, u32>,
    exits: FxHashMap<Segment, WiredExit>,
    /// Offset of the last re-cut segment in the segment of the wired link that has its first byte.
    offset: u32,
    /// Exits in order of time, so that the oldest can be forgotten.
    order: VecDeque<(Segment, Instant)>,
    delays: Quantiles,
    /// Is told each delay.
    listener: Option<Listener>,
}

/// Gets the time at which the last link began to send a segment, and the segment's delay.
struct Listener(Box<dyn FnMut(Instant, Duration)>);

impl fmt::Debug for Listener {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Listener")
    }
}

#[derive(Clone, Copy, Debug)]
struct WiredExit {
    at: Instant,
    delivered: bool,
}

/// Our choice, as in the lab: 64 s of full-sized packets at 50 Mbit/s.
const SEGMENTS_MAX: usize = 262_144;

/// No segment has more bytes.
const SEGMENT_MAX: u32 = 1_460;

impl PathProbe {
    /// A tap for the link whose packets enter the gateway.
    pub fn wired_side(&self) -> WiredSide {
        WiredSide(self.clone())
    }

    /// A tap for the link that the gateway feeds.
    pub fn radio_side(&self) -> RadioSide {
        RadioSide(self.clone())
    }

    /// Returns a probe that reports each delay at once, with the time at which the last link began to send.
    pub fn with_listener(listener: impl FnMut(Instant, Duration) + 'static) -> Self {
        let state = State { listener: Some(Listener(Box::new(listener))), ..State::default() };
        PathProbe(Rc::new(RefCell::new(state)))
    }

    /// The delays measured so far.
    pub fn delays(&self) -> Quantiles {
        self.0.borrow().delays.clone()
    }
}

impl Tap for WiredSide {
    fn delivered(&mut self, delivered: &Delivered) {
        let mut state = self.0.0.borrow_mut();
        let Some(segment) = state.segment(&delivered.packet) else { return };
        state.exits.insert(segment, WiredExit { at: delivered.at, delivered: false });
        state.order.push_back((segment, delivered.at));
        if state.order.len() > SEGMENTS_MAX {
            state.forget_oldest();
        }
    }
}

impl Tap for RadioSide {
    fn delivered(&mut self, delivered: &Delivered) {
        let mut state = self.0.0.borrow_mut();
        let Some(segment) = state.segment(&delivered.packet) else { return };
        let segment = state.origin(segment);
        let State { exits, delays, listener, .. } = &mut *state;
        if let Some(exit) = exits.get_mut(&segment).filter(|exit| !exit.delivered) {
            exit.delivered = true;
            let delay = delivered.sent.saturating_since(exit.at) + delivered.queue_delay;
            delays.record(delay);
            if let Some(Listener(tell)) = listener {
                tell(delivered.sent + delivered.queue_delay, delay);
            }
        }
    }
}

impl State {
    /// Identifies the segment of a packet with data.
    fn segment(&mut self, packet: &Packet) -> Option<Segment> {
        let tcp = packet.tcp().filter(|tcp| tcp.payload_len() > 0)?;
        let next = self.flows.len() as u32;
        Some((*self.flows.entry(packet.flow_key()?).or_insert(next), tcp.seq().0))
    }

    /// Returns the segment of the wired link that has this segment's first byte. The offset stays the same until a
    /// segment is short.
    fn origin(&mut self, segment: Segment) -> Segment {
        let (flow, seq) = segment;
        if self.exits.contains_key(&segment) {
            return segment;
        }
        let mut offsets = [self.offset].into_iter().chain(1..SEGMENT_MAX);
        let found = offsets.find(|offset| self.exits.contains_key(&(flow, seq.wrapping_sub(*offset))));
        self.offset = found.unwrap_or(self.offset);
        (flow, seq.wrapping_sub(found.unwrap_or(0)))
    }

    fn forget_oldest(&mut self) {
        let Some((segment, at)) = self.order.pop_front() else { return };
        // A later retransmission has its own entry.
        if self.exits.get(&segment).is_some_and(|exit| exit.at == at) {
            self.exits.remove(&segment);
        }
    }
}

#[cfg(test)]
mod tests {
    use std::net::{Ipv4Addr, SocketAddr};

    use paceline_wire::{Payload, Seq, TcpRepr};

    use super::*;

    const fn at(ms: u64) -> Instant {
        Instant::from_nanos(ms * 1_000_000)
    }

    fn delivered(seq: u32, sent_ms: u64, queue_ms: u64) -> Delivered {
        let [src, dst] = [1, 2].map(|host| SocketAddr::from((Ipv4Addr::new(10, 0, 0, host), 80)));
        let tcp = TcpRepr { seq: Seq(seq), ..TcpRepr::default() };
        let packet = Packet::build_tcp(FlowKey::new(src, dst), &tcp, Payload::Length(1_448));
        Delivered { at: at(sent_ms), packet, sent: at(sent_ms), queue_delay: Duration::from_millis(queue_ms) }
    }

    #[test]
    fn gateway_and_queue_count_together_once_per_segment() {
        let probe = PathProbe::default();
        let (mut wired, mut radio) = (probe.wired_side(), probe.radio_side());
        wired.delivered(&delivered(7, 10, 0));
        radio.delivered(&delivered(7, 15, 20));
        radio.delivered(&delivered(7, 50, 0));
        radio.delivered(&delivered(8, 50, 0));
        assert_eq!(probe.delays().count(), 1);
        assert!((probe.delays().quantile(0.5).as_secs_f64() - 0.025).abs() < 25e-6);
        // The server sent the segment again, so the delay starts anew.
        wired.delivered(&delivered(7, 100, 0));
        radio.delivered(&delivered(7, 101, 0));
        assert!((probe.delays().quantile(0.1).as_secs_f64() - 0.001).abs() < 1e-6);
    }

    #[test]
    fn a_segment_that_was_cut_anew_is_that_of_its_first_byte() {
        let probe = PathProbe::default();
        let (mut wired, mut radio) = (probe.wired_side(), probe.radio_side());
        for n in 0..3 {
            wired.delivered(&delivered(1_000 + 1_448 * n, 10 * u64::from(n), 0));
        }
        for n in 0..3 {
            radio.delivered(&delivered(1_500 + 1_448 * n, 100, 0));
        }
        assert_eq!(probe.delays().count(), 3);
        assert!((probe.delays().quantile(0.9).as_secs_f64() - 0.1).abs() < 1e-4);
    }

    #[test]
    fn a_listener_is_told_each_delay() {
        let told = Rc::new(RefCell::new(Vec::new()));
        let heard = told.clone();
        let probe = PathProbe::with_listener(move |at, delay| heard.borrow_mut().push((at, delay)));
        probe.wired_side().delivered(&delivered(7, 10, 0));
        probe.radio_side().delivered(&delivered(7, 15, 20));
        assert_eq!(*told.borrow(), [(at(35), Duration::from_millis(25))]);
    }

    #[test]
    fn memory_is_bounded() {
        let probe = PathProbe::default();
        let mut wired = probe.wired_side();
        for seq in 0..SEGMENTS_MAX as u32 + 10 {
            wired.delivered(&delivered(seq, 1, 0));
        }
        let state = probe.0.borrow();
        assert_eq!((state.exits.len(), state.order.len()), (SEGMENTS_MAX, SEGMENTS_MAX));
    }
}
