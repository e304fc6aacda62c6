//! The queueing delay of the path: the time that a packet waited in the gateway and before the radio link together.
//!
//! A segment is recognised by its flow and its position in the stream. Its delay begins when it last left the wired
//! link. It ends when the radio link begins to send the copy that arrives first. So the delay of a segment that the
//! gateway repaired includes the repair. A segment that the server retransmitted starts anew. A comparison therefore
//! never favours the gateway.
//!
//! A gateway that splits a flow cuts the stream differently. A proxy of kernel sockets also has its own sequence
//! numbers towards the client. So only the first byte of a segment counts, with the segment that brought it.

use std::collections::{BTreeMap, HashMap, VecDeque};

use paceline_linux::Quantiles;
use paceline_wire::{Duration, Instant, Seq};

use super::series::Series;

/// Queueing delays of the path for each delivered segment.
#[derive(Clone, Debug)]
pub struct PathDelay {
    /// The delays.
    pub delays: Quantiles,
    /// The longest delay in microseconds, by the time at which the radio link began to send.
    pub delay_max_us: Series,
    /// Delivered segments that did not come out of the wired link with these bytes, or did so too long ago.
    pub unmatched: u64,
    /// Copies of segments that were already delivered.
    pub copies: u64,
}

#[derive(Debug)]
pub(super) struct Probe {
    /// Initial sequence numbers at both links, by flow.
    begins: HashMap<u32, [Option<Seq>; 2]>,
    /// Exits from the wired link, by flow and position in the stream.
    exits: BTreeMap<(u32, u32), WiredExit>,
    /// Keys in order of time, for removing the oldest.
    order: VecDeque<((u32, u32), Instant)>,
    delays: Quantiles,
    delay_max_us: Series,
    unmatched: u64,
    copies: u64,
}

#[derive(Clone, Copy, Debug)]
struct WiredExit {
    at: Instant,
    len: u32,
    delivered: bool,
}

impl Probe {
    pub(super) fn new(start: Instant) -> Self {
        Probe {
            begins: HashMap::new(),
            exits: BTreeMap::new(),
            order: VecDeque::new(),
            delays: Quantiles::new(),
            delay_max_us: Series::new(start),
            unmatched: 0,
            copies: 0,
        }
    }

    /// Notes the initial sequence number of a packet that came out of one of the links.
    pub(super) fn began(&mut self, flow: u32, radio: bool, seq: Seq) {
        // A reused port begins a new stream.
        self.begins.entry(flow).or_default()[usize::from(radio)] = Some(seq);
    }

    /// Returns the sequence numbers at which the stream begins at the wired and at the radio link.
    fn begins(&self, flow: u32) -> [Seq; 2] {
        match self.begins.get(&flow) {
            Some(&[Some(wired), Some(radio)]) => [wired, radio],
            Some(&[Some(seq), None] | &[None, Some(seq)]) => [seq; 2],
            _ => [Seq(0); 2],
        }
    }

    /// Notes that `len` payload bytes from `seq` on left the wired link, in segments of `gso_size`.
    pub(super) fn left_wired_link(
        &mut self,
        flow: u32,
        seq: Seq,
        len: usize,
        gso_size: Option<u16>,
        at: Instant,
    ) {
        let step = gso_size.map_or(len, usize::from).max(1);
        let place = seq.0.wrapping_sub(self.begins(flow)[0].0);
        for offset in (0..len).step_by(step) {
            let key = (flow, place.wrapping_add(offset as u32));
            let len = step.min(len - offset) as u32;
            self.exits.insert(key, WiredExit { at, len, delivered: false });
            self.order.push_back((key, at));
        }
        while self.order.len() > SEGMENTS_MAX {
            self.forget_oldest();
        }
    }

    /// Notes that the segment at `seq` was delivered. It entered the radio link at `entered`, and then waited for
    /// `queue_delay`.
    pub(super) fn left_radio_link(&mut self, flow: u32, seq: Seq, entered: Instant, queue_delay: Duration) {
        let [_, radio] = self.begins(flow);
        let place = seq.0.wrapping_sub(radio.0);
        let before = self.exits.range_mut((flow, 0)..=(flow, place)).next_back();
        let exit = before.filter(|(key, exit)| place - key.1 < exit.len).map(|(_, exit)| exit);
        match exit {
            None => self.unmatched += 1,
            Some(exit) if exit.delivered => self.copies += 1,
            Some(exit) => {
                exit.delivered = true;
                let delay = entered.saturating_since(exit.at) + queue_delay;
                self.delays.record(delay);
                let us = u32::try_from(delay.as_micros()).unwrap_or(u32::MAX);
                self.delay_max_us.raise(entered + queue_delay, us);
            }
        }
    }

    pub(super) fn report(&self) -> PathDelay {
        PathDelay {
            delays: self.delays.clone(),
            delay_max_us: self.delay_max_us.clone(),
            unmatched: self.unmatched,
            copies: self.copies,
        }
    }

    fn forget_oldest(&mut self) {
        let Some((key, at)) = self.order.pop_front() else { return };
        // A later retransmission has its own entry.
        if self.exits.get(&key).is_some_and(|exit| exit.at == at) {
            self.exits.remove(&key);
        }
    }
}

/// Our choice: 64 s of full-sized packets at 50 Mbit/s, in some 20 MB.
const SEGMENTS_MAX: usize = 262_144;

#[cfg(test)]
mod tests {
    use super::*;

    fn ms(ms: u64) -> Instant {
        Instant::ZERO + Duration::from_millis(ms)
    }

    #[test]
    fn gateway_and_queue_count_together() {
        let mut probe = Probe::new(Instant::ZERO);
        probe.left_wired_link(1, Seq(u32::MAX), 3000, Some(1000), ms(10));
        probe.left_radio_link(1, Seq(999), ms(15), Duration::from_millis(20));
        assert_eq!(probe.report().delays.count(), 1);
        let delay = probe.report().delays.max();
        assert!(delay.abs_diff(Duration::from_millis(25)) < Duration::from_micros(50), "{delay:?}");
        let series = probe.report().delay_max_us;
        assert_eq!((series.first(), series.values()), (3, &[25_000][..]));
        probe.left_radio_link(1, Seq(999), ms(35), Duration::ZERO);
        probe.left_radio_link(1, Seq(1000), ms(35), Duration::ZERO);
        probe.left_radio_link(2, Seq(999), ms(35), Duration::ZERO);
        let report = probe.report();
        // The second byte of a delivered segment was cut off and sent again.
        assert_eq!((report.copies, report.unmatched, report.delays.count()), (2, 1, 1));
    }

    #[test]
    fn a_server_retransmission_starts_anew() {
        let mut probe = Probe::new(Instant::ZERO);
        probe.left_wired_link(1, Seq(0), 1000, None, ms(0));
        probe.left_wired_link(1, Seq(0), 1000, None, ms(500));
        probe.left_radio_link(1, Seq(0), ms(501), Duration::ZERO);
        assert!(probe.report().delays.max() < Duration::from_millis(2));
    }

    #[test]
    fn a_stream_with_other_numbers_and_cuts_is_recognised() {
        let mut probe = Probe::new(Instant::ZERO);
        // The proxy answered the client before the server answered the proxy.
        probe.began(1, true, Seq(u32::MAX));
        probe.began(1, false, Seq(5_000));
        probe.left_wired_link(1, Seq(5_001), 2_000, Some(1_000), ms(10));
        probe.left_radio_link(1, Seq(0), ms(15), Duration::ZERO);
        probe.left_radio_link(1, Seq(1_500), ms(30), Duration::ZERO);
        probe.left_radio_link(1, Seq(2_000), ms(30), Duration::ZERO);
        let report = probe.report();
        assert_eq!((report.delays.count(), report.unmatched), (2, 1));
        assert!(report.delays.max().abs_diff(Duration::from_millis(20)) < Duration::from_micros(50));
    }

    #[test]
    fn memory_is_bounded() {
        let mut probe = Probe::new(Instant::ZERO);
        for index in 0..SEGMENTS_MAX as u32 + 10 {
            probe.left_wired_link(1, Seq(index), 1, None, ms(1));
        }
        assert_eq!((probe.exits.len(), probe.order.len()), (SEGMENTS_MAX, SEGMENTS_MAX));
        probe.left_radio_link(1, Seq(9), ms(1), Duration::ZERO);
        probe.left_radio_link(1, Seq(10), ms(1), Duration::ZERO);
        assert_eq!((probe.unmatched, probe.delays.count()), (1, 1));
    }
}
