//! A gateway with its surroundings: logs, statistics, metrics, control socket, records.

use std::hash::{BuildHasher, Hasher, RandomState};
use std::io;
use std::net::{SocketAddr, TcpListener};
use std::os::fd::{AsFd, OwnedFd};
use std::os::unix::net::UnixStream;
use std::path::PathBuf;
use std::sync::{Arc, Mutex, PoisonError};

use nix::sys::socket::getsockopt;
use nix::sys::socket::sockopt::PeerCredentials;
use paceline_gateway::config::{LimitsConfig, OtherMode};
use paceline_gateway::{Gateway, GatewayConfig, RestoredGateway, RestoredSplitFlow};
use paceline_linux::shift_file::ShiftFile;
use paceline_linux::{Fallback, Housekeeping, clock, timer};
use paceline_wire::{Duration, Instant};
use serde_json::{Value, json};

use super::attach::{self, Absence, PacketScope};
use super::capture::{CaptureService, CapturingGateway, Interfaces};
use super::control::{self, Control, Identity};
use super::drive::{HandoverAttempt, HandoverOutcome, LifecycleEvent, LoopSetup, drive};
use super::handover::{self, HandoverState, Inherited};
use super::http;
use super::metrics::{Labels, Metrics};
use super::notify::Supervisor;
use super::observer::{Log, LogObserver, Shared};
use super::place::Role;
use super::records::Records;
use super::reload::Reload;
use super::rescaling::Rescaling;
use super::rows::Prefixes;
use super::status::{Collector, Snapshot, Status};
use super::workers;
use crate::Options;
use crate::error::{Error, Result};
use crate::percentiles::Percentiles;
use crate::units::counted;

/// Runs until a signal arrives.
pub(super) fn run(options: &Options, config: GatewayConfig) -> Result<()> {
    let config_prefixes = (config.sharing.subscriber_prefix_v4, config.sharing.subscriber_prefix_v6);
    let datagrams = config.sharing.other == OtherMode::Shared;
    let pool_bytes = Some(workers::pool_bytes(&config.limits));
    tracing::info!(
        "memory: at most {} bytes, of which {} for packets and {} for {}",
        workers::memory_bytes(&config.limits),
        workers::pool_bytes(&config.limits),
        config.limits.max_flows.saturating_mul(LimitsConfig::FLOW_BYTES),
        counted(config.limits.max_flows, "flow")
    );
    // Check first, before any file is created.
    options.metrics.map_or(Ok(()), http::check)?;
    if !options.take_over {
        attach::place(options)?;
    }
    let path = flows_file(options)?;
    if options.take_over {
        // From here on a gateway of this priority waits for this process, for a limited time. On a busy machine an
        // ordinary process would not get the processor in time. Without the privilege it tries anyway, and `drive`
        // logs that.
        let _ = timer::schedule_realtime();
    }
    let mut inherited = options.take_over.then(|| handover::ask(options, &path)).transpose()?;
    let started = inherited.as_ref().and_then(|inherited| Some(inherited.memory.as_ref()?.started));
    let started = started.unwrap_or_else(clock::now);
    let prefixes = Prefixes::new(&config.sharing);
    let records = options.records.as_deref().map(|path| Records::open(path, prefixes)).transpose()?;
    let (events, series) = (options.events.as_deref(), options.series.as_deref());
    let log = Log::create(started, events, series, records, inherited.is_some())
        .map_err(|error| Error::io("create the logs", &error))?;
    let log: Shared = Arc::new(Mutex::new(log));
    let store = match &mut inherited {
        Some(inherited) => {
            let file = inherited.take(Role::Flows).map_err(|error| Error::io("take over", &error))?;
            ShiftFile::adopt(file, config.limits.max_flows)
        }
        None => ShiftFile::open(&path, config.limits.max_flows),
    }
    .map_err(Error::system)?;
    let open_flows = store.load();
    let rescaling = Rescaling::new(&open_flows);
    let mut service = Service::new(options, started, log.clone(), &config, inherited.as_mut())?;
    service.flows = Some(store.descriptor().map_err(|error| Error::io("hold the flow file open", &error))?);
    if let Some(memory) = inherited.as_ref().and_then(|inherited| inherited.memory.as_ref()) {
        log.lock().unwrap_or_else(PoisonError::into_inner).totals = memory.totals;
    }
    let tap = Box::new(LogObserver::new(log, Some(store), Some(rescaling.feed())));
    let mut node = match inherited.as_mut().and_then(handover::Inherited::gateway) {
        Some((state, split)) => take_over(config, tap, state, split),
        None => Gateway::with_observer(config, tap),
    };
    node.set_hash_key(hash_key());
    // Flows that the gateway already has stay as they are.
    for (flow, fallback) in open_flows {
        match fallback {
            Fallback::Rescale(shifts) => node.resume(clock::now(), flow, shifts),
            Fallback::Reset => node.end(flow),
        }
    }
    let slice = options.slice(config_prefixes);
    let mut node = CapturingGateway::new(node, service.captures.clone());
    let scope = PacketScope { datagrams, slice };
    let setup = LoopSetup { rescaling: Some(rescaling), inherited, scope, pool_bytes };
    drive(options, &mut node, setup, |node| node.split_flows() > 0, |node, event| service.on(node, event))
}

/// Returns a new key for each process. The standard library gets it from the system.
fn hash_key() -> [u64; 2] {
    [0, 1].map(|_| RandomState::new().build_hasher().finish())
}

fn take_over(
    config: GatewayConfig,
    tap: Box<LogObserver>,
    state: RestoredGateway,
    split: Vec<RestoredSplitFlow>,
) -> Gateway {
    let before = state.split_flows();
    let node = Gateway::take_over(config, tap, state, split);
    if let lost @ 1.. = before.saturating_sub(node.split_flows()) {
        tracing::warn!("{lost} of {before} split flows cannot be read and end with a reset");
    }
    node
}

/// Returns the path of the file that outlives the process.
fn flows_file(options: &Options) -> Result<PathBuf> {
    let default = ShiftFile::default_path(&options.name()?);
    Ok(options.shift_file.clone().unwrap_or(default))
}

/// The gateway's surroundings.
struct Service<'a> {
    options: &'a Options,
    identity: Identity,
    log: Shared,
    status: Arc<Status>,
    captures: Arc<CaptureService>,
    collector: Collector,
    /// Time at which statistics are due.
    due: Instant,
    /// Statistics could not be written, and this was logged.
    unwritten: bool,
    reload: Reload,
    supervisor: Supervisor,
    control: Option<Control>,
    /// For a successor: the file of flows, and the listener for metrics. Also the process that asks to be the
    /// successor.
    flows: Option<OwnedFd>,
    scrapes: Option<TcpListener>,
    successor: Option<UnixStream>,
    /// Held until their threads run.
    scraped: Option<(TcpListener, Metrics)>,
}

impl<'a> Service<'a> {
    /// Opens everything, so that errors appear before packets pass.
    fn new(
        options: &'a Options,
        started: Instant,
        log: Shared,
        config: &GatewayConfig,
        mut inherited: Option<&mut Inherited>,
    ) -> Result<Service<'a>> {
        let prefixes = Prefixes::new(&config.sharing);
        let (wan, radio) = options.interfaces()?;
        let status = Arc::new(Status::default());
        let ports = match &options.tun {
            Some(tun) => vec![tun.clone()],
            None => vec!["wan".to_owned(), "radio".to_owned()],
        };
        let labels = Labels {
            ports,
            interfaces: if wan == radio {
                vec![wan.to_owned()]
            } else {
                vec![wan.to_owned(), radio.to_owned()]
            },
            packet_memory_limit_bytes: workers::pool_bytes(&config.limits),
        };
        let listener = match options.metrics {
            Some(address) => Some(metrics_listener(address, inherited.as_deref_mut())?),
            None => None,
        };
        let scrapes = listener.as_ref().and_then(|listener| listener.try_clone().ok());
        let scraped = listener.map(|listener| (listener, Metrics::new(status.clone(), labels)));
        let control = match inherited.and_then(|inherited| inherited.take(Role::Control).ok()) {
            Some(socket) => Some(Control::adopt(&handover::control_path(options)?, socket)),
            None => bind_control(options)?,
        };
        let interfaces = match &options.tun {
            Some(tun) => [wan, radio].map(|name| format!("{tun} ({name})")),
            None => [wan, radio].map(str::to_owned),
        };
        let interfaces = Interfaces { names: interfaces, raw: options.tun.is_some() };
        Ok(Service {
            options,
            identity: Identity {
                wan: wan.to_owned(),
                radio: radio.to_owned(),
                started,
                prefixes,
                interfaces,
            },
            log,
            status,
            captures: Arc::default(),
            collector: Collector::default(),
            due: Instant::ZERO,
            unwritten: false,
            reload: Reload::new(config.clone()),
            supervisor: Supervisor::default(),
            control,
            flows: None,
            scrapes,
            successor: None,
            scraped,
        })
    }

    fn on(&mut self, node: &mut CapturingGateway, event: LifecycleEvent<'_, '_>) -> io::Result<()> {
        match event {
            LifecycleEvent::Start => self.start(),
            LifecycleEvent::Tick(housekeeping, absence) => {
                node.turn(housekeeping.now);
                self.turn(node, housekeeping, absence)
            }
            LifecycleEvent::Rejoined => {
                node.let_go_of_split_flows(clock::now());
                Ok(())
            }
            LifecycleEvent::Hangup => {
                self.log.lock().unwrap_or_else(PoisonError::into_inner).log_writer.reopen();
                self.reload.start(self.options);
                Ok(())
            }
            LifecycleEvent::Stopped(handing) => self.stopped(node, handing),
            LifecycleEvent::End => self.end(node),
        }
    }

    fn start(&mut self) -> io::Result<()> {
        if let Some((listener, metrics)) = self.scraped.take() {
            http::serve(listener, metrics);
        }
        if let Some(control) = &mut self.control {
            control.serve(self.status.clone(), self.captures.clone(), self.identity.clone())?;
        }
        self.log.lock().unwrap_or_else(PoisonError::into_inner).log_writer.start();
        self.supervisor.start();
        let (wan, radio) = (&self.identity.wan, &self.identity.radio);
        match self.options.worker {
            None => tracing::info!("started between {wan} and {radio}"),
            Some(worker) => tracing::info!(
                "worker {worker} of {} started between {wan} and {radio}, for its part of the subscribers",
                self.options.workers
            ),
        }
        Ok(())
    }

    fn turn(
        &mut self,
        node: &mut Gateway,
        housekeeping: &mut Housekeeping<'_>,
        absence: Option<&Absence>,
    ) -> io::Result<()> {
        self.supervisor.heartbeat(absence);
        node.note_wait(housekeeping.waited());
        self.reload.finish(node);
        self.successor = self.status.successor();
        if self.successor.is_some() {
            housekeeping.stop();
            return Ok(());
        }
        self.collector.turn(&self.status, node, housekeeping.now);
        if housekeeping.now < self.due {
            return Ok(());
        }
        self.due = housekeeping.now + STATS_INTERVAL;
        self.show(node, housekeeping, absence);
        let written = self.write_stats(node, Some(housekeeping));
        warn_once(&mut self.unwritten, &written);
        Ok(())
    }

    /// Publishes the numbers for other threads.
    fn show(&self, node: &Gateway, housekeeping: &mut Housekeeping<'_>, absence: Option<&Absence>) {
        let totals = self.log.lock().unwrap_or_else(PoisonError::into_inner).totals;
        self.status.show(Snapshot {
            taken: housekeeping.now,
            started: self.identity.started,
            counters: *node.counters(),
            totals,
            flows: node.flows(),
            subscribers: node.subscribers(),
            buffered_bytes: node.buffered_bytes(),
            packet_memory_bytes: housekeeping.pool_bytes_in_use(),
            ports: housekeeping.port_counters(),
            split_flows: node.split_flows(),
            reloads: self.reload.counts,
            absence: absence.map(|absence| absence.reason.clone()),
        });
    }

    fn write_stats(&self, node: &Gateway, housekeeping: Option<&mut Housekeeping<'_>>) -> io::Result<()> {
        let mut log = self.log.lock().unwrap_or_else(PoisonError::into_inner);
        let written = log.flush();
        let Some(path) = &self.options.stats_json else { return written };
        let sojourn = Percentiles::of(&log.sojourn);
        let mut stats = json!({ "sojourn_ms": sojourn, "flows": node.flows(), "counters": node.counters() });
        if let Some(housekeeping) = housekeeping {
            stats["payload_bytes"] = housekeeping.pool_bytes_in_use().into();
            let ports = housekeeping.port_counters();
            let dropped: u64 = ports.iter().map(|port| port.kernel_drops + port.pool_exhausted).sum();
            stats["receive_drops"] = Value::from(dropped);
        }
        log.log_writer.replace(path, format!("{stats}\n"));
        written
    }

    /// Hands everything over to the process that asked, if one did.
    fn stopped(&mut self, node: &mut CapturingGateway, handing: &mut HandoverAttempt<'_>) -> io::Result<()> {
        let Some(stream) = self.successor.take() else { return Ok(()) };
        let (Some(control), Some(flows)) = (&self.control, &self.flows) else { return Ok(()) };
        // Otherwise the kernel would forward, bypassing both processes, and reset split flows.
        handing.attached.hold(handover::PAUSE_MAX)?;
        node.prepare_handover(handing.event_loop.time());
        // Finish the turn before anything is copied, so that its packets count. The log writer still writes while the
        // successor runs.
        handing.event_loop.finish_turn(node);
        let (flushed, totals) = {
            let mut log = self.log.lock().unwrap_or_else(PoisonError::into_inner);
            (log.flush(), log.totals)
        };
        warn_once(&mut self.unwritten, &flushed);
        let path = flows_file(self.options).map_err(io::Error::other)?;
        let state = HandoverState {
            options: self.options,
            flows_file: &path,
            started: self.identity.started,
            totals,
            event_loop: &mut *handing.event_loop,
            attached: &*handing.attached,
            flows: flows.as_fd(),
            control: control.descriptor(),
            metrics: self.scrapes.as_ref().map(AsFd::as_fd),
        };
        if let Err(error) = handover::give(&stream, node, state) {
            tracing::warn!("the successor did not take over: {error}");
            handing.outcome = HandoverOutcome::Failed;
            return Ok(());
        }
        handing.outcome = HandoverOutcome::TakenOver;
        if let Ok(peer) = getsockopt(&stream, PeerCredentials) {
            tracing::info!("process {} goes on with {}", peer.pid(), counted(node.flows(), "flow"));
            self.supervisor.succeeded_by(peer.pid().unsigned_abs());
        }
        warn_once(
            &mut self.unwritten,
            &self.log.lock().unwrap_or_else(PoisonError::into_inner).log_writer.finish(),
        );
        // The successor takes a closed connection for the end of this process.
        std::mem::forget(stream);
        Ok(())
    }

    /// Ends the service. Records the flows that are still open in their present state.
    fn end(&mut self, node: &Gateway) -> io::Result<()> {
        self.supervisor.stopping();
        if self.options.records.is_some() {
            let (now, open) = (clock::now(), node.flow_statuses(0, usize::MAX).items);
            let log = self.log.lock().unwrap_or_else(PoisonError::into_inner);
            open.iter().filter(|flow| flow.is_open()).for_each(|flow| log.log_writer.record(now, flow));
        }
        let written = self.write_stats(node, None);
        let log = self.log.lock().unwrap_or_else(PoisonError::into_inner);
        written.and(log.log_writer.finish())
    }
}

/// Returns the predecessor's listener if it has the same address, or a new one.
fn metrics_listener(address: SocketAddr, inherited: Option<&mut Inherited>) -> Result<TcpListener> {
    let before = inherited.and_then(|inherited| inherited.take(Role::Metrics).ok()).map(TcpListener::from);
    match before {
        Some(listener) if listener.local_addr().is_ok_and(|own| own == address) => Ok(listener),
        _ => http::listen(address),
    }
}

/// Binds the control socket. A failure is an error for a configured path, but only a warning for the default path.
fn bind_control(options: &Options) -> Result<Option<Control>> {
    if let Some(path) = &options.control {
        return Control::bind(path).map(Some);
    }
    let bound = Control::bind(&control::default_path(&options.name()?));
    if let Err(error) = &bound {
        tracing::warn!("{error}; `paceline flows` and `paceline top` cannot see this gateway");
    }
    Ok(bound.ok())
}

const STATS_INTERVAL: Duration = Duration::from_secs(1);

/// Warns once. A full disk is no reason to stop forwarding.
fn warn_once(unwritten: &mut bool, written: &io::Result<()>) {
    if let Err(error) = written
        && !*unwritten
    {
        tracing::warn!(
            "cannot write statistics, events or series; the gateway goes on without them: {error}"
        );
    }
    *unwritten = written.is_err();
}
