//! Experiments: what `paceline` runs, measures, computes and draws in the simulator and in the lab. Each command of the
//! program is one function here and takes its arguments from [`options`]. [`command`] calls it.

mod bench;
mod choices;
mod common;
mod compare;
mod cpu_time;
mod demo;
#[cfg(test)]
mod documented;
mod emulate;
#[cfg(any(test, fuzzing))]
#[doc(hidden)]
pub mod exercise;
mod map;
pub mod options;
mod plot;
mod pool;
mod predict;
mod profiles;
#[cfg(test)]
mod regression;
mod reproduce;
mod result;
mod run;
mod run_cache;
#[cfg(test)]
mod samples;
mod scenario;
mod sweep;
mod trace;

use options::{BenchCommand, LabCommand, ReproduceCommand};
use paceline_service::{error, files, percentiles, toml_text, units};
use paceline_terminal::{interrupt, output, profile, table};

/// Runs the command of the arguments.
///
/// # Errors
/// The error of the command.
pub fn command(command: &LabCommand) -> error::Result<()> {
    match command {
        LabCommand::Demo(options) => demo::command(options),
        LabCommand::Run(options) => run::command(options),
        LabCommand::Sweep(options) => sweep::command(options),
        LabCommand::Compare(options) => compare::command(options),
        LabCommand::Profiles(options) => profiles::command(options),
        LabCommand::Map(options) => map::command(options),
        LabCommand::Reproduce(ReproduceCommand::Or(options)) => reproduce::or::command(options),
        LabCommand::Reproduce(ReproduceCommand::Ncl(options)) => reproduce::ncl::command(options),
        LabCommand::Reproduce(ReproduceCommand::Accelerator(options)) => {
            reproduce::accelerator::command(options)
        }
        LabCommand::Reproduce(ReproduceCommand::Rre(options)) => reproduce::rre::command(options),
        LabCommand::Reproduce(ReproduceCommand::Drwa(options)) => reproduce::drwa::command(options),
        LabCommand::Reproduce(ReproduceCommand::Printed(options)) => reproduce::printed::command(options),
        LabCommand::Predict(options) => predict::command(options),
        LabCommand::Emulate(options) => emulate::command(options),
        LabCommand::Trace(task) => trace::command(task),
        LabCommand::Bench(BenchCommand::Gateway(options)) => bench::command(options),
    }
}
