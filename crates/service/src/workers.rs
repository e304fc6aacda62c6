//! Several workers: one process for each part of the subscribers, and one that supervises them.
//!
//! Each worker is a separate gateway between the same interfaces. It has its own packet sockets, fail-open rule, file
//! of flows, control socket and metrics, all for its subscribers only. If a worker dies, the kernel forwards for its
//! subscribers. The other workers are not affected.

use std::io;
use std::process::{Child, Command, ExitStatus, Stdio};
use std::thread;
use std::time::{Duration, Instant};

use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;
use paceline_gateway::GatewayConfig;
use paceline_gateway::config::LimitsConfig;
use signal_hook::consts::{SIGHUP, SIGINT, SIGTERM, SIGUSR2};
use signal_hook::iterator::Signals;

use super::drive::confine;
use super::notify::Supervisor;
use super::{attach, handover, successor};
use crate::Options;
use crate::error::{Error, Result};

/// Starts the workers, restarts them when they die, and passes signals on, until a signal ends everything.
pub(super) fn run(options: &Options, config: &GatewayConfig) -> Result<()> {
    if config.sharing.capacity_mbps.is_some() {
        return Err(Error::input(
            "`sharing.capacity-mbps` limits all subscribers together, which several workers cannot do; use one worker, or remove the key",
        ));
    }
    if options.tun.is_some() {
        return Err(Error::input(
            "several workers need a bridge and cannot use a TUN device; leave out --workers or --tun",
        ));
    }
    if options.take_over {
        return Err(Error::input(
            "--take-over does not work with --workers; send SIGUSR2 to the process that started the workers",
        ));
    }
    // Check once here. Otherwise each worker would report the same error repeatedly.
    attach::place(&Options { worker: Some(0), ..options.clone() })?;
    let mut signals = Signals::new([SIGHUP, SIGINT, SIGTERM, SIGUSR2])
        .map_err(|error| Error::io("watch for signals", &error))?;
    // The workers need no more privileges either.
    confine();
    let workers: io::Result<Vec<Worker>> = (0..options.workers).map(Worker::start).collect();
    let mut workers = workers.map_err(|error| Error::io("start a worker", &error))?;
    let mut supervisor = Supervisor::default();
    supervisor.start();
    let mut awaited: Vec<u32> = (0..options.workers).collect();
    loop {
        for signal in signals.pending() {
            match signal {
                SIGHUP if options.config.is_some() => {
                    workers.iter().for_each(|worker| worker.signal(Signal::SIGHUP))
                }
                SIGUSR2 => workers.iter_mut().for_each(Worker::start_successor),
                _ => {
                    supervisor.stopping();
                    return stop(workers);
                }
            }
        }
        workers.iter_mut().for_each(Worker::look);
        awaited.retain(|worker| !answers(options, *worker));
        if awaited.is_empty() {
            supervisor.heartbeat(None);
        }
        thread::sleep(INTERVAL);
    }
}

/// Gives a worker its part of the memory and of the table.
pub(super) fn divide(limits: &mut LimitsConfig, workers: u32) {
    let workers = workers.max(1) as usize;
    limits.max_flows = limits.max_flows.div_ceil(workers);
    limits.max_buffer_bytes /= workers;
}

/// Returns the packet memory of a gateway with these limits. It is twice the limit on kept bytes, because small
/// packets occupy twice the bytes that they count for. A fixed part is added for packets that only pass.
pub(super) fn pool_bytes(limits: &LimitsConfig) -> usize {
    limits.max_buffer_bytes.saturating_mul(2).saturating_add(PASSING_BYTES)
}

/// Returns the largest memory use of a gateway with these limits: packet memory, flows, and a fixed part for the
/// program.
pub(super) fn memory_bytes(limits: &LimitsConfig) -> usize {
    let flows = limits.max_flows.saturating_mul(LimitsConfig::FLOW_BYTES);
    pool_bytes(limits).saturating_add(flows).saturating_add(PROGRAM_BYTES)
}

fn answers(options: &Options, worker: u32) -> bool {
    let options = Options { worker: Some(worker), ..options.clone() }.of_worker();
    handover::control_path(&options).is_ok_and(|path| std::os::unix::net::UnixStream::connect(path).is_ok())
}

/// Ends all workers by a signal, and waits for them.
fn stop(workers: Vec<Worker>) -> Result<()> {
    workers.iter().for_each(|worker| worker.signal(Signal::SIGTERM));
    let mut failed = false;
    for mut worker in workers {
        for process in [Some(worker.process), worker.successor.take()].into_iter().flatten() {
            failed |= wait(process).is_none_or(|status| !status.success());
        }
    }
    if failed { Err(Error::failed("a worker ended with an error")) } else { Ok(()) }
}

fn wait(mut process: Child) -> Option<ExitStatus> {
    process.wait().ok()
}

/// One worker.
struct Worker {
    index: u32,
    process: Child,
    /// A process that is about to take over.
    successor: Option<Child>,
    /// Time of death, if the worker died.
    died: Option<Instant>,
}

impl Worker {
    fn start(index: u32) -> io::Result<Worker> {
        Ok(Worker { index, process: launch(index, &[])?, successor: None, died: None })
    }

    fn signal(&self, signal: Signal) {
        // The process number of a reaped child may already belong to another program.
        let process = self.died.is_none().then_some(&self.process);
        for process in [process, self.successor.as_ref()].into_iter().flatten() {
            // A child that has ended and was not reaped needs no signal.
            let _ = kill(Pid::from_raw(process.id() as i32), signal);
        }
    }

    /// Starts a successor from the presently installed program, unless a takeover is already in progress.
    fn start_successor(&mut self) {
        if self.successor.is_some() || self.died.is_some() {
            return;
        }
        match launch(self.index, &["--take-over"]) {
            Ok(child) => self.successor = Some(child),
            Err(error) => tracing::error!("cannot start a successor of worker {}: {error}", self.index),
        }
    }

    /// Notices processes that have ended, and restarts a dead worker.
    fn look(&mut self) {
        let has_ended = |child: &mut Child| child.try_wait().ok().flatten();
        if let Some(died) = self.died {
            if died.elapsed() >= RESTART_AFTER {
                match launch(self.index, &[]) {
                    Ok(process) => (self.process, self.died) = (process, None),
                    Err(error) => {
                        tracing::error!("cannot start worker {}: {error}", self.index);
                        self.died = Some(Instant::now());
                    }
                }
            }
            return;
        }
        if let Some(status) = has_ended(&mut self.process) {
            match self.successor.take() {
                Some(successor) => self.process = successor,
                None => {
                    tracing::error!(
                        "worker {} has ended ({status}): the kernel forwards for its subscribers until it is back",
                        self.index
                    );
                    self.died = Some(Instant::now());
                }
            }
        } else if let Some(status) = self.successor.as_mut().and_then(has_ended) {
            tracing::error!("worker {} goes on: its successor has ended ({status})", self.index);
            self.successor = None;
        }
    }
}

/// Starts this program again, with the same options.
fn launch(index: u32, more: &[&str]) -> io::Result<Child> {
    let mut command = Command::new(successor::program()?);
    command.args(std::env::args_os().skip(1)).args(more).stdin(Stdio::null());
    command.args(["--worker", &index.to_string(), "--parent", &std::process::id().to_string()]);
    // The service manager hears only from this process.
    for variable in ["NOTIFY_SOCKET", "WATCHDOG_PID", "WATCHDOG_USEC"] {
        command.env_remove(variable);
    }
    command.spawn()
}

/// Our choice: a batch of the longest packets from each device, and as much on its way out, many times over.
const PASSING_BYTES: usize = 64 << 20;
/// Program and libraries (22 MB), memory of `auto` for 16,384 clients and as many servers (4 MB), records that wait
/// for the disk (3 MB).
const PROGRAM_BYTES: usize = 32 << 20;
const INTERVAL: Duration = Duration::from_millis(100);
/// Our choice: the delay that the service manager uses for the whole gateway.
const RESTART_AFTER: Duration = Duration::from_millis(200);
