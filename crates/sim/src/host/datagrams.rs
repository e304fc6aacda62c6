//! A source of datagrams at a constant rate, and their sink.

use paceline_wire::{Duration, FlowKey, Instant, Node, Packet, Payload, PortId};

use super::port::HOST;

/// Sends datagrams.
#[derive(Clone, Debug)]
pub(crate) struct DatagramSource {
    key: FlowKey,
    payload_bytes: u32,
    interval: Duration,
    next: Instant,
    end: Instant,
}

/// Receives datagrams.
#[derive(Clone, Debug, Default)]
pub(crate) struct DatagramSink {
    /// IP bytes.
    pub(crate) bytes: u64,
}

impl DatagramSource {
    pub(crate) fn new(key: FlowKey, ip_bytes: u32, interval: Duration, from: Instant, end: Instant) -> Self {
        let headers = if key.src.is_ipv4() { 28 } else { 48 };
        let payload_bytes = ip_bytes.saturating_sub(headers);
        DatagramSource { key, payload_bytes, interval: interval.max(SHORTEST), next: from, end }
    }
}

/// Our choice: no link sends a packet in less time. An interval of zero would stop the time.
const SHORTEST: Duration = Duration::from_nanos(1);

impl Node for DatagramSource {
    fn handle_packet(&mut self, _arrival: Instant, _port: PortId, _packet: Packet) {}

    fn handle_timeout(&mut self, _now: Instant) {}

    fn poll_transmit(&mut self, now: Instant) -> Option<(PortId, Packet)> {
        if self.next > now || self.next >= self.end {
            return None;
        }
        self.next += self.interval;
        Some((HOST, Packet::build_udp(self.key, Payload::Length(self.payload_bytes))))
    }

    fn poll_timeout(&self) -> Option<Instant> {
        Some(self.next).filter(|next| *next < self.end)
    }
}

impl Node for DatagramSink {
    fn handle_packet(&mut self, _arrival: Instant, _port: PortId, packet: Packet) {
        self.bytes += packet.ip_len() as u64;
    }

    fn handle_timeout(&mut self, _now: Instant) {}

    fn poll_transmit(&mut self, _now: Instant) -> Option<(PortId, Packet)> {
        None
    }

    fn poll_timeout(&self) -> Option<Instant> {
        None
    }
}
