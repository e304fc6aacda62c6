//! Finds the process that has a file open.

use std::fs::{self, File};
use std::os::fd::AsRawFd;
use std::os::unix::fs::MetadataExt;

/// Returns a process that has `file` open by another descriptor, if this process may see it (proc(5), `/proc/PID/fd`).
pub(crate) fn of(file: &File) -> Option<u32> {
    let wanted = file.metadata().ok()?;
    let own = (std::process::id(), file.as_raw_fd().to_string());
    let processes = fs::read_dir("/proc").ok()?.flatten();
    let numbers = processes.filter_map(|entry| entry.file_name().to_str()?.parse::<u32>().ok());
    numbers.into_iter().find(|process| {
        let descriptors = fs::read_dir(format!("/proc/{process}/fd"));
        descriptors.into_iter().flatten().flatten().any(|entry| {
            let is_own = *process == own.0 && entry.file_name().to_str() == Some(&own.1);
            let opened = fs::metadata(entry.path());
            !is_own && opened.is_ok_and(|it| (it.dev(), it.ino()) == (wanted.dev(), wanted.ino()))
        })
    })
}
