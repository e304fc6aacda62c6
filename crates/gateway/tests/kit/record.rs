//! Measurements of a run: delays of packets, and numbers of flows.

use std::collections::{HashMap, VecDeque};

use paceline_wire::{Duration, FlowKey, Instant, Packet};

/// A distribution with all its values.
#[derive(Clone, Debug, Default)]
pub struct Samples {
    values: Vec<f64>,
}

impl Samples {
    pub fn push(&mut self, value: f64) {
        self.values.push(value);
    }

    pub fn len(&self) -> usize {
        self.values.len()
    }

    pub fn mean(&self) -> f64 {
        self.values.iter().sum::<f64>() / self.values.len().max(1) as f64
    }

    /// Returns the `q` quantile. 0 without values.
    pub fn quantile(&self, q: f64) -> f64 {
        let mut sorted = self.values.clone();
        sorted.sort_by(f64::total_cmp);
        let at = (q * sorted.len().saturating_sub(1) as f64).round() as usize;
        sorted.get(at).copied().unwrap_or(0.0)
    }
}

/// Delays in milliseconds of downlink TCP packets with payload that reached a client.
#[derive(Clone, Debug, Default)]
pub struct Delays {
    /// Time in the gateway of each byte's first copy.
    pub sojourn_ms: Samples,
    /// Time in the queue of the radio link.
    pub queue_ms: Samples,
    /// Their sum, packet by packet.
    pub path_ms: Samples,
    /// Pairs of departure and path delay in ms, in order of departure.
    pub path_series: Vec<(Instant, f64)>,
}

/// Times at which bytes passed the gateway.
#[derive(Clone, Debug, Default)]
pub struct Passage {
    flows: HashMap<FlowKey, Entered>,
}

#[derive(Clone, Debug, Default)]
struct Entered {
    /// Highest position that has entered, and highest that has left.
    seen: u64,
    left: u64,
    /// Pairs of end and arrival, both increasing.
    marks: VecDeque<(u64, Instant)>,
}

impl Passage {
    /// Notes a packet that enters the gateway.
    pub fn enter(&mut self, now: Instant, packet: &Packet) {
        let Some((key, start, end)) = self.position(packet) else { return };
        let flow = self.flows.entry(key).or_default();
        if end > flow.seen {
            flow.seen = end;
            flow.marks.push_back((end, now));
        }
        let _ = start;
    }

    /// Notes a packet that leaves the gateway. Returns the time since its last byte entered, at its first departure.
    pub fn leave(&mut self, now: Instant, packet: &Packet) -> Option<Duration> {
        let (key, _, end) = self.position(packet)?;
        let flow = self.flows.get_mut(&key)?;
        if end <= flow.left {
            return None;
        }
        flow.left = end;
        while flow.marks.len() > 1 && flow.marks.front().is_some_and(|m| m.0 < end) {
            flow.marks.pop_front();
        }
        let arrival = flow.marks.front().filter(|m| m.0 >= end)?.1;
        Some(now.saturating_since(arrival))
    }

    fn position(&mut self, packet: &Packet) -> Option<(FlowKey, u64, u64)> {
        let tcp = packet.tcp()?;
        if tcp.payload_len() == 0 {
            return None;
        }
        let key = packet.flow_key()?;
        let near = self.flows.get(&key).map_or((1 << 32) + u64::from(tcp.seq().0), |flow| flow.seen);
        let start = tcp.seq().unwrap_near(near);
        Some((key, start, start + tcp.payload_len() as u64))
    }
}

/// Jain's index of fairness.
pub fn jain(shares: &[f64]) -> f64 {
    let sum: f64 = shares.iter().sum();
    let squares: f64 = shares.iter().map(|x| x * x).sum();
    if squares == 0.0 { 1.0 } else { sum * sum / (shares.len() as f64 * squares) }
}

/// Returns the mean of Jain's index over windows of `bins` bins, from bin `from` to bin `to`.
pub fn mean_jain(flows: &[&[u32]], bins: usize, from: usize, to: usize) -> f64 {
    let mut indices = Samples::default();
    let mut at = from;
    while at + bins <= to {
        let share = |f: &&[u32]| f.iter().skip(at).take(bins).map(|b| f64::from(*b)).sum::<f64>();
        let shares: Vec<f64> = flows.iter().map(share).collect();
        indices.push(jain(&shares));
        at += bins;
    }
    indices.mean()
}
