//! SIGUSR2: the gateway starts its successor, which is the program that is installed now, with the same options.

use std::ffi::OsString;
use std::path::PathBuf;
use std::process::{Command, Stdio};
use std::thread;

/// Starts it. It takes over by itself; if it cannot, it says so and ends, and this process goes on.
pub(super) fn start() {
    let mut options: Vec<OsString> = std::env::args_os().skip(1).collect();
    if !options.iter().any(|option| option == TAKE_OVER) {
        options.push(TAKE_OVER.into());
    }
    let started = program().and_then(|program| {
        let mut command = Command::new(program);
        // The watchdog is told of by this process's number; the successor becomes the main process and is watched then.
        command.args(options).stdin(Stdio::null()).env_remove("WATCHDOG_PID");
        command.spawn()
    });
    match started {
        Err(error) => tracing::error!("cannot start a successor: {error}"),
        // It outlives this process, unless it fails.
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

/// Where this program was started from: what lies there now may be newer.
pub(super) fn program() -> std::io::Result<PathBuf> {
    let path = std::env::current_exe()?;
    let text = path.to_string_lossy();
    // What the kernel adds to the name of a file that was replaced.
    Ok(text.strip_suffix(" (deleted)").map(PathBuf::from).unwrap_or(path.clone()))
}

const TAKE_OVER: &str = "--take-over";
