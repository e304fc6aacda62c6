//! Functions that several commands use: JSON, the folder of results, a progress bar.

use std::path::Path;
use std::time::Duration;

use indicatif::{ProgressBar, ProgressStyle};
use serde::Serialize;

use crate::error::{Error, Result};

/// The program's name and version in results.
pub(crate) const PROGRAM: &str = concat!("paceline ", env!("CARGO_PKG_VERSION"));

/// Returns the JSON that `--json` prints and files hold.
pub(crate) fn json(value: &impl Serialize) -> Result<String> {
    serde_json::to_string_pretty(value).map_err(|error| Error::failed(error.to_string()))
}

/// Creates the folder of results if it does not exist.
pub(crate) fn make_folder(folder: &Path) -> Result<()> {
    std::fs::create_dir_all(folder)
        .map_err(|error| Error::io(format_args!("make {}", folder.display()), &error))
}

/// A bar that redraws itself. It is hidden if `hidden` is set or there is nothing to do.
pub(crate) fn progress_bar(length: u64, hidden: bool, shown: &str) -> ProgressBar {
    if hidden || length == 0 {
        return ProgressBar::hidden();
    }
    let bar = ProgressBar::new(length);
    if let Ok(style) = ProgressStyle::with_template(shown) {
        bar.set_style(style);
    }
    bar.enable_steady_tick(Duration::from_millis(250));
    bar
}

/// Template of a bar that shows percent in place of a number of runs.
pub(crate) const BY_SHARE: &str = "{bar:30} {percent:>3} %  {eta_precise} left  {wide_msg}";

/// Returns an error if `check` is set and a bound is missed.
pub(crate) fn check_missed(check: bool, missed: &[String]) -> Result<()> {
    match missed.first() {
        Some(first) if check => {
            Err(Error::failed(format!("{} bounds are missed, the first: {first}", missed.len())))
        }
        _ => Ok(()),
    }
}
