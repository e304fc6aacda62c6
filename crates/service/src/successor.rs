//! SIGUSR2: the gateway starts its successor. This is the presently installed program, with the same options.

use std::ffi::OsString;
use std::path::PathBuf;
use std::process::{Command, Stdio};
use std::thread;

/// Starts the successor, which takes over without further help. If it fails, it reports why and ends, and this
/// process goes on.
pub(super) fn start() {
    let mut options: Vec<OsString> = std::env::args_os().skip(1).collect();
    if !options.iter().any(|option| option == TAKE_OVER) {
        options.push(TAKE_OVER.into());
    }
    let started = program().and_then(|program| {
        let mut command = Command::new(program);
        // The watchdog variable has this process's number. The successor becomes the main process, and is watched
        // from then on.
        command.args(options).stdin(Stdio::null()).env_remove("WATCHDOG_PID");
        command.spawn()
    });
    match started {
        Err(error) => tracing::error!("cannot start a successor: {error}"),
        // The successor outlives this process, unless it fails.
        Ok(mut child) => {
            thread::spawn(move || match child.wait() {
                Ok(status) if !status.success() => {
                    tracing::error!("the successor did not take over ({status}); this gateway goes on");
                }
                _ => {}
            });
        }
    }
}

/// Returns the path from which this program was started. The file there may be newer by this time.
pub(super) fn program() -> std::io::Result<PathBuf> {
    let path = std::env::current_exe()?;
    let text = path.to_string_lossy();
    // The kernel appends this to the name of a replaced file.
    Ok(text.strip_suffix(" (deleted)").map(PathBuf::from).unwrap_or(path.clone()))
}

const TAKE_OVER: &str = "--take-over";
