//! A host with the TCP connections and applications of one flow of a scenario.

use paceline_tcp::{Config, Connection, State, Status};
use paceline_wire::{Duration, Flags, FlowKey, Instant, Node, Packet, PortId};

use super::HOST;
use crate::network::RouteBy;
use crate::seed::seed_of;
use crate::workload::{Reader, Sink, Source, Workload};

/// One end of the transfers of a flow.
#[derive(Debug)]
pub(crate) struct TcpHost {
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
    /// Time of the last call.
    now: Instant,
}

/// The configuration of a client or a server.
#[derive(Clone, Debug)]
pub(crate) struct TcpSetup {
    /// The direction from this host in the first transfer.
    pub(crate) key: FlowKey,
    pub(crate) config: Config,
    /// What each transfer sends, if this end sends.
    pub(crate) workloads: Vec<Workload>,
    /// How the application reads, if the other end sends.
    pub(crate) reader: Reader,
    pub(crate) seed: u64,
}

/// When a client opens its transfers.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Plan {
    pub(crate) count: u32,
    /// Start of the next transfer; `None` while it waits for the end of another.
    pub(crate) next_at: Option<Instant>,
    pub(crate) sequential: bool,
    pub(crate) interval: Duration,
    opened: u32,
}

/// This host's end of one transfer.
#[derive(Debug)]
pub(crate) struct TransferEnd {
    pub(crate) index: u32,
    pub(crate) connection: Connection,
    pub(crate) opened: Instant,
    application: Application,
    /// When data was last read.
    pub(crate) last_read: Option<Instant>,
    /// When the peer had closed and all was read.
    pub(crate) finished: Option<Instant>,
}

#[derive(Debug)]
enum Application {
    Source(Source),
    Sink(Sink),
}

impl Plan {
    pub(crate) fn new(count: u32, first: Instant, sequential: bool, interval: Duration) -> Self {
        Plan { count, next_at: Some(first), sequential, interval, opened: 0 }
    }

    /// True if a transfer is still to be opened.
    fn goes_on(&self) -> bool {
        self.opened < self.count
    }
}

impl TcpHost {
    /// Returns a host that opens connections.
    pub(crate) fn client(setup: TcpSetup, plan: Plan) -> Self {
        Self::new(setup, RouteBy::DestinationPort, Some(plan))
    }

    /// Returns a host that waits for connections.
    pub(crate) fn server(setup: TcpSetup) -> Self {
        Self::new(setup, RouteBy::SourcePort, None)
    }

    fn new(setup: TcpSetup, by: RouteBy, plan: Option<Plan>) -> Self {
        let client = if plan.is_some() { setup.key.src } else { setup.key.dst };
        let first_port = client.port();
        let setup = Box::new(setup);
        TcpHost { setup, by, first_port, plan, ends: Vec::new(), live: Vec::new(), now: Instant::ZERO }
    }

    /// All transfers that were opened, in order of opening.
    pub(crate) fn ends(&self) -> &[TransferEnd] {
        &self.ends
    }

    /// Stops all sources, so that they close their connections.
    pub(crate) fn stop(&mut self, now: Instant) {
        for at in (0..self.live.len()).rev() {
            let end = self.live[at];
            if let Application::Source(source) = &mut self.ends[end].application {
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
            let (key, seed) = (self.key(index), self.connection_seed(index));
            let connection = Connection::connect(&self.setup.config, key, seed, now);
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
        let application = match self.setup.workloads.get(index as usize) {
            Some(workload) => Application::Source(Source::new(*workload, now)),
            None => Application::Sink(Sink::new(self.setup.reader, now)),
        };
        self.live.push(self.ends.len());
        self.ends.push(TransferEnd {
            index,
            connection,
            opened: now,
            application,
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
        let seed = self.connection_seed(index);
        let connection = Connection::accept(&self.setup.config, packet, seed, now)?;
        self.add(index, connection, now);
        Some(self.ends.len() - 1)
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
    pub(crate) fn status(&self, now: Instant) -> Status {
        self.connection.status(now)
    }

    /// Bytes that the application has read.
    pub(crate) fn read(&self) -> u64 {
        match &self.application {
            Application::Sink(sink) => sink.read,
            Application::Source(_) => 0,
        }
    }

    /// Bytes that the application has written.
    pub(crate) fn written(&self) -> u64 {
        match &self.application {
            Application::Source(source) => source.written(),
            Application::Sink(_) => 0,
        }
    }

    /// True if this end has nothing left to do, except to wait in TIME-WAIT.
    pub(crate) fn is_over(&self) -> bool {
        matches!(self.connection.state(), State::TimeWait | State::Closed)
    }

    fn drive(&mut self, now: Instant) {
        let connection = &mut self.connection;
        match &mut self.application {
            Application::Source(source) => {
                while connection.is_writable() {
                    let wants = u32::try_from(source.wants(now)).unwrap_or(WRITE_MAX).min(WRITE_MAX);
                    let written = if wants > 0 { connection.write_length(wants) } else { 0 };
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
            Application::Sink(sink) => {
                let read = read(connection, sink, now);
                if read > 0 {
                    sink.took(now, read);
                    self.last_read = Some(now);
                }
                if self.finished.is_none() && connection.is_read_finished() {
                    self.finished = Some(now);
                    connection.close();
                }
            }
        }
    }

    /// When the application or the connection has something to do.
    fn poll_timeout(&self, now: Instant) -> Option<Instant> {
        let application = match &self.application {
            Application::Source(source) => source.next_change(now),
            Application::Sink(sink) if self.connection.readable() > 0 => sink.next_change(now),
            Application::Sink(_) => None,
        };
        earlier(self.connection.poll_timeout(), application)
    }
}

fn earlier(a: Option<Instant>, b: Option<Instant>) -> Option<Instant> {
    match (a, b) {
        (Some(a), Some(b)) => Some(a.min(b)),
        (a, b) => a.or(b),
    }
}

/// Reads what the sink wants.
fn read(connection: &mut Connection, sink: &Sink, now: Instant) -> u64 {
    let wants = sink.wants(now);
    if connection.readable() == 0 || wants == 0 {
        return 0;
    }
    if wants == u64::MAX {
        return connection.read_all(now);
    }
    let mut left = usize::try_from(wants).unwrap_or(usize::MAX);
    let mut read = 0;
    while let Some(payload) = (left > 0).then(|| connection.read(now, left)).flatten() {
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
        let sent = self.live.iter().any(|&end| self.ends[end].connection.transmit_into(now, packet));
        sent.then_some(HOST)
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
