use alloc::vec::Vec;

use paceline_wire::Rate;

use super::*;
use crate::delay::DelayStep;
use crate::loss::{Loss, LossScope, ScriptedLoss};
use crate::outage::{OutageWindow, PeriodicOutage};
use crate::queue_limit::QueueLimit;
use crate::random::Probability;
use crate::rate::RateStep;
use crate::testing::{key, number_of, numbered, segment};
use crate::trace::Trace;

mod link_layer;
mod managed;
mod properties;

const fn ms(ms: u64) -> Duration {
    Duration::from_millis(ms)
}

const fn at_us(us: u64) -> Instant {
    Instant::from_nanos(us * 1_000)
}

/// 1,000,000 bytes per second: a byte takes a microsecond.
fn byte_per_us() -> RateProcess {
    RateProcess::Constant(Rate::from_bytes_per_sec(1_000_000))
}

fn link(config: LinkConfig) -> Link {
    Link::new(config, 1, Instant::ZERO).unwrap()
}

/// Returns (packet, arrival in microseconds, queueing delay in microseconds) for all packets that arrive.
fn drain(link: &mut Link) -> Vec<(u32, u64, u64)> {
    let mut arrived = Vec::new();
    while let Some(event) = link.next_event() {
        link.advance(event, &mut |delivered| {
            assert_eq!(delivered.at, event, "nothing arrives between events");
            let us = |instant: Instant| instant.as_nanos() / 1_000;
            arrived.push((number_of(&delivered.packet), us(delivered.at), delivered.queue_delay.as_micros()));
        });
    }
    arrived
}

fn numbers(link: &mut Link) -> Vec<u32> {
    drain(link).into_iter().map(|(number, ..)| number).collect()
}

#[test]
fn packets_wait_are_sent_and_travel() {
    let mut link =
        link(LinkConfig { rate: byte_per_us(), delay: Delay::Constant(ms(10)), ..LinkConfig::default() });
    link.send(at_us(0), numbered(1, 1_500));
    link.send(at_us(500), numbered(2, 1_500));
    link.send(at_us(500), numbered(3, 40));
    link.send(at_us(9_000), numbered(4, 40));
    assert_eq!(link.next_event(), Some(at_us(9_040 + 10_000).min(at_us(11_500))));
    let expected = [(1, 11_500, 0), (2, 13_000, 1_000), (3, 13_040, 2_500), (4, 19_040, 0)];
    assert_eq!(drain(&mut link), expected);
    assert_eq!(link.counters().sending, Duration::from_micros(3_080));
    assert_eq!(link.capacity_bytes(at_us(0), at_us(20_000)), Some(20_000));
}

#[test]
fn framing_takes_time_and_no_room() {
    let queue = QueueLimit::Bytes(3_000);
    let mut link =
        link(LinkConfig { rate: byte_per_us(), framing_bytes: 15, queue, ..LinkConfig::default() });
    for number in 1..=4 {
        link.send(at_us(0), numbered(number, 1_500));
    }
    assert_eq!((link.queued_bytes(), link.counters().dropped_by_queue.packets), (3_000, 1));
    assert_eq!(drain(&mut link), [(1, 1_515, 0), (2, 3_030, 1_515), (3, 4_545, 3_030)]);
    let transmitted = link.counters().transmitted;
    assert_eq!((transmitted.bytes, link.charged_bytes(transmitted)), (4_500, 4_545));
    assert_eq!(link.capacity_bytes(at_us(0), at_us(4_545)), Some(4_545));
}

#[test]
fn times_do_not_depend_on_when_the_link_is_advanced() {
    let config = LinkConfig { rate: byte_per_us(), delay: Delay::Constant(ms(1)), ..LinkConfig::default() };
    let (mut late, mut often) = (link(config.clone()), link(config));
    let mut arrivals = Vec::new();
    for number in 0..20 {
        let now = at_us(u64::from(number) * 300);
        late.send(now, numbered(number, 500));
        often.advance(now, &mut |delivered| arrivals.push((number_of(&delivered.packet), delivered.at)));
        often.send(now, numbered(number, 500));
    }
    let mut at_once = Vec::new();
    late.advance(at_us(1_000_000), &mut |delivered| {
        at_once.push((number_of(&delivered.packet), delivered.at))
    });
    often.advance(at_us(1_000_000), &mut |delivered| {
        arrivals.push((number_of(&delivered.packet), delivered.at))
    });
    assert_eq!(at_once, arrivals);
    assert_eq!(at_once[19].1, at_us(20 * 500 + 1_000));
}

#[test]
fn the_tail_is_dropped_when_the_queue_is_full() {
    let bytes = LinkConfig { rate: byte_per_us(), queue: QueueLimit::Bytes(3_000), ..LinkConfig::default() };
    let packets = LinkConfig { queue: QueueLimit::Packets(2), ..bytes.clone() };
    for config in [bytes, packets] {
        let mut link = link(config);
        // The first is being sent, and two wait. The small one finds 3,000 bytes, or two packets, in the queue.
        for (number, size) in [(1, 1_500), (2, 1_500), (3, 1_500), (4, 40)] {
            link.send(at_us(0), numbered(number, size));
        }
        // At 1,500 us the second leaves the queue.
        link.send(at_us(1_500), numbered(5, 1_500));
        link.send(at_us(1_500), numbered(6, 1_500));
        assert_eq!(link.queued_bytes(), 3_000);
        assert_eq!(numbers(&mut link), [1, 2, 3, 5]);
        assert_eq!(link.counters().dropped_by_queue, crate::Count { packets: 2, bytes: 1_540 });
    }
}

#[test]
fn an_idle_link_takes_a_packet_larger_than_its_queue() {
    let mut link =
        link(LinkConfig { rate: byte_per_us(), queue: QueueLimit::Bytes(100), ..LinkConfig::default() });
    link.send(at_us(0), numbered(1, 1_500));
    link.send(at_us(1), numbered(2, 1_500));
    assert_eq!(numbers(&mut link), [1]);
}

#[test]
fn a_trace_delivers_at_its_milliseconds() {
    let trace = Trace::from_opportunities([2, 2, 5, 10]).unwrap();
    let mut link = link(LinkConfig { rate: RateProcess::Opportunities(trace), ..LinkConfig::default() });
    for number in 1..=5 {
        link.send(at_us(0), numbered(number, 1_000));
    }
    // 1,000 bytes and half of the next packet go at 2 ms, and so on. The queueing delay lasts until the last byte.
    let expected =
        [(1, 2_000, 2_000), (2, 2_000, 2_000), (3, 2_000, 2_000), (4, 5_000, 5_000), (5, 10_000, 10_000)];
    assert_eq!(drain(&mut link), expected);
    assert_eq!(link.capacity_bytes(at_us(0), at_us(10_001)), Some(6_000));
}

#[test]
fn rate_and_delay_change_in_steps() {
    let rate = |at, bytes| RateStep { at: ms(at), rate: Rate::from_bytes_per_sec(bytes) };
    let delay = |at, by| DelayStep { at: ms(at), delay: ms(by) };
    let mut link = link(LinkConfig {
        rate: RateProcess::Steps(alloc::vec![rate(0, 1_000_000), rate(2, 500_000)]),
        delay: Delay::Steps(alloc::vec![delay(0, 40), delay(2, 20)]),
        ..LinkConfig::default()
    });
    for number in 1..=3 {
        link.send(at_us(0), numbered(number, 1_500));
    }
    link.send(at_us(60_000), numbered(4, 1_000));
    // The second has 1,000 bytes left at 2 ms; it leaves at 4 ms and must not overtake the first.
    let expected = [(1, 41_500, 0), (2, 41_500, 1_500), (3, 41_500, 4_000), (4, 82_000, 0)];
    assert_eq!(drain(&mut link), expected);
}

#[test]
fn a_restart_begins_the_schedule_again() {
    let trace = Trace::from_opportunities([0, 100]).unwrap();
    let mut link = link(LinkConfig { rate: RateProcess::Opportunities(trace), ..LinkConfig::default() });
    link.send(at_us(10_000), numbered(1, 1_500));
    assert_eq!(link.next_event(), Some(at_us(100_000)));
    link.restart_at(at_us(30_000));
    assert_eq!(drain(&mut link), [(1, 30_000, 20_000)]);
    link.send(at_us(40_000), numbered(2, 1_500));
    assert_eq!(drain(&mut link), [(2, 130_000, 90_000)]);
}

#[test]
fn outages_hold_packets_or_lose_them() {
    let windows = alloc::vec![OutageWindow { start: ms(1), end: ms(4) }];
    let outage = |effect| Outages { windows: windows.clone(), periodic: None, effect };
    let config = |effect| LinkConfig { rate: byte_per_us(), outage: outage(effect), ..LinkConfig::default() };
    let mut holding = link(config(OutageEffect::Hold));
    let mut dropping = link(config(OutageEffect::Drop));
    for number in 1..=4 {
        holding.send(at_us(0), numbered(number, 900));
        dropping.send(at_us(0), numbered(number, 900));
    }
    // 100 bytes of the second are sent before the outage. The 3 ms count as waiting, not as sending.
    assert_eq!(drain(&mut holding), [(1, 900, 0), (2, 4_800, 3_900), (3, 5_700, 4_800), (4, 6_600, 5_700)]);
    assert_eq!(holding.capacity_bytes(at_us(0), at_us(5_000)), Some(2_000));
    // The packets that end at 1.8, 2.7 and 3.6 ms are lost.
    dropping.send(at_us(3_600), numbered(5, 500));
    assert_eq!(drain(&mut dropping), [(1, 900, 0), (5, 4_100, 0)]);
    assert_eq!(dropping.counters().dropped_by_outage.packets, 3);
}

#[test]
fn loss_spares_retransmissions_when_told_so() {
    let script = alloc::vec![ScriptedLoss { packet: 2, count: 1 }, ScriptedLoss { packet: 3, count: 1 }];
    let config =
        LinkConfig { loss: Loss::Scripted(script), loss_on: LossScope::Originals, ..LinkConfig::default() };
    let mut link = link(config);
    // Segments 1000, 2000, 2000 again, 3000, 3000 again, 4000: the second and third originals are lost.
    for seq in [1_000, 2_000, 2_000, 3_000, 3_000, 4_000] {
        link.send(at_us(0), segment(key(0), seq, 1_000));
    }
    assert_eq!(numbers(&mut link), [1_000, 2_000, 3_000, 4_000]);
    assert_eq!(link.counters().dropped_by_loss.packets, 2);
}

#[test]
fn a_lost_packet_has_used_the_link() {
    let script = alloc::vec![ScriptedLoss { packet: 1, count: 1 }];
    let mut link =
        link(LinkConfig { rate: byte_per_us(), loss: Loss::Scripted(script), ..LinkConfig::default() });
    link.send(at_us(0), numbered(1, 1_000));
    link.send(at_us(0), numbered(2, 1_000));
    assert_eq!(drain(&mut link), [(2, 2_000, 1_000)]);
    assert_eq!((link.counters().transmitted.bytes, link.counters().delivered.bytes), (2_000, 1_000));
}

#[test]
fn jitter_keeps_the_order_unless_told_otherwise() {
    let config = |keep_order| LinkConfig {
        delay: Delay::Constant(ms(20)),
        jitter: Some(Jitter { up_to: ms(10), keep_order }),
        ..LinkConfig::default()
    };
    for keep_order in [true, false] {
        let mut link = link(config(keep_order));
        for number in 0..200 {
            link.send(at_us(u64::from(number) * 1_000), numbered(number, 100));
        }
        let arrived = drain(&mut link);
        for (number, at, _) in &arrived {
            let delay = at - u64::from(*number) * 1_000;
            assert!((20_000..=30_000).contains(&delay), "packet {number} took {delay} us");
        }
        assert_eq!(arrived.is_sorted_by_key(|(number, ..)| *number), keep_order);
        assert!(arrived.is_sorted_by_key(|(_, at, _)| *at));
    }
}

#[test]
fn a_reordered_packet_is_overtaken_and_holds_nobody_up() {
    let config = LinkConfig {
        rate: byte_per_us(),
        reorder: Some(Reorder { probability: Probability::from_ppm(100_000), by: ms(5) }),
        ..LinkConfig::default()
    };
    let mut link = link(config);
    for number in 0..1_000 {
        link.send(at_us(0), numbered(number, 1_000));
    }
    let held_back = drain(&mut link)
        .into_iter()
        .filter(|(number, at, _)| *at != (u64::from(*number) + 1) * 1_000)
        .inspect(|(number, at, _)| assert_eq!(*at, (u64::from(*number) + 6) * 1_000))
        .count();
    assert!((70..130).contains(&held_back), "{held_back}");
    assert_eq!(link.counters().reordered.packets, held_back as u64);
}

#[test]
fn a_duplicate_follows_its_original_and_takes_no_room() {
    let mut link =
        link(LinkConfig { rate: byte_per_us(), duplicate: Probability::ONE, ..LinkConfig::default() });
    link.send(at_us(0), numbered(1, 1_000));
    link.send(at_us(0), numbered(2, 1_000));
    assert_eq!(drain(&mut link), [(1, 1_000, 0), (1, 1_000, 0), (2, 2_000, 1_000), (2, 2_000, 1_000)]);
    let counters = link.counters();
    assert_eq!((counters.sent.packets, counters.duplicated.packets, counters.delivered.packets), (2, 2, 4));
}

#[test]
fn a_further_impairment_reshuffles_no_other() {
    let config =
        LinkConfig { loss: Loss::Independent(Probability::from_ppm(100_000)), ..LinkConfig::default() };
    let received = |config: LinkConfig| {
        let mut link = link(config);
        for number in 0..1_000 {
            link.send(at_us(u64::from(number) * 10), numbered(number, 100));
        }
        let mut numbers = numbers(&mut link);
        numbers.sort_unstable();
        numbers.dedup();
        numbers
    };
    let alone = received(config.clone());
    let with_others = LinkConfig {
        jitter: Some(Jitter { up_to: ms(1), keep_order: false }),
        reorder: Some(Reorder { probability: Probability::from_ppm(50_000), by: ms(3) }),
        duplicate: Probability::from_ppm(50_000),
        ..config
    };
    assert_eq!(received(with_others), alone);
}

#[test]
fn a_link_stopped_for_ever_has_no_event() {
    let rate = RateStep { at: ms(0), rate: Rate::ZERO };
    let mut link = link(LinkConfig { rate: RateProcess::Steps(alloc::vec![rate]), ..LinkConfig::default() });
    link.send(at_us(0), numbered(1, 100));
    assert_eq!((link.next_event(), link.queued()), (None, 1));
    assert_eq!(link.capacity_bytes(at_us(0), at_us(1_000)), Some(0));
}

#[test]
fn impossible_configurations_are_refused() {
    let refuse = |config: LinkConfig| Link::new(config, 1, Instant::ZERO).unwrap_err();
    let periodic = Some(PeriodicOutage { first: ms(0), every: ms(1), length: ms(1) });
    let outage = Outages { periodic, ..Outages::default() };
    assert_eq!(refuse(LinkConfig { outage, ..LinkConfig::default() }), ConfigError::PermanentOutage);
    let queue = QueueLimit::Packets(0);
    assert_eq!(refuse(LinkConfig { queue, ..LinkConfig::default() }), ConfigError::ZeroQueueLimit);
    let delay = Delay::Steps(Vec::new());
    assert_eq!(refuse(LinkConfig { delay, ..LinkConfig::default() }), ConfigError::NoFirstStep);
}

/// Takes packets as (first position, length), and the lost ones. Returns the packets that arrive, with their times in
/// milliseconds.
fn held_back(packets: &[(u32, u32)], lost: &[u64]) -> Vec<(u32, u64)> {
    let scripts = lost.iter().map(|packet| ScriptedLoss { packet: *packet, count: 1 }).collect();
    let config = LinkConfig {
        loss: Loss::Scripted(scripts),
        delay: Delay::Constant(ms(5)),
        hold_out_of_order: true,
        ..LinkConfig::default()
    };
    let mut link = link(config);
    for (n, (seq, len)) in packets.iter().enumerate() {
        link.send(at_us(1_000 * n as u64), segment(key(0), *seq, *len));
    }
    let arrived = drain(&mut link).into_iter().map(|(seq, us, _)| (seq, us / 1_000)).collect();
    let counters = link.counters();
    assert_eq!(
        counters.sent.packets,
        counters.delivered.packets + lost.len() as u64 + link.in_flight() as u64
    );
    arrived
}

/// The second packet is lost and sent again as the fifth. The two after it arrive with it, also across the wrap.
#[test]
fn what_is_out_of_order_is_held_back() {
    for first in [1_000, u32::MAX - 150] {
        let at = |n: u32| first.wrapping_add(100 * n);
        let packets = [0, 1, 2, 3, 1, 4].map(|n| (at(n), 100));
        let expected = [(at(0), 5), (at(1), 9), (at(2), 9), (at(3), 9), (at(4), 10)];
        assert_eq!(held_back(&packets, &[2]), expected);
    }
}

/// Nothing fills the gap, so nothing after it arrives. A copy of data that has arrived passes.
#[test]
fn a_hole_that_stays_holds_everything_behind_it() {
    let packets = [(0, 100), (100, 100), (200, 100), (0, 100), (300, 100)];
    assert_eq!(held_back(&packets, &[2]), [(0, 5), (0, 8)]);
}

/// With 4,097 held packets the box has no more room, and gives up.
#[test]
fn a_box_has_so_much_room() {
    let packets: Vec<(u32, u32)> = (0..4_099).map(|n| (100 * n, 100)).collect();
    assert_eq!(held_back(&packets, &[2]).len(), 4_098);
    assert_eq!(held_back(&packets[..4_098], &[2]).len(), 1);
}
