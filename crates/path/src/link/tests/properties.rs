//! Properties of every link and every sequence of packets.

use proptest::prelude::*;

use super::*;
use crate::aqm::Aqm;
use crate::link_layer::LinkRetransmission;
use crate::loss::GilbertElliott;
use crate::policer::Policer;
use crate::trace::Trace;

/// For each packet: the gap before it in microseconds, and its size.
type Sending = Vec<(u64, u32)>;

fn sending() -> impl Strategy<Value = Sending> {
    prop::collection::vec((prop_oneof![Just(0), 0..3_000u64], 40..3_000u32), 1..200)
}

fn rates() -> impl Strategy<Value = RateProcess> {
    let trace = prop::collection::vec(0u32..100, 1..100).prop_map(|mut times| {
        times.push(100);
        times.sort_unstable();
        RateProcess::Opportunities(Trace::from_opportunities(times).unwrap())
    });
    let steps = prop::collection::vec(1u64..5_000_000, 1..5).prop_map(|rates| {
        let steps = rates.iter().enumerate();
        let step = |(index, rate): (usize, &u64)| RateStep {
            at: ms(30 * index as u64),
            rate: Rate::from_bytes_per_sec(*rate),
        };
        RateProcess::Steps(steps.map(step).collect())
    });
    prop_oneof![Just(RateProcess::Unlimited), trace, steps]
}

fn outages() -> impl Strategy<Value = Outages> {
    let windows = prop::option::of((0u64..100, 1u64..100)).prop_map(|window| {
        window.map(|(start, length)| OutageWindow { start: ms(start), end: ms(start + length) })
    });
    let periodic = prop::option::of((0u64..50, 1u64..50, 1u64..50)).prop_map(|periodic| {
        periodic.map(|(first, gap, length)| PeriodicOutage {
            first: ms(first),
            // Not a divisor of a trace's period, so that no opportunity is always missed.
            every: ms(gap + length) + Duration::from_nanos(77_777),
            length: ms(length),
        })
    });
    let effect = prop_oneof![Just(OutageEffect::Hold), Just(OutageEffect::Drop)];
    (windows, periodic, effect).prop_map(|(window, periodic, effect)| Outages {
        windows: window.into_iter().collect(),
        periodic,
        effect,
    })
}

fn disciplines() -> impl Strategy<Value = Aqm> {
    prop::sample::select(&["drop-tail", "drop-tail", "codel", "fq-codel", "pie", "red"])
        .prop_map(|name| Aqm::named(name).unwrap())
}

fn orderly_configs() -> impl Strategy<Value = LinkConfig> {
    let queue = prop_oneof![
        Just(QueueLimit::Unlimited),
        (1..20_000u64).prop_map(QueueLimit::Bytes),
        (1..20u32).prop_map(QueueLimit::Packets)
    ];
    let loss = prop_oneof![
        Just(Loss::None),
        (0..300_000u64).prop_map(|ppm| Loss::Independent(Probability::from_ppm(ppm))),
        Just(Loss::GilbertElliott(GilbertElliott::bursts(Probability::from_ppm(100_000), 3))),
    ];
    let policer = prop::option::of((1u64..5_000_000, 1u64..20_000));
    (rates(), (queue, disciplines(), policer), 0u64..100, prop::option::of(0u64..20), loss, outages())
        .prop_map(|(rate, (queue, aqm, policer), delay, jitter, loss, outage)| LinkConfig {
            rate,
            queue,
            // RED needs a limit.
            aqm: if aqm.check(queue).is_ok() { aqm } else { Aqm::DropTail },
            policer: policer
                .map(|(rate, burst_bytes)| Policer { rate: Rate::from_bytes_per_sec(rate), burst_bytes }),
            delay: Delay::Constant(ms(delay)),
            jitter: jitter.map(|up_to| Jitter { up_to: ms(up_to), keep_order: true }),
            loss,
            outage,
            ..LinkConfig::default()
        })
}

fn disorderly_configs() -> impl Strategy<Value = LinkConfig> {
    let retries = prop::option::of((0..4u8, 0..30u64));
    (orderly_configs(), 0..500_000u64, 0..500_000u64, any::<bool>(), retries).prop_map(
        |(config, reorder, duplicate, keep_order, retries)| LinkConfig {
            link_retransmission: retries.map(|(limit, after)| LinkRetransmission { limit, after: ms(after) }),
            reorder: Some(Reorder { probability: Probability::from_ppm(reorder), by: ms(7) }),
            duplicate: Probability::from_ppm(duplicate),
            jitter: config.jitter.map(|jitter| Jitter { keep_order, ..jitter }),
            ..config
        },
    )
}

/// Sends everything and checks conservation throughout. On request, advances before each packet.
fn run(
    config: &LinkConfig,
    sending: &Sending,
    seed: u64,
    advance_often: bool,
) -> Vec<(u32, Instant, Duration)> {
    let mut link = Link::new(config.clone(), seed, Instant::ZERO).unwrap();
    let mut arrived = Vec::new();
    let mut now = Instant::ZERO;
    for (number, (gap_us, bytes)) in sending.iter().enumerate() {
        now += Duration::from_micros(*gap_us);
        if advance_often {
            collect(&mut link, now, &mut arrived);
        }
        link.send(now, numbered(number as u32, *bytes));
        assert_conserved(&link);
    }
    while let Some(event) = link.next_event() {
        collect(&mut link, event, &mut arrived);
        assert_conserved(&link);
    }
    assert_eq!((link.queued(), link.in_flight()), (0, 0));
    arrived
}

fn collect(link: &mut Link, now: Instant, arrived: &mut Vec<(u32, Instant, Duration)>) {
    link.advance(now, &mut |delivered| {
        assert!(delivered.at <= now && delivered.sent <= delivered.at);
        assert!(delivered.queue_delay <= delivered.at.saturating_since(delivered.sent));
        arrived.push((number_of(&delivered.packet), delivered.at, delivered.queue_delay));
    });
}

fn assert_conserved(link: &Link) {
    let counters = link.counters();
    let inside = (link.queued() + link.in_flight()) as u64;
    let made = counters.sent.packets + counters.duplicated.packets;
    assert_eq!(made, counters.delivered.packets + counters.dropped().packets + inside);
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(128))]

    #[test]
    fn an_orderly_link_is_first_in_first_out(config in orderly_configs(), sending in sending(), seed: u64) {
        let arrived = run(&config, &sending, seed, false);
        prop_assert!(arrived.is_sorted_by(|a, b| a.0 < b.0), "order, and nothing twice");
        prop_assert!(arrived.is_sorted_by_key(|(_, at, _)| *at));
    }

    #[test]
    fn the_same_seed_gives_the_same_result_however_it_is_driven(
        config in disorderly_configs(),
        sending in sending(),
        seed: u64,
    ) {
        let arrived = run(&config, &sending, seed, false);
        prop_assert!(arrived.is_sorted_by_key(|(_, at, _)| *at));
        prop_assert_eq!(run(&config, &sending, seed, true), arrived);
    }

    #[test]
    fn no_link_carries_more_than_its_capacity(
        rate in rates().prop_filter("limited", |rate| *rate != RateProcess::Unlimited),
        sending in sending(),
    ) {
        let mut link = link(LinkConfig { rate, ..LinkConfig::default() });
        let mut now = Instant::ZERO;
        for (number, (gap_us, bytes)) in sending.iter().enumerate() {
            now += Duration::from_micros(*gap_us);
            link.send(now, numbered(number as u32, *bytes));
        }
        let mut carried = 0;
        while let Some(event) = link.next_event() {
            link.advance(event, &mut |delivered| carried += delivered.packet.ip_len() as u64);
            let capacity = link.capacity_bytes(Instant::ZERO, event + Duration::from_nanos(1)).unwrap();
            prop_assert!(carried <= capacity + 1, "{} of {}", carried, capacity);
        }
    }
}
