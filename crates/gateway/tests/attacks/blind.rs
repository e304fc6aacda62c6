//! Packets with the victim's addresses and ports from an attacker who does not see its sequence numbers (RFC 5961).
//! Their numbers are random, or at the worst places for a near miss.

use paceline_gateway::config::FlowMode;
use paceline_gateway::{RADIO, WAN};
use paceline_tcp::{State, Status};
use paceline_wire::{Flags, TcpOptionsRepr, TcpRepr};

use crate::world::{FORGED, World, config, header, segment, victim, withstands};

/// Returns sequence numbers far from all acceptable ones: a quarter of the space ahead and behind, and a random one
/// beyond the largest windows.
fn far(world: &mut World, near: u64) -> [u32; 3] {
    let near = near as u32;
    let random = (1u32 << 28) + (world.random.below(1 << 31) as u32);
    [near.wrapping_add(1 << 30), near.wrapping_sub(1 << 30), near.wrapping_add(random)]
}

/// Attacks the open connection. `blow` knows what both ends would accept.
pub fn each(blow: impl Fn(&mut World, &Status, &Status)) {
    withstands(|world| {
        if let (Some(server), Some(client)) = (world.server(), world.client())
            && server.state == State::Established
            && client.state == State::Established
        {
            blow(world, &server, &client);
        }
    });
}

fn from_server(world: &mut World, repr: TcpRepr, payload: &[u8]) {
    world.inject(WAN, segment(victim().reversed(), repr, payload));
}

fn from_client(world: &mut World, repr: TcpRepr, payload: &[u8]) {
    world.inject(RADIO, segment(victim(), repr, payload));
}

#[test]
fn blind_resets_of_the_server() {
    each(|world, server, _| {
        for seq in far(world, server.window.snd_nxt) {
            from_server(world, header(seq, server.receiver.rcv_nxt as u32, Flags::RST | Flags::ACK), &[]);
        }
    });
}

/// RFC 5961, Section 3.2: a reset within the window, but not at its edge, is answered and not obeyed.
#[test]
fn resets_within_the_window() {
    each(|world, server, client| {
        let ahead = client.receiver.rcv_nxt as u32 + 10_000;
        from_server(world, header(ahead, 0, Flags::RST), &[]);
        from_client(world, header(server.receiver.rcv_nxt as u32 + 10_000, 0, Flags::RST), &[]);
    });
}

#[test]
fn blind_resets_of_the_client() {
    each(|world, _, client| {
        for seq in far(world, client.window.snd_nxt) {
            from_client(world, header(seq, 0, Flags::RST), &[]);
        }
    });
}

/// RFC 5961, Section 4.
#[test]
fn blind_syns_of_the_client() {
    each(|world, _, client| {
        let options = TcpOptionsRepr { mss: Some(1_460), window_scale: Some(2), ..Default::default() };
        for seq in far(world, client.window.snd_nxt) {
            from_client(world, TcpRepr { options, ..header(seq, 0, Flags::SYN) }, &[]);
        }
    });
}

#[test]
fn blind_syns_of_the_server() {
    each(|world, server, client| {
        for seq in far(world, server.window.snd_nxt) {
            from_server(world, header(seq, 0, Flags::SYN), &[]);
            from_server(world, header(seq, client.window.snd_nxt as u32, Flags::SYN | Flags::ACK), &[]);
        }
    });
}

/// A SYN-ACK that does not acknowledge the SYN (RFC 9293, Section 3.10.7.3).
#[test]
fn answers_to_a_syn_that_was_not_seen() {
    withstands(|world| {
        if world.server().is_none() {
            let seq = world.random.below(1 << 32) as u32;
            let ack = world.random.below(1 << 32) as u32;
            from_server(world, header(seq, ack, Flags::SYN | Flags::ACK), &[]);
            from_server(world, header(0, ack, Flags::RST | Flags::ACK), &[]);
        }
    });
}

/// The server's SYNs before and during the client's handshake. None of them is an answer, and each has another
/// number. Linux ignores them.
#[test]
fn syns_of_the_server_before_it_is_asked() {
    for mode in [FlowMode::Transparent, FlowMode::Split, FlowMode::Auto] {
        let alone = World::new(config(mode)).run(|_| {});
        let mut world = World::new(config(mode));
        let attacked = world.run(|world| {
            if world.server().is_none() {
                let seq = world.random.below(1 << 32) as u32;
                world.inject_to_nobody(WAN, segment(victim().reversed(), header(seq, 0, Flags::SYN), &[]));
            }
        });
        assert!(attacked <= 1.1 * alone + 0.24, "{mode:?}: {attacked:.2} s attacked, {alone:.2} s alone");
        let counters = world.gateway.counters();
        assert_eq!(counters.flows_accelerated + counters.flows_split, 1, "{mode:?}");
    }
}

#[test]
fn blind_data_of_the_server() {
    each(|world, server, _| {
        for seq in far(world, server.window.snd_nxt) {
            from_server(
                world,
                header(seq, server.receiver.rcv_nxt as u32, Flags::ACK | Flags::PSH),
                &[0x66; 1_000],
            );
        }
    });
}

/// Data within the window, but with an acknowledgement that no receiver accepts (RFC 5961, Section 5).
#[test]
fn data_within_the_window_with_a_wrong_acknowledgement() {
    each(|world, server, client| {
        let seq = client.receiver.rcv_nxt as u32 + 20_000;
        for ack in far(world, server.receiver.rcv_nxt) {
            from_server(world, header(seq, ack, Flags::ACK), &[0x66; 1_000]);
        }
    });
}

#[test]
fn blind_data_of_the_client() {
    each(|world, _, client| {
        for seq in far(world, client.window.snd_nxt) {
            from_client(world, header(seq, client.receiver.rcv_nxt as u32, Flags::ACK), &[0x66; 1_000]);
        }
    });
}

/// A gateway that believed them would release data that has not arrived.
#[test]
fn acknowledgements_of_what_was_never_sent() {
    each(|world, _, client| {
        for ack in far(world, client.receiver.rcv_nxt) {
            from_client(world, header(client.window.snd_nxt as u32, ack, Flags::ACK), &[]);
        }
    });
}

/// All numbers are right except the acknowledgement, which is a little ahead. If the gateway believed it, data kept
/// below it would never leave. Whether the server believes it is not tested, so the server does not get it here.
#[test]
fn acknowledgements_a_little_ahead() {
    let download = |blow: bool| {
        let mut world = World::with(config(FlowMode::Transparent), false);
        world.run(|world| {
            if let (true, Some(client)) = (blow, world.client()) {
                let ack = header(
                    client.window.snd_nxt as u32,
                    client.receiver.rcv_nxt as u32 + 200_000,
                    Flags::ACK,
                );
                world.inject_blind(RADIO, segment(victim(), ack, &[FORGED; 8]));
            }
        })
    };
    let (alone, attacked) = (download(false), download(true));
    assert!(attacked <= 1.2 * alone, "{attacked:.2} s attacked, {alone:.2} s alone");
}

#[test]
fn blind_ends_of_the_stream() {
    each(|world, server, client| {
        for seq in far(world, server.window.snd_nxt) {
            from_server(world, header(seq, server.receiver.rcv_nxt as u32, Flags::FIN | Flags::ACK), &[]);
        }
        for seq in far(world, client.window.snd_nxt) {
            from_client(world, header(seq, client.receiver.rcv_nxt as u32, Flags::FIN | Flags::ACK), &[]);
        }
    });
}

/// PAWS (RFC 7323, Section 5): a forged timestamp far ahead would make all honest segments look old.
#[test]
fn timestamps_that_jump() {
    each(|world, server, client| {
        let jump = world.random.below(1 << 32) as u32;
        let options = TcpOptionsRepr { timestamps: Some((jump, jump)), ..Default::default() };
        for seq in far(world, server.window.snd_nxt) {
            let repr = TcpRepr { options, ..header(seq, server.receiver.rcv_nxt as u32, Flags::ACK) };
            from_server(world, repr, &[0x66; 100]);
        }
        for seq in far(world, client.window.snd_nxt) {
            let repr = TcpRepr { options, ..header(seq, client.receiver.rcv_nxt as u32, Flags::ACK) };
            from_client(world, repr, &[]);
        }
    });
}

/// RFC 5927: a message about a packet that is not in flight.
#[test]
fn path_mtus_of_packets_that_were_never_sent() {
    each(|world, server, _| {
        for seq in far(world, server.window.snd_una) {
            world.inject(RADIO, packet_too_big(seq, 68));
        }
    });
}

fn packet_too_big(seq: u32, mtu: u16) -> paceline_wire::Packet {
    let quoted = segment(victim().reversed(), header(seq, 0, Flags::ACK), &[]).to_vec();
    let mut ip = vec![0x45, 0, 0, 56, 0, 0, 0, 0, 64, 1, 0, 0, 10, 0, 1, 99, 10, 0, 0, 1];
    ip.extend([3, 4, 0, 0, 0, 0]);
    ip.extend(mtu.to_be_bytes());
    ip.extend(&quoted[..28]);
    crate::malformed::parse(&ip)
}

/// 200 SYNs a second with the victim's addresses during its handshake, each with another number. Only the first may
/// count, as at the server.
#[test]
fn forged_syns_during_the_handshake() {
    withstands(|world| {
        if world.server().is_none_or(|server| server.state != State::Established) && world.now_ms() > 1_032 {
            let isn = world.random.below(1 << 32) as u32;
            let options = TcpOptionsRepr { mss: Some(1_460), ..TcpOptionsRepr::default() };
            from_client(world, TcpRepr { options, ..header(isn, 0, Flags::SYN) }, &[]);
        }
    });
}
