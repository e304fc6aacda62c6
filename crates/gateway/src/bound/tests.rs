//! Behaviour on synthetic links: packets of 1,500 bytes, an unlimited queue, an acknowledgement for each packet.

use alloc::collections::{BTreeMap, VecDeque};
use alloc::vec::Vec;

use super::*;
use crate::test_time::{at, ms};

pub(super) const PACKET: u64 = 1_500;

/// A link whose rate and round trip change at times in milliseconds, behind a gateway that always has data.
struct Link {
    mbps: Vec<(u64, f64)>,
    rtt_ms: Vec<(u64, u64)>,
    /// A flow that bypasses the gateway with this window, in packets, from its start to its end in milliseconds.
    rival: Option<(u64, u64, u64)>,
    /// Its window falls by a third in every second, and rises again.
    swings: bool,
    /// The gateway's host is overloaded.
    crowded: bool,
}

/// Departure and queueing delay of each packet.
struct Outcome {
    departures: Vec<(Instant, Duration)>,
    bound: QueueBound,
}

impl Link {
    fn constant(mbps: f64, rtt_ms: u64) -> Self {
        Link {
            mbps: Vec::from([(0, mbps)]),
            rtt_ms: Vec::from([(0, rtt_ms)]),
            rival: None,
            swings: false,
            crowded: false,
        }
    }

    fn run(&self, until: Instant) -> Outcome {
        self.run_with(QueueBoundConfig::default(), until)
    }

    fn run_with(&self, config: QueueBoundConfig, until: Instant) -> Outcome {
        let mut bound = QueueBound::new(config);
        let mut departures = Vec::new();
        // ACKs on their way by arrival and number, with the packet's sending time; `None` for the rival's.
        let mut returns: BTreeMap<(Instant, u64), Option<Instant>> = BTreeMap::new();
        let (mut now, mut free, mut outstanding) = (Instant::ZERO, Instant::ZERO, 0);
        let mut number = 0;
        let mut enqueue =
            |now: Instant, ours: bool, departures: &mut Vec<_>, returns: &mut BTreeMap<_, _>| {
                let start = free.max(now);
                free = start + Rate::from_mbps(step(&self.mbps, start)).time_for(PACKET);
                if ours {
                    departures.push((free, start.saturating_since(now)));
                }
                returns.insert((free + ms(step(&self.rtt_ms, free)), number), ours.then_some(now));
                number += 1;
            };
        // Packets that wait in the gateway. The server is in slow start.
        let mut waiting = 10u64;
        let mut theirs = 0;
        while now < until {
            while waiting > 0 && bound.limit().is_none_or(|limit| outstanding + PACKET <= limit) {
                waiting -= 1;
                outstanding += PACKET;
                enqueue(now, true, &mut departures, &mut returns);
            }
            let window = self.rival_window(now);
            (theirs..window).for_each(|_| enqueue(now, false, &mut departures, &mut returns));
            theirs = theirs.max(window);
            let Some(((arrival, _), sent)) = returns.pop_first() else { break };
            now = arrival;
            let Some(sent) = sent else {
                theirs -= 1;
                continue;
            };
            outstanding -= PACKET;
            let packet = packet(now, now.saturating_since(sent), outstanding);
            bound.on_ack(&BoundSample { limited: waiting > 0, crowded: self.crowded, ..packet });
            waiting += 2;
        }
        Outcome { departures, bound }
    }

    /// The rival's window, in packets.
    fn rival_window(&self, now: Instant) -> u64 {
        let Some((window, from, to)) = self.rival else { return 0 };
        if now < at(from) || now >= at(to) {
            return 0;
        }
        let second = now.saturating_since(at(from)).as_micros() % 1_000_000;
        let fallen = if self.swings { window * second.min(1_000_000 - second) / 1_500_000 } else { 0 };
        window - fallen
    }
}

fn step<T: Copy>(steps: &[(u64, T)], now: Instant) -> T {
    steps.iter().rev().find(|step| at(step.0) <= now).unwrap_or(&steps[0]).1
}

impl Outcome {
    fn between(&self, from_ms: u64, to_ms: u64) -> impl Iterator<Item = &(Instant, Duration)> {
        self.departures.iter().filter(move |d| d.0 >= at(from_ms) && d.0 < at(to_ms))
    }

    fn mbps(&self, from_ms: u64, to_ms: u64) -> f64 {
        self.between(from_ms, to_ms).count() as f64 * 1_500.0 * 8.0 / ((to_ms - from_ms) as f64 * 1_000.0)
    }

    fn p95(&self, from_ms: u64, to_ms: u64) -> Duration {
        let mut delays: Vec<_> = self.between(from_ms, to_ms).map(|d| d.1).collect();
        delays.sort_unstable();
        delays[delays.len() * 95 / 100]
    }

    fn max(&self, from_ms: u64, to_ms: u64) -> Duration {
        self.between(from_ms, to_ms).map(|d| d.1).max().unwrap()
    }
}

#[test]
fn a_steady_link_is_filled_with_a_short_queue() {
    for (mbps, rtt_ms, delay) in [(20.0, 60, 20), (7.2, 100, 25), (100.0, 20, 20), (2.0, 60, 25)] {
        let outcome = Link::constant(mbps, rtt_ms).run(at(30_000));
        assert!(outcome.mbps(2_000, 30_000) > 0.98 * mbps, "{mbps}: {}", outcome.mbps(2_000, 30_000));
        assert!(outcome.p95(2_000, 30_000) <= ms(delay), "{mbps}: {:?}", outcome.p95(2_000, 30_000));
    }
}

/// The rate is between 3 and 39 Mbit/s and changes each 100 ms.
#[test]
fn the_dial_trades_the_wait_for_what_a_varying_link_carries() {
    let mbps = (0..300).map(|n| (100 * n, 3.0 + 3.0 * (n * n * 5 % 13) as f64)).collect();
    let link = Link { mbps, ..Link::constant(20.0, 60) };
    let of = |prefer: Prefer| {
        let config = QueueBoundConfig {
            error_gain_percent: prefer.error_gain_percent(),
            ..QueueBoundConfig::default()
        };
        let outcome = link.run_with(config, at(30_000));
        (outcome.p95(2_000, 30_000), outcome.mbps(2_000, 30_000))
    };
    let [latency, balanced, throughput] = [Prefer::Latency, Prefer::Balanced, Prefer::Throughput].map(of);
    assert!(latency.0 < balanced.0 && balanced.0 < throughput.0, "{latency:?} {balanced:?} {throughput:?}");
    // `balanced` already has 99 % of this link, so the third setting can only keep it.
    let keeps = throughput.1 > 0.99 * balanced.1;
    assert!(latency.1 < balanced.1 && keeps, "{latency:?} {balanced:?} {throughput:?}");
}

#[test]
fn a_rising_link_is_followed_within_some_round_trips() {
    let link = Link { mbps: Vec::from([(0, 5.0), (5_000, 20.0)]), ..Link::constant(5.0, 40) };
    let outcome = link.run(at(10_000));
    assert!(outcome.mbps(5_300, 6_000) > 0.95 * 20.0, "{}", outcome.mbps(5_300, 6_000));
    assert!(outcome.max(5_000, 10_000) < ms(100));
}

#[test]
fn a_falling_link_drains() {
    let link = Link { mbps: Vec::from([(0, 20.0), (5_000, 5.0)]), ..Link::constant(20.0, 40) };
    let outcome = link.run(at(10_000));
    assert!(outcome.max(6_000, 10_000) < ms(60), "{:?}", outcome.max(6_000, 10_000));
    assert!(outcome.mbps(5_000, 10_000) > 0.95 * 5.0);
}

#[test]
fn a_longer_path_does_not_strangle() {
    for longer in [50, 60, 80, 160] {
        let link = Link { rtt_ms: Vec::from([(0, 40), (5_000, longer)]), ..Link::constant(20.0, 40) };
        let outcome = link.run(at(10_000));
        assert!(outcome.mbps(7_000, 10_000) > 0.95 * 20.0, "{longer}: {}", outcome.mbps(7_000, 10_000));
        assert!(
            outcome.p95(8_000, 10_000) < ms(60.max(longer / 2)),
            "{longer}: {:?}",
            outcome.p95(8_000, 10_000)
        );
    }
}

/// A second longer path within half a minute is not taken for a queue if there was a shorter one between them.
#[test]
fn a_path_that_becomes_longer_and_shorter_again_and_again_does_not_strangle() {
    let rtt_ms = Vec::from([(0, 50), (10_000, 90), (20_000, 40), (30_000, 120), (40_000, 50), (50_000, 80)]);
    let outcome = Link { rtt_ms, ..Link::constant(20.0, 50) }.run(at(60_000));
    for from in (0..60_000).step_by(10_000) {
        let (mbps, p95) =
            (outcome.mbps(from + 2_000, from + 10_000), outcome.p95(from + 3_000, from + 10_000));
        assert!(mbps > 0.95 * 20.0 && p95 < ms(60), "{from}: {mbps} {p95:?}");
    }
}

#[test]
fn hand_over_to_a_slower_longer_path_and_back() {
    let mbps = Vec::from([(0, 20.0), (5_000, 5.0), (10_000, 20.0)]);
    let outcome =
        Link { mbps, rtt_ms: Vec::from([(0, 40), (5_000, 80)]), ..Link::constant(20.0, 40) }.run(at(15_000));
    assert!(outcome.mbps(7_000, 9_500) > 0.95 * 5.0, "{}", outcome.mbps(7_000, 9_500));
    assert!(outcome.max(5_500, 10_000) < ms(200), "{:?}", outcome.max(5_500, 10_000));
    assert!(outcome.mbps(10_500, 12_000) > 0.95 * 20.0, "{}", outcome.mbps(10_500, 12_000));
}

#[test]
fn a_flow_that_fills_the_queue_does_not_starve_ours_and_leaves_no_queue_behind() {
    let link = Link { rival: Some((300, 4_000, 30_000)), ..Link::constant(20.0, 60) };
    let outcome = link.run(at(65_000));
    assert!(outcome.mbps(15_000, 30_000) > 0.4 * 20.0, "{}", outcome.mbps(15_000, 30_000));
    assert!(outcome.p95(60_000, 65_000) <= ms(20), "{:?}", outcome.p95(60_000, 65_000));
}

/// The bound is at its floor of four packets, and another flow fills the queue.
#[test]
fn the_least_bound_competes_where_the_gateway_is_crowded() {
    for (mbps, rival) in [(2.0, 50), (2.0, 150), (3.0, 70), (3.0, 100)] {
        let link = Link { rival: Some((rival, 4_000, 30_000)), swings: true, ..Link::constant(mbps, 2) };
        let share = |link: &Link| link.run(at(30_000)).mbps(15_000, 30_000) / mbps;
        let (alone, crowded) = (share(&link), share(&Link { crowded: true, ..link }));
        assert!(alone < 0.1 && crowded > 0.4, "{mbps} {rival}: {alone} {crowded}");
    }
}

/// A rival's queue that never varies is taken for a longer path, of over half a second.
#[test]
fn a_path_that_was_learnt_beside_another_s_queue_is_forgotten() {
    let link = Link { rival: Some((100, 4_000, 40_000)), ..Link::constant(2.0, 2) };
    let outcome = link.run(at(130_000));
    assert!(outcome.p95(40_000, 50_000) > ms(400), "{:?}", outcome.p95(40_000, 50_000));
    assert!(outcome.p95(120_000, 130_000) <= ms(30), "{:?}", outcome.p95(120_000, 130_000));
}

/// The same on a long path, where a closer look is due only each hundred of the learnt round trips.
#[test]
fn a_long_path_that_was_learnt_beside_another_s_queue_is_forgotten() {
    for (rival, swings) in [(300, false), (500, false), (1_000, true)] {
        let link = Link { rival: Some((rival, 10_000, 60_000)), swings, ..Link::constant(20.0, 100) };
        let outcome = link.run(at(120_000));
        let p95 = outcome.p95(90_000, 120_000);
        assert!(p95 <= ms(30), "{rival}: {p95:?}");
    }
}

#[test]
fn the_standing_queue_does_not_creep_into_the_minimum() {
    let outcome = Link::constant(20.0, 60).run(at(60_000));
    assert!(outcome.bound.rtt_min().unwrap() < ms(62));
    assert!(outcome.p95(50_000, 60_000) < ms(20));
}

#[test]
fn servers_that_send_little_do_not_lower_the_rate() {
    let mut bound = Link::constant(20.0, 60).run(at(3_000)).bound;
    let (before, mut now) = (bound.limit().unwrap(), at(3_000));
    let mut outstanding = VecDeque::new();
    for _ in 0..2_000 {
        now += ms(5);
        outstanding.push_back(now);
        if now.saturating_since(outstanding[0]) >= ms(61) {
            let rtt = now.saturating_since(outstanding.pop_front().unwrap());
            bound.on_ack(&packet(now, rtt, outstanding.len() as u64 * PACKET));
        }
    }
    assert!(bound.limit().unwrap() >= before * 9 / 10, "{before} -> {:?}", bound.limit());
}

#[test]
fn nothing_is_bounded_before_the_first_estimate() {
    let bound = QueueBound::new(QueueBoundConfig::default());
    assert_eq!(bound.limit(), None);
    assert_eq!(bound.rtt_min(), None);
}

#[test]
fn odd_samples_do_no_harm() {
    let mut bound = QueueBound::new(QueueBoundConfig::default());
    let zero = BoundSample { limited: true, ..packet(Instant::ZERO, Duration::ZERO, 0) };
    for now in [0, 0, 5, 3, 1_000_000_000, 7] {
        let now = at(now);
        for rtt in [None, Some(Duration::ZERO), Some(Duration::MAX), Some(ms(5))] {
            for delivered in [0, 1, u64::from(u32::MAX)] {
                bound.on_ack(&BoundSample { now, delivered, rtt, age: rtt, ..zero });
                bound.on_loss(now, 1_500, None);
            }
        }
    }
    assert!(bound.limit().is_none_or(|limit| limit >= 2 * PACKET));
}

/// A packet of a single flow arrived.
pub(super) fn packet(now: Instant, rtt: Duration, outstanding: u64) -> BoundSample {
    BoundSample {
        now,
        delivered: PACKET,
        rtt: Some(rtt),
        age: Some(rtt),
        server_rtt: Duration::ZERO,
        outstanding,
        flows: 1,
        limited: false,
        own: false,
        paced: false,
        crowded: false,
    }
}

/// Sends flights a round trip apart over 20 Mbit/s and 100 ms. Every packet but the first waits 10 ms for the link's
/// turn.
fn after_flights(flights: &[u64]) -> QueueBound {
    let mut bound = QueueBound::new(QueueBoundConfig::default());
    let turn_of_one = Rate::from_mbps(20.0).time_for(PACKET);
    for (round, &flight) in flights.iter().enumerate() {
        for n in 1..=flight {
            let turn = if (round, n) == (0, 1) { 0 } else { 10 };
            let rtt = ms(100 + turn) + turn_of_one * n;
            bound.on_ack(&packet(at(100 * round as u64) + rtt, rtt, (flight - n) * PACKET));
        }
    }
    bound
}

#[test]
fn a_burst_of_slow_start_is_no_full_link() {
    // All packets wait for longer than the target, but the link is idle for most of the round trip.
    assert_eq!(after_flights(&[20, 40, 60]).limit(), None);
    let busy = after_flights(&[20, 40, 80, 160]);
    assert!(busy.rate() > Rate::from_mbps(15.0) && busy.rate() < Rate::from_mbps(21.0), "{:?}", busy.rate());
}

/// A server that is the limit sends `mbps` over an empty path of 60 ms. `acked` gives the arrival of an ACK.
fn send_at(bound: &mut QueueBound, mbps: f64, from_ms: u64, to_ms: u64, acked: impl Fn(Instant) -> Instant) {
    let interval = Rate::from_mbps(mbps).time_for(PACKET);
    let mut sent = at(from_ms);
    while sent < at(to_ms) {
        let now = acked(sent + ms(60));
        let outstanding = Rate::from_mbps(mbps).bytes_in(ms(60));
        bound.on_ack(&packet(now, now.saturating_since(sent), outstanding));
        sent += interval;
    }
}

#[test]
fn what_arrives_the_link_can_carry() {
    let known = || {
        let bound = Link::constant(10.0, 60).run(at(5_000)).bound;
        assert!(bound.rate() < Rate::from_mbps(10.5), "{:?}", bound.rate());
        bound
    };
    // One of eight round trips, as BBR probes; in the others it is slower than the link.
    let mut bound = known();
    send_at(&mut bound, 8.0, 6_000, 6_480, |arrival| arrival);
    assert!(bound.rate() < Rate::from_mbps(10.5), "{:?}", bound.rate());
    send_at(&mut bound, 20.0, 6_480, 6_700, |arrival| arrival);
    assert!(bound.rate() > Rate::from_mbps(19.0), "{:?}", bound.rate());
    // ACKs that were delayed and arrive together tell nothing about the downlink.
    let mut bound = known();
    send_at(&mut bound, 8.0, 6_000, 6_400, |arrival| arrival.max(at(6_400)));
    send_at(&mut bound, 8.0, 6_400, 6_800, |arrival| arrival);
    assert!(bound.rate() < Rate::from_mbps(10.5), "{:?}", bound.rate());
}

/// Returns the forecast after an acknowledgement each millisecond. First the link is full. Then it is not, a tenth more
/// arrives, and the bound holds every other packet.
fn forecast_held_by_turns(paced: bool) -> f64 {
    let mut bound = QueueBound::new(QueueBoundConfig::default());
    for n in 0..2_000 {
        let by_turns = n >= 1_000;
        let rtt = ms(if by_turns || n == 0 { 50 } else { 60 });
        bound.on_ack(&BoundSample {
            delivered: if by_turns { 12_210 } else { 11_100 },
            limited: !by_turns || n % 2 == 0,
            paced,
            ..packet(at(1_000 + n), rtt, 600_000)
        });
    }
    bound.rate().as_mbps()
}

#[test]
fn what_a_paced_sender_gets_through_raises_the_forecast_though_it_is_held_by_turns() {
    let (paced, other) = (forecast_held_by_turns(true), forecast_held_by_turns(false));
    assert!((95.0..100.0).contains(&paced) && (85.0..92.0).contains(&other), "{paced} {other}");
}

/// First 12 Mbit/s arrive without a queue, so the link may carry more. Then a flow that has just begun loses one of
/// three packets, while another sender's queue stands.
#[test]
fn a_loss_among_few_packets_does_not_hold_the_link_down() {
    let mut bound = QueueBound::new(QueueBoundConfig::default());
    let mut ack = |now, rtt, outstanding, limited| {
        bound.on_ack(&BoundSample { limited, ..packet(at(now), ms(rtt), outstanding) });
        if now == 2_000 {
            bound.on_loss(at(now), PACKET, None);
        }
        bound.limit()
    };
    (100..1_100).for_each(|now| _ = ack(now, 100, 100 * PACKET, false));
    ack(2_000, 200, 3 * PACKET, false);
    let limits: Vec<_> = (2_100..3_100).map(|now| ack(now, 110, 110 * PACKET, true)).collect();
    assert!(limits.last().unwrap().unwrap() >= 100 * PACKET, "{:?}", limits.last());
}

/// The gateway's own sender sends all that may leave, up to 40 packets, over 5 Mbit/s and 20 ms. The buffer takes three
/// packets, so the link never seems busy, and there is no forecast.
#[test]
fn a_short_buffer_has_a_limit_and_no_bursts_though_the_curve_has_ended() {
    let mut bound = QueueBound::new(QueueBoundConfig::default());
    let (rate, room) = (Rate::from_mbps(5.0), 3 * PACKET);
    let path = rate.bytes_in(ms(20)) + room;
    let mut found = 0;
    for round in 1..2_000 {
        let now = at(30 * round);
        let sent = bound.limit().unwrap_or(u64::MAX).min(40 * PACKET);
        if bound.has_short_buffer(now) {
            found += 1;
            assert!(sent <= 2 * path, "{sent}");
            assert!(bound.pace(now).is_none_or(|(_, burst)| burst <= ms(1)));
        }
        bound.on_loss(now, sent.saturating_sub(path), Some(now - ms(28)));
        for n in 1..=sent.min(path) / PACKET {
            let rtt = ms(20) + rate.time_for(room.min(n * PACKET).min(sent / 2));
            bound.on_ack(&BoundSample { own: true, ..packet(now + ms(n), rtt, sent) });
        }
    }
    assert!(found > 200, "{found}");
}
