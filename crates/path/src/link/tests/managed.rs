//! Tests of disciplines and the policer within a link.

use paceline_wire::Ecn;

use super::*;
use crate::aqm::{Aqm, CodelConfig};
use crate::policer::Policer;

fn managed(name: &str, queue: QueueLimit) -> Link {
    link(LinkConfig { rate: byte_per_us(), queue, aqm: Aqm::named(name).unwrap(), ..LinkConfig::default() })
}

/// Sends two packets of 1,000 bytes in the time in which one leaves.
fn overload(link: &mut Link, packets: u32, ecn: Ecn) {
    for number in 0..packets {
        let mut packet = numbered(number, 1_000);
        packet.set_ecn(ecn);
        link.send(at_us(u64::from(number) * 500), packet);
    }
}

/// Returns the longest wait of the last third of the packets, in milliseconds.
fn worst_wait(arrived: &[(u32, u64, u64)]) -> u64 {
    arrived[arrived.len() * 2 / 3..].iter().map(|(.., waited)| waited / 1_000).max().unwrap()
}

#[test]
fn each_keeps_the_queue_short_of_its_limit() {
    let limit = QueueLimit::Bytes(400_000);
    let mut waits = Vec::new();
    for name in ["codel", "fq-codel", "pie", "red"] {
        let mut link = managed(name, limit);
        overload(&mut link, 40_000, Ecn::NotEct);
        waits.push((name, worst_wait(&drain(&mut link)), link.counters().dropped_by_queue.packets));
        assert!(link.counters().dropped_by_aqm.packets > 10_000, "{:?}", link.counters());
    }
    // A sender that does not slow down keeps CoDel's queue long for a while. The others keep it short.
    assert!(waits.iter().all(|(_, wait, _)| *wait <= 400), "{waits:?}");
    assert!(waits[2].1 < 60 && waits[3].1 < 300, "{waits:?}");
}

#[test]
fn an_unmanaged_link_and_one_that_never_drops_are_the_same() {
    let sparse = |link: &mut Link| {
        for number in 0..200 {
            link.send(at_us(u64::from(number) * 990), numbered(number, 1_000));
            if number % 3 == 0 {
                link.advance(at_us(u64::from(number) * 990 + 100), &mut |_| {});
            }
        }
        drain(link)
    };
    let plain = LinkConfig { rate: byte_per_us(), queue: QueueLimit::Packets(100), ..LinkConfig::default() };
    let mut plain = link(plain);
    let expected = sparse(&mut plain);
    for name in ["codel", "fq-codel", "pie"] {
        assert_eq!(sparse(&mut managed(name, QueueLimit::Packets(100))), expected, "{name}");
    }
}

#[test]
fn the_limit_counts_what_has_been_chosen() {
    // Nothing is served before 10 ms, so the first packet is chosen and waits.
    let trace = Trace::from_opportunities([10, 20]).unwrap();
    for name in ["codel", "fq-codel", "pie"] {
        let mut link = link(LinkConfig {
            rate: RateProcess::Opportunities(trace.clone()),
            queue: QueueLimit::Packets(3),
            aqm: Aqm::named(name).unwrap(),
            ..LinkConfig::default()
        });
        for number in 0..4 {
            link.send(at_us(0), numbered(number, 1_500));
        }
        assert_eq!((link.queued(), link.queued_bytes()), (3, 4_500), "{name}");
        assert_eq!(link.counters().dropped_by_queue.packets, 1, "{name}");
    }
}

#[test]
fn an_idle_link_takes_a_packet_larger_than_its_managed_queue() {
    for name in ["codel", "fq-codel", "pie", "red"] {
        let mut link = managed(name, QueueLimit::Bytes(100));
        link.send(at_us(0), numbered(1, 1_500));
        link.send(at_us(1), numbered(2, 1_500));
        assert_eq!(numbers(&mut link), [1], "{name}");
    }
}

#[test]
fn marks_arrive() {
    let aqm = Aqm::Codel(CodelConfig { ecn: true, ..CodelConfig::default() });
    let mut link = link(LinkConfig { rate: byte_per_us(), aqm, ..LinkConfig::default() });
    overload(&mut link, 2_000, Ecn::Ect0);
    let mut marked = 0;
    while let Some(event) = link.next_event() {
        link.advance(event, &mut |delivered| marked += u64::from(delivered.packet.ecn() == Some(Ecn::Ce)));
    }
    assert_eq!((marked, link.counters().dropped().packets), (link.counters().marked.packets, 0));
    assert!(marked > 10, "{marked}");
}

#[test]
fn the_policer_drops_and_delays_nothing() {
    let policer = Some(Policer { rate: Rate::from_bytes_per_sec(1_000_000), burst_bytes: 3_000 });
    let mut link = link(LinkConfig { policer, delay: Delay::Constant(ms(1)), ..LinkConfig::default() });
    for number in 0..6 {
        link.send(at_us(0), numbered(number, 1_000));
    }
    link.send(at_us(1_000), numbered(6, 1_000));
    let expected = [(0, 1_000, 0), (1, 1_000, 0), (2, 1_000, 0), (6, 2_000, 0)];
    assert_eq!(drain(&mut link), expected);
    assert_eq!(link.counters().dropped_by_policer, crate::Count { packets: 3, bytes: 3_000 });
}

#[test]
fn acks_alone_are_lost_when_told_so() {
    let loss = Loss::Independent(Probability::ONE);
    let mut link = link(LinkConfig { loss, loss_on: LossScope::Acks, ..LinkConfig::default() });
    link.send(at_us(0), segment(key(0), 1, 0));
    link.send(at_us(0), segment(key(0), 2, 100));
    link.send(at_us(0), crate::testing::syn(key(0), 3));
    assert_eq!(numbers(&mut link), [2, 3]);
    assert_eq!(link.counters().dropped_by_loss.packets, 1);
}
