//! A ping, and the host that answers it. Its requests are UDP datagrams (RFC 862): switches of the simulator lead
//! packets by their ports. Links and the gateway treat them as they treat ICMP.

use std::collections::VecDeque;

use paceline_wire::{Duration, FlowKey, Instant, Node, Packet, PortId};

use super::port::HOST;
use crate::measure::Quantiles;

/// Sends a request in each interval and measures the round trips of the answers.
#[derive(Clone, Debug)]
pub(crate) struct PingClient {
    key: FlowKey,
    from: Instant,
    interval: Duration,
    end: Instant,
    sent: u32,
    /// Round-trip times of the answers.
    pub(crate) rtt: Quantiles,
    /// IP bytes of the answers.
    pub(crate) bytes: u64,
}

/// Returns each request to its sender.
#[derive(Clone, Debug)]
pub(crate) struct PingServer {
    /// Leads from the server to the client.
    key: FlowKey,
    answers: VecDeque<Packet>,
}

/// The length that `ping` sends unless told otherwise: 56 bytes behind a header of 8.
const PAYLOAD_BYTES: usize = 56;
/// The interval of `ping` unless told otherwise.
const INTERVAL: Duration = Duration::from_secs(1);

impl PingClient {
    /// `key` leads from the client to the server. Without an interval there is a request each second.
    pub(crate) fn new(key: FlowKey, interval: Duration, from: Instant, end: Instant) -> Self {
        let interval = if interval == Duration::ZERO { INTERVAL } else { interval };
        PingClient { key, from, interval, end, sent: 0, rtt: Quantiles::new(), bytes: 0 }
    }

    fn sent_at(&self, number: u32) -> Instant {
        self.from + self.interval * u64::from(number)
    }
}

impl Node for PingClient {
    fn handle_packet(&mut self, arrival: Instant, _port: PortId, packet: Packet) {
        let number = packet.payload().bytes().and_then(|bytes| bytes.first_chunk()).copied();
        if let Some(number) = number {
            self.rtt.record(arrival.saturating_since(self.sent_at(u32::from_be_bytes(number))));
            self.bytes += packet.ip_len() as u64;
        }
    }

    fn handle_timeout(&mut self, _now: Instant) {}

    fn poll_transmit(&mut self, now: Instant) -> Option<(PortId, Packet)> {
        self.poll_timeout().filter(|next| *next <= now)?;
        let mut payload = vec![0; PAYLOAD_BYTES];
        payload[..4].copy_from_slice(&self.sent.to_be_bytes());
        self.sent += 1;
        Some((HOST, Packet::build_udp(self.key, payload.into())))
    }

    fn poll_timeout(&self) -> Option<Instant> {
        Some(self.sent_at(self.sent)).filter(|next| *next < self.end)
    }
}

impl PingServer {
    /// `key` leads from the server to the client.
    pub(crate) fn new(key: FlowKey) -> Self {
        PingServer { key, answers: VecDeque::new() }
    }
}

impl Node for PingServer {
    fn handle_packet(&mut self, _arrival: Instant, _port: PortId, packet: Packet) {
        self.answers.push_back(Packet::build_udp(self.key, packet.payload().clone()));
    }

    fn handle_timeout(&mut self, _now: Instant) {}

    fn poll_transmit(&mut self, _now: Instant) -> Option<(PortId, Packet)> {
        self.answers.pop_front().map(|answer| (HOST, answer))
    }

    fn poll_timeout(&self) -> Option<Instant> {
        None
    }
}
