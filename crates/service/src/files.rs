//! Files that are whole or not there.

use std::fs;
use std::path::Path;

use crate::error::{Error, Result};

/// Of files that say who talks to whom: for their owner, and for a group to read.
pub(super) const LOG_MODE: u32 = 0o640;

/// Writes under another name first, so that a killed program leaves no half file.
pub fn write_whole(path: &Path, text: &str) -> Result<()> {
    let mut partial = path.as_os_str().to_owned();
    partial.push(".partial");
    fs::write(&partial, text)
        .and_then(|()| fs::rename(&partial, path))
        .map_err(|error| Error::io(format_args!("write {}", path.display()), &error))
}
