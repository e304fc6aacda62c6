//! `paceline`: accelerate TCP over mobile access links, and measure it on real packets.

mod args;
#[cfg(feature = "lab")]
mod bench;
mod capture;
#[cfg(feature = "lab")]
mod compare;
#[cfg(feature = "lab")]
mod cpu_time;
#[cfg(feature = "lab")]
mod demo;
mod doctor;
#[cfg(test)]
#[cfg(feature = "lab")]
mod documented;
#[cfg(feature = "lab")]
mod emulate;
#[cfg(any(test, fuzzing))]
#[doc(hidden)]
pub mod exercise;
mod flows;
mod gateway;
mod help_files;
mod interrupt;
#[cfg(feature = "lab")]
mod kept;
#[cfg(feature = "lab")]
mod map;
mod output;
#[cfg(feature = "lab")]
mod plot;
#[cfg(feature = "lab")]
mod pool;
#[cfg(feature = "lab")]
mod predict;
mod profile;
#[cfg(feature = "lab")]
mod profiles;
#[cfg(feature = "lab")]
mod reproduce;
#[cfg(feature = "lab")]
mod result;
#[cfg(feature = "lab")]
mod run;
#[cfg(test)]
#[cfg(feature = "lab")]
mod samples;
#[cfg(feature = "lab")]
mod scenario;
#[cfg(feature = "lab")]
mod sweep;
mod table;
#[cfg(feature = "top")]
mod top;
#[cfg(feature = "lab")]
mod trace;

use std::process::ExitCode;

use clap::Parser;
use paceline_service::{error, units};
#[cfg(feature = "lab")]
use paceline_service::{files, percentiles, toml_text};

use args::{Cli, Command};
use error::{Error, Result};

/// The whole program: reads the arguments, does what they say, and returns the exit code.
pub fn main() -> ExitCode {
    let cli = Cli::parse();
    match dispatch(cli.command).and_then(|()| output::finish()) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("paceline: {error}");
            error.exit_code()
        }
    }
}

fn dispatch(command: Command) -> Result<()> {
    match command {
        #[cfg(feature = "lab")]
        Command::Lab(command) => dispatch_lab(command),
        Command::Gateway(command) => gateway::command(&command),
        Command::Doctor(args) => Err(Error::input(format!(
            "the doctor belongs to the gateway; run: {}",
            [&["paceline", "gateway", "doctor"].map(String::from), args.given.as_slice()].concat().join(" ")
        ))),
        Command::HelpFiles(args) => help_files::command(&args),
        #[cfg(feature = "top")]
        Command::Top(args) => top::command(&args),
        Command::Capture(args) => capture::command(&args),
        Command::Flows(args) => flows::command(&args),
    }
}

#[cfg(feature = "lab")]
fn dispatch_lab(command: args::LabCommand) -> Result<()> {
    use args::{BenchCommand, LabCommand, ReproduceCommand};
    match command {
        LabCommand::Demo(args) => demo::command(&args),
        LabCommand::Run(args) => run::command(&args),
        LabCommand::Sweep(args) => sweep::command(&args),
        LabCommand::Compare(args) => compare::command(&args),
        LabCommand::Profiles(args) => profiles::command(&args),
        LabCommand::Map(args) => map::command(&args),
        LabCommand::Reproduce(ReproduceCommand::Or(args)) => reproduce::or::command(&args),
        LabCommand::Reproduce(ReproduceCommand::Ncl(args)) => reproduce::ncl::command(&args),
        LabCommand::Reproduce(ReproduceCommand::Accelerator(args)) => reproduce::accelerator::command(&args),
        LabCommand::Reproduce(ReproduceCommand::Rre(args)) => reproduce::rre::command(&args),
        LabCommand::Reproduce(ReproduceCommand::Drwa(args)) => reproduce::drwa::command(&args),
        LabCommand::Reproduce(ReproduceCommand::Printed(args)) => reproduce::printed::command(&args),
        LabCommand::Predict(args) => predict::command(&args),
        LabCommand::Emulate(args) => emulate::command(&args),
        LabCommand::Trace(command) => trace::command(&command),
        LabCommand::Bench(BenchCommand::Gateway(args)) => bench::command(&args),
    }
}
