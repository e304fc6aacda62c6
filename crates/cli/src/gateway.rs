//! `paceline gateway`: the accelerator between two interfaces, or behind a TUN device.

mod attach;
mod board;
pub(crate) mod capture;
mod configuration;
pub(crate) mod control;
pub(crate) mod doctor;
mod drive;
#[cfg(any(test, fuzzing))]
pub(crate) mod exercise;
pub(crate) mod handover;
mod http;
mod metrics;
mod notify;
mod observer;
pub(crate) mod options;
mod plain_text;
mod policy;
mod records;
mod reload;
mod rescaling;
pub(crate) mod rows;
mod scribe;
mod service;
mod sides;
mod successor;
mod totals;
mod workers;

use std::io;
use std::path::Path;

use paceline_linux::NullForwarder;

use crate::args::{GatewayAction, GatewayArgs, GatewayCommand};
use crate::error::Result;
use crate::files::write_whole;
use crate::output::say;
use drive::{Around, Moment, drive};
use options::Options;

pub(crate) fn command(command: &GatewayCommand) -> Result<()> {
    if let Some(GatewayAction::Doctor(args)) = &command.action {
        return crate::doctor::command(args);
    }
    let args = &command.args;
    log_to_stderr(args);
    match &args.check {
        Some(path) => {
            say!("{}: all right: {}", path.display(), check(&args.options(), path)?);
            Ok(())
        }
        None => run(&args.options()),
    }
}

/// Runs until a signal comes.
pub(crate) fn run(options: &Options) -> Result<()> {
    let config = configuration::load(options, options.config.as_deref())?;
    if options.workers > 1 && options.worker.is_none() {
        return workers::run(options, &config);
    }
    let options = &options.of_worker();
    if options.forward_only { forward(options) } else { service::run(options, config) }
}

/// Says what is in the operator's file at `path`, if it would be taken.
pub(crate) fn check(options: &Options, path: &Path) -> Result<String> {
    let config = configuration::load(options, Some(path))?;
    Ok(policy::summary(&config))
}

/// What packet I/O costs without a gateway.
fn forward(options: &Options) -> Result<()> {
    let mut told = false;
    let tell = |_: &mut NullForwarder, moment: Moment<'_, '_>| match moment {
        // Once, for those who wait until it forwards.
        Moment::Turn(..) if !std::mem::replace(&mut told, true) => match &options.stats_json {
            Some(path) => write_whole(path, "{}\n").map_err(io::Error::other),
            None => Ok(()),
        },
        _ => Ok(()),
    };
    drive(options, &mut NullForwarder::new(), Around::default(), |_| false, tell)
}

/// Of files that say who talks to whom: for their owner, and for a group to read.
const LOG_MODE: u32 = 0o640;

/// Lines without time stamps where the journal adds them.
fn log_to_stderr(args: &GatewayArgs) {
    let log = tracing_subscriber::fmt()
        .with_max_level(args.log.filter())
        .with_writer(io::stderr)
        .with_target(false);
    // An earlier one, as in tests, stays.
    let _ = match std::env::var_os("JOURNAL_STREAM") {
        Some(_) => log.without_time().try_init(),
        None => log.try_init(),
    };
}
