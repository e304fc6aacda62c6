//! Options of `paceline map`.

use std::path::PathBuf;

use crate::choices::ModeChoice;
use crate::map::Kind;
use clap::Args;

use super::Batch;
use crate::units::{Rate, Time};

#[derive(Clone, Debug, Args)]
pub struct MapOptions {
    /// Kind of points (repeatable) [default: every kind]
    #[arg(long, value_enum)]
    pub kind: Vec<Kind>,
    /// Seed of the points
    #[arg(long, value_name = "S", default_value_t = 1)]
    pub seed: u64,
    /// Number of the first point
    #[arg(long, value_name = "N", default_value_t = 0)]
    pub from: u32,
    /// Number of points of each kind
    #[arg(long, value_name = "N", default_value_t = 100, value_parser = clap::value_parser!(u32).range(1..=1_000_000))]
    pub count: u32,
    /// Run only this point
    #[arg(long, value_name = "N", conflicts_with_all = ["from", "count"])]
    pub point: Option<u32>,
    /// Print this point as a scenario, and run nothing (needs --kind)
    #[arg(long, value_name = "N", requires = "kind")]
    pub show: Option<u32>,
    /// Mode of the gateway, compared with no gateway (repeatable) [default: every mode]
    #[arg(long, value_enum)]
    pub mode: Vec<ModeChoice>,
    /// Number of runs of each point, with consecutive seeds
    #[arg(long, value_name = "R", default_value_t = 1, value_parser = clap::value_parser!(u32).range(1..=50))]
    pub runs: u32,
    /// Number of further runs of a point that misses a bound. Only the further runs then judge it. 0: no further runs
    #[arg(long, value_name = "R", default_value_t = 4, value_parser = clap::value_parser!(u32).range(0..=49))]
    pub recheck: u32,
    /// Length of a run [default: 30s, mixed points 40s]
    #[arg(long, value_name = "TIME")]
    pub duration: Option<Time>,
    /// Highest rate of radio links
    #[arg(long, value_name = "RATE")]
    pub rate_max: Option<Rate>,
    /// Folder for runs-KIND.jsonl, KIND.csv and KIND.json. Runs that it already holds are not repeated
    #[arg(long, value_name = "DIR", default_value = "results/map")]
    pub out: PathBuf,
    #[command(flatten)]
    pub batch: Batch,
    /// Fail (exit code 1) if a bound is missed
    #[arg(long)]
    pub check: bool,
}
