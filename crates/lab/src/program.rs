//! The gateway in the lab: this same program as a child in the gateway's namespace.

use std::ffi::OsString;
use std::fs;
use std::io;
use std::os::unix::process::CommandExt;
use std::path::PathBuf;
use std::process::{Child, Command, Stdio};
use std::thread;
use std::time::Duration;

use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;

use crate::Lab;

/// The gateway's process, running or not. Its files are in a folder.
#[derive(Debug)]
pub struct GatewayProgram<'a> {
    lab: &'a Lab,
    folder: PathBuf,
    arguments: Vec<OsString>,
    child: Option<Child>,
}

impl<'a> GatewayProgram<'a> {
    /// Starts `paceline gateway` between g0 and g1 with further arguments, and waits until packets pass through it.
    ///
    /// # Errors
    /// The gateway does not start.
    pub fn start(lab: &'a Lab, folder: PathBuf, arguments: Vec<OsString>) -> io::Result<Self> {
        let mut program = GatewayProgram { lab, folder, arguments, child: None };
        program.spawn()?;
        program.wait_until_ready()?;
        Ok(program)
    }

    /// Starts the gateway again.
    ///
    /// # Errors
    /// The system refuses.
    pub fn spawn(&mut self) -> io::Result<()> {
        let _ = fs::remove_file(self.folder.join(STATS));
        let log = fs::File::options().create(true).append(true).open(self.folder.join(LOG))?;
        let mut command = Command::new(std::env::current_exe()?);
        command.arg("gateway").stdin(Stdio::null()).stdout(Stdio::null()).stderr(log);
        // Ctrl-C must reach only this program, which ends the gateway later. If this program is killed, the gateway
        // ends too (`--parent`).
        command.process_group(0).arg("--parent").arg(std::process::id().to_string());
        command.args(["--wan", "g0", "--radio", "g1"]).args(&self.arguments);
        for (option, file) in [("--stats-json", STATS), ("--shift-file", SHIFTS)] {
            command.arg(option).arg(self.folder.join(file));
        }
        self.child = Some(self.lab.gateway.run(|| command.spawn()).map_err(io::Error::other)??);
        Ok(())
    }

    /// Returns the process number, if a process exists.
    pub fn process(&self) -> Option<u32> {
        self.child.as_ref().map(Child::id)
    }

    /// Checks that a started gateway still runs.
    ///
    /// # Errors
    /// The gateway ended earlier.
    pub fn check_alive(&mut self) -> io::Result<()> {
        let Some(child) = &mut self.child else { return Ok(()) };
        match child.try_wait() {
            Ok(Some(status)) => {
                self.child = None;
                let complaint = self.complaint();
                Err(io::Error::other(format!("the gateway ended by itself ({status}){complaint}")))
            }
            _ => Ok(()),
        }
    }

    /// Sends the gateway a signal, if it runs.
    ///
    /// # Errors
    /// The system refuses.
    pub fn signal(&self, signal: Signal) -> io::Result<()> {
        let Some(child) = &self.child else { return Ok(()) };
        let sent = kill(Pid::from_raw(child.id() as i32), signal);
        sent.map_err(|error| io::Error::other(format!("cannot send {signal} to the gateway: {error}")))
    }

    /// Kills the gateway, which cannot clean up.
    ///
    /// # Errors
    /// The system refuses.
    pub fn kill(&mut self) -> io::Result<()> {
        self.signal(Signal::SIGKILL)?;
        self.reap();
        Ok(())
    }

    /// Ends the gateway in order. Returns its last counters, if it ran.
    ///
    /// # Errors
    /// The system refuses.
    pub fn end(&mut self) -> io::Result<Option<String>> {
        if self.child.is_none() {
            return Ok(None);
        }
        self.signal(Signal::SIGCONT)?;
        self.signal(Signal::SIGTERM)?;
        self.reap();
        Ok(fs::read_to_string(self.folder.join(STATS)).ok())
    }

    /// Waits for the file of counters, which appears when the gateway has started.
    fn wait_until_ready(&mut self) -> io::Result<()> {
        for _ in 0..READY_TRIES {
            if self.folder.join(STATS).exists() {
                return Ok(());
            }
            self.check_alive()?;
            thread::sleep(Duration::from_millis(10));
        }
        Err(io::Error::other(format!("the gateway did not begin{}", self.complaint())))
    }

    fn complaint(&self) -> String {
        let log = fs::read_to_string(self.folder.join(LOG)).unwrap_or_default();
        log.lines().last().map(|line| format!(": {line}")).unwrap_or_default()
    }

    fn reap(&mut self) {
        let Some(mut child) = self.child.take() else { return };
        for _ in 0..READY_TRIES {
            if !matches!(child.try_wait(), Ok(None)) {
                return;
            }
            thread::sleep(Duration::from_millis(10));
        }
        // The gateway had five seconds.
        let _ = child.kill();
        let _ = child.wait();
    }
}

impl Drop for GatewayProgram<'_> {
    fn drop(&mut self) {
        if let Some(child) = &mut self.child {
            let _ = child.kill();
            let _ = child.wait();
        }
    }
}

const STATS: &str = "gateway.json";
const SHIFTS: &str = "shifts";
const LOG: &str = "gateway.log";
/// Number of tries, 10 ms each.
const READY_TRIES: usize = 500;
