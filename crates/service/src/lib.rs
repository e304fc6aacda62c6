//! A running gateway: how it takes its place between two interfaces, what its operator tells it, what it tells others, and how one
//! process or several of them serve.
//!
//! What the command line and the lab need as well lies here, too: errors, units, whole files, percentiles, what is wrong with TOML.

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
mod policy;
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

use drive::{Around, LifecycleEvent, drive};
use error::Result;
use files::write_whole;
pub use options::Options;

/// Runs until a signal comes.
pub fn run(options: &Options) -> Result<()> {
    let config = configuration::load(options, options.config.as_deref())?;
    if options.workers > 1 && options.worker.is_none() {
        return workers::run(options, &config);
    }
    let options = &options.of_worker();
    if options.forward_only { forward(options) } else { service::run(options, config) }
}

/// Says what is in the operator's file at `path`, if it would be taken.
pub fn check(options: &Options, path: &Path) -> Result<String> {
    let config = configuration::load(options, Some(path))?;
    Ok(policy::summary(&config))
}

/// What packet I/O costs without a gateway.
fn forward(options: &Options) -> Result<()> {
    let mut told = false;
    let tell = |_: &mut NullForwarder, event: LifecycleEvent<'_, '_>| match event {
        // Once, for those who wait until it forwards.
        LifecycleEvent::Turn(..) if !std::mem::replace(&mut told, true) => match &options.stats_json {
            Some(path) => write_whole(path, "{}\n").map_err(io::Error::other),
            None => Ok(()),
        },
        _ => Ok(()),
    };
    drive(options, &mut NullForwarder::new(), Around::default(), |_| false, tell)
}
