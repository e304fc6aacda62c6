//! `paceline`: accelerate TCP over mobile access links, and measure it on real packets.

mod args;
mod capture;
mod doctor;
#[cfg(feature = "top")]
#[cfg(any(test, fuzzing))]
#[doc(hidden)]
pub mod exercise;
mod flows;
mod gateway;
mod help_files;
#[cfg(feature = "top")]
mod top;

use std::process::ExitCode;

use clap::Parser;
use paceline_service::{error, units};
use paceline_terminal::{interrupt, output, profile, table};

use args::{Cli, Command};
use error::{Error, Result};

/// The whole program: reads the arguments, runs the command, and returns the exit code.
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
        Command::Lab(command) => paceline_experiments::command(&command),
        Command::Gateway(command) => gateway::command(&command),
        Command::Doctor(args) => Err(Error::input(format!(
            "the doctor is a part of the gateway command; run: {}",
            [&["paceline", "gateway", "doctor"].map(String::from), args.given.as_slice()].concat().join(" ")
        ))),
        Command::HelpFiles(args) => help_files::command(&args),
        #[cfg(feature = "top")]
        Command::Top(args) => top::command(&args),
        Command::Capture(args) => capture::command(&args),
        Command::Flows(args) => flows::command(&args),
    }
}
