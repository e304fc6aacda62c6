//! Floods of similar packets.

use std::net::{IpAddr, SocketAddr};

use paceline_gateway::config::FlowMode;
use paceline_gateway::{RADIO, WAN};
use paceline_wire::{BufferPool, Duration, Flags, FlowKey, Node, Packet, TcpOptionsRepr, TcpRepr};

use crate::world::{
    MAX_FLOWS, World, address, config, conspirators, header, open, segment, victim, withstands,
};

/// Packets in one burst of a flood.
const BURST: u64 = 100;

#[test]
fn syns_from_one_client() {
    withstands(|world| {
        for _ in 0..BURST {
            let key = conspirators(world.random.below(60_000) as u16);
            world.inject(RADIO, segment(key, header(0, 0, Flags::SYN), &[]));
        }
    });
}

#[test]
fn syns_from_everywhere() {
    withstands(|world| {
        for _ in 0..BURST {
            let source = IpAddr::V4((world.random.below(1 << 32) as u32).into());
            let key = FlowKey { src: SocketAddr::new(source, 1_024), dst: conspirators(0).dst };
            world.inject(RADIO, segment(key, header(0, 0, Flags::SYN), &[]));
        }
    });
}

#[test]
fn syns_from_the_servers_side() {
    withstands(|world| {
        for _ in 0..BURST {
            let key = conspirators(world.random.below(60_000) as u16).reversed();
            world.inject(WAN, segment(key, header(0, 0, Flags::SYN), &[]));
        }
    });
}

/// After the flood, a table that was full accelerates flows again.
#[test]
fn a_full_table_empties() {
    for mode in [FlowMode::Transparent, FlowMode::Split] {
        let mut world = World::new(config(mode));
        for n in 0..2 * MAX_FLOWS as u16 {
            let syn = segment(conspirators(n), header(0, 0, Flags::SYN), &[]);
            world.gateway.handle_packet(world.now, RADIO, syn);
        }
        assert!(
            world.gateway.flows() <= MAX_FLOWS * 4 / 5,
            "one client left {} places",
            MAX_FLOWS - world.gateway.flows()
        );
        for n in 0..2 * MAX_FLOWS as u32 {
            // The number of half-open flows with servers in one network has a smaller limit.
            let server = SocketAddr::new(IpAddr::V4((n << 8).into()), 443);
            let key = FlowKey { src: SocketAddr::new(IpAddr::V4(n.into()), 1_024), dst: server };
            world.gateway.handle_packet(world.now, RADIO, segment(key, header(0, 0, Flags::SYN), &[]));
        }
        assert_eq!(world.gateway.flows(), MAX_FLOWS);
        for _ in 0..300 {
            world.now += Duration::from_secs(1);
            world.gateway.handle_timeout(world.now);
            while world.gateway.poll_transmit(world.now).is_some() {}
        }
        world.run(|_| {});
        assert!(world.gateway.flows() <= 1, "{mode:?}: {}", world.gateway.flows());
    }
}

/// A client that opens hundreds of flows leaves places for others, whose flows are accelerated as usual.
#[test]
fn one_client_does_not_fill_the_table() {
    let mut world = World::new(config(FlowMode::Auto));
    for n in 0..2 * MAX_FLOWS as u16 {
        open(&mut world, conspirators(n), TcpOptionsRepr::default());
    }
    let counters = *world.gateway.counters();
    assert!(counters.passed_too_many_flows > 0 && world.gateway.flows() < MAX_FLOWS);
    world.run(|_| {});
    assert_eq!(world.gateway.counters().flows_accelerated, counters.flows_accelerated + 1);
}

#[test]
fn segments_of_flows_that_do_not_exist() {
    withstands(|world| {
        for n in 0..BURST as u16 {
            let seq = world.random.below(1 << 32) as u32;
            world.inject(WAN, segment(conspirators(n).reversed(), header(seq, 0, Flags::ACK), &[1; 100]));
            world.inject(RADIO, segment(conspirators(n), header(seq, seq, Flags::ACK), &[]));
        }
    });
}

#[test]
fn connections_opened_and_reset() {
    withstands(|world| {
        for _ in 0..BURST / 10 {
            let key = conspirators(world.random.below(60_000) as u16);
            open(world, key, TcpOptionsRepr::default());
            world.inject(RADIO, segment(key, header(1, 1, Flags::RST), &[]));
        }
    });
}

/// The same duplicate ACK repeatedly.
#[test]
fn acknowledgements_without_end() {
    withstands(|world| {
        let key = conspirators(1);
        open(world, key, TcpOptionsRepr::default());
        for _ in 0..BURST {
            world.inject(RADIO, segment(key, header(1, 1, Flags::ACK), &[]));
        }
    });
}

/// RFC 9293, Section 3.8.4: the other end must answer each of them, and the gateway none.
#[test]
fn keep_alives_without_end() {
    withstands(|world| {
        let key = conspirators(1);
        open(world, key, TcpOptionsRepr::default());
        for _ in 0..BURST {
            world.inject(WAN, segment(key.reversed(), header(0, 1, Flags::ACK), &[]));
            world.inject(RADIO, segment(key, header(0, 1, Flags::ACK), &[]));
        }
    });
}

/// One byte each: headers cost more than the data.
#[test]
fn data_in_single_bytes() {
    withstands(|world| {
        let key = conspirators(1);
        open(world, key, TcpOptionsRepr { window_scale: Some(14), ..Default::default() });
        let base = world.random.below(1 << 20) as u32;
        for n in 0..BURST as u32 {
            world.inject(WAN, segment(key.reversed(), header(1 + base + 2 * n, 1, Flags::ACK), &[1]));
        }
    });
}

/// Each byte has its own piece of memory. The packets of all flows share this memory.
#[test]
fn memory_for_single_bytes() {
    const POOL: usize = 4 << 20;
    for mode in [FlowMode::Transparent, FlowMode::Split] {
        for first in [1, 2] {
            let mut config = config(mode);
            config.limits.max_buffer_bytes = POOL;
            let mut world = World::new(config);
            let key = conspirators(1);
            open(&mut world, key, TcpOptionsRepr { window_scale: Some(7), ..Default::default() });
            let mut pool = BufferPool::new(1 << 30);
            for n in 0..20_000 {
                let sent = segment(key.reversed(), header(first + n, 1, Flags::ACK), &[1]).to_vec();
                world.inject(WAN, Packet::parse(&[], &sent, &mut pool).unwrap());
            }
            assert!(world.gateway.buffered_bytes() > 100_000, "{mode:?}: little is kept");
            // Packets on the link do not count as the gateway's.
            let in_use = pool.in_use() - 300 * 2_048;
            assert!(in_use <= 2 * POOL, "{mode:?}, from {first}: {in_use} bytes");
        }
    }
}

/// Datagrams wait beside the data of clients that acknowledge nothing. Waiting bytes are charged like kept ones.
#[test]
fn memory_for_datagrams_that_wait() {
    const POOL: usize = 16 << 20;
    for mode in [FlowMode::Transparent, FlowMode::Split] {
        let mut config = config(mode);
        config.limits.max_buffer_bytes = POOL;
        // This makes TCP wait.
        config.sharing.capacity_mbps = Some(0.1);
        let mut world = World::new(config);
        let mut pool = BufferPool::new(1 << 30);
        let clients: Vec<FlowKey> = (0..20)
            .map(|n| FlowKey { src: SocketAddr::new(address(2, n), 1_024), ..conspirators(0) })
            .collect();
        for &key in &clients {
            open(&mut world, key, TcpOptionsRepr { window_scale: Some(7), ..Default::default() });
            for n in 0..100 {
                let data = header(1 + 1_000 * n, 1, Flags::ACK);
                let sent = segment(key.reversed(), data, &[1; 1_000]).to_vec();
                world.inject(WAN, Packet::parse(&[], &sent, &mut pool).unwrap());
            }
        }
        let tcp = world.gateway.buffered_bytes();
        for n in 0..100_000 {
            let key = clients[n % clients.len()];
            let datagram =
                Packet::build_udp(key.reversed(), paceline_wire::Payload::from(vec![0; 200])).to_vec();
            world.inject(WAN, Packet::parse(&[], &datagram, &mut pool).unwrap());
            assert!(world.gateway.buffered_bytes() <= POOL as u64);
        }
        let counters = *world.gateway.counters();
        assert!(counters.other_queued > 100 && counters.other_dropped > 0, "{mode:?}: {counters:?}");
        assert!(world.gateway.buffered_bytes() > tcp, "{mode:?}: what waits is not counted");
        let in_use = pool.in_use() - 300 * 2_048;
        assert!(in_use <= 2 * POOL, "{mode:?}: {in_use} bytes");
        // No datagram waits for longer than a tenth of a second. After that, nothing is charged for it.
        world.now += Duration::from_secs(1);
        world.gateway.handle_timeout(world.now);
        while world.gateway.poll_transmit(world.now).is_some() {}
        // Less than one datagram is left: a pure ACK of the honest flow.
        assert!(world.gateway.buffered_bytes() < tcp + 2_000, "{mode:?}: what has gone is still counted");
    }
}

/// Data for a client that never acknowledges, in as many flows as the table allows.
#[test]
fn data_that_nobody_takes() {
    withstands(|world| {
        for _ in 0..4 {
            let key = conspirators(world.random.below(3_000) as u16);
            let options = TcpOptionsRepr { window_scale: Some(14), ..Default::default() };
            open(world, key, options);
            for n in 0..20u32 {
                world.inject(WAN, segment(key.reversed(), header(1 + 1_000 * n, 1, Flags::ACK), &[1; 1_000]));
            }
        }
    });
}

#[test]
fn messages_about_paths() {
    withstands(|world| {
        for n in 0..BURST {
            let mut ip = vec![0x45, 0, 0, 56, 0, 0, 0, 0, 64, 1, 0, 0, 10, 0, 1, 99, 10, 0, 0, 1];
            ip.extend([3, (n % 16) as u8, 0, 0, 0, 0, 0, (n % 256) as u8]);
            ip.extend((0..28).map(|_| world.random.below(256) as u8));
            world.inject(RADIO, crate::malformed::parse(&ip));
            world.inject(WAN, crate::malformed::parse(&ip));
        }
        assert_eq!(world.gateway.counters().path_mtus_lowered, 0);
    });
}

/// Hosts with forged addresses: a server's address behind the radio link, and a client's address before it.
#[test]
fn addresses_on_the_wrong_side() {
    withstands(|world| {
        let (seq, ack) = (world.random.below(1 << 32) as u32, world.random.below(1 << 32) as u32);
        world.inject(RADIO, segment(victim().reversed(), header(seq, ack, Flags::ACK), &[1; 500]));
        world.inject(RADIO, segment(victim().reversed(), header(seq, ack, Flags::RST), &[]));
        world.inject(WAN, segment(victim(), header(seq, ack, Flags::ACK), &[]));
        world.inject(WAN, segment(victim(), header(seq, ack, Flags::RST), &[]));
        let spoofed = FlowKey { src: SocketAddr::new(address(0, 1), 80), dst: victim().src };
        world.inject(RADIO, segment(spoofed, TcpRepr { ..header(seq, 0, Flags::SYN) }, &[]));
    });
}
