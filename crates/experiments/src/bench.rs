//! `paceline bench gateway`: the cost of the gateway, beside kernel forwarding and beside a forwarder that does
//! nothing.
//!
//! Only the machine limits the flows. The kinds of forwarding take turns, so that other load of the machine meets all
//! of them alike. A ratio compares runs that followed each other. Medians are reported.

mod forwarder;
mod latency;
mod load;
mod memory;
mod report;

use std::thread;
use std::time::{Duration, Instant};

use indicatif::ProgressBar;
use paceline_lab::{Lab, LabConfig};
use paceline_linux::SystemError;
use paceline_linux::offload::Offload;
use paceline_linux::sysctl::allow_congestion_controls;

use crate::common::{BY_SHARE, PROGRAM, json, make_folder, progress_bar};
use crate::error::{Error, Result};
use crate::files::write_whole;
use crate::interrupt;
use crate::options::BenchOptions;
use crate::output::say;
use crate::result::SCHEMA;
use forwarder::{Forwarder, Kind};
use load::{Amount, Load};
use report::{Gateway, Idle, Machine, Report, Run, Spread};

/// Measures every kind of forwarder, then prints and stores the costs.
pub(crate) fn command(options: &BenchOptions) -> Result<()> {
    interrupt::watch()?;
    paceline_lab::netns::check_permitted().map_err(Error::system)?;
    let mtu = u32::try_from(options.mtu.bytes()).unwrap_or(u32::MAX);
    let lab = build(mtu, options).map_err(Error::system)?;
    let steps = u64::from(options.runs) * (options.flows.len() * Kind::ALL.len() + 1) as u64;
    let bar = progress_bar(steps, options.json, BY_SHARE);
    let measured = measure_all(&lab, options, &bar);
    bar.finish_and_clear();
    let Measured { runs, idle, memory } = measured?;
    let report = Report {
        schema: SCHEMA,
        program: PROGRAM.into(),
        scenario: "bench-gateway",
        on: "lab",
        machine: machine(options, mtu),
        summary: report::summarize(&runs),
        latency: report::latency(&idle),
        memory_per_flow_bytes: Spread::of(memory),
        runs,
        idle,
    };
    let text = json(&report)?;
    make_folder(&options.out)?;
    let path = options.out.join("results.json");
    write_whole(&path, &format!("{text}\n"))?;
    if options.json {
        say!("{text}");
    } else {
        report::print(&report);
        say!("Results: {}", path.display());
    }
    let missed = report::least_ratios(&report).into_iter().find(|(_, bound, ratio)| ratio < bound);
    let costly = report::worst_costs(&report.summary).into_iter().find(|cost| cost.2 > report::COST_BOUND);
    match (missed, costly) {
        _ if !options.check => Ok(()),
        (Some((kind, _, ratio)), _) => {
            Err(Error::failed(format!("{} passes {ratio:.2} of what the null forwarder does", kind.name())))
        }
        (None, Some((kind, flows, ratio))) => Err(Error::failed(format!(
            "a packet of {flows} flows costs {} {ratio:.2} times what one of 10 flows does",
            kind.name()
        ))),
        (None, None) => Ok(()),
    }
}

/// Builds a lab without links. With `--wire-size` the hosts send segment by segment, like a network card without
/// offloads.
fn build(mtu: u32, options: &BenchOptions) -> std::result::Result<Lab, SystemError> {
    allow_congestion_controls(&[CONGESTION_CONTROL])?;
    let lab = Lab::build(LabConfig { links: false, clients: options.clients, mtu, ..LabConfig::default() })?;
    for (host, interface) in [(&lab.server, "s0"), (&lab.client, "c0")] {
        host.set_sysctls(&[
            ("net.ipv4.tcp_rmem", "4096 131072 6291456"),
            ("net.ipv4.tcp_wmem", "4096 65536 4194304"),
        ])?;
        if options.wire_size {
            host.set_offloads(interface, &Offload::SEGMENTATION, false)?;
        }
    }
    Ok(lab)
}

/// All sockets use it, whatever the machine's default is.
const CONGESTION_CONTROL: &str = "cubic";

#[derive(Debug, Default)]
struct Measured {
    runs: Vec<Run>,
    idle: Vec<Idle>,
    memory: Vec<f64>,
}

fn measure_all(lab: &Lab, options: &BenchOptions, bar: &ProgressBar) -> Result<Measured> {
    let mut measured = Measured::default();
    for seed in 1..=options.runs {
        for (place, &flows) in options.flows.iter().enumerate() {
            for kind in turns(seed) {
                bar.set_message(format!("run {seed} of {}, {flows} flows, {}", options.runs, kind.name()));
                let forwarder = Forwarder::start(kind, lab)?;
                if place == 0 {
                    let round_trip_ms = latency::round_trips(lab)?;
                    measured.idle.push(Idle { forwarding: kind, seed: seed.into(), round_trip_ms });
                }
                measured.runs.push(measure(lab, forwarder, kind, flows, seed, options)?);
                bar.inc(1);
            }
        }
        bar.set_message(format!("run {seed} of {}, memory", options.runs));
        let most = options.flows.iter().copied().max().unwrap_or(1);
        let flows = most.saturating_sub(memory::FIRST_FLOWS).max(MEMORY_FLOWS_MIN);
        measured.memory.extend(memory::bytes_per_flow(lab, flows, options.clients)?);
        bar.inc(1);
    }
    Ok(measured)
}

/// The order of the kinds in this run. Each run starts with another kind, so that no kind always follows the same one.
fn turns(seed: u32) -> [Kind; 4] {
    let mut kinds = Kind::ALL;
    kinds.rotate_left(seed as usize % Kind::ALL.len());
    kinds
}

fn measure(
    lab: &Lab,
    forwarder: Forwarder<'_>,
    kind: Kind,
    flows: u32,
    seed: u32,
    options: &BenchOptions,
) -> Result<Run> {
    let amount = match options.offered {
        Some(rate) => Amount::Paced(rate.to_wire().mul_ratio(1, u64::from(flows.max(1)))),
        None => Amount::Endless,
    };
    let load = Load::start(lab, flows, options.clients, amount)
        .map_err(|error| Error::failed(format!("{}: {error}", kind.name())))?;
    pause(RAMP_UP)?;
    let look = || -> Result<_> {
        let traffic = lab.traffic().map_err(Error::system)?;
        let retransmitted = lab.retransmitted().map_err(Error::system)?;
        Ok((Instant::now(), load.received(), traffic, retransmitted, forwarder.usage()))
    };
    let before = look()?;
    pause(options.duration.to_std())?;
    let after = look()?;
    let resident_bytes = forwarder.resident_bytes();
    drop(load);
    let counters = forwarder.finish();
    let duration_s = after.0.duration_since(before.0).as_secs_f64();
    let received: Vec<u64> = after.1.iter().zip(&before.1).map(|(after, before)| after - before).collect();
    let gbit = received.iter().sum::<u64>() as f64 * 8e-9;
    let traffic = after.2.since(before.2);
    let usage = after.4.zip(before.4).map(|(after, before)| after.since(before));
    let per_packet = |cpu_s: f64| cpu_s * 1e6 / traffic.packets().max(1) as f64;
    Ok(Run {
        variant: format!("{},flows={flows}", kind.name()),
        seed: seed.into(),
        duration_s,
        kind,
        flow_count: flows,
        goodput_mbps: gbit * 1e3 / duration_s,
        starved_flows: received.iter().filter(|&&bytes| bytes == 0).count() as u64,
        retransmitted_segments: after.3.saturating_sub(before.3),
        packets: traffic.packets(),
        packet_bytes_in: traffic.from_server.mean(),
        packet_bytes_out: traffic.to_client.mean(),
        cpu_us_per_packet: usage.map(|usage| per_packet(usage.cpu_s)),
        cpu_user_us_per_packet: usage.map(|usage| per_packet(usage.user_s)),
        cpu_s_per_gbit: usage.map(|usage| usage.cpu_s / gbit.max(1e-9)),
        resident_bytes,
        gateway: Gateway { counters },
    })
}

/// Sleeps. Ctrl-C ends the sleep early.
fn pause(length: Duration) -> Result<()> {
    let end = Instant::now() + length;
    loop {
        if interrupt::requested() {
            return Err(Error::interrupted());
        }
        let left = end.saturating_duration_since(Instant::now());
        if left.is_zero() {
            return Ok(());
        }
        thread::sleep(left.min(Duration::from_millis(100)));
    }
}

fn machine(options: &BenchOptions, mtu: u32) -> Machine {
    let kernel = std::fs::read_to_string("/proc/sys/kernel/osrelease").unwrap_or_default();
    Machine {
        processors: thread::available_parallelism().map_or(1, usize::from),
        kernel: kernel.trim().to_owned(),
        mtu_bytes: mtu,
        wire_size_packets: options.wire_size,
        client_addresses: options.clients,
        offered_mbps: options.offered.map(|rate| rate.to_wire().as_mbps()),
    }
}

/// Our choice: slow start ends after a few round trips of less than 1 ms. The gateway's estimates need longer.
const RAMP_UP: Duration = Duration::from_millis(700);
/// Enough flows for the memory to grow by more than a few pages.
const MEMORY_FLOWS_MIN: u32 = 1_000;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_kind_comes_first_in_turn() {
        let firsts = [1, 2, 3, 4].map(|seed| turns(seed)[0]);
        assert!(Kind::ALL.iter().all(|kind| firsts.contains(kind)), "{firsts:?}");
    }

    fn run(kind: Kind, seed: u64, goodput_mbps: f64) -> Run {
        Run {
            variant: String::new(),
            seed,
            duration_s: 1.0,
            kind,
            flow_count: 1,
            goodput_mbps,
            starved_flows: 0,
            retransmitted_segments: 0,
            packets: 1,
            packet_bytes_in: None,
            packet_bytes_out: None,
            cpu_us_per_packet: None,
            cpu_user_us_per_packet: None,
            cpu_s_per_gbit: None,
            resident_bytes: None,
            gateway: Gateway::default(),
        }
    }

    #[test]
    fn the_cost_of_a_packet_is_compared_with_that_of_ten_flows() {
        let of = |kind, flow_count, cpu_us: f64| Run {
            flow_count,
            cpu_us_per_packet: Some(cpu_us),
            ..run(kind, 1, 1.0)
        };
        let runs = [
            of(Kind::Gateway, 1, 9.0),
            of(Kind::Gateway, 10, 2.0),
            of(Kind::Gateway, 100, 3.0),
            of(Kind::Gateway, 1_000, 1.0),
            of(Kind::Null, 10, 1.0),
            of(Kind::Null, 100, 9.0),
            // Split has no run with ten flows, so it is not compared.
            of(Kind::Split, 100, 9.0),
        ];
        assert_eq!(report::worst_costs(&report::summarize(&runs)), [(Kind::Gateway, 100, 1.5)]);
    }

    #[test]
    fn ratios_compare_runs_that_followed_each_other() {
        let runs = [
            run(Kind::Null, 1, 1000.0),
            run(Kind::Gateway, 1, 900.0),
            // Another program took half of the machine during run 2.
            run(Kind::Null, 2, 500.0),
            run(Kind::Gateway, 2, 440.0),
            run(Kind::Null, 3, 1000.0),
            run(Kind::Gateway, 3, 890.0),
        ];
        let rows = report::summarize(&runs);
        let gateway = rows.iter().find(|row| row.forwarding == Kind::Gateway).unwrap();
        let expected = Spread { median: Some(0.89), min: Some(0.88), max: Some(0.9) };
        assert_eq!(gateway.ratio_to_null, expected);
        assert_eq!(gateway.cpu_s_per_gbit, Spread::default());
        assert_eq!(report::least_of(&rows), [(Kind::Gateway, 0.8, 0.89)]);
    }
}
