//! The forwarder between the two interfaces of the gateway's namespace, and its cost.

use std::fs;
use std::path::PathBuf;

use nix::unistd::{SysconfVar, sysconf};
use paceline_lab::{GatewayProgram, Lab};
use serde::Serialize;
use serde_json::{Map, Value};

use crate::error::{Error, Result};

/// Kinds of forwarding.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub(super) enum Kind {
    /// The kernel's bridge.
    Kernel,
    /// Our packet I/O without a gateway between the interfaces.
    Null,
    /// The whole gateway.
    Gateway,
    /// The whole gateway, with every flow split.
    Split,
}

/// A running forwarder.
#[derive(Debug)]
pub(super) struct Forwarder<'a> {
    program: Option<GatewayProgram<'a>>,
    _folder: tempfile::TempDir,
}

/// The processor time that a process has used so far.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub(super) struct Usage {
    /// Total processor time. It includes the kernel's work for a sent packet: with virtual interfaces, all work of the
    /// receiving host.
    pub(super) cpu_s: f64,
    /// The part of it in the program itself.
    pub(super) user_s: f64,
}

impl Kind {
    pub(super) const ALL: [Kind; 4] = [Kind::Kernel, Kind::Null, Kind::Gateway, Kind::Split];

    pub(super) fn name(self) -> &'static str {
        match self {
            Kind::Kernel => "kernel",
            Kind::Null => "null",
            Kind::Gateway => "gateway",
            Kind::Split => "split",
        }
    }

    /// The least share of the null forwarder's throughput that this kind must pass.
    pub(super) fn bound(self) -> Option<f64> {
        match self {
            Kind::Kernel | Kind::Null => None,
            Kind::Gateway => Some(0.8),
            Kind::Split => Some(0.5),
        }
    }
}

impl<'a> Forwarder<'a> {
    /// Starts the forwarder in the gateway's namespace and waits until packets pass.
    pub(super) fn start(kind: Kind, lab: &'a Lab) -> Result<Self> {
        let folder = tempfile::Builder::new()
            .prefix("paceline-")
            .tempdir()
            .map_err(|error| Error::io("make a temporary folder", &error))?;
        let arguments: &[&str] = match kind {
            Kind::Kernel => return Ok(Forwarder { program: None, _folder: folder }),
            Kind::Null => &["--forward-only"],
            Kind::Gateway => &[],
            Kind::Split => &["--profile", "split"],
        };
        let arguments = arguments.iter().map(Into::into).collect();
        let program = GatewayProgram::start(lab, folder.path().to_owned(), arguments)
            .map_err(|error| Error::io("start the forwarder", &error))?;
        Ok(Forwarder { program: Some(program), _folder: folder })
    }

    fn process(&self) -> Option<u32> {
        self.program.as_ref()?.process()
    }

    /// Returns None for the kernel, because no process owns its forwarding.
    pub(super) fn usage(&self) -> Option<Usage> {
        let folder = PathBuf::from(format!("/proc/{}", self.process()?));
        let stat = fs::read_to_string(folder.join("stat")).ok()?;
        let ticks_per_s = sysconf(SysconfVar::CLK_TCK).ok().flatten().unwrap_or(100) as f64;
        let [user, system] = ticks(&stat)?.map(|ticks| ticks as f64 / ticks_per_s);
        // schedstat counts nanoseconds, where the kernel keeps these statistics.
        let tasks = fs::read_dir(folder.join("task")).ok()?.flatten();
        let on_cpu = |task: fs::DirEntry| run_ns(&fs::read_to_string(task.path().join("schedstat")).ok()?);
        let exact = tasks.map(on_cpu).sum::<Option<u64>>().filter(|ns| *ns > 0).map(|ns| ns as f64 * 1e-9);
        Some(Usage { cpu_s: exact.unwrap_or(user + system), user_s: user })
    }

    /// Memory in use, in bytes.
    pub(super) fn resident_bytes(&self) -> Option<u64> {
        let status = fs::read_to_string(format!("/proc/{}/status", self.process()?)).ok()?;
        resident_kb(&status).map(|kb| kb * 1024)
    }

    /// Ends the forwarder and returns its counters.
    pub(super) fn finish(mut self) -> Map<String, Value> {
        let text = self.program.as_mut().and_then(|program| program.end().ok().flatten()).unwrap_or_default();
        let stats: Map<String, Value> = serde_json::from_str(&text).unwrap_or_default();
        stats.get("counters").and_then(Value::as_object).cloned().unwrap_or_default()
    }
}

impl Drop for Forwarder<'_> {
    /// Ends the program in order, so that its rules do not remain for the next forwarder.
    fn drop(&mut self) {
        if let Some(program) = &mut self.program {
            let _ = program.end();
        }
    }
}

impl Usage {
    pub(super) fn since(self, earlier: Usage) -> Usage {
        Usage { cpu_s: self.cpu_s - earlier.cpu_s, user_s: self.user_s - earlier.user_s }
    }
}

/// Reads utime and stime, the 14th and 15th field of `stat`. The second field is a name that may hold blanks.
fn ticks(stat: &str) -> Option<[u64; 2]> {
    let mut fields = stat.rsplit_once(')')?.1.split_whitespace().skip(11).map(|field| field.parse().ok());
    Some([fields.next()??, fields.next()??])
}

/// Reads the first of the three numbers in `schedstat`.
fn run_ns(schedstat: &str) -> Option<u64> {
    schedstat.split_whitespace().next()?.parse().ok()
}

fn resident_kb(status: &str) -> Option<u64> {
    let line = status.lines().find_map(|line| line.strip_prefix("VmRSS:"))?;
    line.trim().strip_suffix("kB")?.trim().parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_kernels_files_are_read() {
        assert_eq!(ticks("7 (a b) c) S 1 1 1 0 -1 0 0 0 0 0 30 12 0 0"), Some([30, 12]));
        assert_eq!(run_ns("123456 789 10\n"), Some(123_456));
        assert_eq!(resident_kb("Name:\tx\nVmRSS:\t   1234 kB\n"), Some(1234));
    }
}
