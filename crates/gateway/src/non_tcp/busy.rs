//! Number of busy datagram flows. Each gets a share, as each TCP flow does.

use core::net::IpAddr;

use paceline_wire::{Duration, Instant, Packet};

/// Our choice: flows with the same hash count as one. One subscriber rarely has 32 busy flows.
const PLACES: usize = 32;
/// Interval over which bytes are counted. Our choice: some round trips.
const PERIOD: Duration = Duration::from_millis(500);
/// Our choice: 128 kbit/s. A name lookup or a call stays below it and is no download.
const BUSY_BYTES: u32 = 8_000;

/// Bytes of each hash in this period.
#[derive(Debug, Default, serde::Serialize, serde::Deserialize)]
pub(super) struct BusyFlows {
    bytes: [u32; PLACES],
    since: Instant,
    /// Number of busy places in the last period.
    before: u32,
}

impl BusyFlows {
    pub(super) fn on_packet(&mut self, now: Instant, packet: &Packet) {
        self.roll(now);
        let place = &mut self.bytes[hash(packet) % PLACES];
        *place = place.saturating_add(packet.ip_len() as u32);
    }

    /// Returns the number of busy flows, at least one.
    pub(super) fn flows(&mut self, now: Instant) -> u32 {
        self.roll(now);
        self.before.max(1)
    }

    fn roll(&mut self, now: Instant) {
        let passed = now.saturating_since(self.since);
        if passed < PERIOD {
            return;
        }
        let busy = self.bytes.iter().filter(|bytes| **bytes >= BUSY_BYTES).count() as u32;
        // A flow that was busy before a silence no longer is.
        self.before = if passed < PERIOD * 2 { busy } else { 0 };
        self.bytes = [0; PLACES];
        self.since = now;
    }
}

/// Hashes addresses and ports by FNV-1a. A client may choose ports with different hashes. It then gets as many shares
/// as with as many TCP flows.
fn hash(packet: &Packet) -> usize {
    let mut hash = 0xcbf2_9ce4_8422_2325u64;
    let mut add = |byte: u8| hash = (hash ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3);
    if let Some((src, dst)) = packet.addresses() {
        for address in [src, dst] {
            match address {
                IpAddr::V4(address) => address.octets().into_iter().for_each(&mut add),
                IpAddr::V6(address) => address.octets().into_iter().for_each(&mut add),
            }
        }
    }
    if let Some((src, dst)) = packet.udp_ports() {
        [src, dst].into_iter().flat_map(u16::to_be_bytes).for_each(&mut add);
    }
    (hash ^ hash >> 32) as usize
}

#[cfg(test)]
mod tests {
    use paceline_wire::{FlowKey, Payload};

    use super::*;

    #[test]
    fn downloads_count_and_small_talk_does_not() {
        let mut busy = BusyFlows::default();
        let server = "192.0.2.1:443".parse().unwrap();
        let mut now = Instant::ZERO;
        for ms in 0..2_000 {
            now = Instant::ZERO + Duration::from_millis(ms);
            for port in 0..3u16 {
                let to = ([10, 0, 0, 2], 40_000 + port).into();
                busy.on_packet(now, &Packet::build_udp(FlowKey::new(server, to), Payload::Length(1_200)));
            }
            if ms % 100 == 0 {
                let to = ([10, 0, 0, 2], 50_000 + ms as u16).into();
                busy.on_packet(now, &Packet::build_udp(FlowKey::new(server, to), Payload::Length(100)));
            }
        }
        assert_eq!(busy.flows(now), 3);
        assert_eq!(busy.flows(now + Duration::from_secs(5)), 1);
    }
}
