//! The arguments of each command, with their defaults and help texts.

#![allow(
    missing_docs,
    reason = "a comment would become the help text of the command, which stands beside its name"
)]

mod map;
mod profiles;
mod reproduce;

use std::path::PathBuf;

use crate::choices::{GapsChoice, GrowthChoice, LostRepairChoice, ModelChoice, On, TraceFormatChoice};
use clap::{Args, Subcommand};
use paceline_path::QueueLimit;
use paceline_path::random::Probability;
use paceline_path::units::de::share;
use paceline_path::units::parse_probability;
use serde::de::{Deserialize, IntoDeserializer};

pub use map::MapOptions;
pub use profiles::ProfilesOptions;
pub use reproduce::{
    AcceleratorOptions, DrwaOptions, How, NclOptions, OrOptions, PrintedOptions, ReproduceCommand,
    ResumableRun, RreOptions,
};

use crate::units::{Rate, Size, Time};

/// Commands that measure and compute. They need the feature `lab`.
#[derive(Clone, Debug, Subcommand)]
pub enum LabCommand {
    /// Compare a download without and with the gateway over an emulated radio link (needs root)
    Demo(DemoOptions),
    /// Run a scenario file
    Run(RunOptions),
    /// Run a scenario for lists and ranges of values of its keys, in the simulator
    Sweep(SweepOptions),
    /// Compare every sender and receiver, with and without gateway, in the simulator
    Compare(CompareOptions),
    /// Compare `auto` with every other profile of the gateway, in the simulator
    Profiles(ProfilesOptions),
    /// Draw random paths by seed, and find those on which a flow is worse off with the gateway
    Map(MapOptions),
    /// Run published experiments in the simulator, and compare the numbers
    #[command(subcommand)]
    Reproduce(ReproduceCommand),
    /// Compute the cost of loss recovery on a path by formulas
    Predict(PredictOptions),
    /// Join two interfaces by an emulated link (needs root)
    Emulate(EmulateOptions),
    /// Inspect, generate, convert and plot link traces
    #[command(subcommand)]
    Trace(TraceCommand),
    /// Compare the cost of the gateway with that of kernel forwarding (needs root)
    #[command(subcommand)]
    Bench(BenchCommand),
}

#[derive(Clone, Debug, Args)]
pub struct DemoOptions {
    /// Folder for the plot and the results
    #[arg(long, value_name = "DIR", default_value = "results/demo")]
    pub out: PathBuf,
    /// Duration of each of the two downloads
    #[arg(long, value_name = "TIME", default_value = "15s")]
    pub duration: Time,
    /// Print the results as one JSON object instead of a table
    #[arg(long)]
    pub json: bool,
}

#[derive(Clone, Debug, Args)]
pub struct RunOptions {
    /// Scenario file (docs/reference/scenario.md describes every key)
    #[arg(value_name = "SCENARIO.toml")]
    pub scenario: PathBuf,
    /// Where to run
    #[arg(long, value_enum, default_value_t = On::Lab)]
    pub on: On,
    /// Number of runs of each variant, with consecutive seeds [default: as the scenario says]
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..=10_000))]
    pub runs: Option<u32>,
    #[command(flatten)]
    pub of: Selection,
    /// Parallel runs. Too many distort lab results.
    /// [default: 1 in the lab, one for each core in the simulator]
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..=64))]
    pub jobs: Option<u32>,
    /// Folder for results. Runs that it already holds are not repeated.
    /// [default: results/NAME, results/NAME-sim or results/NAME-both]
    #[arg(long, value_name = "DIR")]
    pub out: Option<PathBuf>,
    /// Repeat finished runs
    #[arg(long)]
    pub fresh: bool,
    /// Print one JSON object (docs/reference/results-schema.md) instead of a table
    #[arg(long)]
    pub json: bool,
    /// Print the names of the variants, and run nothing
    #[arg(long)]
    pub list: bool,
    /// Fail (exit code 1) if a bound of the scenario is missed
    #[arg(long)]
    pub check: bool,
}

/// The part of a scenario to run.
#[derive(Clone, Debug, Args)]
pub struct Selection {
    /// Seed of the first repetition [default: as the scenario says]
    #[arg(long, value_name = "S")]
    pub seed: Option<u64>,
    /// Length of each run, such as 10s [default: as the scenario says]
    #[arg(long, value_name = "TIME")]
    pub duration: Option<Time>,
    /// Run only variants whose name has all these comma-separated parts (repeatable)
    #[arg(long, value_name = "VARIANT")]
    pub only: Vec<String>,
}

/// How runs are made and printed.
#[derive(Clone, Debug, Args)]
pub struct Batch {
    /// Parallel runs [default: one for each core]
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..=64))]
    pub jobs: Option<u32>,
    /// Repeat finished runs
    #[arg(long)]
    pub fresh: bool,
    /// Print one JSON object instead of tables
    #[arg(long)]
    pub json: bool,
}

#[derive(Clone, Debug, Args)]
pub struct SweepOptions {
    /// Scenario file (docs/reference/scenario.md describes every key)
    #[arg(value_name = "SCENARIO.toml")]
    pub scenario: PathBuf,
    /// A key with its values (repeatable; every combination is run).
    /// A list: radio.rtt=50ms,100ms. A range of 4 values: radio.rtt=50ms..200ms:4, or :4log for equal ratios
    #[arg(long, value_name = "KEY=VALUES")]
    pub vary: Vec<String>,
    /// Number of runs of each combination, with consecutive seeds
    #[arg(long, value_name = "N", default_value_t = 10, value_parser = clap::value_parser!(u32).range(1..=10_000))]
    pub runs: u32,
    #[command(flatten)]
    pub of: Selection,
    /// Folder for results. Runs that it already holds are not repeated. [default: results/NAME-sweep]
    #[arg(long, value_name = "DIR")]
    pub out: Option<PathBuf>,
    #[command(flatten)]
    pub batch: Batch,
}

#[derive(Clone, Debug, Args)]
pub struct CompareOptions {
    /// Scenario file (.toml), or a trace of the radio downlink's rate
    #[arg(value_name = "SCENARIO.toml|TRACE")]
    pub scenario: PathBuf,
    /// A sender: names of algorithms joined by +, such as reno+fack (repeatable) [default: every algorithm]
    #[arg(long, value_name = "NAME")]
    pub sender: Vec<String>,
    /// A receiver (repeatable) [default: every one]
    #[arg(long, value_name = "NAME")]
    pub receiver: Vec<String>,
    /// Gateway before the radio link (repeatable): none, gateway, gateway-drwa (only lowers the client's window) or
    /// gateway-split (splits every flow) [default: every one]
    #[arg(long, value_name = "NAME")]
    pub gateway: Vec<String>,
    /// Number of transfers of each flow, for Jain's index [default: as the scenario says]
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..=1_000))]
    pub flows: Option<u32>,
    /// Round-trip time without queues, for a trace
    #[arg(long, value_name = "TIME", default_value = "100ms")]
    pub rtt: Time,
    /// Limit of the queue before the radio link, for a trace
    #[arg(long, value_name = "LIMIT", default_value = "1000packets")]
    pub queue: String,
    /// Number of runs of each scheme, with consecutive seeds
    #[arg(long, value_name = "N", default_value_t = 3, value_parser = clap::value_parser!(u32).range(1..=10_000))]
    pub runs: u32,
    #[command(flatten)]
    pub of: Selection,
    /// Folder for the plot and the runs. Runs that it already holds are not repeated. [default: results/NAME-compare]
    #[arg(long, value_name = "DIR")]
    pub out: Option<PathBuf>,
    #[command(flatten)]
    pub batch: Batch,
}

#[derive(Clone, Debug, Args)]
pub struct PredictOptions {
    /// Rate of the bottleneck, such as 20mbit
    #[arg(long, value_name = "RATE")]
    pub rate: Rate,
    /// Round-trip time without queues, such as 100ms
    #[arg(long, value_name = "TIME")]
    pub rtt: Time,
    /// Share of packets that are lost at random
    #[arg(long, value_name = "SHARE", value_parser = parse_probability, default_value = "0.1%")]
    pub loss: Probability,
    /// Number of consecutive packets lost before one recovery
    #[arg(long, value_name = "PACKETS", default_value_t = 10)]
    pub burst: u32,
    /// Receive window, such as 260kb or 180packets [default: 1.08 times rate x RTT]
    #[arg(long, value_name = "SIZE", value_parser = parse_queue)]
    pub window: Option<QueueLimit>,
    /// Size of a full packet on the link, headers included
    #[arg(long, value_name = "SIZE", default_value = "1500b")]
    pub packet: Size,
    /// Growth of the congestion window, and its decrease after a loss
    #[arg(long, value_enum, default_value_t = GrowthChoice::Cubic)]
    pub congestion_control: GrowthChoice,
    /// How the sender detects the loss of a retransmission
    #[arg(long, value_enum, default_value_t = LostRepairChoice::Detected)]
    pub lost_repair: LostRepairChoice,
    /// Share of the link that a flow should use. The output shows the smallest rate x RTT at which the flow uses less
    #[arg(long, value_name = "SHARE", value_parser = parse_probability, default_value = "80%")]
    pub efficiency: Probability,
    /// Print one JSON object instead of tables
    #[arg(long)]
    pub json: bool,
}

#[derive(Clone, Debug, Args)]
pub struct EmulateOptions {
    /// Interface towards the servers
    #[arg(value_name = "IFACE_UP")]
    pub up: String,
    /// Interface towards the clients
    #[arg(value_name = "IFACE_DOWN")]
    pub down: String,
    /// The link as TOML, with the keys of `radio` in docs/reference/scenario.md. The options below override it
    #[arg(long, value_name = "FILE")]
    pub link: Option<PathBuf>,
    /// Round-trip time without queues, such as 100ms
    #[arg(long, value_name = "TIME")]
    pub rtt: Option<Time>,
    /// Rate towards the clients, such as 7.2mbit
    #[arg(long, value_name = "RATE")]
    pub rate: Option<Rate>,
    /// Rate towards the servers
    #[arg(long, value_name = "RATE")]
    pub up_rate: Option<Rate>,
    /// Queue towards the clients, such as 3mb or "1000 packets"
    #[arg(long, value_name = "SIZE", value_parser = parse_queue)]
    pub queue: Option<QueueLimit>,
    /// Share of packets towards the clients that are lost, such as 0.6%
    #[arg(long, value_name = "SHARE", value_parser = parse_probability)]
    pub loss: Option<Probability>,
    /// Seed of every random choice
    #[arg(long, value_name = "S", default_value_t = 1)]
    pub seed: u64,
    /// Write counters to this file at the end
    #[arg(long, value_name = "FILE")]
    pub stats_json: Option<PathBuf>,
}

#[derive(Clone, Debug, Subcommand)]
pub enum TraceCommand {
    /// Print length, mean, variation, percentiles and outages
    Info(TraceInput),
    /// Generate a trace from a model
    Generate(TraceGenerate),
    /// Rewrite a trace in another format
    Convert(TraceConvert),
    /// Plot rate over time as SVG
    Plot(TracePlot),
}

#[derive(Clone, Debug, Args)]
pub struct TraceInput {
    /// Trace file
    #[arg(value_name = "FILE")]
    pub file: PathBuf,
    /// Format of FILE [default: told from its first line]
    #[arg(long, value_enum)]
    pub format: Option<TraceFormatChoice>,
    /// CSV column with the rate in Mbit/s [default: the only column with such a name]
    #[arg(long, value_name = "NAME")]
    pub column: Option<String>,
    /// What missing rows or values mean
    #[arg(long, value_enum, default_value_t = GapsChoice::Refuse)]
    pub gaps: GapsChoice,
    /// Averaging window of rates, such as 100ms
    #[arg(long, value_name = "TIME", default_value = "1s")]
    pub window: Time,
}

#[derive(Clone, Debug, Args)]
pub struct TraceGenerate {
    /// Kind of link
    #[arg(value_enum)]
    pub model: ModelChoice,
    /// File to write [default: standard output]
    #[arg(long, short, value_name = "FILE")]
    pub out: Option<PathBuf>,
    /// Format to write
    #[arg(long, value_enum, default_value_t = TraceFormatChoice::Mahimahi)]
    pub to: TraceFormatChoice,
    /// Length of the trace
    #[arg(long, value_name = "TIME", default_value = "60s")]
    pub length: Time,
    /// Mean rate [default: the model's]
    #[arg(long, value_name = "RATE")]
    pub mean: Option<Rate>,
    /// Standard deviation divided by the mean, in windows of 100 ms [default: the model's]
    #[arg(long, value_name = "SHARE", value_parser = parse_share)]
    pub variation: Option<f64>,
    /// Time between two rows of a CSV file
    #[arg(long, value_name = "TIME", default_value = "1s")]
    pub window: Time,
    /// Seed: the same one gives the same trace on every machine
    #[arg(long, value_name = "S", default_value_t = 1)]
    pub seed: u64,
}

#[derive(Clone, Debug, Args)]
pub struct TraceConvert {
    #[command(flatten)]
    pub input: TraceInput,
    /// Format to write
    #[arg(long, value_enum)]
    pub to: TraceFormatChoice,
    /// File to write [default: standard output]
    #[arg(long, short, value_name = "FILE")]
    pub out: Option<PathBuf>,
}

#[derive(Clone, Debug, Args)]
pub struct TracePlot {
    #[command(flatten)]
    pub input: TraceInput,
    /// SVG file to write
    #[arg(long, short, value_name = "FILE.svg")]
    pub out: PathBuf,
}

#[derive(Clone, Debug, Subcommand)]
pub enum BenchCommand {
    /// Measure CPU per packet and per Gbit/s, memory per flow, and latency added at idle
    Gateway(BenchOptions),
}

#[derive(Clone, Debug, Args)]
pub struct BenchOptions {
    /// Number of interleaved runs of each kind. The medians are reported
    #[arg(long, value_name = "N", default_value_t = 10, value_parser = clap::value_parser!(u32).range(1..=100))]
    pub runs: u32,
    /// Length of one run
    #[arg(long, value_name = "TIME", default_value = "2s")]
    pub duration: Time,
    /// Numbers of flows
    #[arg(long, value_name = "N", value_delimiter = ',', default_values_t = [1, 100, 1000])]
    pub flows: Vec<u32>,
    /// Number of client addresses that share the flows. Each address is a subscriber
    #[arg(long, value_name = "N", default_value_t = 100, value_parser = clap::value_parser!(u8).range(1..=250))]
    pub clients: u8,
    /// Rate of all servers together, such as 500mbit [default: unlimited]
    #[arg(long, value_name = "RATE")]
    pub offered: Option<Rate>,
    /// Send packets of wire size only, as network cards without offloads do [default: super-packets]
    #[arg(long)]
    pub wire_size: bool,
    /// Largest IP packet between the hosts
    #[arg(long, value_name = "SIZE", default_value = "1500b")]
    pub mtu: Size,
    /// Folder for results
    #[arg(long, value_name = "DIR", default_value = "results/bench-gateway")]
    pub out: PathBuf,
    /// Print one JSON object instead of tables
    #[arg(long)]
    pub json: bool,
    /// Fail (exit code 1) if a bound is missed. Throughput relative to the null forwarder: at least 0.8, split flows
    /// 0.5. CPU time of a packet relative to 10 flows: at most 1.3
    #[arg(long)]
    pub check: bool,
}

/// Parses a queue limit as in scenario files.
fn parse_queue(text: &str) -> Result<QueueLimit, serde::de::value::Error> {
    QueueLimit::deserialize(text.into_deserializer())
}

/// Parses a share, which may be above 100 % for very bursty traces.
fn parse_share(text: &str) -> Result<f64, serde::de::value::Error> {
    share(text.into_deserializer())
}
