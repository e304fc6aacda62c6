//! Options of the commands that measure and compute.

use std::path::PathBuf;

use clap::{Args, Subcommand, ValueEnum};
use paceline_path::QueueLimit;
use paceline_path::random::Probability;
use paceline_path::units::de::share;
use paceline_path::units::parse_probability;
use serde::de::{Deserialize, IntoDeserializer};

use super::{MapArgs, ProfilesArgs, ReproduceCommand};
use crate::units::{Rate, Size, Time};

/// What measures and computes: with the feature `lab`.
#[derive(Debug, Subcommand)]
pub(crate) enum LabCommand {
    /// Download over an emulated radio link without and with acceleration, and show the difference (needs root)
    Demo(DemoArgs),
    /// Run a scenario file and print or store its results
    Run(RunArgs),
    /// Run a scenario in the simulator over lists and ranges of any of its keys
    Sweep(SweepArgs),
    /// Run every sender with every receiver, with and without gateway, on one scenario or trace in the simulator
    Compare(CompareArgs),
    /// Run scenarios and traces through every profile of the gateway, and judge what `auto` makes of them
    Profiles(ProfilesArgs),
    /// Run points drawn by seed with and without gateway, and say where somebody is worse off with it
    Map(MapArgs),
    /// Run published experiments anew in the simulator, and set the numbers side by side
    #[command(subcommand)]
    Reproduce(ReproduceCommand),
    /// Compute what loss recovery costs on a path, by formula and at once
    Predict(PredictArgs),
    /// Join two interfaces by a link with a rate, a queue, delay and losses (needs root)
    Emulate(EmulateArgs),
    /// Look at, make, convert and draw traces of link rates
    #[command(subcommand)]
    Trace(TraceCommand),
    /// Measure what the gateway costs, beside kernel forwarding and a forwarder that does nothing (needs root)
    #[command(subcommand)]
    Bench(BenchCommand),
}

#[derive(Debug, Args)]
pub(crate) struct DemoArgs {
    /// Folder for the plot and the results
    #[arg(long, value_name = "DIR", default_value = "results/demo")]
    pub(crate) out: PathBuf,
    /// How long each of the two downloads lasts
    #[arg(long, value_name = "TIME", default_value = "15s")]
    pub(crate) duration: Time,
    /// Print the results as one JSON object instead of a table
    #[arg(long)]
    pub(crate) json: bool,
}

#[derive(Debug, Args)]
pub(crate) struct RunArgs {
    /// Scenario file (docs/scenario.md describes every key)
    #[arg(value_name = "SCENARIO.toml")]
    pub(crate) scenario: PathBuf,
    /// Where to run
    #[arg(long, value_enum, default_value_t = On::Lab)]
    pub(crate) on: On,
    /// Repetitions of each variant, with seeds that count upwards [default: as the scenario says]
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..=10_000))]
    pub(crate) runs: Option<u32>,
    #[command(flatten)]
    pub(crate) of: Selection,
    /// Runs at the same time; in the lab more than the machine can bear distorts what is measured
    /// [default: 1 in the lab, one for each core in the simulator]
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..=64))]
    pub(crate) jobs: Option<u32>,
    /// Folder for results; runs that are there already are not done again
    /// [default: results/NAME, with -sim or -both behind it]
    #[arg(long, value_name = "DIR")]
    pub(crate) out: Option<PathBuf>,
    /// Do runs again that are there already
    #[arg(long)]
    pub(crate) fresh: bool,
    /// Print one JSON object (docs/results-schema.md) instead of a table
    #[arg(long)]
    pub(crate) json: bool,
    /// Only print the names of the variants
    #[arg(long)]
    pub(crate) list: bool,
    /// Fail (exit code 1) if a bound of the scenario is missed
    #[arg(long)]
    pub(crate) check: bool,
}

/// What of a scenario is run.
#[derive(Debug, Args)]
pub(crate) struct Selection {
    /// Seed of the first repetition [default: as the scenario says]
    #[arg(long, value_name = "S")]
    pub(crate) seed: Option<u64>,
    /// Length of each run, such as 10s [default: as the scenario says]
    #[arg(long, value_name = "TIME")]
    pub(crate) duration: Option<Time>,
    /// Only variants whose name has these comma-separated parts; may be given several times
    #[arg(long, value_name = "VARIANT")]
    pub(crate) only: Vec<String>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum On {
    /// Real packets between kernel sockets in network namespaces (needs root)
    Lab,
    /// The simulator: no privilege, no packets, the same result for the same seed on every machine
    Sim,
    /// First the simulator, then the lab, and the difference between them (needs root)
    Both,
}

#[derive(Debug, Args)]
pub(crate) struct SweepArgs {
    /// Scenario file (docs/scenario.md describes every key)
    #[arg(value_name = "SCENARIO.toml")]
    pub(crate) scenario: PathBuf,
    /// A key and its values: a list (radio.rtt=50ms,100ms) or a range with a number of steps (radio.rtt=50ms..200ms:4, or
    /// :4log for even ratios); may be given several times, every combination is run
    #[arg(long, value_name = "KEY=VALUES")]
    pub(crate) vary: Vec<String>,
    /// Repetitions of each combination, with seeds that count upwards
    #[arg(long, value_name = "N", default_value_t = 10, value_parser = clap::value_parser!(u32).range(1..=10_000))]
    pub(crate) runs: u32,
    #[command(flatten)]
    pub(crate) of: Selection,
    /// Runs at the same time [default: one for each core]
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..=64))]
    pub(crate) jobs: Option<u32>,
    /// Folder for results; runs that are there already are not done again [default: results/NAME-sweep]
    #[arg(long, value_name = "DIR")]
    pub(crate) out: Option<PathBuf>,
    /// Do runs again that are there already
    #[arg(long)]
    pub(crate) fresh: bool,
    /// Print one JSON object instead of a table
    #[arg(long)]
    pub(crate) json: bool,
}

#[derive(Debug, Args)]
pub(crate) struct CompareArgs {
    /// Scenario file (.toml), or a trace of the radio downlink's rate
    #[arg(value_name = "SCENARIO.toml|TRACE")]
    pub(crate) scenario: PathBuf,
    /// A sender: names of algorithms joined by +, such as reno+fack; may be given several times [default: every algorithm]
    #[arg(long, value_name = "NAME")]
    pub(crate) sender: Vec<String>,
    /// A receiver; may be given several times [default: every one]
    #[arg(long, value_name = "NAME")]
    pub(crate) receiver: Vec<String>,
    /// What stands before the radio link: none, gateway, gateway-drwa (only lowers the window of the client) or gateway-split
    /// (splits every flow). May be given several times [default: every one]
    #[arg(long, value_name = "NAME")]
    pub(crate) gateway: Vec<String>,
    /// How many transfers each flow of the scenario has, for Jain's index [default: as the scenario says]
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..=1_000))]
    pub(crate) flows: Option<u32>,
    /// Of a trace: propagation there and back
    #[arg(long, value_name = "TIME", default_value = "100ms")]
    pub(crate) rtt: Time,
    /// Of a trace: what may wait before the radio link
    #[arg(long, value_name = "LIMIT", default_value = "1000packets")]
    pub(crate) queue: String,
    /// Repetitions of each scheme, with seeds that count upwards
    #[arg(long, value_name = "N", default_value_t = 3, value_parser = clap::value_parser!(u32).range(1..=10_000))]
    pub(crate) runs: u32,
    #[command(flatten)]
    pub(crate) of: Selection,
    /// Runs at the same time [default: one for each core]
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..=64))]
    pub(crate) jobs: Option<u32>,
    /// Folder for the plot and the runs; runs that are there already are not done again [default: results/NAME-compare]
    #[arg(long, value_name = "DIR")]
    pub(crate) out: Option<PathBuf>,
    /// Do runs again that are there already
    #[arg(long)]
    pub(crate) fresh: bool,
    /// Print one JSON object instead of a table
    #[arg(long)]
    pub(crate) json: bool,
}

#[derive(Debug, Args)]
pub(crate) struct PredictArgs {
    /// Rate of the bottleneck, such as 20mbit
    #[arg(long, value_name = "RATE")]
    pub(crate) rate: Rate,
    /// Round-trip time without queues, such as 100ms
    #[arg(long, value_name = "TIME")]
    pub(crate) rtt: Time,
    /// Share of packets that are lost at random, for whole flows
    #[arg(long, value_name = "SHARE", value_parser = parse_probability, default_value = "0.1%")]
    pub(crate) loss: Probability,
    /// Packets lost in a row, for one recovery
    #[arg(long, value_name = "PACKETS", default_value_t = 10)]
    pub(crate) burst: u32,
    /// Receive window, such as 260kb or 180packets [default: 1.08 times rate x RTT]
    #[arg(long, value_name = "SIZE", value_parser = parse_queue)]
    pub(crate) window: Option<QueueLimit>,
    /// What the link charges for a full packet, headers included
    #[arg(long, value_name = "SIZE", default_value = "1500b")]
    pub(crate) packet: Size,
    /// How the congestion window grows, and what a loss leaves of it
    #[arg(long, value_enum, default_value_t = GrowthArg::Cubic)]
    pub(crate) congestion_control: GrowthArg,
    /// What happens when a retransmission is lost, too
    #[arg(long, value_enum, default_value_t = LostRepairArg::Detected)]
    pub(crate) lost_repair: LostRepairArg,
    /// Share of the link that a flow should use: the smallest rate x RTT is shown at which it no longer does
    #[arg(long, value_name = "SHARE", value_parser = parse_probability, default_value = "80%")]
    pub(crate) efficiency: Probability,
    /// Print one JSON object instead of tables
    #[arg(long)]
    pub(crate) json: bool,
}

/// How a congestion window grows.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum GrowthArg {
    /// Keeps 0.7 of it (RFC 9438)
    Cubic,
    /// Keeps half of it (RFC 5681)
    Reno,
}

/// How the loss of a retransmission is found.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum LostRepairArg {
    /// A round trip later (RACK, Hack 1)
    Detected,
    /// By the retransmission timeout, RTT + 200 ms
    Timeout,
    /// Retransmissions are never lost
    Spared,
}

#[derive(Debug, Args)]
pub(crate) struct EmulateArgs {
    /// Interface towards the servers
    #[arg(value_name = "IFACE_UP")]
    pub(crate) up: String,
    /// Interface towards the clients
    #[arg(value_name = "IFACE_DOWN")]
    pub(crate) down: String,
    /// The link as TOML: the keys of `radio` in docs/scenario.md; the options below override it
    #[arg(long, value_name = "FILE")]
    pub(crate) link: Option<PathBuf>,
    /// Propagation there and back, such as 100ms
    #[arg(long, value_name = "TIME")]
    pub(crate) rtt: Option<Time>,
    /// Rate towards the clients, such as 7.2mbit
    #[arg(long, value_name = "RATE")]
    pub(crate) rate: Option<Rate>,
    /// Rate towards the servers
    #[arg(long, value_name = "RATE")]
    pub(crate) up_rate: Option<Rate>,
    /// Queue towards the clients, such as 3mb or "1000 packets"
    #[arg(long, value_name = "SIZE", value_parser = parse_queue)]
    pub(crate) queue: Option<QueueLimit>,
    /// Share of packets towards the clients that are lost, such as 0.6%
    #[arg(long, value_name = "SHARE", value_parser = parse_probability)]
    pub(crate) loss: Option<Probability>,
    /// Seed of every random choice
    #[arg(long, value_name = "S", default_value_t = 1)]
    pub(crate) seed: u64,
    /// Write counters to this file at the end
    #[arg(long, value_name = "FILE")]
    pub(crate) stats_json: Option<PathBuf>,
}

#[derive(Debug, Subcommand)]
pub(crate) enum TraceCommand {
    /// Length, mean, variation, percentiles and outages
    Info(TraceInput),
    /// Make a trace from a model; mean and variation are parameters
    Generate(TraceGenerate),
    /// Rewrite a trace in another format
    Convert(TraceConvert),
    /// Draw rate over time as SVG
    Plot(TracePlot),
}

#[derive(Debug, Args)]
pub(crate) struct TraceInput {
    /// Trace file
    #[arg(value_name = "FILE")]
    pub(crate) file: PathBuf,
    /// Format of FILE [default: told from its first line]
    #[arg(long, value_enum)]
    pub(crate) format: Option<TraceFormatArg>,
    /// CSV column with the rate in Mbit/s [default: the only one named so]
    #[arg(long, value_name = "NAME")]
    pub(crate) column: Option<String>,
    /// What missing rows or values mean
    #[arg(long, value_enum, default_value_t = GapsArg::Refuse)]
    pub(crate) gaps: GapsArg,
    /// Averaging window of rates, such as 100ms
    #[arg(long, value_name = "TIME", default_value = "1s")]
    pub(crate) window: Time,
}

/// How a trace is written down.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum TraceFormatArg {
    /// One line for each chance to deliver 1500 bytes: its time in milliseconds
    Mahimahi,
    /// Header line, rows with commas
    Csv,
    /// Second, blank, Mbit/s
    OneSecond,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum GapsArg {
    /// An error that names the line
    Refuse,
    /// The last value goes on
    Hold,
    /// Nothing is delivered
    Zero,
}

/// A kind of mobile link.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum ModelArg {
    /// 3G on the move
    Hspa,
    /// LTE in a car
    LteDriving,
    /// 5G with hand-overs to 4G and back
    #[value(name = "5g")]
    FiveG,
}

#[derive(Debug, Args)]
pub(crate) struct TraceGenerate {
    /// The kind of link
    #[arg(value_enum)]
    pub(crate) model: ModelArg,
    /// File to write [default: standard output]
    #[arg(long, short, value_name = "FILE")]
    pub(crate) out: Option<PathBuf>,
    /// Format to write
    #[arg(long, value_enum, default_value_t = TraceFormatArg::Mahimahi)]
    pub(crate) to: TraceFormatArg,
    /// Length
    #[arg(long, value_name = "TIME", default_value = "60s")]
    pub(crate) length: Time,
    /// Mean rate [default: the model's]
    #[arg(long, value_name = "RATE")]
    pub(crate) mean: Option<Rate>,
    /// Standard deviation over mean, in windows of 100 ms [default: the model's]
    #[arg(long, value_name = "SHARE", value_parser = parse_share)]
    pub(crate) variation: Option<f64>,
    /// Width of the rows of CSV
    #[arg(long, value_name = "TIME", default_value = "1s")]
    pub(crate) window: Time,
    /// Seed: the same one gives the same trace on every machine
    #[arg(long, value_name = "S", default_value_t = 1)]
    pub(crate) seed: u64,
}

#[derive(Debug, Args)]
pub(crate) struct TraceConvert {
    #[command(flatten)]
    pub(crate) input: TraceInput,
    /// Format to write
    #[arg(long, value_enum)]
    pub(crate) to: TraceFormatArg,
    /// File to write [default: standard output]
    #[arg(long, short, value_name = "FILE")]
    pub(crate) out: Option<PathBuf>,
}

#[derive(Debug, Args)]
pub(crate) struct TracePlot {
    #[command(flatten)]
    pub(crate) input: TraceInput,
    /// SVG file to write
    #[arg(long, short, value_name = "FILE.svg")]
    pub(crate) out: PathBuf,
}

#[derive(Debug, Subcommand)]
pub(crate) enum BenchCommand {
    /// CPU per packet and per Gbit/s with 1, 100 and 1000 flows, memory per flow, latency added at idle
    Gateway(BenchArgs),
}

#[derive(Debug, Args)]
pub(crate) struct BenchArgs {
    /// Interleaved runs of each kind; medians are reported
    #[arg(long, value_name = "N", default_value_t = 10, value_parser = clap::value_parser!(u32).range(1..=100))]
    pub(crate) runs: u32,
    /// Length of one run
    #[arg(long, value_name = "TIME", default_value = "2s")]
    pub(crate) duration: Time,
    /// Numbers of flows
    #[arg(long, value_name = "N", value_delimiter = ',', default_values_t = [1, 100, 1000])]
    pub(crate) flows: Vec<u32>,
    /// Client addresses that the flows are spread over, each a subscriber of its own
    #[arg(long, value_name = "N", default_value_t = 100, value_parser = clap::value_parser!(u8).range(1..=250))]
    pub(crate) clients: u8,
    /// What the servers send, all flows together and each as much as the others, such as 500mbit; otherwise as much as passes
    #[arg(long, value_name = "RATE")]
    pub(crate) offered: Option<Rate>,
    /// Every packet at most as long as on the wire, as with network cards without offloads; otherwise super-packets pass
    #[arg(long)]
    pub(crate) wire_size: bool,
    /// Largest IP packet between the hosts
    #[arg(long, value_name = "SIZE", default_value = "1500b")]
    pub(crate) mtu: Size,
    /// Folder for results
    #[arg(long, value_name = "DIR", default_value = "results/bench-gateway")]
    pub(crate) out: PathBuf,
    /// Print one JSON object instead of tables
    #[arg(long)]
    pub(crate) json: bool,
    /// Fail (exit code 1) if the gateway passes less than 0.8 of what the null forwarder does, or, splitting flows, 0.5; or if a packet
    /// of more flows takes over 1.3 times the processor time of one of 10
    #[arg(long)]
    pub(crate) check: bool,
}

/// As in scenario files.
fn parse_queue(text: &str) -> Result<QueueLimit, serde::de::value::Error> {
    QueueLimit::deserialize(text.into_deserializer())
}

/// Above 100 % for very bursty traces.
fn parse_share(text: &str) -> Result<f64, serde::de::value::Error> {
    share(text.into_deserializer())
}
