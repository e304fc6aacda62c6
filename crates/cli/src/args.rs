//! The command line.

mod gateway;

use std::path::PathBuf;

use clap::{Args, Parser, Subcommand};
#[cfg(feature = "top")]
pub(crate) use gateway::TopArgs;
pub(crate) use gateway::{CaptureArgs, DoctorArgs, FlowsArgs, GatewayAction, GatewayArgs, GatewayCommand};
#[cfg(feature = "lab")]
use paceline_experiments::options::LabCommand;

/// A gateway that makes TCP fast over mobile access links, and the tools to measure it.
#[derive(Debug, Parser)]
#[command(name = "paceline", version, max_term_width = 100, after_help = EXIT_CODES)]
pub(crate) struct Cli {
    #[command(subcommand)]
    pub(crate) command: Command,
}

#[derive(Debug, Subcommand)]
pub(crate) enum Command {
    #[cfg(feature = "lab")]
    #[command(flatten)]
    Lab(LabCommand),
    /// Run the gateway between two interfaces, or through a TUN device (needs root)
    Gateway(Box<GatewayCommand>),
    /// Write man pages and shell completions, for packages
    #[command(hide = true)]
    HelpFiles(HelpFilesArgs),
    /// Say that the command is `gateway doctor`
    #[command(hide = true)]
    Doctor(ElsewhereArgs),
    /// Show the flows and subscribers of the running gateway
    Flows(FlowsArgs),
    /// Watch the flows and subscribers of the running gateway in the terminal
    #[cfg(feature = "top")]
    Top(TopArgs),
    /// Capture one flow on both sides of the running gateway (annotated pcapng)
    Capture(CaptureArgs),
}

#[derive(Debug, Args)]
pub(crate) struct HelpFilesArgs {
    /// Folder to write to
    #[arg(value_name = "DIR")]
    pub(crate) folder: PathBuf,
}

/// Any arguments. The error message repeats them after `paceline gateway doctor`.
#[derive(Debug, Args)]
pub(crate) struct ElsewhereArgs {
    #[arg(trailing_var_arg = true, allow_hyphen_values = true)]
    pub(crate) given: Vec<String>,
}

const EXIT_CODES: &str = "Exit codes: 0 done; 1 a run failed; 2 bad arguments or input; 3 privilege missing; 130 interrupted.
Numbers need units: rates bit, kbit, mbit, gbit; times us, ms, s, min; sizes b, kb, mb (1000), kib, mib (1024); shares %.";
