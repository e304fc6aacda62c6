//! The smaller path MTU of a flow, as ICMP messages tell it (RFC 1191, RFC 8201).
//!
//! Kept data leaves in packets that fit, cut anew if need be. A message only lowers a number. It costs the same
//! whatever is kept, and the server has to send nothing again.

use paceline_wire::{Duration, Instant};

use crate::retransmit_buffer::Chunk;

/// RFC 1191, Section 6.3, and RFC 8201, Section 4: the path MTU may have grown after ten minutes.
const FORGOTTEN: Duration = Duration::from_secs(600);
/// Our choice: ten messages a second are believed of a flow. A Linux router sends one (net.ipv4.icmp_ratelimit).
const PAUSE: Duration = Duration::from_millis(100);

/// The path MTU that is known.
#[derive(Clone, Copy, Debug, Default, serde::Serialize, serde::Deserialize)]
pub(crate) struct PathMtu {
    /// Bytes of an IP packet; zero while unknown.
    bytes: u64,
    noted_at: Instant,
}

impl PathMtu {
    /// Takes a router's message that IP packets of `bytes` fit. True if it is news.
    pub(crate) fn on_message(&mut self, now: Instant, bytes: u64) -> bool {
        let age = now.saturating_since(self.noted_at);
        let is_news = self.bytes == 0 || age >= FORGOTTEN || (bytes < self.bytes && age >= PAUSE);
        if is_news {
            *self = PathMtu { bytes, noted_at: now };
        }
        is_news
    }

    /// Payload of the largest packet that fits with its `headers` bytes (RFC 1191, Section 3: the MTU counts both).
    fn payload(&self, headers: usize) -> u64 {
        if self.bytes == 0 { u64::MAX } else { self.bytes.saturating_sub(headers as u64).max(1) }
    }

    /// Payload of the largest packet of this chunk that the path takes.
    pub(super) fn fits(&self, chunk: &Chunk) -> u64 {
        self.payload(chunk.whole().header().len())
    }

    /// Payload of one wire packet of this chunk.
    pub(super) fn segment_of(&self, chunk: &Chunk) -> u64 {
        chunk.segment_len().min(self.fits(chunk))
    }

    /// Returns the end of a packet of this chunk from `start`: at most `limit` bytes long, but at least one segment.
    pub(super) fn piece_end(&self, chunk: &Chunk, start: u64, limit: u64) -> u64 {
        chunk.piece_end(start, limit, self.fits(chunk))
    }
}

#[cfg(test)]
mod tests {
    use paceline_wire::{Flags, FlowKey, Node, Packet, Payload, Seq, TcpOptionsRepr, TcpRepr};

    use crate::{Gateway, GatewayConfig, RADIO, WAN};

    use super::*;

    fn key() -> FlowKey {
        FlowKey { src: "10.0.0.2:40000".parse().unwrap(), dst: "10.0.1.1:80".parse().unwrap() }
    }

    fn packet(key: FlowKey, seq: u32, ack: u32, flags: Flags, len: u32) -> Packet {
        let options = TcpOptionsRepr {
            mss: flags.contains(Flags::SYN).then_some(1_460),
            window_scale: flags.contains(Flags::SYN).then_some(7),
            ..Default::default()
        };
        let repr =
            TcpRepr { seq: Seq(seq), ack: Seq(ack), flags, window: 60_000, options, ..Default::default() };
        Packet::build_tcp(key, &repr, Payload::Length(len))
    }

    /// A router's message about the packet with this number.
    fn too_big(seq: u32, mtu: u16) -> Packet {
        let quoted = packet(key().reversed(), seq, 1, Flags::ACK, 0).to_vec();
        let mut ip =
            alloc::vec![0x45, 0, 0, 56, 0, 0, 0, 0, 64, 1, 0, 0, 10, 0, 1, 99, 10, 0, 1, 1, 3, 4, 0, 0, 0, 0];
        ip.extend(mtu.to_be_bytes());
        ip.extend(&quoted[..28]);
        Packet::parse(&[], &ip, &mut paceline_wire::BufferPool::new(1 << 16)).unwrap()
    }

    /// Ten thousand chunks are kept, and 500 messages come a second. None looks at more than one chunk.
    #[test]
    fn a_message_costs_the_same_whatever_is_kept() {
        let mut gateway = Gateway::new(GatewayConfig::default());
        let mut now = Instant::ZERO + Duration::from_secs(1);
        gateway.handle_packet(now, RADIO, packet(key(), 0, 0, Flags::SYN, 0));
        gateway.handle_packet(now, WAN, packet(key().reversed(), 0, 1, Flags::SYN | Flags::ACK, 0));
        gateway.handle_packet(now, RADIO, packet(key(), 1, 1, Flags::ACK, 0));
        for n in 0..10_000 {
            gateway.handle_packet(now, WAN, packet(key().reversed(), 1 + n * 100, 1, Flags::ACK, 100));
        }
        let id = gateway.table.find(&key()).unwrap();
        let kept = gateway.table.flow(id).unwrap().buffer.bytes();
        assert!(kept > 1_000_000, "{kept}");
        let looks = |gateway: &Gateway| gateway.table.flow(id).unwrap().buffer.looks.get();
        for mtu in (500..2_000).rev() {
            now += Duration::from_millis(2);
            let before = looks(&gateway);
            gateway.handle_packet(now, RADIO, too_big(1, mtu));
            assert!(looks(&gateway) - before <= 1, "{mtu}");
        }
        // Ten messages a second lower the MTU that is believed, and none below the floor.
        let known = gateway.table.flow(id).unwrap().path_mtu;
        assert!((552..2_000 - 10).contains(&known.bytes), "{known:?}");
        assert_eq!(gateway.table.flow(id).unwrap().buffer.bytes(), kept);
    }

    /// A split flow's own sender cuts its packets anew at each message that is believed: ten a second.
    #[test]
    fn a_split_flow_believes_ten_messages_a_second() {
        let config = GatewayConfig { mode: crate::config::FlowMode::Split, ..GatewayConfig::default() };
        let mut gateway = Gateway::new(config);
        let now = Instant::ZERO + Duration::from_secs(1);
        let tell = |gateway: &mut Gateway, port, packet| {
            gateway.handle_packet(now, port, packet);
            core::iter::from_fn(|| gateway.poll_transmit(now)).collect::<alloc::vec::Vec<_>>()
        };
        tell(&mut gateway, RADIO, packet(key(), 0, 0, Flags::SYN, 0));
        tell(&mut gateway, WAN, packet(key().reversed(), 0, 1, Flags::SYN | Flags::ACK, 0));
        tell(&mut gateway, RADIO, packet(key(), 1, 1, Flags::ACK, 0));
        let sent = tell(&mut gateway, WAN, packet(key().reversed(), 1, 1, Flags::ACK, 1_000));
        assert!(sent.iter().any(|(port, packet)| *port == RADIO && packet.payload().len() == 1_000));
        for mtu in (600..900).rev() {
            tell(&mut gateway, RADIO, too_big(1, mtu));
        }
        let sent = tell(&mut gateway, WAN, packet(key().reversed(), 1_001, 1, Flags::ACK, 1_400));
        let longest = sent.iter().filter(|(port, _)| *port == RADIO).map(|(_, packet)| packet.ip_len()).max();
        assert_eq!(longest, Some(899), "of 300 messages in one moment the first one counts");
    }
}
