//! The gateway of a lab run, and its events.

use std::collections::VecDeque;
use std::ffi::OsString;
use std::fs;
use std::path::{Path, PathBuf};

use nix::sys::signal::Signal;
use paceline_lab::{GatewayProgram, Lab};
use paceline_wire::Duration;
use serde_json::Value;
use toml::Table;

use crate::error::{Error, Result};
use crate::scenario::{EventAction, GatewayEvent, Io, Scenario};

/// A gateway with the scenario's events.
#[derive(Debug)]
pub(super) struct GatewayProcess<'a> {
    program: GatewayProgram<'a>,
    series: PathBuf,
    /// Final counters of each process that ended in order.
    stats: Vec<Value>,
    events: VecDeque<GatewayEvent>,
}

impl<'a> GatewayProcess<'a> {
    /// Writes the gateway's file into `folder` and starts the gateway. Returns when packets pass through it.
    pub(super) fn start(lab: &'a Lab, scenario: &Scenario, file: &Table, folder: &Path) -> Result<Self> {
        let path = folder.join(CONFIG);
        fs::write(&path, file.to_string())
            .map_err(|error| Error::io(format_args!("write {}", path.display()), &error))?;
        let program = GatewayProgram::start(lab, folder.to_path_buf(), arguments(lab, scenario, folder))
            .map_err(|error| Error::io("start the gateway", &error))?;
        Ok(GatewayProcess {
            program,
            series: folder.join(SERIES),
            stats: Vec::new(),
            events: scenario.gateway.events.iter().copied().collect(),
        })
    }

    /// Carries out the events that are due at `since_start`. Returns the time until the next event.
    pub(super) fn act(&mut self, since_start: Duration) -> Result<Option<Duration>> {
        while let Some(event) = self.events.front().copied() {
            let at = event.at.to_wire();
            if at > since_start {
                return Ok(Some(at - since_start));
            }
            self.events.pop_front();
            self.carry_out(event.action).map_err(|error| Error::failed(error.to_string()))?;
        }
        self.program.check_alive().map_err(|error| Error::failed(error.to_string()))?;
        Ok(None)
    }

    /// Ends the gateway in order. Returns the counters of each process that ended in order.
    pub(super) fn finish(mut self) -> Result<Vec<Value>> {
        self.end_in_order().map_err(|error| Error::failed(error.to_string()))?;
        Ok(self.stats)
    }

    /// The file of samples that the gateway writes.
    pub(super) fn series_file(&self) -> PathBuf {
        self.series.clone()
    }

    fn carry_out(&mut self, action: EventAction) -> std::io::Result<()> {
        match action {
            EventAction::Start => self.program.spawn(),
            EventAction::Terminate => self.end_in_order(),
            EventAction::Kill => self.program.kill(),
            EventAction::Stop => self.program.signal(Signal::SIGSTOP),
            EventAction::Continue => self.program.signal(Signal::SIGCONT),
        }
    }

    fn end_in_order(&mut self) -> std::io::Result<()> {
        let text = self.program.end()?;
        self.stats.extend(text.and_then(|text| serde_json::from_str::<Value>(&text).ok()));
        Ok(())
    }
}

fn arguments(lab: &Lab, scenario: &Scenario, folder: &Path) -> Vec<OsString> {
    let mut arguments: Vec<OsString> =
        ["--profile", scenario.gateway.profile.name()].map(OsString::from).into();
    if scenario.gateway.io == Io::Tun {
        let clients = format!("{},{}", lab.client_prefix(false), lab.client_prefix(true));
        arguments.extend(["--tun", "paceline0", "--clients", &clients].map(OsString::from));
    }
    for (option, file) in [("--config", CONFIG), ("--series", SERIES), ("--control", CONTROL)] {
        arguments.extend([option.into(), folder.join(file).into()]);
    }
    arguments
}

const CONFIG: &str = "gateway.toml";
const SERIES: &str = "gateway.csv";
const CONTROL: &str = "gateway.sock";
