//! `paceline`: accelerate TCP over mobile access links, and measure it on real packets.

mod args;
mod bench;
mod capture;
mod compare;
mod cpu_time;
mod demo;
mod doctor;
#[cfg(test)]
mod documented;
mod emulate;
#[cfg(any(test, fuzzing))]
#[doc(hidden)]
pub mod exercise;
mod flows;
mod gateway;
mod help_files;
mod interrupt;
mod kept;
mod map;
mod output;
mod plot;
mod pool;
mod predict;
mod profile;
mod profiles;
mod reproduce;
mod result;
mod run;
#[cfg(test)]
mod samples;
mod scenario;
mod sweep;
mod table;
mod top;
mod trace;

use std::process::ExitCode;

use clap::Parser;
use paceline_service::{error, files, percentiles, toml_text, units};

use args::{BenchCommand, Cli, Command, ReproduceCommand};
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
        Command::Demo(args) => demo::command(&args),
        Command::Run(args) => run::command(&args),
        Command::Sweep(args) => sweep::command(&args),
        Command::Compare(args) => compare::command(&args),
        Command::Profiles(args) => profiles::command(&args),
        Command::Map(args) => map::command(&args),
        Command::Reproduce(ReproduceCommand::Or(args)) => reproduce::or::command(&args),
        Command::Reproduce(ReproduceCommand::Ncl(args)) => reproduce::ncl::command(&args),
        Command::Reproduce(ReproduceCommand::Accelerator(args)) => reproduce::accelerator::command(&args),
        Command::Reproduce(ReproduceCommand::Rre(args)) => reproduce::rre::command(&args),
        Command::Reproduce(ReproduceCommand::Drwa(args)) => reproduce::drwa::command(&args),
        Command::Reproduce(ReproduceCommand::Printed(args)) => reproduce::printed::command(&args),
        Command::Predict(args) => predict::command(&args),
        Command::Gateway(command) => gateway::command(&command),
        Command::Doctor(args) => Err(Error::input(format!(
            "the doctor belongs to the gateway; run: {}",
            [&["paceline", "gateway", "doctor"].map(String::from), args.given.as_slice()].concat().join(" ")
        ))),
        Command::HelpFiles(args) => help_files::command(&args),
        Command::Top(args) => top::command(&args),
        Command::Capture(args) => capture::command(&args),
        Command::Flows(args) => flows::command(&args),
        Command::Emulate(args) => emulate::command(&args),
        Command::Trace(command) => trace::command(&command),
        Command::Bench(BenchCommand::Gateway(args)) => bench::command(&args),
    }
}
