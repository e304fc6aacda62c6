//! What several commands do alike: JSON, the folder of results, a bar of progress.

use std::path::Path;
use std::time::Duration;

use indicatif::{ProgressBar, ProgressStyle};
use serde::Serialize;

use crate::error::{Error, Result};

/// As results name it.
pub(crate) const PROGRAM: &str = concat!("paceline ", env!("CARGO_PKG_VERSION"));

/// What `--json` prints and files hold.
pub(crate) fn json(value: &impl Serialize) -> Result<String> {
    serde_json::to_string_pretty(value).map_err(|error| Error::failed(error.to_string()))
}

/// The folder of results, made if it is not there.
pub(crate) fn make_folder(folder: &Path) -> Result<()> {
    std::fs::create_dir_all(folder)
        .map_err(|error| Error::io(format_args!("make {}", folder.display()), &error))
}

/// A bar that goes on by itself; none where nothing is to be done, or nobody looks.
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

/// How a bar looks whose length is no number of runs.
pub(crate) const BY_SHARE: &str = "{bar:30} {percent:>3} %  {eta_precise} left  {wide_msg}";

/// An error if something that is asked for is missed, and `check` says so.
pub(crate) fn check_missed(check: bool, missed: &[String]) -> Result<()> {
    match missed.first() {
        Some(first) if check => {
            Err(Error::failed(format!("{} bounds are missed, the first: {first}", missed.len())))
        }
        _ => Ok(()),
    }
}
