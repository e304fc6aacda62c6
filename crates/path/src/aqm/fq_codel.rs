//! FQ-CoDel (RFC 8290): a queue for each flow, chosen by hash. New flows go first, then all take turns. Each queue has
//! CoDel.

use alloc::collections::VecDeque;
use alloc::vec::Vec;
use core::net::IpAddr;

use paceline_wire::{Duration, Instant, Packet};

use super::codel::{CodelConfig, CodelState};
use super::{AqmContext, QueueDiscipline};
use crate::error::ConfigError;
use crate::queue::{DropTail, Waiting};
use crate::queue_limit::QueueLimit;

/// Parameters of FQ-CoDel.
#[derive(Clone, Copy, Debug, PartialEq, Eq, serde::Deserialize)]
#[serde(rename_all = "kebab-case", deny_unknown_fields, default)]
pub struct FqCodelConfig {
    /// CoDel's target for each queue.
    #[serde(deserialize_with = "crate::units::de::duration")]
    pub target: Duration,
    /// CoDel's interval for each queue.
    #[serde(deserialize_with = "crate::units::de::duration")]
    pub interval: Duration,
    /// Marks ECN-capable packets in place of dropping them.
    pub ecn: bool,
    /// The number of queues over which flows are spread.
    pub queues: u16,
    /// The bytes that a queue may send in its turn.
    #[serde(deserialize_with = "crate::units::de::bytes")]
    pub quantum: u64,
}

impl Default for FqCodelConfig {
    /// RFC 8290, Section 5.2.
    fn default() -> Self {
        let CodelConfig { target, interval, ecn } = CodelConfig::default();
        FqCodelConfig { target, interval, ecn, queues: 1_024, quantum: 1_514 }
    }
}

impl FqCodelConfig {
    pub(super) fn check(self) -> Result<(), ConfigError> {
        if self.queues == 0 || self.quantum == 0 || self.quantum > QUANTUM_MAX {
            return Err(ConfigError::FqCodelQueues);
        }
        self.codel().check()
    }

    fn codel(self) -> CodelConfig {
        CodelConfig { target: self.target, interval: self.interval, ecn: self.ecn }
    }
}

/// All queues.
#[derive(Clone, Debug)]
pub(super) struct FqCodel {
    config: FqCodelConfig,
    limit: QueueLimit,
    seed: u64,
    flows: Vec<Flow>,
    new: VecDeque<u16>,
    old: VecDeque<u16>,
    packets: usize,
    bytes: u64,
}

#[derive(Clone, Debug)]
struct Flow {
    fifo: DropTail,
    codel: CodelState,
    /// The bytes that it may still send in its turn; negative if it has sent more.
    credit: i64,
    /// True if it is on one of the two lists.
    listed: bool,
}

/// RFC 8290, Section 5.2.3.
const PACKETS_MAX: usize = 10_240;
/// The most packets that are dropped at once if there is no room (RFC 8290, Section 4.1).
const BATCH: usize = 64;
/// Our choice: larger than any packet, and far smaller than the largest credit.
const QUANTUM_MAX: u64 = 1 << 30;

impl FqCodel {
    pub(super) fn new(config: FqCodelConfig, limit: QueueLimit, seed: u64) -> Self {
        let flow = Flow {
            fifo: DropTail::new(QueueLimit::Unlimited),
            codel: CodelState::default(),
            credit: 0,
            listed: false,
        };
        FqCodel {
            config,
            limit,
            seed,
            flows: alloc::vec![flow; config.queues.into()],
            new: VecDeque::new(),
            old: VecDeque::new(),
            packets: 0,
            bytes: 0,
        }
    }

    fn is_over_limit(&self, ctx: &AqmContext<'_>) -> bool {
        let (packets, bytes) = (self.packets + ctx.chosen.0, self.bytes + ctx.chosen.1);
        let over = match self.limit {
            QueueLimit::Unlimited => false,
            QueueLimit::Bytes(limit) => bytes > limit,
            QueueLimit::Packets(limit) => packets > limit as usize,
        };
        over && !ctx.idle || packets > PACKETS_MAX
    }

    /// Drops half of the packets of the longest queue, at most 64, from its head (RFC 8290, Section 4.1).
    fn make_room(&mut self, ctx: &mut AqmContext<'_>) {
        let lists = self.new.iter().chain(&self.old);
        let Some(&fattest) = lists.max_by_key(|index| self.flows[usize::from(**index)].fifo.bytes()) else {
            return;
        };
        let fifo = &mut self.flows[usize::from(fattest)].fifo;
        for _ in 0..(fifo.len() / 2).clamp(1, BATCH) {
            let Some(waiting) = fifo.pop() else { break };
            self.packets -= 1;
            self.bytes -= u64::from(waiting.handle.bytes);
            ctx.drop_for_room(waiting);
        }
    }
}

impl QueueDiscipline for FqCodel {
    /// RFC 8290, Section 4.1.
    fn enqueue(&mut self, waiting: Waiting, ctx: &mut AqmContext<'_>) {
        let hash = ctx.store.packet(&waiting.handle).map_or(0, |packet| hash(self.seed, packet));
        let index = (hash % u64::from(self.config.queues)) as u16;
        let flow = &mut self.flows[usize::from(index)];
        self.packets += 1;
        self.bytes += u64::from(waiting.handle.bytes);
        flow.fifo.push(waiting);
        if !flow.listed {
            flow.listed = true;
            flow.credit = self.config.quantum as i64;
            self.new.push_back(index);
        }
        while self.is_over_limit(ctx) && self.packets > 0 {
            self.make_room(ctx);
        }
    }

    /// RFC 8290, Section 4.2.
    fn dequeue(&mut self, now: Instant, ctx: &mut AqmContext<'_>) -> Option<Waiting> {
        loop {
            let from_new = !self.new.is_empty();
            let list = if from_new { &mut self.new } else { &mut self.old };
            let index = *list.front()?;
            let flow = &mut self.flows[usize::from(index)];
            if flow.credit <= 0 {
                flow.credit += self.config.quantum as i64;
                list.pop_front();
                self.old.push_back(index);
                continue;
            }
            let before = flow.fifo.backlog();
            let waiting = flow.codel.dequeue(now, self.config.codel(), &mut flow.fifo, ctx);
            self.packets -= before.0 - flow.fifo.len();
            self.bytes -= before.1 - flow.fifo.bytes();
            if let Some(waiting) = waiting {
                flow.credit -= i64::from(waiting.handle.bytes);
                return Some(waiting);
            }
            list.pop_front();
            // An empty new flow passes once through the old list. Otherwise a flow that returns again and again could
            // starve the others.
            if from_new {
                self.old.push_back(index);
            } else {
                flow.listed = false;
            }
        }
    }

    fn backlog(&self) -> (usize, u64) {
        (self.packets, self.bytes)
    }
}

/// Hashes addresses, protocol and ports, or addresses alone if there are no ports. It is FNV-1a with a seed. Its bits
/// are mixed at the end, because the low bits choose the queue.
fn hash(seed: u64, packet: &Packet) -> u64 {
    let mut state = 0xcbf2_9ce4_8422_2325 ^ seed;
    let mut add = |bytes: &[u8]| {
        for byte in bytes {
            state = (state ^ u64::from(*byte)).wrapping_mul(0x0100_0000_01b3);
        }
    };
    if let Some((src, dst)) = packet.addresses() {
        for address in [src, dst] {
            match address {
                IpAddr::V4(address) => add(&address.octets()),
                IpAddr::V6(address) => add(&address.octets()),
            }
        }
    }
    let tcp = packet.tcp().map(|tcp| (TCP, tcp.src_port(), tcp.dst_port()));
    let udp = || packet.udp_ports().map(|(src, dst)| (UDP, src, dst));
    if let Some((protocol, src, dst)) = tcp.or_else(udp) {
        add(&[protocol]);
        add(&src.to_be_bytes());
        add(&dst.to_be_bytes());
    }
    state ^= state >> 33;
    state = state.wrapping_mul(0xff51_afd7_ed55_8ccd);
    state ^ state >> 33
}

/// Protocol numbers.
const TCP: u8 = 6;
const UDP: u8 = 17;

#[cfg(test)]
mod tests {
    use super::super::tests::{Bench, ms};
    use super::*;

    fn fq(limit: QueueLimit) -> FqCodel {
        FqCodel::new(FqCodelConfig::default(), limit, 7)
    }

    #[test]
    fn flows_share_evenly_and_a_new_one_goes_first() {
        let mut bench = Bench::new();
        let mut fq = fq(QueueLimit::Unlimited);
        for flow in [1, 2] {
            bench.flow = flow;
            bench.send(&mut fq, ms(0), 20);
        }
        let first: Vec<u16> = (0..10).map(|_| bench.take(&mut fq, ms(1)).unwrap()).collect();
        assert_eq!(first.iter().filter(|flow| **flow == 1).count(), 5, "{first:?}");
        bench.flow = 3;
        bench.send(&mut fq, ms(2), 1);
        assert_eq!(bench.take(&mut fq, ms(2)), Some(3));
    }

    #[test]
    fn the_longest_queue_makes_room() {
        let mut bench = Bench::new();
        let mut fq = fq(QueueLimit::Packets(20));
        for (flow, packets) in [(1, 18), (2, 4)] {
            bench.flow = flow;
            bench.send(&mut fq, ms(0), packets);
        }
        assert_eq!(bench.counters.dropped_by_queue.packets, 9);
        let flows: Vec<u16> = core::iter::from_fn(|| bench.take(&mut fq, ms(1))).collect();
        assert_eq!(flows.iter().filter(|flow| **flow == 2).count(), 4);
        assert_eq!(fq.backlog(), (0, 0));
    }

    #[test]
    fn flows_spread_over_the_queues_as_the_seed_has_it() {
        let mut bench = Bench::new();
        let mut queues = |seed| {
            let packets: Vec<u64> = (0..200).map(|flow| hash(seed, &bench.packet(flow)) % 1_024).collect();
            packets
        };
        let (one, other) = (queues(1), queues(2));
        assert_ne!(one, other);
        let mut distinct = one.clone();
        distinct.sort_unstable();
        distinct.dedup();
        // 1024 (1 - (1023/1024)^200) = 182 on average.
        assert!((170..=195).contains(&distinct.len()), "{}", distinct.len());
    }
}
