//! Options of `paceline profiles`.

use std::path::PathBuf;

use clap::Args;

use super::{Batch, Selection};
use crate::units::Time;

#[derive(Clone, Debug, Args)]
pub struct ProfilesOptions {
    /// Scenario files (.toml), or traces of the radio downlink's rate
    #[arg(value_name = "SCENARIO.toml|TRACE", required = true)]
    pub files: Vec<PathBuf>,
    /// Profile (repeatable) [default: every profile]
    #[arg(long, value_name = "NAME")]
    pub profile: Vec<String>,
    /// Round-trip time without queues, for a trace
    #[arg(long, value_name = "TIME", default_value = "100ms")]
    pub rtt: Time,
    /// Limit of the queue before the radio link, for a trace
    #[arg(long, value_name = "LIMIT", default_value = "1000packets")]
    pub queue: String,
    /// Number of runs of each cell, with consecutive seeds
    #[arg(long, value_name = "N", default_value_t = 1, value_parser = clap::value_parser!(u32).range(1..=10_000))]
    pub runs: u32,
    #[command(flatten)]
    pub of: Selection,
    /// Folder for the runs and profiles.json. Runs that it already holds are not repeated
    #[arg(long, value_name = "DIR", default_value = "results/profiles")]
    pub out: PathBuf,
    #[command(flatten)]
    pub batch: Batch,
    /// Fail (exit code 1) if `auto` misses a bound
    #[arg(long)]
    pub check: bool,
}
