//! `paceline gateway`: the accelerator between two interfaces, or behind a TUN device.

use std::io;

use crate::args::{GatewayAction, GatewayArgs, GatewayCommand};
use crate::doctor;
use crate::error::Result;
use crate::output::say;

pub(crate) fn command(command: &GatewayCommand) -> Result<()> {
    if let Some(GatewayAction::Doctor(args)) = &command.action {
        return doctor::command(args);
    }
    let args = &command.args;
    log_to_stderr(args);
    match &args.check {
        Some(path) => {
            say!("{}: all right: {}", path.display(), paceline_service::check(&args.options(), path)?);
            Ok(())
        }
        None => paceline_service::run(&args.options()),
    }
}

/// Logs to standard error. Lines have no time stamps if the journal adds them.
fn log_to_stderr(args: &GatewayArgs) {
    let log = tracing_subscriber::fmt()
        .with_max_level(args.log.filter())
        .with_writer(io::stderr)
        .with_target(false);
    // An earlier logger, as in tests, stays.
    let _ = match std::env::var_os("JOURNAL_STREAM") {
        Some(_) => log.without_time().try_init(),
        None => log.try_init(),
    };
}
