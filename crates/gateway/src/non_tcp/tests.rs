use alloc::vec::Vec;

use paceline_wire::{FlowKey, Payload};
use proptest::prelude::*;

use super::*;

fn at(us: u64) -> Instant {
    Instant::ZERO + Duration::from_micros(us)
}

fn datagram(number: u32) -> Packet {
    let key = FlowKey::new("192.0.2.1:443".parse().unwrap(), "10.0.0.2:40000".parse().unwrap());
    Packet::build_udp(key, Payload::Length(1_000 + number % 200))
}

#[test]
fn without_tcp_that_waits_everything_leaves_at_once() {
    let mut non_tcp = NonTcp::default();
    for number in 0..1_000 {
        assert!(matches!(non_tcp.offer(at(1), datagram(number), false, |_| true), Admission::Forward(_)));
    }
    assert_eq!(non_tcp.waiting_bytes(), 0);
}

#[test]
fn beside_tcp_it_has_the_share_of_a_flow() {
    for (flows, expected) in [(1u32, 1.0), (4, 0.25)] {
        let (mut non_tcp, mut left, mut dropped) = (NonTcp::default(), 0u64, 0);
        // Four times the share, for two seconds. TCP sends a packet each millisecond.
        for ms in 1..2_000u64 {
            for number in 0..4 {
                if let Admission::Forward(packet) =
                    non_tcp.offer(at(ms * 1_000), datagram(number), true, |_| true)
                {
                    left += packet.ip_len() as u64;
                }
            }
            non_tcp.on_tcp_sent(at(ms * 1_000), 1_500, flows, 1_500);
            while let Some(packet) = non_tcp.take(at(ms * 1_000), true, &mut dropped) {
                left += packet.ip_len() as u64;
            }
        }
        let share = left as f64 / (1_500.0 * 2_000.0);
        assert!((share / expected - 1.0).abs() < 0.05, "{share} beside {flows}");
        assert!(dropped > 0);
    }
}

#[test]
fn what_left_counts_until_something_later_has_arrived() {
    let mut non_tcp = NonTcp::default();
    for ms in 0..100 {
        non_tcp.on_departure(at(ms * 2_000), 1_000);
    }
    assert_eq!(non_tcp.on_arrival(at(19_999)), 10_000);
    assert_eq!(non_tcp.outstanding(), 90_000);
    assert_eq!(non_tcp.forget_departures(), 90_000);
    assert_eq!(non_tcp.outstanding(), 0);
    for us in 0..1_000_000 {
        non_tcp.on_departure(at(us), 1);
    }
    assert!(non_tcp.departures.len() <= DEPARTURES_MAX);
    assert_eq!(non_tcp.on_arrival(at(1_000_000)), 1_000_000);
}

proptest! {
    /// Whatever TCP does, datagrams leave in order, none waits too long, and each is accounted for.
    #[test]
    fn nothing_is_reordered_lost_or_kept(
        steps in proptest::collection::vec((0u64..30_000, 0u32..6, any::<bool>(), 0u64..20_000), 1..300)
    ) {
        let (mut non_tcp, mut now, mut number, mut dropped, mut refused) = (NonTcp::default(), 1, 0u32, 0, 0);
        let mut left: Vec<u32> = Vec::new();
        let mut came: Vec<u64> = Vec::new();
        for (pause, arrivals, contended, tcp) in steps {
            now += pause;
            let due = non_tcp.due();
            for _ in 0..arrivals {
                let key = FlowKey::new(
                    "192.0.2.1:443".parse().unwrap(),
                    core::net::SocketAddr::new("10.0.0.2".parse().unwrap(), number as u16),
                );
                match non_tcp.offer(at(now), Packet::build_udp(key, Payload::Length(1_200)), contended, |_| true) {
                    Admission::Forward(packet) => left.push(packet.udp_ports().unwrap().1.into()),
                    Admission::Queued => {}
                    Admission::Dropped => refused += 1,
                }
                came.push(now);
                number += 1;
            }
            non_tcp.on_tcp_sent(at(now), tcp, 2, 1_000);
            while let Some(packet) = non_tcp.take(at(now), contended, &mut dropped) {
                let number = packet.udp_ports().unwrap().1;
                prop_assert!(now - came[usize::from(number)] <= WAIT_MAX.as_micros());
                left.push(number.into());
            }
            prop_assert!(left.windows(2).all(|pair| pair[0] < pair[1]), "{left:?}");
            prop_assert!(non_tcp.waiting_bytes() <= WAITING_MAX && non_tcp.credit <= CREDIT_MIN);
            // `due` is never later than the time at which a datagram has waited too long.
            prop_assert!(non_tcp.waiting.front().is_none_or(|(since, _)| at(now) <= *since + WAIT_MAX) || due > at(now));
        }
        prop_assert_eq!(left.len() as u64 + dropped + refused + non_tcp.waiting.len() as u64, u64::from(number));
    }
}
