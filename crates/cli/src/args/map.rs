//! Options of `paceline map`.

use std::path::PathBuf;

use clap::Args;
use paceline_experiments::choices::ModeChoice;
use paceline_experiments::map::Kind;

use super::Batch;
use crate::units::{Rate, Time};

#[derive(Debug, Args)]
pub(crate) struct MapArgs {
    /// Kind of points (repeatable) [default: every kind]
    #[arg(long, value_enum)]
    pub(crate) kind: Vec<Kind>,
    /// Seed of the points
    #[arg(long, value_name = "S", default_value_t = 1)]
    pub(crate) seed: u64,
    /// Number of the first point
    #[arg(long, value_name = "N", default_value_t = 0)]
    pub(crate) from: u32,
    /// Number of points of each kind
    #[arg(long, value_name = "N", default_value_t = 100, value_parser = clap::value_parser!(u32).range(1..=1_000_000))]
    pub(crate) count: u32,
    /// Run only this point
    #[arg(long, value_name = "N", conflicts_with_all = ["from", "count"])]
    pub(crate) point: Option<u32>,
    /// Print this point as a scenario, and run nothing (needs --kind)
    #[arg(long, value_name = "N", requires = "kind")]
    pub(crate) show: Option<u32>,
    /// Mode of the gateway, compared with no gateway (repeatable) [default: every mode]
    #[arg(long, value_enum)]
    pub(crate) mode: Vec<ModeChoice>,
    /// Runs of each point; each run has the next seed
    #[arg(long, value_name = "R", default_value_t = 1, value_parser = clap::value_parser!(u32).range(1..=50))]
    pub(crate) runs: u32,
    /// Further runs of a point that misses a bound. Only these then judge it. 0: none
    #[arg(long, value_name = "R", default_value_t = 4, value_parser = clap::value_parser!(u32).range(0..=49))]
    pub(crate) recheck: u32,
    /// Length of a run [default: 30s, mixed points 40s]
    #[arg(long, value_name = "TIME")]
    pub(crate) duration: Option<Time>,
    /// Highest rate of radio links
    #[arg(long, value_name = "RATE")]
    pub(crate) rate_max: Option<Rate>,
    /// Folder for runs-KIND.jsonl, KIND.csv and KIND.json. Runs that it already holds are not repeated
    #[arg(long, value_name = "DIR", default_value = "results/map")]
    pub(crate) out: PathBuf,
    #[command(flatten)]
    pub(crate) batch: Batch,
    /// Fail (exit code 1) if a bound is missed
    #[arg(long)]
    pub(crate) check: bool,
}
