//! A link allocates nothing per packet in steady state, with everything switched on.
#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

use std::net::{Ipv4Addr, SocketAddr};

use allocation_counter::measure;
use paceline_path::random::Probability;
use paceline_path::{
    Aqm, Delay, GilbertElliott, Jitter, Link, LinkConfig, Loss, LossScope, QueueLimit, RateProcess, Reorder,
    TraceModel,
};
use paceline_wire::{Duration, Flags, FlowKey, Instant, Packet, Payload, Rate, Seq, TcpRepr};

/// Hands a full-sized packet to the link every 500 us, 24 Mbit/s, and returns the number of arrivals.
fn drive(link: &mut Link, steps: std::ops::Range<u64>) -> u64 {
    let [server, client] = [1, 2].map(|host| SocketAddr::from((Ipv4Addr::new(192, 0, 2, host), 80)));
    let mut arrived = 0;
    for step in steps {
        let now = Instant::ZERO + Duration::from_micros(500) * step;
        let tcp = TcpRepr { seq: Seq((step * 1_460) as u32), flags: Flags::ACK, ..TcpRepr::default() };
        link.send(now, Packet::build_tcp(FlowKey::new(server, client), &tcp, Payload::Length(1_460)));
        link.advance(now, &mut |_| arrived += 1);
    }
    arrived
}

#[test]
fn whoever_manages_the_queue_allocates_nothing() {
    for name in ["codel", "fq-codel", "pie", "red", "abc"] {
        let config = LinkConfig {
            rate: RateProcess::Constant(Rate::from_mbps(20.0)),
            queue: QueueLimit::Bytes(150_000),
            aqm: Aqm::named(name).unwrap(),
            delay: Delay::Constant(Duration::from_millis(50)),
            ..LinkConfig::default()
        };
        let mut link = Link::new(config, 1, Instant::ZERO).unwrap();
        drive(&mut link, 0..20_000);
        let mut arrived = 0;
        let allocations = measure(|| arrived = drive(&mut link, 20_000..60_000)).count_total;
        assert!(arrived > 30_000, "{name}: {arrived}");
        assert!(allocations <= 2, "{name}: {allocations} allocations for {arrived} packets");
    }
}

#[test]
fn nothing_is_allocated_per_packet() {
    let trace = TraceModel::lte_driving().generate().unwrap();
    let config = LinkConfig {
        rate: RateProcess::Opportunities(trace),
        queue: QueueLimit::Bytes(150_000),
        delay: Delay::Constant(Duration::from_millis(50)),
        jitter: Some(Jitter { up_to: Duration::from_millis(5), keep_order: false }),
        loss: Loss::GilbertElliott(GilbertElliott::bursts(Probability::from_ppm(10_000), 5)),
        loss_on: LossScope::Originals,
        reorder: Some(Reorder { probability: Probability::from_ppm(10_000), by: Duration::from_millis(10) }),
        duplicate: Probability::from_ppm(10_000),
        ..LinkConfig::default()
    };
    let mut link = Link::new(config, 1, Instant::ZERO).unwrap();
    // After one period of the trace, the queues have had their largest size, or nearly.
    drive(&mut link, 0..240_000);
    let mut arrived = 0;
    let allocations = measure(|| arrived = drive(&mut link, 240_000..480_000)).count_total;
    assert!(arrived > 50_000, "{arrived}");
    assert!(allocations <= 2, "{allocations} allocations for {arrived} packets");
}
