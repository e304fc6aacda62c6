//! A running gateway: its place between two interfaces, the operator's input, its reports, and its one or several
//! processes.
//!
//! Also code that the command line and the lab share: errors, units, whole files, percentiles, and messages about
//! wrong TOML.

mod attach;
pub mod capture;
mod configuration;
pub mod control;
pub mod doctor;
mod drive;
pub mod error;
#[cfg(any(test, fuzzing))]
#[doc(hidden)]
pub mod exercise;
pub mod files;
mod handover;
mod http;
mod log_writer;
mod metrics;
mod notify;
mod observer;
mod options;
pub mod percentiles;
mod place;
mod plain_text;
pub mod policy;
mod records;
mod reload;
mod rescaling;
pub mod rows;
mod service;
mod sides;
mod status;
mod successor;
pub mod toml_text;
mod totals;
pub mod units;
mod workers;

use std::io;
use std::path::Path;

use paceline_linux::NullForwarder;

use drive::{LifecycleEvent, LoopSetup, drive};
use error::Result;
use files::write_whole;
pub use options::Options;

/// Runs a gateway until a signal arrives.
pub fn run(options: &Options) -> Result<()> {
    let config = configuration::load(options, options.config.as_deref())?;
    if options.workers > 1 && options.worker.is_none() {
        return workers::run(options, &config);
    }
    let options = &options.of_worker();
    if options.forward_only { forward(options) } else { service::run(options, config) }
}

/// Checks the operator's file at `path`. Returns a summary if the file is valid.
pub fn check(options: &Options, path: &Path) -> Result<String> {
    let config = configuration::load(options, Some(path))?;
    Ok(policy::summary(&config))
}

/// Forwards packets without a gateway, to show the cost of packet I/O.
fn forward(options: &Options) -> Result<()> {
    let mut told = false;
    let tell = |_: &mut NullForwarder, event: LifecycleEvent<'_, '_>| match event {
        // Written once, for programs that wait until forwarding begins.
        LifecycleEvent::Tick(..) if !std::mem::replace(&mut told, true) => match &options.stats_json {
            Some(path) => write_whole(path, "{}\n").map_err(io::Error::other),
            None => Ok(()),
        },
        _ => Ok(()),
    };
    drive(options, &mut NullForwarder::new(), LoopSetup::default(), |_| false, tell)
}
