//! `paceline`: accelerate TCP over mobile access links, and measure it on real packets.

mod args;
mod error;
mod interrupt;
mod result;
mod run;
mod scenario;
mod units;

use std::process::ExitCode;

use clap::Parser;

use args::{Cli, Command};
use error::Result;

fn main() -> ExitCode {
    let cli = Cli::parse();
    match dispatch(cli.command) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("paceline: {error}");
            error.exit_code()
        }
    }
}

fn dispatch(command: Command) -> Result<()> {
    match command {
        Command::Demo(_args) => Ok(()),
        Command::Run(args) => run::command(&args),
        Command::Gateway(_args) => Ok(()),
        Command::Emulate(_args) => Ok(()),
        Command::Trace(_args) => Ok(()),
        Command::Bench(_args) => Ok(()),
    }
}
