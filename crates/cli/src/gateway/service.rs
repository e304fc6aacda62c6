//! A gateway with all that is around it: logs, statistics, metrics, control socket, records.

use std::io;
use std::net::TcpListener;
use std::sync::{Arc, Mutex, PoisonError};

use paceline_gateway::config::OtherMode;
use paceline_gateway::{Gateway, GatewayConfig};
use paceline_linux::shift_file::ShiftFile;
use paceline_linux::{EventLoopConfig, Fallback, Housekeeping, clock};
use paceline_wire::{Duration, Instant};
use serde_json::{Value, json};

use super::board::{Board, Collector, Snapshot};
use super::capture::{Desk, Interfaces, Watched};
use super::control::{self, Control, Identity};
use super::metrics::{Labels, Metrics};
use super::notify::Supervisor;
use super::observer::{Log, Shared, Tap};
use super::records::{Recorder, Records, Writing};
use super::reload::Reload;
use super::rescaling::Rescaling;
use super::rows::Prefixes;
use super::{Moment, drive, http, write_whole_io};
use crate::args::GatewayArgs;
use crate::error::{Error, Result};
use crate::result::Percentiles;
use crate::run::lab::system;

/// Runs until a signal comes.
pub(super) fn run(args: &GatewayArgs, config: GatewayConfig) -> Result<()> {
    let (wan, radio) = args.interfaces()?;
    let started = clock::now();
    let log = Log::create(started, args.events.as_deref(), args.series.as_deref())
        .map_err(|error| Error::io("create the logs", &error))?;
    let log: Shared = Arc::new(Mutex::new(log));
    let default = ShiftFile::default_path(&format!("{wan}-{radio}"));
    let path = args.shift_file.as_deref().unwrap_or(&default);
    let store = ShiftFile::open(path, config.limits.max_flows).map_err(system)?;
    let open_flows = store.load();
    let rescaling = Rescaling::new(&open_flows);
    let mut service = Service::new(args, started, log.clone(), &config)?;
    let datagrams = config.sharing.other == OtherMode::Shared;
    let tap = Tap::new(log, Some(store), Some(rescaling.feed()), service.recorder.clone());
    let mut node = Gateway::with_observer(config, Box::new(tap));
    for (flow, fallback) in open_flows {
        match fallback {
            Fallback::Rescale(shifts) => node.resume(clock::now(), flow, shifts),
            Fallback::Reset => node.end(flow),
        }
    }
    let mut node = Watched::new(node, service.desk.clone());
    drive(args, &mut node, datagrams, Some(rescaling), |node, moment| service.on(node, moment))
}

/// What goes on beside the packets.
struct Service<'a> {
    args: &'a GatewayArgs,
    identity: Identity,
    log: Shared,
    board: Arc<Board>,
    desk: Arc<Desk>,
    collector: Collector,
    /// When statistics are due.
    due: Instant,
    reload: Reload,
    supervisor: Supervisor,
    control: Option<Control>,
    /// Until their threads run.
    scraped: Option<(TcpListener, Metrics)>,
    records: Option<Records>,
    recorder: Option<Recorder>,
    writing: Option<Writing>,
}

impl<'a> Service<'a> {
    /// Opens everything, so that what cannot be opened is told before packets pass.
    fn new(
        args: &'a GatewayArgs,
        started: Instant,
        log: Shared,
        config: &GatewayConfig,
    ) -> Result<Service<'a>> {
        let prefixes = Prefixes::new(&config.sharing);
        let (wan, radio) = args.interfaces()?;
        let board = Arc::new(Board::default());
        let ports = match &args.tun {
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
            packet_memory_limit_bytes: EventLoopConfig::default().pool_bytes,
        };
        let scraped = match args.metrics {
            Some(address) => Some((http::listen(address)?, Metrics::new(board.clone(), labels))),
            None => None,
        };
        let records = args.records.as_deref().map(|path| Records::create(path, prefixes)).transpose()?;
        let interfaces = match &args.tun {
            Some(tun) => [wan, radio].map(|name| format!("{tun} ({name})")),
            None => [wan, radio].map(str::to_owned),
        };
        let interfaces = Interfaces { names: interfaces, raw: args.tun.is_some() };
        Ok(Service {
            args,
            identity: Identity {
                wan: wan.to_owned(),
                radio: radio.to_owned(),
                started,
                prefixes,
                interfaces,
            },
            log,
            board,
            desk: Arc::default(),
            collector: Collector::default(),
            due: Instant::ZERO,
            reload: Reload::new(config.clone()),
            supervisor: Supervisor::default(),
            control: bind_control(args, wan, radio)?,
            scraped,
            recorder: records.as_ref().map(Records::recorder),
            records,
            writing: None,
        })
    }

    fn on(&mut self, node: &mut Watched, moment: Moment<'_, '_>) -> io::Result<()> {
        match moment {
            Moment::Start => self.start(),
            Moment::Turn(housekeeping) => {
                node.turn(housekeeping.now);
                self.turn(node, housekeeping)
            }
            Moment::Hangup => {
                if let Some(recorder) = &self.recorder {
                    recorder.reopen();
                }
                self.reload.start(self.args);
                Ok(())
            }
            Moment::End => self.end(node),
        }
    }

    fn start(&mut self) -> io::Result<()> {
        if let Some((listener, metrics)) = self.scraped.take() {
            http::serve(listener, metrics);
        }
        if let Some(control) = &self.control {
            control.serve(self.board.clone(), self.desk.clone(), self.identity.clone())?;
        }
        self.writing = self.records.take().map(Records::start);
        self.supervisor.start();
        tracing::info!("accelerating between {} and {}", self.identity.wan, self.identity.radio);
        Ok(())
    }

    fn turn(&mut self, node: &mut Gateway, housekeeping: &mut Housekeeping<'_>) -> io::Result<()> {
        self.supervisor.beat();
        self.reload.finish(node);
        self.collector.turn(&self.board, node, housekeeping.now);
        if housekeeping.now < self.due {
            return Ok(());
        }
        self.due = housekeeping.now + STATS_INTERVAL;
        self.show(node, housekeeping);
        self.write_stats(node, Some(housekeeping))
    }

    /// Leaves the numbers for others to read.
    fn show(&self, node: &Gateway, housekeeping: &mut Housekeeping<'_>) {
        let totals = self.log.lock().unwrap_or_else(PoisonError::into_inner).totals;
        self.board.show(Snapshot {
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
        });
    }

    fn write_stats(&self, node: &Gateway, housekeeping: Option<&mut Housekeeping<'_>>) -> io::Result<()> {
        let mut log = self.log.lock().unwrap_or_else(PoisonError::into_inner);
        log.flush()?;
        let sojourn = Percentiles::of_histogram(log.sojourn.count(), |quantile| {
            log.sojourn.quantile(quantile).as_secs_f64() * 1e3
        });
        let mut stats = json!({ "sojourn_ms": sojourn, "flows": node.flows(), "counters": node.counters() });
        if let Some(housekeeping) = housekeeping {
            stats["payload_bytes"] = housekeeping.pool_bytes_in_use().into();
            let ports = housekeeping.port_counters();
            let dropped: u64 = ports.iter().map(|port| port.kernel_drops + port.pool_exhausted).sum();
            stats["receive_drops"] = Value::from(dropped);
        }
        write_whole_io(self.args, &format!("{stats}\n"))
    }

    /// Flows that are not over are recorded as they are.
    fn end(&mut self, node: &Gateway) -> io::Result<()> {
        self.supervisor.stopping();
        let now = clock::now();
        if let Some(recorder) = &self.recorder {
            let open = node.flow_statuses(0, usize::MAX).items;
            open.iter().filter(|flow| flow.is_open()).for_each(|flow| recorder.note(now, flow));
        }
        if let Some(writing) = self.writing.take() {
            writing.finish();
        }
        self.write_stats(node, None)
    }
}

/// A place that was asked for must be there; the default one only should.
fn bind_control(args: &GatewayArgs, wan: &str, radio: &str) -> Result<Option<Control>> {
    if let Some(path) = &args.control {
        return Control::bind(path).map(Some);
    }
    let bound = Control::bind(&control::default_path(wan, radio));
    if let Err(error) = &bound {
        tracing::warn!("{error}; `paceline flows` and `paceline top` cannot see this gateway");
    }
    Ok(bound.ok())
}

const STATS_INTERVAL: Duration = Duration::from_secs(1);
