//! The gateway of a lab run: this same program as a child in the gateway's namespace, and what befalls it.

use std::fs;
use std::io;
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::thread;
use std::time::Duration as StdDuration;

use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;
use paceline_linux::lab::Lab;
use paceline_wire::{Duration, Instant};
use serde_json::Value;

use crate::error::{Error, Result};
use crate::scenario::{EventAction, GatewayEvent, Io, Scenario};

/// The child, whether it runs or not.
#[derive(Debug)]
pub(super) struct GatewayProcess<'a> {
    lab: &'a Lab,
    io: Io,
    folder: PathBuf,
    child: Option<Child>,
    /// Final counters of each process that ended in order.
    stats: Vec<Value>,
    events: std::collections::VecDeque<GatewayEvent>,
}

impl<'a> GatewayProcess<'a> {
    /// Writes the configuration into `folder` and starts the gateway; returns when packets pass through it. `None` if the
    /// scenario has none.
    pub(super) fn start(lab: &'a Lab, scenario: &Scenario, config: &str, folder: &Path) -> Result<Self> {
        let path = folder.join(CONFIG);
        fs::write(&path, config)
            .map_err(|error| Error::io(format_args!("write {}", path.display()), &error))?;
        let mut gateway = GatewayProcess {
            lab,
            io: scenario.gateway.io,
            folder: folder.to_path_buf(),
            child: None,
            stats: Vec::new(),
            events: scenario.gateway.events.iter().copied().collect(),
        };
        gateway.spawn()?;
        gateway.wait_until_ready()?;
        Ok(gateway)
    }

    /// Does what is due `since_start`; returns how long to wait for the next event.
    pub(super) fn act(&mut self, since_start: Duration) -> Result<Option<Duration>> {
        while let Some(event) = self.events.front().copied() {
            let at = event.at.to_wire();
            if at > since_start {
                return Ok(Some(at - since_start));
            }
            self.events.pop_front();
            self.carry_out(event.action)?;
        }
        self.check_alive()?;
        Ok(None)
    }

    /// Ends the gateway in order and returns its counters and samples, one for each process that could still tell them.
    pub(super) fn finish(mut self) -> Result<Vec<Value>> {
        self.end_in_order()?;
        Ok(std::mem::take(&mut self.stats))
    }

    /// The file of samples that the gateway keeps.
    pub(super) fn series_file(&self) -> PathBuf {
        self.folder.join(SERIES)
    }

    fn carry_out(&mut self, action: EventAction) -> Result<()> {
        match action {
            EventAction::Start => self.spawn(),
            EventAction::Terminate => self.end_in_order(),
            EventAction::Kill => {
                self.signal(Signal::SIGKILL)?;
                self.reap();
                Ok(())
            }
            EventAction::Stop => self.signal(Signal::SIGSTOP),
            EventAction::Continue => self.signal(Signal::SIGCONT),
        }
    }

    fn spawn(&mut self) -> Result<()> {
        let _ = fs::remove_file(self.folder.join(STATS));
        let program = std::env::current_exe().map_err(|error| Error::io("find this program", &error))?;
        let log = fs::File::options()
            .create(true)
            .append(true)
            .open(self.folder.join(LOG))
            .map_err(|error| Error::io("write the gateway's log", &error))?;
        let mut command = Command::new(program);
        command.arg("gateway").stdin(Stdio::null()).stdout(Stdio::null()).stderr(log);
        // Ctrl-C is for us; we end the gateway when its time has come. If we are killed, it ends by itself.
        command.process_group(0).arg("--parent").arg(std::process::id().to_string());
        command.args(["--wan", "g0", "--radio", "g1"]);
        if self.io == Io::Tun {
            let (ipv4, ipv6) = (self.lab.client_prefix(false), self.lab.client_prefix(true));
            command.args(["--tun", "paceline0", "--clients"]).arg(format!("{ipv4},{ipv6}"));
        }
        for (option, file) in [
            ("--config", CONFIG),
            ("--stats-json", STATS),
            ("--series", SERIES),
            ("--shift-file", SHIFTS),
            ("--control", CONTROL),
        ] {
            command.arg(option).arg(self.folder.join(file));
        }
        let spawned = self.lab.gateway.run(|| command.spawn()).map_err(io::Error::other);
        let child =
            spawned.and_then(|child| child).map_err(|error| Error::io("start the gateway", &error))?;
        self.child = Some(child);
        Ok(())
    }

    /// The counters appear when the gateway has begun.
    fn wait_until_ready(&mut self) -> Result<()> {
        for _ in 0..READY_TRIES {
            if self.folder.join(STATS).exists() {
                return Ok(());
            }
            self.check_alive()?;
            thread::sleep(StdDuration::from_millis(10));
        }
        Err(Error::failed(format!("the gateway did not begin{}", self.complaint())))
    }

    fn check_alive(&mut self) -> Result<()> {
        let Some(child) = &mut self.child else {
            return Ok(());
        };
        match child.try_wait() {
            Ok(Some(status)) => {
                self.child = None;
                Err(Error::failed(format!("the gateway ended by itself ({status}){}", self.complaint())))
            }
            _ => Ok(()),
        }
    }

    fn complaint(&self) -> String {
        let log = fs::read_to_string(self.folder.join(LOG)).unwrap_or_default();
        log.lines().last().map(|line| format!(": {line}")).unwrap_or_default()
    }

    fn signal(&self, signal: Signal) -> Result<()> {
        let Some(child) = &self.child else {
            return Ok(());
        };
        kill(Pid::from_raw(child.id() as i32), signal)
            .map_err(|error| Error::failed(format!("cannot send {signal} to the gateway: {error}")))
    }

    fn end_in_order(&mut self) -> Result<()> {
        if self.child.is_none() {
            return Ok(());
        }
        self.signal(Signal::SIGCONT)?;
        self.signal(Signal::SIGTERM)?;
        self.reap();
        let text = fs::read_to_string(self.folder.join(STATS)).unwrap_or_default();
        self.stats.extend(serde_json::from_str::<Value>(&text));
        Ok(())
    }

    fn reap(&mut self) {
        let Some(mut child) = self.child.take() else {
            return;
        };
        for _ in 0..READY_TRIES {
            if !matches!(child.try_wait(), Ok(None)) {
                return;
            }
            thread::sleep(StdDuration::from_millis(10));
        }
        // It had five seconds.
        let _ = child.kill();
        let _ = child.wait();
    }
}

impl Drop for GatewayProcess<'_> {
    fn drop(&mut self) {
        if let Some(child) = &mut self.child {
            let _ = child.kill();
            let _ = child.wait();
        }
    }
}

/// A start in the near future, so that everybody is ready for it.
pub(super) fn soon(now: Instant) -> Instant {
    now + Duration::from_millis(50)
}

const CONFIG: &str = "gateway.toml";
const STATS: &str = "gateway.json";
const SERIES: &str = "gateway.csv";
const SHIFTS: &str = "shifts";
const CONTROL: &str = "gateway.sock";
const LOG: &str = "gateway.log";
/// Times 10 ms.
const READY_TRIES: usize = 500;
