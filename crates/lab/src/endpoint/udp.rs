//! Sends datagrams at a fixed rate, and measures their arrival.

use std::io;
use std::net::UdpSocket;
use std::sync::mpsc::{Receiver, Sender};
use std::thread;

use paceline_linux::Quantiles;
use paceline_linux::clock;
use paceline_linux::{Context, SystemError};
use paceline_wire::{Duration, Instant, Rate};

use super::host::Shared;
use super::report::UdpReport;
use super::traffic::{Direction, UdpStream};
use crate::netns::Netns;

/// Returns the sending namespace.
pub(super) fn sending<'a>(stream: &UdpStream, server: &'a Netns, client: &'a Netns) -> &'a Netns {
    if stream.direction == Direction::Down { server } else { client }
}

/// Returns the receiving namespace.
pub(super) fn receiving<'a>(stream: &UdpStream, server: &'a Netns, client: &'a Netns) -> &'a Netns {
    if stream.direction == Direction::Down { client } else { server }
}

/// Sends from start to stop, after the sink is ready. Returns the number of datagrams.
pub(super) fn source(
    shared: &Shared<'_>,
    stream: &UdpStream,
    namespace: &Netns,
    ready: Receiver<()>,
) -> Result<u64, SystemError> {
    namespace.enter()?;
    let (from, to) = ends(stream);
    let socket = UdpSocket::bind(from).context(|| format!("bind to {from}"))?;
    socket.connect(to).context(|| format!("send to {to}"))?;
    // An error means that the sink has failed. Its report has the reason.
    if ready.recv().is_err() {
        return Ok(0);
    }
    let mut datagram = vec![0u8; usize::from(stream.datagram_bytes).max(HEADER_BYTES)];
    let ip_bytes = ip_bytes(stream, datagram.len());
    let (begin, end) = (shared.start + stream.start, shared.start + stream.stop);
    let mut sent = 0u64;
    loop {
        let due = begin + stream.rate.time_for(ip_bytes * sent);
        if due >= end || stream.rate.is_zero() || !wait_until(shared, due) {
            return Ok(sent);
        }
        let now = clock::now();
        datagram[..8].copy_from_slice(&sent.to_be_bytes());
        datagram[8..HEADER_BYTES].copy_from_slice(&now.as_nanos().to_be_bytes());
        // A full queue or a missing route loses only this datagram.
        let _ = socket.send(&datagram);
        sent += 1;
    }
}

/// Receives until one second after the stop.
pub(super) fn sink(
    shared: &Shared<'_>,
    stream: &UdpStream,
    namespace: &Netns,
    ready: Sender<()>,
) -> Result<UdpReport, SystemError> {
    namespace.enter()?;
    let (_, to) = ends(stream);
    let socket = UdpSocket::bind(to).context(|| format!("bind to {to}"))?;
    socket.set_read_timeout(Some(POLL)).context(|| "set a timeout".to_owned())?;
    let _ = ready.send(());
    let end = shared.start + stream.stop + LINGER;
    let mut report = UdpReport { delay: Quantiles::new(), ..UdpReport::default() };
    let mut buffer = vec![0u8; 65_536];
    while clock::now() < end && !shared.control.is_cancelled() {
        match socket.recv(&mut buffer) {
            Ok(bytes) if bytes >= HEADER_BYTES => account(&mut report, shared, stream, &buffer[..bytes]),
            Ok(_) => {}
            Err(error) if matches!(error.kind(), io::ErrorKind::WouldBlock | io::ErrorKind::TimedOut) => {}
            Err(error) => return Err(SystemError::new("receive datagrams", error)),
        }
    }
    Ok(report)
}

/// Joins the results of both threads. `None` stands for a thread that panicked.
pub(super) fn join(
    stream: &UdpStream,
    sent: Option<Result<u64, SystemError>>,
    received: Option<Result<UdpReport, SystemError>>,
) -> UdpReport {
    let failed = |failure: String| UdpReport { failure: Some(failure), ..UdpReport::default() };
    let mut report = match received {
        Some(Ok(report)) => report,
        Some(Err(error)) => failed(error.to_string()),
        None => failed("the receiving thread panicked".to_owned()),
    };
    match sent {
        Some(Ok(sent)) => report.sent_datagrams = sent,
        Some(Err(error)) => report.failure = Some(error.to_string()),
        None => report.failure = Some("the sending thread panicked".to_owned()),
    }
    report.name = stream.name.clone();
    report.direction = stream.direction;
    let time = stream.stop.saturating_sub(stream.start);
    report.throughput = Rate::from_bytes_in(report.received_ip_bytes, time);
    report
}

fn account(report: &mut UdpReport, shared: &Shared<'_>, stream: &UdpStream, datagram: &[u8]) {
    let now = clock::now();
    let stamp = datagram[8..HEADER_BYTES].try_into().map_or(0, u64::from_be_bytes);
    report.delay.record(now.saturating_since(Instant::from_nanos(stamp)));
    report.received_datagrams += 1;
    let bytes = ip_bytes(stream, datagram.len());
    report.received_ip_bytes += bytes;
    let interval = shared.traffic.sample_interval.as_nanos().max(1);
    let bin = (now.saturating_since(shared.start).as_nanos() / interval) as usize;
    if bin < BINS_MAX {
        if report.received_bins.len() <= bin {
            report.received_bins.resize(bin + 1, 0);
        }
        report.received_bins[bin] += bytes;
    }
}

fn ends(stream: &UdpStream) -> (std::net::SocketAddr, std::net::SocketAddr) {
    match stream.direction {
        Direction::Down => (stream.server, stream.client),
        Direction::Up => (stream.client, stream.server),
    }
}

fn ip_bytes(stream: &UdpStream, payload: usize) -> u64 {
    let headers = if stream.server.is_ipv4() { 28 } else { 48 };
    (payload + headers) as u64
}

/// Waits until `at`. False if the run was cancelled meanwhile.
fn wait_until(shared: &Shared<'_>, at: Instant) -> bool {
    loop {
        if shared.control.is_cancelled() {
            return false;
        }
        let left = at.saturating_since(clock::now());
        if left.is_zero() {
            return true;
        }
        thread::sleep(std::time::Duration::from_nanos(left.as_nanos()).min(POLL));
    }
}

const HEADER_BYTES: usize = 16;
/// Longest delay until a cancelled run ends.
const POLL: std::time::Duration = std::time::Duration::from_millis(100);
/// Time for datagrams that are in flight at the end of a stream.
const LINGER: Duration = Duration::from_secs(1);
/// Three hours of bins of 100 ms. Later bytes count only in the sum.
const BINS_MAX: usize = 108_000;
