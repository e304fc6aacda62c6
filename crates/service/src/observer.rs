//! Output about flows: events as JSON lines, samples as CSV, sojourn times as a histogram.

use std::collections::HashMap;
use std::fs::File;
use std::io::{self, Write};
use std::os::unix::fs::OpenOptionsExt;
use std::path::Path;
use std::sync::{Arc, Mutex, PoisonError};

use paceline_gateway::auto::{Decision, DecisionKind};
use paceline_gateway::{Event, Mode, Observer};
use paceline_linux::shift_file::ShiftFile;
use paceline_linux::{Fallback, Quantiles};
use paceline_wire::{Duration, FlowKey, Instant};
use serde_json::{Value, json};

use super::files::LOG_MODE;
use super::log_writer::LogWriter;
use super::records::Records;
use super::rescaling::{Change, RescalingSender};
use super::totals::Totals;

/// The log, which the gateway's observer and its housekeeping share.
pub(super) type Shared = Arc<Mutex<Log>>;

/// All logs and totals.
#[derive(Debug)]
pub(super) struct Log {
    start: Instant,
    pub(super) sojourn: Quantiles,
    pub(super) totals: Totals,
    events: Option<Lines>,
    series: Option<Lines>,
    sampled: HashMap<FlowKey, Instant>,
    pub(super) log_writer: LogWriter,
}

/// A file that grows by lines, and the lines that the log writer does not have yet.
#[derive(Debug)]
struct Lines {
    file: Arc<File>,
    next: Vec<u8>,
}

/// The gateway's observer, which feeds a [`Log`].
#[derive(Debug)]
pub(super) struct LogObserver {
    log: Shared,
    /// Gets the shifts of a flow before the SYN-ACK leaves.
    store: Option<ShiftFile>,
    /// Gets changes of the flows in the store.
    feed: Option<RescalingSender>,
}

impl Log {
    /// Creates the requested files, or continues those of another process.
    pub(super) fn create(
        start: Instant,
        events: Option<&Path>,
        series: Option<&Path>,
        records: Option<Records>,
        goes_on: bool,
    ) -> io::Result<Log> {
        let create = |path: &Path| {
            let mut options = File::options();
            options.create(true).mode(LOG_MODE);
            let options = if goes_on { options.append(true) } else { options.write(true).truncate(true) };
            options.open(path).map(|file| Lines { file: Arc::new(file), next: Vec::new() })
        };
        let mut log = Log {
            start,
            sojourn: Quantiles::new(),
            totals: Totals::default(),
            events: events.map(create).transpose()?,
            series: series.map(create).transpose()?,
            sampled: HashMap::new(),
            log_writer: LogWriter::new(records),
        };
        if let Some(series) = log.series.as_mut().filter(|_| !goes_on) {
            writeln!(
                series.next,
                "time_s,client,server,client_window_bytes,virtual_window_bytes,in_flight_bytes,waiting_bytes,rate_mbps,\
                 rtt_ms,ack_delay_ms"
            )?;
        }
        Ok(log)
    }

    /// Gives the collected lines to the log writer. Does not wait for the disk.
    pub(super) fn flush(&mut self) -> io::Result<()> {
        for lines in [&mut self.events, &mut self.series].into_iter().flatten() {
            if !lines.next.is_empty() {
                self.log_writer.append(&lines.file, std::mem::take(&mut lines.next));
            }
        }
        self.log_writer.outcome()
    }

    fn note(&mut self, now: Instant, flow: &FlowKey, event: &Event) {
        self.totals.note(event);
        if let Event::Sent { sojourn, retransmission: false, .. } = event {
            self.sojourn.record(*sojourn);
        }
        if let Event::Ended(status) = event {
            self.log_writer.record(now, status);
        }
        if matches!(event, Event::Closed | Event::SplitClosed) {
            self.sampled.remove(flow);
        }
        let written = self.write_event(now, flow, event).and_then(|()| self.write_sample(now, flow, event));
        debug_assert!(written.is_ok(), "memory takes every line");
        if self.longest() >= PIECE {
            let _ = self.flush();
        }
    }

    /// The largest number of bytes that wait for one of the files.
    fn longest(&self) -> usize {
        [&self.events, &self.series].into_iter().flatten().map(|lines| lines.next.len()).max().unwrap_or(0)
    }

    fn write_event(&mut self, now: Instant, flow: &FlowKey, event: &Event) -> io::Result<()> {
        let Some(events) = &mut self.events else {
            return Ok(());
        };
        let mut object = describe(event);
        object["time_s"] = now.saturating_since(self.start).as_secs_f64().into();
        object["client"] = flow.src.to_string().into();
        object["server"] = flow.dst.to_string().into();
        writeln!(events.next, "{object}")
    }

    fn write_sample(&mut self, now: Instant, flow: &FlowKey, event: &Event) -> io::Result<()> {
        let Event::Acked { client_window, virtual_window, in_flight, waiting, rate, rtt, delay } = event
        else {
            return Ok(());
        };
        let Some(series) = &mut self.series else {
            return Ok(());
        };
        if self.sampled.get(flow).is_some_and(|last| now.saturating_since(*last) < SAMPLE_INTERVAL) {
            return Ok(());
        }
        self.sampled.insert(*flow, now);
        writeln!(
            series.next,
            "{:.4},{},{},{client_window},{virtual_window},{in_flight},{waiting},{:.4},{:.3},{:.3}",
            // The machine's clock, by which the lab's other series can be aligned.
            now.as_secs_f64(),
            flow.src,
            flow.dst,
            rate.as_mbps(),
            ms(*rtt),
            ms(*delay)
        )
    }
}

impl LogObserver {
    pub(super) fn new(log: Shared, store: Option<ShiftFile>, feed: Option<RescalingSender>) -> Self {
        LogObserver { log, store, feed }
    }
}

impl Observer for LogObserver {
    fn on_event(&mut self, now: Instant, flow: &FlowKey, event: &Event) {
        if let Some(store) = &mut self.store {
            let change = match event {
                // Without room in the store, the flow lives on, but does not survive a restart.
                Event::Opened(shifts) if shifts.rescaled() => {
                    store.insert(*flow, *shifts).ok().map(|()| Change::Opened(*flow, (*shifts).into()))
                }
                Event::SplitOpened => {
                    let fallback = Fallback::Reset;
                    store.insert(*flow, fallback).ok().map(|()| Change::Opened(*flow, fallback))
                }
                Event::Closed | Event::SplitClosed => store.remove(flow).then_some(Change::Closed(*flow)),
                _ => None,
            };
            if let Some((feed, change)) = self.feed.as_ref().zip(change) {
                feed.tell(change);
            }
        }
        trace(flow, event);
        self.log.lock().unwrap_or_else(PoisonError::into_inner).note(now, flow, event);
    }
}

/// Traces an event. Events for each packet have the level TRACE.
fn trace(flow: &FlowKey, event: &Event) {
    let (client, server) = (flow.src, flow.dst);
    match event {
        Event::Opened(shifts) => {
            tracing::debug!(%client, %server, rescaled = shifts.rescaled(), "flow opened")
        }
        Event::SplitOpened => tracing::debug!(%client, %server, "flow split"),
        Event::Ended(status) => tracing::debug!(%client, %server, how = ?status.stage, "flow ended"),
        Event::GaveUp => tracing::debug!(%client, %server, "repair failed too often; the server repairs now"),
        Event::Decided(decision) => decided(flow, decision),
        other => tracing::trace!(%client, %server, event = ?other, "packet"),
    }
}

/// Logs a decision of `auto`. Routine decisions about new flows have the level DEBUG, and later changes the level INFO.
fn decided(flow: &FlowKey, decision: &Decision) {
    let (client, server, reason) = (flow.src, flow.dst, decision.reason);
    match decision.what {
        DecisionKind::Mode(Mode::Split(sender)) => {
            let sender = sender.congestion();
            tracing::info!(%client, %server, %reason, %sender, "auto: split");
        }
        DecisionKind::Mode(_) => tracing::debug!(%client, %server, %reason, "auto: transparent"),
        DecisionKind::ServerRepairs => {
            tracing::info!(%client, %server, %reason, "auto: the server repairs from here on")
        }
        DecisionKind::Passes => {
            tracing::info!(%client, %server, %reason, "auto: the flow passes from here on")
        }
    }
}

fn describe(event: &Event) -> Value {
    match event {
        Event::Opened(shifts) => json!({ "event": "opened", "shifts": format!("{shifts:?}") }),
        Event::Ended(status) => json!({ "event": "ended", "how": format!("{:?}", status.stage) }),
        Event::Closed => json!({ "event": "closed" }),
        Event::SplitOpened => json!({ "event": "split-opened" }),
        Event::SplitClosed => json!({ "event": "split-closed" }),
        Event::Measured { rtt, rtt_min } => {
            json!({ "event": "measured", "rtt_ms": ms(*rtt), "rtt_min_ms": rtt_min.map(ms) })
        }
        Event::NewData { bytes } => json!({ "event": "new-data", "bytes": bytes }),
        Event::Sent { bytes, sojourn, retransmission } => {
            json!({ "event": "sent", "bytes": bytes, "sojourn_ms": ms(*sojourn), "retransmission": retransmission })
        }
        Event::Acked { client_window, virtual_window, in_flight, waiting, rate, rtt, delay } => json!({
            "event": "acked",
            "client_window_bytes": client_window,
            "virtual_window_bytes": virtual_window,
            "in_flight_bytes": in_flight,
            "waiting_bytes": waiting,
            "rate_mbps": rate.as_mbps(),
            "rtt_ms": ms(*rtt),
            "ack_delay_ms": ms(*delay),
        }),
        Event::Lost { bytes } => json!({ "event": "lost", "bytes": bytes }),
        Event::Timeout => json!({ "event": "timeout" }),
        Event::GaveUp => json!({ "event": "gave-up" }),
        Event::Decided(decision) => {
            json!({ "event": "decided", "what": format!("{:?}", decision.what), "reason": decision.reason.as_str() })
        }
    }
}

fn ms(duration: Duration) -> f64 {
    duration.as_secs_f64() * 1e3
}

/// Bytes of lines at which the log flushes before its second is over. Our choice: some hundred events a job.
const PIECE: usize = 64 << 10;

/// Interval between two samples of a flow.
const SAMPLE_INTERVAL: Duration = Duration::from_millis(50);

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn events_are_json_lines_and_samples_csv() {
        let folder = tempfile::tempdir().unwrap();
        let (events, series) = (folder.path().join("e"), folder.path().join("s"));
        let start = Instant::from_nanos(5_000_000_000);
        let log = Log::create(start, Some(&events), Some(&series), None, false).unwrap();
        let shared = Arc::new(Mutex::new(log));
        let mut tap = LogObserver::new(shared.clone(), None, None);
        let flow = FlowKey { src: "10.0.0.2:40000".parse().unwrap(), dst: "10.0.0.1:80".parse().unwrap() };
        let sent = Event::Sent { bytes: 1448, sojourn: Duration::from_millis(3), retransmission: false };
        tap.on_event(start + Duration::from_millis(10), &flow, &sent);
        let acked = Event::Acked {
            client_window: 17_520,
            virtual_window: 90_000,
            in_flight: 14_480,
            waiting: 0,
            rate: paceline_wire::Rate::from_mbps(7.0),
            rtt: Duration::from_millis(100),
            delay: Duration::ZERO,
        };
        tap.on_event(start + Duration::from_millis(20), &flow, &acked);
        tap.on_event(start + Duration::from_millis(30), &flow, &acked);
        shared.lock().unwrap().log_writer.start();
        shared.lock().unwrap().flush().unwrap();
        shared.lock().unwrap().log_writer.finish().unwrap();
        let lines: Vec<Value> = std::fs::read_to_string(events)
            .unwrap()
            .lines()
            .map(|l| serde_json::from_str(l).unwrap())
            .collect();
        assert_eq!(lines.len(), 3);
        assert_eq!(lines[0]["event"], "sent");
        assert_eq!(lines[1]["virtual_window_bytes"], 90_000);
        assert_eq!(lines[1]["time_s"], 0.02);
        assert_eq!(std::fs::read_to_string(series).unwrap().lines().count(), 2);
        assert_eq!(shared.lock().unwrap().sojourn.count(), 1);
        assert_eq!(shared.lock().unwrap().sampled.len(), 1);
        tap.on_event(start + Duration::from_millis(40), &flow, &Event::SplitClosed);
        assert_eq!(shared.lock().unwrap().sampled.len(), 0);
    }

    #[test]
    fn a_disk_that_is_full_is_told_each_time_it_is_asked() {
        let mut log = Log::create(Instant::ZERO, Some(Path::new("/dev/full")), None, None, false).unwrap();
        let flow = FlowKey { src: "10.0.0.2:40000".parse().unwrap(), dst: "10.0.0.1:80".parse().unwrap() };
        for _ in 0..1000 {
            log.note(Instant::ZERO, &flow, &Event::SplitClosed);
        }
        // The thread may fail as soon as it runs. A flush before the start reports no failure.
        log.flush().unwrap();
        log.log_writer.start();
        assert_eq!(log.log_writer.finish().unwrap_err().kind(), io::ErrorKind::StorageFull);
        assert_eq!(log.flush().unwrap_err().kind(), io::ErrorKind::StorageFull);
    }
}
