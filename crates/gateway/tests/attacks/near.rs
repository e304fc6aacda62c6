//! Blind packets whose numbers miss by a little (RFC 5961, Section 5.2; RFC 7323). They miss by up to one, two or four
//! windows, or in only one number.
//!
//! No receiver accepts any of them. A gateway that keeps one, and sends it again with its own numbers, puts its bytes
//! into the stream.
//!
//! `PACELINE_BLIND_PACKETS=n` sets their total number to `n`.

use paceline_gateway::config::FlowMode;
use paceline_gateway::{RADIO, WAN};
use paceline_tcp::{State, Status};
use paceline_wire::{Flags, TcpOptionsRepr, TcpRepr};

use crate::world::{FORGED, World, config, header, segment, victim};

/// Packets in one blow. There is a blow every 5 ms.
const BATCH: u64 = 500;
/// Packets of a test run for each mode, with and without timestamps. They take some seconds in a debug build.
const PACKETS: u64 = 300_000;
/// Unit of the distances by which numbers miss. At first the server's window is 64 KB, and the client's 512 KB.
const WINDOW: u64 = 64 << 10;

/// Returns a number that is off by at most one, two or four windows. In an eighth of all cases it is exact.
fn near(world: &mut World, number: u64) -> u32 {
    let windows = world.random.below(3);
    let off = world.random.below(WINDOW << windows) as u32;
    match world.random.below(8) {
        0 => number as u32,
        n if n % 2 == 0 => (number as u32).wrapping_add(off),
        _ => (number as u32).wrapping_sub(off),
    }
}

/// Sends a segment in the server's name that the client discards, because of its acknowledgement or its timestamp.
fn blind_data(world: &mut World, client: &Status, timestamps: bool) {
    let seq = near(world, client.receiver.rcv_nxt);
    let mut ack = near(world, client.window.snd_nxt);
    let clock = world.random.below(1 << 32) as u32;
    if ack == client.window.snd_nxt as u32 {
        // Ahead of what was sent: the client has sent only its SYN.
        ack = ack.wrapping_add(1 + world.random.below(1 << 16) as u32);
    }
    let stamps = (timestamps && world.random.below(2) == 0).then_some((clock, clock));
    let options = TcpOptionsRepr { timestamps: stamps, ..Default::default() };
    let flags = if world.random.below(16) == 0 { Flags::PSH } else { Flags::ACK | Flags::PSH };
    let repr = TcpRepr { options, ..header(seq, ack, flags) };
    world.inject_blind(WAN, segment(victim().reversed(), repr, &[FORGED; 64]));
}

/// Sends data whose numbers are right except for its timestamps, which are too old, or missing. A receiver may accept
/// missing ones (Linux) or drop them (RFC 7323, Section 3.2), so a transparent gateway must not keep such data.
fn stale_data(world: &mut World, mode: FlowMode, client: &Status) {
    let repr = header(client.receiver.rcv_nxt as u32 + 20_000, client.window.snd_nxt as u32, Flags::ACK);
    if mode == FlowMode::Transparent {
        world.inject_blind(WAN, segment(victim().reversed(), repr, &[FORGED; 64]));
    }
    // One second is longer than the time since the client last took over a timestamp.
    let old = world.server_clock.wrapping_sub(1_000 + world.random.below(1 << 20) as u32);
    let options = TcpOptionsRepr { timestamps: Some((old, old)), ..Default::default() };
    let repr = TcpRepr { options, ..repr };
    world.inject_blind(WAN, segment(victim().reversed(), repr, &[FORGED; 64]));
}

/// Sends data in the client's name that its server discards.
fn blind_upload(world: &mut World, client: &Status) {
    let seq = near(world, client.window.snd_nxt);
    let ack = near(world, client.receiver.rcv_nxt);
    let far = ack.wrapping_add(1 << 30);
    world.inject_blind(RADIO, segment(victim(), header(seq, far, Flags::ACK), &[FORGED; 64]));
}

/// Sends `packets` at downloads. A byte that the server had not sent fails the test.
fn bombard(mode: FlowMode, timestamps: bool, packets: u64) {
    let mut sent = 0;
    while sent < packets {
        let mut world = World::with(config(mode), timestamps);
        world.random = paceline_path::random::Random::named(sent, "near misses");
        world.run(|world| {
            let (Some(server), Some(client)) = (world.server(), world.client()) else { return };
            if server.state != State::Established || client.state != State::Established {
                return;
            }
            for _ in 0..BATCH / 2 {
                blind_data(world, &client, timestamps);
                blind_upload(world, &client);
            }
            if timestamps {
                stale_data(world, mode, &client);
            }
            sent += BATCH;
        });
    }
}

fn packets() -> u64 {
    std::env::var("PACELINE_BLIND_PACKETS")
        .ok()
        .and_then(|text| text.parse().ok())
        .map_or(PACKETS, |n: u64| n / 4)
}

#[test]
fn near_misses_put_nothing_into_a_transparent_flow() {
    bombard(FlowMode::Transparent, false, packets());
}

#[test]
fn near_misses_put_nothing_into_a_transparent_flow_with_timestamps() {
    bombard(FlowMode::Transparent, true, packets());
}

#[test]
fn near_misses_put_nothing_into_a_split_flow() {
    bombard(FlowMode::Split, false, packets());
}

#[test]
fn near_misses_put_nothing_into_a_split_flow_with_timestamps() {
    bombard(FlowMode::Split, true, packets());
}
