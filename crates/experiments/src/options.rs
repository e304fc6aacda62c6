//! What each command is asked for. `crates/cli` makes it of its arguments, where each field has its default and its help.

#![allow(missing_docs, reason = "the option of a field's name says what it means")]

use std::path::PathBuf;

use paceline_path::QueueLimit;
use paceline_path::random::Probability;

use crate::choices::{
    AcceleratorPart, DetectionChoice, DrwaPart, GapsChoice, GrowthChoice, LostRepairChoice, ModeChoice,
    ModelChoice, NclPart, On, OrPart, TraceFormatChoice,
};
use crate::map::Kind;
use crate::units::{Rate, Size, Time};

/// Of `demo`.
#[derive(Clone, Debug)]
pub struct DemoOptions {
    pub out: PathBuf,
    pub duration: Time,
    pub json: bool,
}

/// Of `run`.
#[derive(Clone, Debug)]
pub struct RunOptions {
    pub scenario: PathBuf,
    pub on: On,
    pub runs: Option<u32>,
    pub of: Selection,
    pub jobs: Option<u32>,
    pub out: Option<PathBuf>,
    pub fresh: bool,
    pub json: bool,
    pub list: bool,
    pub check: bool,
}

/// What of a scenario is run.
#[derive(Clone, Debug)]
pub struct Selection {
    pub seed: Option<u64>,
    pub duration: Option<Time>,
    pub only: Vec<String>,
}

/// How many runs are made: side by side, anew or only those that are not kept, and told of in which form.
#[derive(Clone, Copy, Debug)]
pub struct Batch {
    pub jobs: Option<u32>,
    pub fresh: bool,
    pub json: bool,
}

/// Of `sweep`.
#[derive(Clone, Debug)]
pub struct SweepOptions {
    pub scenario: PathBuf,
    pub vary: Vec<String>,
    pub runs: u32,
    pub of: Selection,
    pub out: Option<PathBuf>,
    pub batch: Batch,
}

/// Of `compare`.
#[derive(Clone, Debug)]
pub struct CompareOptions {
    pub scenario: PathBuf,
    pub sender: Vec<String>,
    pub receiver: Vec<String>,
    pub gateway: Vec<String>,
    pub flows: Option<u32>,
    pub rtt: Time,
    pub queue: String,
    pub runs: u32,
    pub of: Selection,
    pub out: Option<PathBuf>,
    pub batch: Batch,
}

/// Of `predict`.
#[derive(Clone, Debug)]
pub struct PredictOptions {
    pub rate: Rate,
    pub rtt: Time,
    pub loss: Probability,
    pub burst: u32,
    pub window: Option<QueueLimit>,
    pub packet: Size,
    pub congestion_control: GrowthChoice,
    pub lost_repair: LostRepairChoice,
    pub efficiency: Probability,
    pub json: bool,
}

/// Of `emulate`.
#[derive(Clone, Debug)]
pub struct EmulateOptions {
    pub up: String,
    pub down: String,
    pub link: Option<PathBuf>,
    pub rtt: Option<Time>,
    pub rate: Option<Rate>,
    pub up_rate: Option<Rate>,
    pub queue: Option<QueueLimit>,
    pub loss: Option<Probability>,
    pub seed: u64,
    pub stats_json: Option<PathBuf>,
}

/// A trace to be read; alone it is `trace info`.
#[derive(Clone, Debug)]
pub struct TraceInput {
    pub file: PathBuf,
    pub format: Option<TraceFormatChoice>,
    pub column: Option<String>,
    pub gaps: GapsChoice,
    pub window: Time,
}

/// Of `trace generate`.
#[derive(Clone, Debug)]
pub struct TraceGenerate {
    pub model: ModelChoice,
    pub out: Option<PathBuf>,
    pub to: TraceFormatChoice,
    pub length: Time,
    pub mean: Option<Rate>,
    pub variation: Option<f64>,
    pub window: Time,
    pub seed: u64,
}

/// Of `trace convert`.
#[derive(Clone, Debug)]
pub struct TraceConvert {
    pub input: TraceInput,
    pub to: TraceFormatChoice,
    pub out: Option<PathBuf>,
}

/// Of `trace plot`.
#[derive(Clone, Debug)]
pub struct TracePlot {
    pub input: TraceInput,
    pub out: PathBuf,
}

/// Of `bench gateway`.
#[derive(Clone, Debug)]
pub struct BenchOptions {
    pub runs: u32,
    pub duration: Time,
    pub flows: Vec<u32>,
    pub clients: u8,
    pub offered: Option<Rate>,
    pub wire_size: bool,
    pub mtu: Size,
    pub out: PathBuf,
    pub json: bool,
    pub check: bool,
}

/// Of `map`.
#[derive(Clone, Debug)]
pub struct MapOptions {
    pub kind: Vec<Kind>,
    pub seed: u64,
    pub from: u32,
    pub count: u32,
    pub point: Option<u32>,
    pub show: Option<u32>,
    pub mode: Vec<ModeChoice>,
    pub runs: u32,
    pub recheck: u32,
    pub duration: Option<Time>,
    pub rate_max: Option<Rate>,
    pub out: PathBuf,
    pub batch: Batch,
    pub check: bool,
}

/// Of `profiles`.
#[derive(Clone, Debug)]
pub struct ProfilesOptions {
    pub files: Vec<PathBuf>,
    pub profile: Vec<String>,
    pub rtt: Time,
    pub queue: String,
    pub runs: u32,
    pub of: Selection,
    pub out: PathBuf,
    pub batch: Batch,
    pub check: bool,
}

/// How any paper is reproduced.
#[derive(Clone, Debug)]
pub struct How {
    pub runs: u32,
    pub jobs: Option<u32>,
    pub out: PathBuf,
    pub json: bool,
    pub check: bool,
}

/// How a paper is reproduced whose runs are kept.
#[derive(Clone, Debug)]
pub struct KeptHow {
    pub fresh: bool,
    pub how: How,
}

/// Of `reproduce accelerator`.
#[derive(Clone, Debug)]
pub struct AcceleratorOptions {
    pub figure: Vec<u8>,
    pub table: Vec<u8>,
    pub part: Vec<AcceleratorPart>,
    pub how: How,
}

/// Of `reproduce printed`.
#[derive(Clone, Debug)]
pub struct PrintedOptions {
    pub only: Vec<String>,
    pub kept: KeptHow,
}

/// Of `reproduce rre`.
#[derive(Clone, Debug)]
pub struct RreOptions {
    pub figure: Vec<u8>,
    pub kept: KeptHow,
}

/// Of `reproduce drwa`.
#[derive(Clone, Debug)]
pub struct DrwaOptions {
    pub figure: Vec<u8>,
    pub part: Vec<DrwaPart>,
    pub kept: KeptHow,
}

/// Of `reproduce or`.
#[derive(Clone, Debug)]
pub struct OrOptions {
    pub table: Vec<u8>,
    pub part: Vec<OrPart>,
    pub detection: DetectionChoice,
    pub kept: KeptHow,
}

/// Of `reproduce ncl`.
#[derive(Clone, Debug)]
pub struct NclOptions {
    pub figure: Vec<u8>,
    pub part: Vec<NclPart>,
    pub seconds: u32,
    pub kept: KeptHow,
}

/// What is done with a trace.
#[derive(Clone, Debug)]
pub enum TraceTask {
    /// Tell what it is.
    Info(TraceInput),
    /// Make one.
    Generate(TraceGenerate),
    /// Write it in another format.
    Convert(TraceConvert),
    /// Draw it.
    Plot(TracePlot),
}
