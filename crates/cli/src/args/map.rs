//! Options of `paceline map`.

use std::path::PathBuf;

use clap::{Args, ValueEnum};

use crate::map::Kind;
use crate::units::{Rate, Time};

#[derive(Debug, Args)]
pub(crate) struct MapArgs {
    /// A kind of points; may be given several times [default: every one]
    #[arg(long, value_enum)]
    pub(crate) kind: Vec<Kind>,
    /// Other points for each seed
    #[arg(long, value_name = "S", default_value_t = 1)]
    pub(crate) seed: u64,
    /// The first point
    #[arg(long, value_name = "N", default_value_t = 0)]
    pub(crate) from: u32,
    /// How many points of each kind
    #[arg(long, value_name = "N", default_value_t = 100, value_parser = clap::value_parser!(u32).range(1..=1_000_000))]
    pub(crate) count: u32,
    /// Only this point
    #[arg(long, value_name = "N", conflicts_with_all = ["from", "count"])]
    pub(crate) point: Option<u32>,
    /// Print this point as a scenario, and run nothing; needs --kind
    #[arg(long, value_name = "N", requires = "kind")]
    pub(crate) show: Option<u32>,
    /// Only this mode of the gateway, beside none; may be given several times [default: every one]
    #[arg(long, value_enum)]
    pub(crate) mode: Vec<ModeArg>,
    /// Runs of each point, with seeds that count upwards
    #[arg(long, value_name = "R", default_value_t = 1, value_parser = clap::value_parser!(u32).range(1..=50))]
    pub(crate) runs: u32,
    /// Further runs of each point that misses a bound, which then are what it is judged by; 0: none
    #[arg(long, value_name = "R", default_value_t = 4, value_parser = clap::value_parser!(u32).range(0..=49))]
    pub(crate) recheck: u32,
    /// Length of a run [default: 30s, of mixed points 40s]
    #[arg(long, value_name = "TIME")]
    pub(crate) duration: Option<Time>,
    /// Radio links that would be faster are this fast
    #[arg(long, value_name = "RATE")]
    pub(crate) rate_max: Option<Rate>,
    /// Runs at the same time [default: one for each core]
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..=64))]
    pub(crate) jobs: Option<u32>,
    /// Folder for runs-KIND.jsonl, KIND.csv and KIND.json; runs that are there already are not done again
    #[arg(long, value_name = "DIR", default_value = "results/map")]
    pub(crate) out: PathBuf,
    /// Do runs again that are there already
    #[arg(long)]
    pub(crate) fresh: bool,
    /// Print one JSON object instead of tables
    #[arg(long)]
    pub(crate) json: bool,
    /// Fail (exit code 1) if a bound is missed
    #[arg(long)]
    pub(crate) check: bool,
}

/// A mode that is compared with no gateway.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum ModeArg {
    /// The default profile
    Full,
    /// As the gateway finds best
    Auto,
    /// Every flow is split
    Split,
}
