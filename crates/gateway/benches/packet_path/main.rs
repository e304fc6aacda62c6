//! Measures the cost of a data packet and its ACK in the gateway without I/O, with few and with many flows.
#![allow(missing_docs, reason = "the macros of criterion make undocumented functions")]
#![allow(clippy::unwrap_used, clippy::expect_used, reason = "a benchmark fails by panicking")]

mod cpu_time;
#[allow(dead_code, reason = "the benchmark of memory uses the rest")]
mod traffic;

use std::hint::black_box;

use cpu_time::CpuTime;
use criterion::{BatchSize, BenchmarkId, Criterion, Throughput, criterion_group, criterion_main};
use paceline_wire::{BufferPool, FlowKey, Packet, Payload, Seq, TcpRepr};
use traffic::{Downloads, MSS, Subscribers};

const FLOWS: [u32; 4] = [1, 100, 1_000, 10_000];

/// Each step: a data packet in and out, an ACK in and out. In the case with loss, 1 % of the packets are retransmitted.
fn packet_path(criterion: &mut Criterion<CpuTime>) {
    let cases = [
        ("no loss", Subscribers::Many, 0),
        ("1 % loss", Subscribers::Many, 10),
        ("one client", Subscribers::One, 0),
    ];
    for (name, subscribers, loss) in cases {
        let mut group = criterion.benchmark_group(name);
        group.throughput(Throughput::Elements(1));
        for flows in FLOWS {
            // Starts only if this benchmark is selected.
            let mut downloads = None;
            let id = BenchmarkId::new("data packet and ACK", flows);
            group.bench_function(id, |bencher| {
                let downloads = downloads.get_or_insert_with(|| Downloads::start(flows, subscribers, loss));
                bencher.iter(|| downloads.step());
            });
        }
        group.finish();
    }
}

/// Measures the making of packets, which the steps above include. The live gateway parses packets instead.
fn packets(criterion: &mut Criterion<CpuTime>) {
    let key = FlowKey { src: "10.0.0.1:80".parse().unwrap(), dst: "10.1.0.1:40000".parse().unwrap() };
    let mut group = criterion.benchmark_group("packets alone");
    group.bench_function("make two", |bencher| {
        let mut seq = 0u32;
        bencher.iter(|| {
            seq = seq.wrapping_add(MSS);
            let repr = TcpRepr { seq: Seq(seq), ..TcpRepr::default() };
            let data = Packet::build_tcp(key, &repr, Payload::Length(MSS));
            (data, Packet::build_tcp(key.reversed(), &repr, Payload::Length(0)))
        });
    });
    for (name, len) in [("ACK", 0), ("1,448 bytes", 1_448), ("63 KB", 63_000)] {
        let mut bytes = vec![0; 65_535];
        let packet = Packet::build_tcp(key, &TcpRepr::default(), Payload::Bytes(vec![7; len].into()));
        let len = packet.write_ip(&mut bytes).unwrap();
        let mut pool = BufferPool::new(1 << 20);
        group.bench_function(BenchmarkId::new("parse", name), |bencher| {
            bencher.iter(|| Packet::parse(&[0; 14], black_box(&bytes[..len]), &mut pool));
        });
    }
    group.bench_function("clone", |bencher| {
        let packet = Packet::build_tcp(key, &TcpRepr::default(), Payload::Length(MSS));
        bencher.iter_batched_ref(|| (), |()| black_box(&packet).clone(), BatchSize::SmallInput);
    });
    group.finish();
}

criterion_group! {
    name = benches;
    config = Criterion::default().with_measurement(CpuTime);
    targets = packet_path, packets
}
criterion_main!(benches);
