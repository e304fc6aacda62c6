//! Files that are complete or absent.

use std::fs;
use std::path::Path;

use crate::error::{Error, Result};

/// Mode of files that list who talks to whom: the owner writes, and a group may read.
pub(super) const LOG_MODE: u32 = 0o640;

/// Writes under another name and renames the file. A killed program leaves no partial file.
pub fn write_whole(path: &Path, text: &str) -> Result<()> {
    let mut partial = path.as_os_str().to_owned();
    partial.push(".partial");
    fs::write(&partial, text)
        .and_then(|()| fs::rename(&partial, path))
        .map_err(|error| Error::io(format_args!("write {}", path.display()), &error))
}
