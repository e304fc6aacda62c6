//! The command line of `paceline reproduce`.

use std::path::PathBuf;

use crate::choices::{AcceleratorPart, DetectionChoice, DrwaPart, NclPart, OrPart};
use clap::{Args, Subcommand};

#[derive(Clone, Debug, Subcommand)]
pub enum ReproduceCommand {
    /// Opportunistic retransmission: Tables 1 to 15 and Figs. 3 to 5
    Or(OrOptions),
    /// The mobile accelerator: Figs. 4 to 25, Tables 1 to 4, bounds, and the simulator compared with the virtual-time
    /// lab
    Accelerator(AcceleratorOptions),
    /// TCP-NCL: Figs. 3 to 5, 7 and 9, the range over which they hold, and the model
    Ncl(NclOptions),
    /// TCP-RRE, a sender without ACK clock: Figs. 7 to 16
    Rre(RreOptions),
    /// Dynamic receive window adjustment: Figs. 3 to 18, Table 3, and a lambda that follows the link
    Drwa(DrwaOptions),
    /// Algorithms as printed compared with our recommended forms, and the effect of each of our changes
    Printed(PrintedOptions),
}

/// Options for every paper.
#[derive(Clone, Debug, Args)]
pub struct How {
    /// Number of runs of each cell, with seeds from 1. A cell without random choices has one run
    #[arg(long, value_name = "N", default_value_t = 10, value_parser = clap::value_parser!(u32).range(1..=1_000))]
    pub runs: u32,
    /// Parallel runs [default: one for each core]
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..=64))]
    pub jobs: Option<u32>,
    /// Folder for plots, series and the results of each run
    #[arg(long, value_name = "DIR", default_value = "results/reproduce")]
    pub out: PathBuf,
    /// Print one JSON object instead of tables
    #[arg(long)]
    pub json: bool,
    /// Fail (exit code 1) if a bound is missed
    #[arg(long)]
    pub check: bool,
}

/// Options for papers whose finished runs are kept.
#[derive(Clone, Debug, Args)]
pub struct ResumableRun {
    /// Repeat finished runs
    #[arg(long)]
    pub fresh: bool,
    #[command(flatten)]
    pub how: How,
}

#[derive(Clone, Debug, Args)]
pub struct AcceleratorOptions {
    /// Only this figure: 4, 5, 6, 8, 9, 13, 15, 16, 18 to 22, 24 or 25 (repeatable)
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u8).range(4..=25))]
    pub figure: Vec<u8>,
    /// Only this table, 1 to 4 (repeatable)
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u8).range(1..=4))]
    pub table: Vec<u8>,
    /// Only this part (repeatable) [default: all, or figures if one is named]
    #[arg(long, value_enum)]
    pub part: Vec<AcceleratorPart>,
    #[command(flatten)]
    pub how: How,
}

#[derive(Clone, Debug, Args)]
pub struct PrintedOptions {
    /// Run only experiments with this in their name: `Table 14`, `BARR`, `why`, `DRWA` (repeatable)
    #[arg(long, value_name = "PART")]
    pub only: Vec<String>,
    #[command(flatten)]
    pub kept: ResumableRun,
}

#[derive(Clone, Debug, Args)]
pub struct RreOptions {
    /// Only this figure, 7 to 16 (repeatable)
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u8).range(7..=16))]
    pub figure: Vec<u8>,
    #[command(flatten)]
    pub kept: ResumableRun,
}

#[derive(Clone, Debug, Args)]
pub struct DrwaOptions {
    /// Only this figure: 3 to 12, or 14 to 18 (14 is Table 3) (repeatable)
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u8).range(3..=18))]
    pub figure: Vec<u8>,
    /// Only this part (repeatable) [default: all, or figures if one is named]
    #[arg(long, value_enum)]
    pub part: Vec<DrwaPart>,
    #[command(flatten)]
    pub kept: ResumableRun,
}

#[derive(Clone, Debug, Args)]
pub struct OrOptions {
    /// Only this table, 1 to 15 (repeatable)
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u8).range(1..=15))]
    pub table: Vec<u8>,
    /// Only this part (repeatable) [default: all, or tables if --table is given]
    #[arg(long, value_enum)]
    pub part: Vec<OrPart>,
    /// Loss detection of the sender of the tables. `both` takes twice as long
    #[arg(long, value_enum, default_value_t = DetectionChoice::Fack)]
    pub detection: DetectionChoice,
    #[command(flatten)]
    pub kept: ResumableRun,
}

#[derive(Clone, Debug, Args)]
pub struct NclOptions {
    /// Only this figure, 3, 4, 5, 7 or 9 (repeatable)
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u8).range(3..=9))]
    pub figure: Vec<u8>,
    /// Only this part (repeatable) [default: all, or figures if one is named]
    #[arg(long, value_enum)]
    pub part: Vec<NclPart>,
    /// Length of each run. Only its second half counts. The paper has 20 runs of 2000 s
    #[arg(long, value_name = "SECONDS", default_value_t = 400, value_parser = clap::value_parser!(u32).range(20..=100_000))]
    pub seconds: u32,
    #[command(flatten)]
    pub kept: ResumableRun,
}
