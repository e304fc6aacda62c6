use alloc::string::ToString as _;

use paceline_wire::{Packet, Rate};

use super::*;
use crate::outage::Outages;
use crate::rate::RateProcess;
use crate::testing::{key, segment};

pub(super) const fn ms(ms: u64) -> Duration {
    Duration::from_millis(ms)
}

pub(super) trait IntoInstant {
    fn into_instant(self) -> Instant;
}

impl IntoInstant for Duration {
    fn into_instant(self) -> Instant {
        Instant::ZERO + self
    }
}

/// A simple bottleneck for tests: full-sized packets of one flow at a time, and one byte per microsecond.
pub(super) struct Bench {
    store: PacketStore,
    pub(super) counters: LinkCounters,
    bottleneck: Bottleneck,
    pub(super) flow: u16,
    pub(super) ect: bool,
    /// Packets have ABC's mark "accelerate".
    pub(super) accelerate: bool,
}

impl Bench {
    pub(super) fn new() -> Self {
        let rate = RateProcess::Constant(Rate::from_bytes_per_sec(1_000_000));
        Bench {
            store: PacketStore::default(),
            counters: LinkCounters::default(),
            bottleneck: Bottleneck::new(rate, Outages::default()),
            flow: 0,
            ect: false,
            accelerate: false,
        }
    }

    pub(super) fn packet(&mut self, flow: u16) -> Packet {
        let mut packet = segment(key(flow), 1, 1_000);
        if self.ect {
            packet.set_ecn(Ecn::Ect0);
        }
        if self.accelerate {
            packet.set_ecn(Ecn::Ect1);
        }
        packet
    }

    fn ctx(&mut self) -> AqmContext<'_> {
        let Bench { store, counters, bottleneck, .. } = self;
        AqmContext { store, counters, bottleneck, start: Instant::ZERO, chosen: (0, 0), idle: false }
    }

    pub(super) fn send(&mut self, discipline: &mut dyn QueueDiscipline, at: Duration, packets: u32) {
        for _ in 0..packets {
            let packet = self.packet(self.flow);
            let arrival = at.into_instant();
            let handle = self.store.store(packet, 1_040, arrival);
            let waiting = Waiting { handle, arrival, ready: arrival, impairment: Default::default() };
            discipline.enqueue(waiting, &mut self.ctx());
        }
    }

    /// Returns the flow of the packet that leaves.
    pub(super) fn take(&mut self, discipline: &mut dyn QueueDiscipline, at: Duration) -> Option<u16> {
        let waiting = discipline.dequeue(at.into_instant(), &mut self.ctx())?;
        let flow = self.store.packet(&waiting.handle).unwrap().flow_key().unwrap().dst.port() - 1_024;
        self.store.discard(waiting.handle);
        Some(flow)
    }
}

#[test]
fn each_has_a_name() {
    for name in ["drop-tail", "codel", "fq-codel", "pie", "red", "abc"] {
        assert_eq!(Aqm::named(name).unwrap().check(QueueLimit::Packets(100)), Ok(()));
    }
    assert_eq!(Aqm::named("fifo"), None);
}

#[test]
fn impossible_parameters_are_refused() {
    let limit = QueueLimit::Bytes(100_000);
    let refuse = |aqm: Aqm, limit| aqm.check(limit).unwrap_err();
    let codel = CodelConfig { interval: Duration::ZERO, ..CodelConfig::default() };
    assert_eq!(refuse(Aqm::Codel(codel), limit), ConfigError::ZeroAqmTime);
    let pie = PieConfig { update: Duration::from_micros(99), ..PieConfig::default() };
    assert_eq!(refuse(Aqm::Pie(pie), limit), ConfigError::PieUpdateTooShort);
    let fq_codel = FqCodelConfig { queues: 0, ..FqCodelConfig::default() };
    assert_eq!(refuse(Aqm::FqCodel(fq_codel), limit), ConfigError::FqCodelQueues);
    let red = RedConfig::default();
    assert_eq!(refuse(Aqm::Red(red), QueueLimit::Unlimited), ConfigError::RedWithoutLimit);
    let red = RedConfig { min: red.max, ..red };
    assert_eq!(refuse(Aqm::Red(red), limit), ConfigError::RedThresholds);
    assert!(ConfigError::RedWithoutLimit.to_string().contains("limit"));
}
