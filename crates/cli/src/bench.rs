//! `paceline bench gateway`: what the gateway costs, beside kernel forwarding and beside a forwarder that does nothing.
//!
//! The lab without emulated links: nothing limits the flows but the machine. The three kinds of forwarding take turns, so
//! that whatever else the machine does meets all of them; medians are reported.

mod forwarder;
mod latency;

use std::collections::BTreeMap;

use paceline_linux::clock;
use paceline_linux::endpoint::{self, Amount, Control, SocketOptions, Traffic, Transfer};
use paceline_linux::lab::{Lab, LabConfig};
use paceline_wire::Duration;
use serde::Serialize;

use crate::args::BenchArgs;
use crate::error::{Error, Result};
use crate::interrupt;
use crate::result::{new_table, write_whole};
use crate::run::lab::system;
use forwarder::{Cost, Forwarder, Kind};

pub(crate) fn command(args: &BenchArgs) -> Result<()> {
    interrupt::watch()?;
    paceline_linux::netns::check_permitted().map_err(system)?;
    let mut measurements = Vec::new();
    for run in 0..args.runs {
        for flows in &args.flows {
            for kind in Kind::ALL {
                if interrupt::requested() {
                    return Err(Error::interrupted());
                }
                eprintln!("run {} of {}, {flows} flows, {}", run + 1, args.runs, kind.name());
                measurements.push(measure(kind, *flows, args)?);
            }
        }
    }
    let rows = summarize(&measurements, &args.flows);
    let report =
        Report { schema: 1, runs: args.runs, memory_per_flow_bytes: memory_per_flow(&measurements), rows };
    let text = serde_json::to_string_pretty(&report).map_err(|error| Error::failed(error.to_string()))?;
    std::fs::create_dir_all(&args.out)
        .map_err(|error| Error::io(format_args!("make {}", args.out.display()), &error))?;
    write_whole(&args.out.join("bench-gateway.json"), &format!("{text}\n"))?;
    if args.json {
        println!("{text}")
    } else {
        print(&report)
    }
    Ok(())
}

/// One kind of forwarding with one number of flows, once.
#[derive(Clone, Copy, Debug)]
struct Measurement {
    kind: Kind,
    flows: u32,
    gbps: f64,
    packets: u64,
    cost: Cost,
    round_trip_us: f64,
}

#[derive(Debug, Serialize)]
struct Report {
    schema: u32,
    runs: u32,
    /// Of the gateway, between the most and the fewest flows.
    memory_per_flow_bytes: Option<f64>,
    rows: Vec<Row>,
}

/// Medians of all runs.
#[derive(Debug, Serialize)]
struct Row {
    forwarding: &'static str,
    flows: u32,
    gbps: f64,
    /// Of the null forwarder's throughput.
    of_null: f64,
    /// Of the kernel's throughput.
    of_kernel: f64,
    /// Of the forwarding process; null for the kernel.
    cpu_us_per_packet: Option<f64>,
    cpu_s_per_gbit: Option<f64>,
    /// Of the whole machine, hosts included.
    machine_cpu_s_per_gbit: f64,
    resident_mb: Option<f64>,
    /// One byte to the server and back over a connection that is otherwise idle.
    idle_round_trip_us: f64,
}

fn measure(kind: Kind, flows: u32, args: &BenchArgs) -> Result<Measurement> {
    let mtu = u32::try_from(args.mtu.bytes()).unwrap_or(u32::MAX);
    let lab = Lab::build(LabConfig { mtu, ..LabConfig::default() }).map_err(system)?;
    lab.join_links().map_err(system)?;
    let forwarder = Forwarder::start(kind, &lab)?;
    let round_trip_us = latency::round_trip_us(&lab)?;
    let length = args.duration.to_wire();
    let traffic = traffic(&lab, flows, length);
    let before = forwarder.cost()?;
    let packets_before = forwarded_packets(&lab)?;
    let start = clock::now() + Duration::from_millis(50);
    let report = endpoint::run(&traffic, &lab.server, &lab.client, start, &Control::new()).map_err(system)?;
    let cost = forwarder.cost()?.since(&before);
    let packets = forwarded_packets(&lab)? - packets_before;
    let received: u64 = report.transfers.iter().map(|transfer| transfer.received_bytes).sum();
    if let Some(failure) = report.transfers.iter().find_map(|transfer| transfer.failure.clone()) {
        return Err(Error::failed(format!("{} with {flows} flows: {failure}", kind.name())));
    }
    let gbps = received as f64 * 8e-9 / length.as_secs_f64();
    Ok(Measurement { kind, flows, gbps, packets, cost, round_trip_us })
}

fn traffic(lab: &Lab, flows: u32, length: Duration) -> Traffic {
    let mut traffic = Traffic::new(length * 3 + Duration::from_secs(30));
    traffic.verify = false;
    traffic.sample_interval = Duration::from_secs(1);
    // CUBIC at both ends, whatever the machine's default is.
    let options = SocketOptions {
        congestion_control: Some("cubic".into()),
        unsent_bytes_max: Some(131_072),
        ..SocketOptions::default()
    };
    for number in 0..flows {
        let server = std::net::SocketAddr::new(lab.server_address(false), FIRST_PORT + number as u16);
        let client = lab.client_address(false, 0);
        let mut transfer = Transfer::new(format!("flow {number}"), server, client, Amount::Until(length));
        transfer.server_socket = options.clone();
        transfer.client_socket = options.clone();
        traffic.transfers.push(transfer);
    }
    traffic
}

/// Packets that the gateway's namespace received on both sides, super-packets as one.
fn forwarded_packets(lab: &Lab) -> Result<u64> {
    let text = lab
        .gateway
        .run(|| std::fs::read_to_string("/proc/thread-self/net/dev"))
        .map_err(system)?
        .map_err(|error| Error::io("read interface counters", &error))?;
    let of = |line: &str| {
        let (name, counters) = line.trim().split_once(':')?;
        let packets = counters.split_whitespace().nth(1)?;
        ["g0", "g1"].contains(&name).then(|| packets.parse::<u64>().ok())?
    };
    Ok(text.lines().filter_map(of).sum())
}

fn summarize(measurements: &[Measurement], flows: &[u32]) -> Vec<Row> {
    let median = |kind: Kind, flows: u32, of: &dyn Fn(&Measurement) -> Option<f64>| {
        let mut values: Vec<f64> =
            measurements.iter().filter(|m| m.kind == kind && m.flows == flows).filter_map(of).collect();
        values.sort_by(f64::total_cmp);
        values.get(values.len() / 2).copied()
    };
    let mut rows = Vec::new();
    for flows in flows.iter().copied() {
        let throughput = |kind| median(kind, flows, &|m| Some(m.gbps)).unwrap_or(f64::NAN);
        for kind in Kind::ALL {
            let of = |of: &dyn Fn(&Measurement) -> Option<f64>| median(kind, flows, of);
            let gbit = |m: &Measurement| m.gbps.max(1e-9) * m.cost.wall_s;
            rows.push(Row {
                forwarding: kind.name(),
                flows,
                gbps: throughput(kind),
                of_null: throughput(kind) / throughput(Kind::Null),
                of_kernel: throughput(kind) / throughput(Kind::Kernel),
                cpu_us_per_packet: of(&|m| Some(m.cost.process_cpu_s? * 1e6 / m.packets.max(1) as f64)),
                cpu_s_per_gbit: of(&|m| Some(m.cost.process_cpu_s? / gbit(m))),
                machine_cpu_s_per_gbit: of(&|m| Some(m.cost.machine_cpu_s / gbit(m))).unwrap_or(f64::NAN),
                resident_mb: of(&|m| m.cost.resident_bytes.map(|bytes| bytes as f64 / 1e6)),
                idle_round_trip_us: of(&|m| Some(m.round_trip_us)).unwrap_or(f64::NAN),
            });
        }
    }
    rows
}

/// The growth of the gateway's resident memory from the fewest to the most flows.
fn memory_per_flow(measurements: &[Measurement]) -> Option<f64> {
    let mut by_flows: BTreeMap<u32, Vec<u64>> = BTreeMap::new();
    for m in measurements.iter().filter(|m| m.kind == Kind::Gateway) {
        by_flows.entry(m.flows).or_default().extend(m.cost.resident_bytes);
    }
    let middle = |values: &Vec<u64>| {
        let mut values = values.clone();
        values.sort_unstable();
        values.get(values.len() / 2).copied()
    };
    let ((fewest, low), (most, high)) = (by_flows.first_key_value()?, by_flows.last_key_value()?);
    let flows = most.checked_sub(*fewest).filter(|flows| *flows > 0)?;
    Some((middle(high)? as f64 - middle(low)? as f64) / f64::from(flows))
}

fn print(report: &Report) {
    let mut table = new_table(
        1,
        &[
            "forwarding",
            "flows",
            "Gbit/s",
            "of null",
            "of kernel",
            "CPU us/packet",
            "CPU s/Gbit",
            "machine s/Gbit",
            "memory MB",
            "idle RTT us",
        ],
    );
    let optional =
        |value: Option<f64>, digits: usize| value.map_or("-".into(), |value| format!("{value:.digits$}"));
    for row in &report.rows {
        table.add_row([
            row.forwarding.to_string(),
            row.flows.to_string(),
            format!("{:.2}", row.gbps),
            format!("{:.2}", row.of_null),
            format!("{:.2}", row.of_kernel),
            optional(row.cpu_us_per_packet, 2),
            optional(row.cpu_s_per_gbit, 3),
            format!("{:.3}", row.machine_cpu_s_per_gbit),
            optional(row.resident_mb, 1),
            format!("{:.0}", row.idle_round_trip_us),
        ]);
    }
    println!("{table}");
    if let Some(bytes) = report.memory_per_flow_bytes {
        println!(
            "Memory per flow of the gateway: {:.1} kB. Medians of {} interleaved runs.",
            bytes / 1e3,
            report.runs
        );
    }
}

const FIRST_PORT: u16 = 5001;
