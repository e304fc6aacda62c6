//! Results of a run.

use paceline_linux::Quantiles;
use paceline_wire::{Duration, Instant, Rate};

use super::connection::{Receiver, Role, Sender};
use super::host::{End, HostReport};
use super::mib::MibSample;
use super::tcp_info::TcpSample;
use super::traffic::{Direction, Traffic, Transfer};

/// All measurements at the hosts.
#[derive(Debug)]
pub struct TrafficReport {
    /// The start of the run.
    pub start: Instant,
    /// Reports in the order of [`Traffic::transfers`].
    pub transfers: Vec<TransferReport>,
    /// Reports in the order of [`Traffic::streams`].
    pub streams: Vec<UdpReport>,
    /// Counters of the server's TCP over time.
    pub server_mib: Vec<MibSample>,
}

/// One TCP transfer.
#[derive(Clone, Debug, Default)]
pub struct TransferReport {
    /// The transfer's name.
    pub name: String,
    /// The transfer's direction.
    pub direction: Direction,
    /// Time at which the client sent its first SYN.
    pub began: Option<Instant>,
    /// Time at which the receiving application read its first byte.
    pub first_byte: Option<Instant>,
    /// Time at which the receiving application read its last byte.
    pub last_byte: Option<Instant>,
    /// Payload that the receiving application read.
    pub received_bytes: u64,
    /// Payload that the sending application wrote.
    pub sent_bytes: u64,
    /// All sent bytes were received, and both ends closed in order.
    pub completed: bool,
    /// SHA-256 at both ends is equal. False for an unfinished transfer, `None` without verification.
    pub sha256_ok: Option<bool>,
    /// Why the transfer did not complete.
    pub failure: Option<String>,
    /// The longest time between two reads with data, and when it began.
    pub longest_gap: Option<(Instant, Duration)>,
    /// Data segments sent, retransmissions included.
    pub sent_segments: u64,
    /// Segments retransmitted by the sender's kernel.
    pub retransmitted_segments: u64,
    /// Retransmission timeouts of the sender. Before Linux 6.7 only its namespace counts them. In that case, the
    /// namespace's count if no other transfer ran there. Otherwise the number of samples in which a loss state began.
    pub timeouts: u64,
    /// Tail-loss probes of the sender. `None` if another transfer ran in its namespace, whose counter is for all
    /// transfers together.
    pub tail_loss_probes: Option<u64>,
    /// The sender's smoothed round-trip time in all samples.
    pub rtt: Quantiles,
    /// The sender's TCP state over time.
    pub samples: Vec<TcpSample>,
    /// Received payload in each sample interval from the start of the run.
    pub received_bins: Vec<u64>,
}

impl TransferReport {
    /// Returns the time from the first SYN to the last byte, if the transfer completed.
    pub fn completion(&self) -> Option<Duration> {
        if self.completed { self.elapsed() } else { None }
    }

    /// Returns the rate of received payload from the first SYN to the last byte.
    pub fn goodput(&self) -> Rate {
        self.elapsed().map_or(Rate::ZERO, |elapsed| Rate::from_bytes_in(self.received_bytes, elapsed))
    }

    fn elapsed(&self) -> Option<Duration> {
        Some(self.last_byte?.saturating_since(self.began?))
    }

    fn take_sender(&mut self, sender: Sender) {
        self.sent_bytes = sender.sent_bytes;
        for sample in sender.samples.iter().filter(|sample| sample.rtt_us > 0) {
            self.rtt.record(Duration::from_micros(u64::from(sample.rtt_us)));
        }
        if let Some(last) = sender.samples.last() {
            self.sent_segments = u64::from(last.sent_segments);
            self.retransmitted_segments = u64::from(last.retransmitted_segments);
        }
        self.samples = sender.samples;
    }

    fn take_receiver(&mut self, receiver: Receiver) {
        self.received_bytes = receiver.received_bytes;
        self.first_byte = receiver.first_byte;
        self.last_byte = receiver.last_byte;
        self.longest_gap = receiver.longest_gap;
        self.received_bins = receiver.bins;
    }
}

/// One stream of UDP datagrams.
#[derive(Clone, Debug, Default)]
pub struct UdpReport {
    /// The stream's name.
    pub name: String,
    /// The stream's direction.
    pub direction: Direction,
    /// Datagrams that the kernel accepted for sending.
    pub sent_datagrams: u64,
    /// Datagrams that arrived.
    pub received_datagrams: u64,
    /// Bytes of IP packets that arrived.
    pub received_ip_bytes: u64,
    /// Received IP bytes over the time from start to stop.
    pub throughput: Rate,
    /// Delay from the sending to the receiving application.
    pub delay: Quantiles,
    /// Received IP bytes in each sample interval from the start of the run.
    pub received_bins: Vec<u64>,
    /// Why the stream did not run.
    pub failure: Option<String>,
}

/// Joins the reports of the two hosts.
pub(super) fn join(
    traffic: &Traffic,
    start: Instant,
    mut server: HostReport,
    mut client: HostReport,
) -> TrafficReport {
    let spans: Vec<_> = (traffic.transfers.iter().zip(&client.ends))
        .map(|(transfer, end)| (transfer.direction, end.began, end.ended))
        .collect();
    let mut transfers = Vec::new();
    for (index, transfer) in traffic.transfers.iter().enumerate() {
        let alone =
            !spans.iter().enumerate().any(|(other, span)| other != index && overlap(spans[index], *span));
        let ends = (std::mem::take(&mut server.ends[index]), std::mem::take(&mut client.ends[index]));
        transfers.push(join_transfer(transfer, ends, alone, traffic.verify));
    }
    TrafficReport { start, transfers, streams: Vec::new(), server_mib: server.mib }
}

type Span = (Direction, Option<Instant>, Option<Instant>);

/// True if two transfers ran at the same time with the same sending host.
fn overlap(one: Span, other: Span) -> bool {
    let ((Some(a), Some(b)), (Some(c), Some(d))) = ((one.1, one.2), (other.1, other.2)) else { return false };
    one.0 == other.0 && a < d && c < b
}

fn join_transfer(transfer: &Transfer, ends: (End, End), alone: bool, verify: bool) -> TransferReport {
    let (server, client) = ends;
    let began = client.began;
    let (sender, receiver) = match transfer.direction {
        Direction::Down => (server, client),
        Direction::Up => (client, server),
    };
    let mut report = TransferReport {
        name: transfer.name.clone(),
        direction: transfer.direction,
        began,
        failure: receiver.failure.clone().or_else(|| sender.failure.clone()),
        ..TransferReport::default()
    };
    let both_finished = sender.finished && receiver.finished;
    let counted = sender.mib_at_end.since(&sender.mib_at_start);
    let (mut sent_digest, mut received_digest, mut wrote_all) = (None, None, false);
    if let Some(Role::Sender(sender)) = sender.role {
        sent_digest = sender.digest();
        wrote_all = sender.is_complete();
        report.take_sender(*sender);
    }
    if let Some(Role::Receiver(receiver)) = receiver.role {
        received_digest = receiver.digest();
        report.take_receiver(*receiver);
    }
    report.completed = both_finished && wrote_all && report.sent_bytes == report.received_bytes;
    report.sha256_ok =
        verify.then(|| report.completed && sent_digest.is_some() && sent_digest == received_digest);
    report.timeouts = match report.samples.last().and_then(|sample| sample.timeouts) {
        Some(timeouts) => u64::from(timeouts),
        None if alone => counted.timeouts,
        None => loss_states(&report.samples),
    };
    report.tail_loss_probes = alone.then_some(counted.tail_loss_probes);
    report
}

fn loss_states(samples: &[TcpSample]) -> u64 {
    let begins = samples.windows(2).filter(|pair| !pair[0].in_loss_state && pair[1].in_loss_state);
    begins.count() as u64
}
