//! A capture of selected flows on request, before and after the gateway.
//!
//! Without a capture, a packet costs the test of one pointer. With one, packets of the selected flows are copied and
//! go to another thread, by a queue of bounded memory. Packets that do not fit are counted. The packet thread never
//! waits.

mod comment;
mod file;

use std::io::{self, ErrorKind};
use std::net::{IpAddr, SocketAddr};
use std::ops::{Deref, DerefMut};
use std::os::unix::net::UnixStream;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::mpsc::{Receiver, SyncSender, TrySendError, sync_channel};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration as StdDuration, SystemTime, UNIX_EPOCH};

use paceline_gateway::{Gateway, OVERHEARD, RADIO, WAN};
use paceline_linux::clock;
use paceline_wire::{Duration, FlowKey, Instant, Node, Packet, PortId};
use serde::{Deserialize, Serialize};

use super::sides::SideDetector;
use comment::Comments;
pub(super) use file::Interfaces;

/// What to capture, and the limits.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
pub struct CaptureRequest {
    /// Client address. `None` means any, which needs `server`.
    pub client: Option<IpAddr>,
    /// Client port. `None` means any.
    pub client_port: Option<u16>,
    /// Server address. `None` means any, which needs `client`.
    pub server: Option<IpAddr>,
    /// Server port. `None` means any.
    pub server_port: Option<u16>,
    /// Longest duration of the capture, in seconds.
    pub seconds: u64,
    /// Largest size of the capture, in bytes.
    pub bytes: u64,
    /// Bytes to keep of each packet.
    pub snap: u32,
}

impl CaptureRequest {
    /// Returns why the request is refused, or `None`.
    pub fn problem(&self) -> Option<&'static str> {
        if self.client.is_none() && self.server.is_none() {
            return Some("name the client's or the server's address");
        }
        let bounded = (1..=SECONDS_MAX).contains(&self.seconds)
            && (1..=BYTES_MAX).contains(&self.bytes)
            && (64..=SNAP_MAX).contains(&self.snap);
        (!bounded)
            .then_some("a capture lasts 1 to 3600 seconds, has at most 1 GiB, and keeps 64 to 262144 bytes of each packet")
    }

    /// True if the capture includes this flow. `client` is the end at the radio port.
    fn takes(&self, client: IpAddr, server: IpAddr, ports: Option<(u16, u16)>) -> bool {
        let is = |wanted: Option<u16>, port: Option<u16>| wanted.is_none() || wanted == port;
        self.client.is_none_or(|wanted| wanted == client)
            && self.server.is_none_or(|wanted| wanted == server)
            && is(self.client_port, ports.map(|(client, _)| client))
            && is(self.server_port, ports.map(|(_, server)| server))
    }
}

/// A packet at one interface.
#[derive(Debug)]
struct CapturedPacket {
    /// Time since 1970.
    at: StdDuration,
    port: PortId,
    outbound: bool,
    original_len: u32,
    data: Vec<u8>,
    comment: String,
}

/// The service by which the control socket asks the packet thread for a capture.
#[derive(Debug, Default)]
pub(super) struct CaptureService {
    order: Mutex<Option<CaptureJob>>,
    /// There is an order that the packet thread has not seen.
    is_ordered: AtomicBool,
    /// A capture runs. There is only one at a time.
    busy: AtomicBool,
}

#[derive(Debug)]
struct CaptureJob {
    wanted: CaptureRequest,
    sender: SyncSender<CapturedPacket>,
    shared: Arc<Shared>,
}

/// State that the packet thread and the writing thread share.
#[derive(Debug, Default)]
struct Shared {
    /// Bytes in the queue.
    queued: AtomicUsize,
    /// The number of packets that did not fit into the queue.
    missed: AtomicUsize,
}

/// The order in service. The next one may come when this is dropped.
struct ActiveCapture<'a>(&'a CaptureService);

impl Drop for ActiveCapture<'_> {
    fn drop(&mut self) {
        *self.0.order.lock().unwrap_or_else(PoisonError::into_inner) = None;
        self.0.busy.store(false, Ordering::Release);
    }
}

impl CaptureService {
    /// Writes a capture to `stream` until it ends or the reader closes. Reports an error there.
    pub(super) fn serve(
        &self,
        stream: &UnixStream,
        wanted: CaptureRequest,
        interfaces: &Interfaces,
    ) -> io::Result<Result<(), String>> {
        if let Some(problem) = wanted.problem() {
            return Ok(Err(problem.into()));
        }
        if self.busy.swap(true, Ordering::AcqRel) {
            return Ok(Err("another capture is running; try again when it has ended".into()));
        }
        let _serving = ActiveCapture(self);
        let (bytes, snap) = (wanted.bytes, wanted.snap);
        let (receiver, shared) = self.order(wanted);
        match file::write(stream, &receiver, &shared, interfaces, bytes, snap) {
            // The reader has closed: this is how one stops a capture. A read or a write notices it first, by chance.
            Err(error) if matches!(error.kind(), ErrorKind::BrokenPipe | ErrorKind::ConnectionReset) => {}
            told => told?,
        }
        Ok(Ok(()))
    }

    fn order(&self, wanted: CaptureRequest) -> (Receiver<CapturedPacket>, Arc<Shared>) {
        let (sender, receiver) = sync_channel(QUEUED_PACKETS_MAX);
        let shared = Arc::new(Shared::default());
        let order = CaptureJob { wanted, sender, shared: shared.clone() };
        *self.order.lock().unwrap_or_else(PoisonError::into_inner) = Some(order);
        self.is_ordered.store(true, Ordering::Release);
        (receiver, shared)
    }

    /// Takes a new order. The packet thread never waits for the lock.
    fn take(&self) -> Option<CaptureJob> {
        if !self.is_ordered.load(Ordering::Acquire) {
            return None;
        }
        let mut order = self.order.try_lock().ok()?;
        self.is_ordered.store(false, Ordering::Release);
        order.take()
    }
}

/// A gateway with an optional capture of its packets.
pub(super) struct CapturingGateway {
    gateway: Gateway,
    captures: Arc<CaptureService>,
    capture: Option<Box<Capture>>,
    sides: SideDetector,
}

impl CapturingGateway {
    pub(super) fn new(gateway: Gateway, captures: Arc<CaptureService>) -> Self {
        CapturingGateway { gateway, captures, capture: None, sides: SideDetector::default() }
    }

    /// Starts and ends captures. Called eight times a second.
    pub(super) fn turn(&mut self, now: Instant) {
        if self.capture.as_ref().is_some_and(|capture| capture.over || capture.until <= now) {
            self.capture = None;
        }
        if let Some(order) = self.captures.take() {
            self.capture = Some(Box::new(Capture::new(order, now)));
        }
    }
}

impl Deref for CapturingGateway {
    type Target = Gateway;

    fn deref(&self) -> &Gateway {
        &self.gateway
    }
}

impl DerefMut for CapturingGateway {
    fn deref_mut(&mut self) -> &mut Gateway {
        &mut self.gateway
    }
}

impl Node for CapturingGateway {
    fn handle_packet(&mut self, arrival: Instant, port: PortId, packet: Packet) {
        if self.sides.are_swapped(port, &packet) {
            tracing::warn!(
                "all connections are opened from the side of the servers (--wan), none from that of the clients (--radio), and so \
                 none is accelerated: the interfaces must be swapped"
            );
        }
        let Some(capture) = self.capture.as_mut().filter(|_| port != OVERHEARD) else {
            return self.gateway.handle_packet(arrival, port, packet);
        };
        let Some(key) = capture.flow_of(&packet, port == RADIO) else {
            return self.gateway.handle_packet(arrival, port, packet);
        };
        let (copy, before) = (packet.clone(), *self.gateway.counters());
        self.gateway.handle_packet(arrival, port, packet);
        let comment = capture.comments.incoming(key, port, &copy, &before, self.gateway.counters());
        capture.keep(arrival, port, false, &copy, comment);
    }

    fn handle_timeout(&mut self, now: Instant) {
        self.gateway.handle_timeout(now);
    }

    fn poll_transmit(&mut self, now: Instant) -> Option<(PortId, Packet)> {
        let Some(capture) = &mut self.capture else {
            return self.gateway.poll_transmit(now);
        };
        let before = *self.gateway.counters();
        let (port, packet) = self.gateway.poll_transmit(now)?;
        if let Some(key) = capture.flow_of(&packet, port == WAN) {
            let comment = capture.comments.outgoing(key, port, &packet, &before, self.gateway.counters());
            capture.keep(now, port, true, &packet, comment);
        }
        Some((port, packet))
    }

    fn poll_timeout(&self) -> Option<Instant> {
        self.gateway.poll_timeout()
    }
}

/// A running capture.
struct Capture {
    wanted: CaptureRequest,
    sender: SyncSender<CapturedPacket>,
    shared: Arc<Shared>,
    until: Instant,
    /// The time since 1970 minus the packets' clock.
    epoch: StdDuration,
    comments: Comments,
    over: bool,
}

impl Capture {
    fn new(order: CaptureJob, now: Instant) -> Self {
        let unix = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
        Capture {
            until: now + Duration::from_secs(order.wanted.seconds),
            epoch: unix.saturating_sub(StdDuration::from_nanos(clock::now().as_nanos())),
            wanted: order.wanted,
            sender: order.sender,
            shared: order.shared,
            comments: Comments::default(),
            over: false,
        }
    }

    /// Returns client and server of a packet that the capture includes. Missing ports are 0.
    fn flow_of(&self, packet: &Packet, from_client: bool) -> Option<FlowKey> {
        let (src, dst) = packet.addresses()?;
        let ports = packet.tcp().map(|tcp| (tcp.src_port(), tcp.dst_port())).or_else(|| packet.udp_ports());
        let (client, server) = if from_client { (src, dst) } else { (dst, src) };
        let ports = ports.map(|(src, dst)| if from_client { (src, dst) } else { (dst, src) });
        let end = |address, port: Option<u16>| SocketAddr::new(address, port.unwrap_or(0));
        self.wanted.takes(client, server, ports).then(|| {
            let (client_port, server_port) = ports.unzip();
            FlowKey::new(end(client, client_port), end(server, server_port))
        })
    }

    fn keep(&mut self, at: Instant, port: PortId, outbound: bool, packet: &Packet, comment: String) {
        if self.over || at > self.until {
            return;
        }
        let (data, original_len) = bytes_of(packet, self.wanted.snap as usize);
        let len = data.len() + comment.len();
        if self.shared.queued.fetch_add(len, Ordering::AcqRel) + len > QUEUED_BYTES_MAX {
            self.shared.queued.fetch_sub(len, Ordering::AcqRel);
            self.shared.missed.fetch_add(1, Ordering::Relaxed);
            return;
        }
        let at = self.epoch + StdDuration::from_nanos(at.as_nanos());
        match self.sender.try_send(CapturedPacket { at, port, outbound, original_len, data, comment }) {
            Ok(()) => {}
            Err(TrySendError::Full(_)) => {
                self.shared.queued.fetch_sub(len, Ordering::AcqRel);
                self.shared.missed.fetch_add(1, Ordering::Relaxed);
            }
            Err(TrySendError::Disconnected(_)) => self.over = true,
        }
    }
}

/// Returns link header and IP packet, at most `snap` bytes, and their full length.
fn bytes_of(packet: &Packet, snap: usize) -> (Vec<u8>, u32) {
    let parts = [packet.link(), packet.header(), packet.payload().bytes().unwrap_or_default()];
    let whole = packet.link().len() + packet.ip_len();
    let mut bytes = Vec::with_capacity(whole.min(snap));
    for part in parts {
        let room = snap - bytes.len();
        bytes.extend_from_slice(&part[..part.len().min(room)]);
    }
    (bytes, whole as u32)
}

const SECONDS_MAX: u64 = 3600;
const BYTES_MAX: u64 = 1 << 30;
/// The value that tcpdump uses. Larger than a super-packet.
pub const SNAP_MAX: u32 = 262_144;
/// Our choice: 16 MiB. A disk may be late by a tenth of a second at 1 Gbit/s.
const QUEUED_BYTES_MAX: usize = 16 << 20;
const QUEUED_PACKETS_MAX: usize = 16_384;

#[cfg(test)]
mod tests;
