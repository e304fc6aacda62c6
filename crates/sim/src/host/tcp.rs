//! A host with the TCP connections and applications of one flow of a scenario.

use paceline_tcp::{Config, Connection, InitialNumbers, State, Status};
use paceline_wire::{Duration, Flags, FlowKey, Instant, Node, Packet, PortId};

use super::port::HOST;
use super::stream::Streams;
use crate::network::RouteBy;
use crate::seed::seed_of;
use crate::workload::{Reader, Sink, Source, Workload};

/// One end of the transfers of a flow.
#[derive(Debug)]
pub struct TcpHost {
    /// Boxed: packets do not need it, and it is large.
    setup: Box<TcpSetup>,
    /// Where packets to this host carry the client's port. The first transfer has `first_port`.
    by: RouteBy,
    first_port: u16,
    /// What a client will open.
    plan: Option<Plan>,
    ends: Vec<TransferEnd>,
    /// Indices of the ends that are not closed.
    live: Vec<usize>,
    /// True if each packet has one segment and no bytes.
    is_plain: bool,
    /// Time of the last call.
    now: Instant,
}

/// The configuration of a client or a server.
#[derive(Clone, Debug)]
pub struct TcpSetup {
    /// The direction from this host in the first transfer.
    pub key: FlowKey,
    /// The configuration of each connection.
    pub config: Config,
    /// What each transfer sends. An end without a workload closes when the other end has closed.
    pub workloads: Vec<Workload>,
    /// How the application reads.
    pub reader: Reader,
    /// The seed of all that connections draw.
    pub seed: u64,
    /// The initial numbers of each connection; `None` draws them.
    pub origin: Option<InitialNumbers>,
    /// If true, payloads have bytes and checksums are whole. The receiver checks the bytes. Otherwise payloads have a
    /// length only.
    pub has_bytes: bool,
    /// Segments of the largest super-packet. With 1, each segment is a packet.
    pub gso_segments: u32,
}

/// When a client opens its transfers.
#[derive(Clone, Copy, Debug)]
pub struct Plan {
    pub(crate) count: u32,
    /// Start of the next transfer; `None` while it waits for the end of another.
    next_at: Option<Instant>,
    sequential: bool,
    interval: Duration,
    opened: u32,
}

/// This host's end of one transfer.
#[derive(Debug)]
pub struct TransferEnd {
    pub(crate) index: u32,
    /// The connection.
    pub connection: Connection,
    /// When it was opened.
    pub opened: Instant,
    source: Option<Source>,
    sink: Sink,
    /// The bytes of both directions, if payloads have bytes.
    streams: Option<Box<Streams>>,
    /// When data was last read.
    pub last_read: Option<Instant>,
    /// When the peer had closed and all was read.
    pub finished: Option<Instant>,
}

impl TcpSetup {
    /// A host that sends nothing, reads at once, and draws the numbers of its connections.
    pub fn new(key: FlowKey, config: Config, seed: u64) -> Self {
        let (workloads, reader) = (Vec::new(), Reader::Eager);
        TcpSetup { key, config, workloads, reader, seed, origin: None, has_bytes: false, gso_segments: 1 }
    }
}

impl Plan {
    /// `count` transfers, the first one at `first`. The next begins `interval` after the start of one, or if they are
    /// sequential, after its end.
    pub fn new(count: u32, first: Instant, sequential: bool, interval: Duration) -> Self {
        Plan { count, next_at: Some(first), sequential, interval, opened: 0 }
    }

    /// True if a transfer is still to be opened.
    fn goes_on(&self) -> bool {
        self.opened < self.count
    }
}

impl TcpHost {
    /// Returns a host that opens connections.
    pub fn client(setup: TcpSetup, plan: Plan) -> Self {
        Self::new(setup, RouteBy::DestinationPort, Some(plan))
    }

    /// Returns a host that waits for connections.
    pub fn server(setup: TcpSetup) -> Self {
        Self::new(setup, RouteBy::SourcePort, None)
    }

    fn new(setup: TcpSetup, by: RouteBy, plan: Option<Plan>) -> Self {
        let client = if plan.is_some() { setup.key.src } else { setup.key.dst };
        let first_port = client.port();
        let is_plain = !setup.has_bytes && setup.gso_segments <= 1;
        let (setup, now) = (Box::new(setup), Instant::ZERO);
        TcpHost { setup, by, first_port, plan, ends: Vec::new(), live: Vec::new(), is_plain, now }
    }

    /// All transfers that were opened, in order of opening.
    pub fn ends(&self) -> &[TransferEnd] {
        &self.ends
    }

    /// Stops all sources, so that they close their connections.
    pub fn stop(&mut self, now: Instant) {
        for at in (0..self.live.len()).rev() {
            let end = self.live[at];
            if let Some(source) = &mut self.ends[end].source {
                source.stop();
                self.drive(end, now);
            }
        }
    }

    fn open_due(&mut self, now: Instant) {
        while let Some(plan) =
            self.plan.filter(|plan| plan.goes_on() && plan.next_at.is_some_and(|at| at <= now))
        {
            let at = plan.next_at.unwrap_or(now);
            let index = plan.opened;
            let next_at = if plan.sequential { None } else { Some(at + plan.interval) };
            self.plan = Some(Plan { opened: index + 1, next_at, ..plan });
            let (config, key) = (&self.setup.config, self.key(index));
            let connection = match self.setup.origin {
                Some(origin) => Connection::connect_as(config, key, origin, now),
                None => Connection::connect(config, key, self.connection_seed(index), now),
            };
            self.add(index, connection, now);
        }
    }

    /// The direction from this host in a transfer. Each transfer has its own client port.
    fn key(&self, index: u32) -> FlowKey {
        let mut key = self.setup.key;
        let own = if self.plan.is_some() { &mut key.src } else { &mut key.dst };
        own.set_port(own.port() + index as u16);
        key
    }

    fn connection_seed(&self, index: u32) -> u64 {
        seed_of(self.setup.seed, &format!("connection {index}"))
    }

    fn add(&mut self, index: u32, connection: Connection, now: Instant) {
        let workload = self.setup.workloads.get(index as usize);
        let streams = self.setup.has_bytes.then(|| Box::new(Streams::new(&self.key(index))));
        self.live.push(self.ends.len());
        self.ends.push(TransferEnd {
            index,
            connection,
            opened: now,
            source: workload.map(|workload| Source::new(*workload, now)),
            sink: Sink::new(self.setup.reader, now),
            streams,
            last_read: None,
            finished: None,
        });
    }

    /// Finds a packet's transfer by the client's port. Switches lead no other packets here. A SYN may open a transfer.
    #[inline]
    fn find(&mut self, packet: &Packet, now: Instant) -> Option<usize> {
        let index = u32::from(self.by.port_of(packet)?.checked_sub(self.first_port)?);
        match self.live.iter().find(|&&end| self.ends[end].index == index) {
            Some(&end) => Some(end),
            None => self.find_new(packet, now, index),
        }
    }

    fn find_new(&mut self, packet: &Packet, now: Instant, index: u32) -> Option<usize> {
        let over = self.ends.iter().any(|end| end.index == index);
        if over || self.plan.is_some() || !packet.tcp()?.flags().contains(Flags::SYN) {
            return None;
        }
        let config = &self.setup.config;
        let connection = match self.setup.origin {
            Some(origin) => Connection::accept_as(config, packet, origin, now),
            None => Connection::accept(config, packet, self.connection_seed(index), now),
        }?;
        self.add(index, connection, now);
        Some(self.ends.len() - 1)
    }

    /// Returns the next packet of a host with super-packets or bytes.
    fn poll_other(&mut self, now: Instant) -> Option<Packet> {
        let TcpSetup { has_bytes, gso_segments, .. } = *self.setup;
        let mut packet = self.live.iter().find_map(|&end| {
            let connection = &mut self.ends[end].connection;
            match gso_segments {
                0 | 1 => connection.poll_transmit(now),
                most => connection.poll_super_packet(now, most),
            }
        })?;
        if has_bytes && packet.gso_size().is_none() {
            packet.complete_checksum();
        }
        Some(packet)
    }

    /// Lets the application of a transfer act, and notes whether the transfer is over.
    fn drive(&mut self, end: usize, now: Instant) {
        let transfer = &mut self.ends[end];
        transfer.drive(now);
        let over = transfer.is_over();
        if transfer.connection.is_closed() {
            self.live.retain(|live| *live != end);
        }
        if let (true, Some(plan)) = (over, self.plan.as_mut()) {
            let newest = end + 1 == self.ends.len();
            if newest && plan.sequential && plan.goes_on() && plan.next_at.is_none() {
                plan.next_at = Some(now + plan.interval);
            }
        }
    }
}

impl TransferEnd {
    /// The connection's state.
    pub fn status(&self, now: Instant) -> Status {
        self.connection.status(now)
    }

    /// Bytes that the application has read.
    pub fn read(&self) -> u64 {
        self.sink.read
    }

    /// Bytes that the application has written.
    pub fn written(&self) -> u64 {
        self.source.map_or(0, |source| source.written())
    }

    /// Bytes that were not those that the other end has written.
    pub fn wrong_bytes(&self) -> u64 {
        self.streams.as_ref().map_or(0, |streams| streams.wrong_bytes)
    }

    /// True if this end has nothing left to do, except to wait in TIME-WAIT.
    pub fn is_over(&self) -> bool {
        matches!(self.connection.state(), State::TimeWait | State::Closed)
    }

    fn drive(&mut self, now: Instant) {
        let connection = &mut self.connection;
        let read = read(connection, &self.sink, self.streams.as_deref_mut(), now);
        if read > 0 {
            self.sink.took(now, read);
            self.last_read = Some(now);
        }
        if self.finished.is_none() && connection.is_read_finished() {
            self.finished = Some(now);
            if self.source.is_none() {
                connection.close();
            }
        }
        let Some(source) = &mut self.source else { return };
        while connection.is_writable() {
            let wants = u32::try_from(source.wants(now)).unwrap_or(WRITE_MAX).min(WRITE_MAX);
            let written = match &self.streams {
                _ if wants == 0 => 0,
                Some(streams) => connection.write(&streams.to_write(source.written(), wants)),
                None => connection.write_length(wants),
            };
            if written == 0 {
                break;
            }
            source.wrote(written as u64);
        }
        // In SYN-SENT, close would delete the connection (RFC 9293, Section 3.10.4).
        if source.is_over() && connection.state() != State::SynSent {
            connection.close();
        }
    }

    /// When the application or the connection has something to do.
    fn poll_timeout(&self, now: Instant) -> Option<Instant> {
        let reads = if self.connection.readable() > 0 { self.sink.next_change(now) } else { None };
        let writes = self.source.and_then(|source| source.next_change(now));
        earlier(self.connection.poll_timeout(), earlier(reads, writes))
    }
}

fn earlier(a: Option<Instant>, b: Option<Instant>) -> Option<Instant> {
    match (a, b) {
        (Some(a), Some(b)) => Some(a.min(b)),
        (a, b) => a.or(b),
    }
}

/// Reads what the sink wants.
fn read(connection: &mut Connection, sink: &Sink, mut streams: Option<&mut Streams>, now: Instant) -> u64 {
    let wants = sink.wants(now);
    if connection.readable() == 0 || wants == 0 {
        return 0;
    }
    if wants == u64::MAX && streams.is_none() {
        return connection.read_all(now);
    }
    let mut left = usize::try_from(wants).unwrap_or(usize::MAX);
    let mut read = 0;
    while let Some(payload) = (left > 0).then(|| connection.read(now, left)).flatten() {
        if let Some(streams) = &mut streams {
            streams.check(&payload, sink.read + read);
        }
        read += payload.len() as u64;
        left -= payload.len().min(left);
    }
    read
}

/// Our choice: more than any send buffer takes at once.
const WRITE_MAX: u32 = 1 << 30;

impl Node for TcpHost {
    fn handle_packet(&mut self, arrival: Instant, port: PortId, packet: Packet) {
        self.handle_borrowed(arrival, port, &packet);
    }

    #[inline(always)]
    fn handle_borrowed(&mut self, arrival: Instant, _port: PortId, packet: &Packet) {
        self.now = arrival;
        let Some(end) = self.find(packet, arrival) else { return };
        self.ends[end].connection.handle_packet(arrival, packet);
        self.drive(end, arrival);
    }

    fn handle_timeout(&mut self, now: Instant) {
        self.now = now;
        self.open_due(now);
        for at in (0..self.live.len()).rev() {
            let Some(&end) = self.live.get(at) else { continue };
            self.ends[end].connection.handle_timeout(now);
            self.drive(end, now);
        }
    }

    fn poll_transmit(&mut self, now: Instant) -> Option<(PortId, Packet)> {
        let mut packet = Packet::default();
        self.transmit_into(now, &mut packet).map(|port| (port, packet))
    }

    #[inline(always)]
    fn transmit_into(&mut self, now: Instant, packet: &mut Packet) -> Option<PortId> {
        if self.is_plain {
            let sent = self.live.iter().any(|&end| self.ends[end].connection.transmit_into(now, packet));
            return sent.then_some(HOST);
        }
        *packet = self.poll_other(now)?;
        Some(HOST)
    }

    #[inline]
    fn poll_timeout(&self) -> Option<Instant> {
        let opening = self.plan.as_ref().filter(|plan| plan.goes_on()).and_then(|plan| plan.next_at);
        match (self.live.as_slice(), opening) {
            // The usual case: one transfer, and none to open.
            (&[end], None) => self.ends[end].poll_timeout(self.now),
            (live, _) => live.iter().map(|&end| self.ends[end].poll_timeout(self.now)).fold(opening, earlier),
        }
    }
}
