use alloc::vec::Vec;

use paceline_wire::Rate;
use proptest::prelude::*;

use super::*;
use crate::outage::{OutageWindow, PeriodicOutage};
use crate::rate::RateStep;

const fn ms(ms: u64) -> Duration {
    Duration::from_millis(ms)
}

const fn us(us: u64) -> Duration {
    Duration::from_micros(us)
}

fn bottleneck(process: RateProcess) -> Bottleneck {
    Bottleneck::new(process, Outages::default())
}

fn opportunities(times_ms: &[u32]) -> RateProcess {
    RateProcess::Opportunities(Trace::from_opportunities(times_ms.iter().copied()).unwrap())
}

fn steps(steps: &[(u64, u64)]) -> RateProcess {
    RateProcess::Steps(
        steps
            .iter()
            .map(|(at, rate)| RateStep { at: ms(*at), rate: Rate::from_bytes_per_sec(*rate) })
            .collect(),
    )
}

fn hold(start: u64, end: u64) -> Outages {
    Outages { windows: alloc::vec![OutageWindow { start: ms(start), end: ms(end) }], ..Outages::default() }
}

/// Returns the finish times, in microseconds, of packets that are always ready.
fn finishes(bottleneck: &mut Bottleneck, ready: Duration, bytes: &[u64]) -> Vec<u64> {
    let mut free_at = ready;
    bytes
        .iter()
        .map(|bytes| {
            free_at = bottleneck.serve(free_at, *bytes).unwrap().finish;
            free_at.as_micros()
        })
        .collect()
}

#[test]
fn a_constant_rate_takes_its_time() {
    let mut bottleneck = bottleneck(RateProcess::Constant(Rate::from_bytes_per_sec(1_000_000)));
    let first = bottleneck.serve(us(10), 1_500).unwrap();
    assert_eq!(first, ServiceTimes { start: us(10), finish: us(1_510), sending: us(1_500) });
    assert_eq!(finishes(&mut bottleneck, us(2_000), &[40, 1_460]), [2_040, 3_500]);
}

#[test]
fn rounding_does_not_add_up() {
    // At 900,000 bytes/s a full packet takes 1,666,666.67 ns, and 600 of them take exactly one second.
    let mut bottleneck = bottleneck(RateProcess::Constant(Rate::from_mbps(7.2)));
    let mut free_at = Duration::ZERO;
    for _ in 0..600 {
        free_at = bottleneck.serve(free_at, 1_500).unwrap().finish;
    }
    assert_eq!(free_at, Duration::from_secs(1));
}

#[test]
fn what_is_left_of_a_packet_goes_on_at_the_new_rate() {
    // 1,000 of 1,500 bytes in the first millisecond, the rest at half the rate.
    let mut bottleneck = bottleneck(steps(&[(0, 1_000_000), (1, 500_000), (10, 0), (20, 1_000_000)]));
    assert_eq!(finishes(&mut bottleneck, Duration::ZERO, &[1_500]), [2_000]);
    // 1,000 bytes until 10 ms, a pause at rate zero, 500 bytes from 20 ms on.
    let service = bottleneck.serve(ms(8), 1_500).unwrap();
    assert_eq!(service, ServiceTimes { start: ms(8), finish: us(20_500), sending: us(2_500) });
}

#[test]
fn a_packet_at_rate_zero_for_ever_never_leaves() {
    let mut stopped = bottleneck(steps(&[(0, 1_000_000), (1, 0)]));
    assert!(stopped.serve(us(500), 1_500).is_none());
    let periodic = Some(PeriodicOutage { first: ms(0), every: ms(10), length: ms(5) });
    let mut held = Bottleneck::new(steps(&[(0, 0)]), Outages { periodic, ..Outages::default() });
    assert!(held.serve(Duration::ZERO, 1).is_none());
}

#[test]
fn an_outage_holds_what_is_half_sent() {
    let rate = RateProcess::Constant(Rate::from_bytes_per_sec(1_000_000));
    let mut bottleneck = Bottleneck::new(rate, hold(1, 5));
    let service = bottleneck.serve(Duration::ZERO, 1_500).unwrap();
    assert_eq!(service, ServiceTimes { start: ms(0), finish: us(5_500), sending: us(1_500) });
    let mut unlimited = Bottleneck::new(RateProcess::Unlimited, hold(1, 5));
    assert_eq!(unlimited.serve(ms(3), 1_500).unwrap().finish, ms(5));
    assert_eq!(unlimited.serve(ms(5), 1_500).unwrap().finish, ms(5));
}

#[test]
fn an_opportunity_delivers_1500_bytes() {
    let mut bottleneck = bottleneck(opportunities(&[0, 3, 3, 10]));
    // 0, 3, 3, 10, then 10 + 0, 10 + 3, ...
    assert_eq!(
        finishes(&mut bottleneck, Duration::ZERO, &[1_500; 7]),
        [0, 3_000, 3_000, 10_000, 10_000, 13_000, 13_000]
    );
}

#[test]
fn small_packets_share_an_opportunity_and_large_ones_take_several() {
    let mut bottleneck = bottleneck(opportunities(&[1, 2, 3, 4]));
    // 500 + 1,000 bytes fill the first. 40 bytes of the next packet begin the second, and so on.
    assert_eq!(
        finishes(&mut bottleneck, Duration::ZERO, &[500, 1_000, 40, 1_500, 3_000]),
        [1_000, 1_000, 2_000, 3_000, 5_000]
    );
}

#[test]
fn what_nobody_waits_for_is_lost() {
    let mut bottleneck = bottleneck(opportunities(&[1, 2, 3, 4]));
    assert_eq!(bottleneck.serve(Duration::ZERO, 100).unwrap().finish, ms(1));
    // A packet that comes later cannot use the other 1,400 bytes of that opportunity.
    assert_eq!(bottleneck.serve(us(1_001), 100).unwrap().finish, ms(2));
    // A packet that comes at the instant of the opportunity may use it.
    assert_eq!(bottleneck.serve(ms(2), 100).unwrap().finish, ms(2));
    assert_eq!(bottleneck.serve(us(3_500), 1_500).unwrap().finish, ms(4));
}

#[test]
fn opportunities_on_the_border_of_periods_are_all_there() {
    let mut bottleneck = bottleneck(opportunities(&[0, 5]));
    assert_eq!(finishes(&mut bottleneck, ms(5), &[1_500; 3]), [5_000, 5_000, 10_000]);
    assert_eq!(finishes(&mut bottleneck, ms(99_999), &[1_500; 3]), [100_000_000, 100_000_000, 100_005_000]);
}

#[test]
fn opportunities_during_an_outage_are_lost() {
    let mut bottleneck = Bottleneck::new(opportunities(&[1, 2, 3, 4]), hold(2, 4));
    assert_eq!(finishes(&mut bottleneck, Duration::ZERO, &[2_000]), [4_000]);
    let periodic = Some(PeriodicOutage { first: ms(0), every: ms(10), length: ms(1) });
    let mut in_step = Bottleneck::new(opportunities(&[10]), Outages { periodic, ..Outages::default() });
    assert!(in_step.serve(Duration::ZERO, 1).is_none());
}

proptest! {
    /// A link that always has data to send carries its capacity, except for the packet that is being sent.
    #[test]
    fn a_busy_server_carries_its_capacity(
        times in prop::collection::vec(0u32..50, 1..30),
        rates in prop::collection::vec(1u64..3_000_000, 1..6),
        by_trace: bool,
        held in prop::option::of((0u64..80, 1u64..60)),
        sizes in prop::collection::vec(1u64..4_000, 1..200),
    ) {
        let process = if by_trace {
            let mut times = times;
            times.push(51);
            times.sort_unstable();
            opportunities(&times)
        } else {
            let list: Vec<_> = rates.iter().enumerate().map(|(i, rate)| (i as u64 * 20, *rate)).collect();
            steps(&list)
        };
        let holds = held.map_or_else(Outages::default, |(start, length)| hold(start, start + length));
        let mut bottleneck = Bottleneck::new(process, holds);
        let (mut free_at, mut carried) = (Duration::ZERO, 0);
        for bytes in sizes {
            let service = bottleneck.serve(free_at, bytes).unwrap();
            prop_assert!(free_at <= service.start && service.start <= service.finish);
            carried += bytes;
            free_at = service.finish;
            let after = bottleneck.capacity_bytes(Duration::ZERO, free_at + Duration::from_nanos(1)).unwrap();
            prop_assert!(carried <= after + 1, "carried {} of {}", carried, after);
            let before = bottleneck.capacity_bytes(Duration::ZERO, free_at).unwrap();
            prop_assert!(before <= carried, "capacity {} before the last of {}", before, carried);
        }
    }
}
