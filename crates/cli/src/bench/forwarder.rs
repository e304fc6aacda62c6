//! What forwards between the two interfaces of the gateway's namespace, and what that costs.

use std::fs;
use std::os::unix::process::CommandExt;
use std::process::{Child, Command, Stdio};
use std::thread;
use std::time::{Duration as StdDuration, Instant as StdInstant};

use nix::sys::signal::{Signal, kill};
use nix::unistd::{Pid, SysconfVar, sysconf};
use paceline_linux::lab::Lab;

use crate::error::{Error, Result};
use crate::run::lab::system;

/// Kinds of forwarding.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Kind {
    /// The bridge.
    Kernel,
    /// Our packet I/O, and nothing between.
    Null,
    /// The whole gateway.
    Gateway,
}

/// A forwarder at work.
#[derive(Debug)]
pub(super) struct Forwarder {
    child: Option<Child>,
    _folder: tempfile::TempDir,
}

/// What has been used so far, or between two looks.
#[derive(Clone, Copy, Debug)]
pub(super) struct Cost {
    at: StdInstant,
    pub(super) wall_s: f64,
    pub(super) process_cpu_s: Option<f64>,
    pub(super) machine_cpu_s: f64,
    pub(super) resident_bytes: Option<u64>,
}

impl Kind {
    pub(super) const ALL: [Kind; 3] = [Kind::Kernel, Kind::Null, Kind::Gateway];

    pub(super) fn name(self) -> &'static str {
        match self {
            Kind::Kernel => "kernel",
            Kind::Null => "null",
            Kind::Gateway => "gateway",
        }
    }
}

impl Forwarder {
    /// Starts it in the gateway's namespace and waits until packets pass.
    pub(super) fn start(kind: Kind, lab: &Lab) -> Result<Self> {
        let folder = tempfile::tempdir().map_err(|error| Error::io("make a temporary folder", &error))?;
        if kind == Kind::Kernel {
            return Ok(Forwarder { child: None, _folder: folder });
        }
        let stats = folder.path().join("stats");
        let program = std::env::current_exe().map_err(|error| Error::io("find this program", &error))?;
        let mut command = Command::new(program);
        command.args(["gateway", "--wan", "g0", "--radio", "g1", "--stats-json"]).arg(&stats);
        command.arg("--shift-file").arg(folder.path().join("shifts"));
        if kind == Kind::Null {
            command.arg("--forward-only");
        }
        // Ctrl-C is for us; if we are killed, the child ends by itself.
        command.process_group(0).arg("--parent").arg(std::process::id().to_string());
        command.stdin(Stdio::null()).stdout(Stdio::null());
        let child = lab.gateway.run(|| command.spawn()).map_err(system)?;
        let child = child.map_err(|error| Error::io("start the forwarder", &error))?;
        let mut forwarder = Forwarder { child: Some(child), _folder: folder };
        for _ in 0..READY_TRIES {
            if stats.exists() {
                return Ok(forwarder);
            }
            let ended = forwarder.child.as_mut().and_then(|child| child.try_wait().ok().flatten());
            if ended.is_some() {
                break;
            }
            thread::sleep(StdDuration::from_millis(10));
        }
        Err(Error::failed("the forwarder did not begin"))
    }

    pub(super) fn cost(&self) -> Result<Cost> {
        let read =
            |path: String| fs::read_to_string(&path).map_err(|e| Error::io(format_args!("read {path}"), &e));
        let ticks_per_s = sysconf(SysconfVar::CLK_TCK).ok().flatten().unwrap_or(100) as f64;
        let machine = read("/proc/stat".into())?;
        let mut cost = Cost {
            at: StdInstant::now(),
            wall_s: 0.0,
            process_cpu_s: None,
            machine_cpu_s: busy_ticks(&machine).unwrap_or(0) as f64 / ticks_per_s,
            resident_bytes: None,
        };
        if let Some(child) = &self.child {
            let stat = read(format!("/proc/{}/stat", child.id()))?;
            cost.process_cpu_s = process_ticks(&stat).map(|ticks| ticks as f64 / ticks_per_s);
            cost.resident_bytes =
                resident_kb(&read(format!("/proc/{}/status", child.id()))?).map(|kb| kb * 1024);
        }
        Ok(cost)
    }
}

impl Drop for Forwarder {
    fn drop(&mut self) {
        let Some(child) = &mut self.child else { return };
        let _ = kill(Pid::from_raw(child.id() as i32), Signal::SIGTERM);
        for _ in 0..READY_TRIES {
            if !matches!(child.try_wait(), Ok(None)) {
                return;
            }
            thread::sleep(StdDuration::from_millis(10));
        }
        let _ = child.kill();
        let _ = child.wait();
    }
}

impl Cost {
    /// Used since `earlier`; memory is that of now.
    pub(super) fn since(&self, earlier: &Cost) -> Cost {
        Cost {
            at: self.at,
            wall_s: self.at.duration_since(earlier.at).as_secs_f64(),
            process_cpu_s: self.process_cpu_s.zip(earlier.process_cpu_s).map(|(now, then)| now - then),
            machine_cpu_s: self.machine_cpu_s - earlier.machine_cpu_s,
            resident_bytes: self.resident_bytes,
        }
    }
}

/// All but idle and waiting, of the line `cpu  user nice system idle iowait irq softirq steal ...`.
fn busy_ticks(stat: &str) -> Option<u64> {
    let fields = stat.lines().next()?.split_whitespace().skip(1).map_while(|field| field.parse::<u64>().ok());
    Some(
        fields.take(8).enumerate().filter(|(place, _)| ![3, 4].contains(place)).map(|(_, ticks)| ticks).sum(),
    )
}

/// utime and stime, the 14th and 15th field; the second is a name that may hold blanks.
fn process_ticks(stat: &str) -> Option<u64> {
    let mut fields = stat.rsplit_once(')')?.1.split_whitespace().skip(11);
    Some(fields.next()?.parse::<u64>().ok()? + fields.next()?.parse::<u64>().ok()?)
}

fn resident_kb(status: &str) -> Option<u64> {
    let line = status.lines().find_map(|line| line.strip_prefix("VmRSS:"))?;
    line.trim().strip_suffix("kB")?.trim().parse().ok()
}

/// Times 10 ms.
const READY_TRIES: usize = 500;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_kernels_files_are_read() {
        assert_eq!(busy_ticks("cpu  10 1 20 1000 50 2 3 4 0 0\ncpu0 1 1 1 1\n"), Some(40));
        assert_eq!(process_ticks("7 (a b) c) S 1 1 1 0 -1 0 0 0 0 0 30 12 0 0"), Some(42));
        assert_eq!(resident_kb("Name:\tx\nVmRSS:\t   1234 kB\n"), Some(1234));
    }
}
