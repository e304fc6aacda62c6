//! The transfers between one pair of hosts, and their progress step by step.

use paceline_tcp::CloseReason;
use paceline_wire::{Duration, Instant};

use crate::host::{SimNode, TransferEnd};
use crate::measure::Quantiles;
use crate::network::{Network, NodeId};
use crate::result::{Direction, FlowResult, mbps};
use crate::run::RunObserver;
use crate::scenario::{Flow, Load, Transport};

/// One transfer, or several sequential ones.
pub(super) struct Group {
    name: String,
    direction: Direction,
    first_index: u32,
    /// Number of its first transfer among all transfers of the scenario.
    first_transfer: usize,
    count: u32,
    start: Instant,
    server: NodeId,
    client: NodeId,
    endless: bool,
    is_tcp: bool,
    tracks: Vec<Track>,
}

/// Notes about a transfer from every step.
#[derive(Clone, Debug, Default)]
struct Track {
    srtt: Quantiles,
    looks: u32,
    /// Bytes read at the last even look.
    read: u64,
    gap: Duration,
    longest_gap: Duration,
}

impl Group {
    pub(super) fn new(flow: &Flow, pair: u32, start: Instant, (server, client): (NodeId, NodeId)) -> Group {
        let (endless, is_tcp) = match &flow.transport {
            Transport::Tcp(tcp) => (!matches!(tcp.load, Load::Size(_)), true),
            Transport::Udp { .. } | Transport::Ping => (true, false),
        };
        Group {
            name: flow.name.clone(),
            direction: flow.direction,
            first_index: pair,
            first_transfer: 0,
            count: if flow.sequential { flow.count } else { 1 },
            start,
            server,
            client,
            endless,
            is_tcp,
            tracks: Vec::new(),
        }
    }

    /// Sets the number of its first transfer among all transfers of the scenario.
    pub(super) fn numbered(self, first_transfer: usize) -> Group {
        Group { first_transfer, ..self }
    }

    /// True if it goes on as long as the scenario.
    pub(super) fn is_endless(&self) -> bool {
        self.endless
    }

    /// The host that sends data.
    pub(super) fn sender(&self) -> NodeId {
        if self.direction == Direction::Down { self.server } else { self.client }
    }

    fn receiver(&self) -> NodeId {
        if self.direction == Direction::Down { self.client } else { self.server }
    }

    /// True if all its transfers are over. Endless transfers always count as over.
    pub(super) fn is_done(&self, network: &Network<SimNode>) -> bool {
        self.endless || {
            let over = |node| {
                let ends = ends(network, node);
                ends.len() == self.count as usize && ends.iter().all(TransferEnd::is_over)
            };
            // If one host was refused or gave up, the other is not waited for.
            let failed = |node| ends(network, node).iter().any(|end| failure(end).is_some());
            (over(self.server) && over(self.client)) || failed(self.server) || failed(self.client)
        }
    }

    /// Looks at the transfers after a step. If fewer than `enough` bytes (down and up) arrive in a step, this is a gap.
    pub(super) fn look(
        &mut self,
        network: &Network<SimNode>,
        now: Instant,
        enough: [u64; 2],
        findings: &mut Vec<String>,
        watch: &mut dyn RunObserver,
    ) {
        let received = ends(network, self.receiver());
        let watched = watch.observes_ends();
        for end in ends(network, self.sender()).iter().filter(|end| !end.is_over()) {
            let pulse = end.connection.pulse();
            let pipe = i64::from(pulse.unacked) - i64::from(pulse.sacked) - i64::from(pulse.lost)
                + i64::from(pulse.retrans);
            if i64::from(pulse.in_flight) != pipe && findings.len() < FINDINGS_MAX {
                findings.push(format!("{} {}: pipe {} is not {pipe}", self.name, end.index, pulse.in_flight));
            }
            let track = track(&mut self.tracks, end.index);
            if pulse.rtt > 0 {
                track.srtt.record(Duration::from_micros(pulse.rtt));
            }
            if !watched {
                continue;
            }
            // Both hosts of a pair open their transfers in the same order.
            let peer = received.get(end.index as usize).filter(|peer| peer.index == end.index);
            let transfer = self.first_transfer + end.index as usize;
            if let Some(peer) = peer {
                watch.receiver(now, transfer, &peer.status(now));
            }
            watch.sender(now, transfer, &end.status(now), peer.map_or(0, TransferEnd::read));
        }
        let enough = enough[usize::from(self.direction == Direction::Up)];
        for end in ends(network, self.receiver()).iter().filter(|end| end.finished.is_none()) {
            track(&mut self.tracks, end.index).look(end.read(), enough);
        }
    }

    /// Returns one result for each transfer.
    pub(super) fn results(&self, network: &Network<SimNode>) -> Vec<FlowResult> {
        (0..self.count).map(|index| self.result(network, index)).collect()
    }

    fn result(&self, network: &Network<SimNode>, index: u32) -> FlowResult {
        let now = network.now();
        let mut result = FlowResult {
            name: self.name.clone(),
            index: self.first_index + index,
            direction: self.direction,
            start_s: self.start.saturating_since(network.began()).as_secs_f64(),
            ..FlowResult::default()
        };
        if !self.is_tcp {
            match network.node(self.receiver()) {
                SimNode::DatagramSink(sink) => result.bytes = sink.bytes,
                SimNode::PingClient(ping) => {
                    (result.bytes, result.rtt_ms) = (ping.bytes, ping.rtt.percentiles());
                }
                _ => {}
            }
            self.complete(&mut result, now.saturating_since(self.start));
            return result;
        }
        let of = |node| ends(network, node).iter().find(|end| end.index == index);
        let Some(client) = of(self.client) else {
            result.error = Some("never began".into());
            return result;
        };
        result.start_s = client.opened.saturating_since(network.began()).as_secs_f64();
        if let Some(sender) = of(self.sender()) {
            let status = sender.status(now);
            result.retransmitted_segments = status.sent.total_retrans;
            result.timeouts = status.episodes.total_rto;
            result.tail_loss_probes = status.episodes.loss_probes;
            result.recoveries = status.episodes.recoveries;
            result.stalled_recoveries = status.episodes.stalled_recoveries;
        }
        if let Some(track) = self.tracks.get(index as usize) {
            result.rtt_ms = track.srtt.percentiles();
            result.longest_gap_s = track.longest_gap.as_secs_f64();
        }
        let (sender, receiver) = (of(self.sender()), of(self.receiver()));
        result.bytes = receiver.map_or(0, TransferEnd::read);
        let last = if self.endless { Some(now) } else { receiver.and_then(|end| end.last_read) };
        let span = last.map_or(Duration::ZERO, |last| last.saturating_since(client.opened));
        result.goodput_mbps = mbps(result.bytes, span);
        result.error = why_not_completed(self.endless, sender, receiver, now);
        if result.error.is_none() {
            self.complete(&mut result, span);
        }
        result
    }

    fn complete(&self, result: &mut FlowResult, span: Duration) {
        result.goodput_mbps = mbps(result.bytes, span);
        result.completion_s = Some(span.as_secs_f64());
        result.completed = true;
    }
}

impl Track {
    fn look(&mut self, read: u64, enough: u64) {
        self.looks += 1;
        if !self.looks.is_multiple_of(2) {
            return;
        }
        if read - self.read.min(read) < 2 * enough.max(1) {
            self.gap += GAP_STEP;
            self.longest_gap = self.longest_gap.max(self.gap);
        } else {
            self.gap = Duration::ZERO;
        }
        self.read = read;
    }
}

/// The time between two even looks.
const GAP_STEP: Duration = Duration::from_millis(200);
const FINDINGS_MAX: usize = 20;

fn track(tracks: &mut Vec<Track>, index: u32) -> &mut Track {
    let index = index as usize;
    if tracks.len() <= index {
        tracks.resize(index + 1, Track::default());
    }
    &mut tracks[index]
}

fn ends(network: &Network<SimNode>, node: NodeId) -> &[TransferEnd] {
    match network.node(node) {
        SimNode::Tcp(host) => host.ends(),
        _ => &[],
    }
}

fn failure(end: &TransferEnd) -> Option<CloseReason> {
    end.connection.close_reason().filter(|reason| *reason != CloseReason::Finished)
}

fn why_not_completed(
    endless: bool,
    sender: Option<&TransferEnd>,
    receiver: Option<&TransferEnd>,
    now: Instant,
) -> Option<String> {
    let (Some(sender), Some(receiver)) = (sender, receiver) else {
        return Some("only one end was ever there".into());
    };
    if let Some(reason) = failure(sender).or(failure(receiver)) {
        return Some(format!("{reason:?}"));
    }
    if endless {
        return None;
    }
    if sender.is_over() && receiver.is_over() {
        let (read, written) = (receiver.read(), sender.written());
        return (read != written).then(|| format!("{read} bytes were read of {written} that were written"));
    }
    let since = receiver.last_read.unwrap_or(receiver.opened);
    Some(format!("not over at {:.1} s, last read at {:.1} s", now.as_secs_f64(), since.as_secs_f64()))
}
