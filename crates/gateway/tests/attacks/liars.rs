//! Two hosts that cooperate to harm the gateway between them: what they say about their own flow need not be true.

use paceline_gateway::config::FlowMode;
use paceline_gateway::{RADIO, WAN};
use paceline_wire::{Flags, Seq, TcpOptionsRepr, TcpRepr};

use crate::world::{World, config, conspirators, header, open, segment, withstands};

/// Opens a flow with SACK and scaled windows, and sends it 20 segments, before each blow.
fn with_flow(blow: impl Fn(&mut World, u32)) {
    withstands(|world| {
        let options = TcpOptionsRepr {
            mss: Some(1_460),
            window_scale: Some(7),
            sack_permitted: true,
            ..Default::default()
        };
        open(world, conspirators(1), options);
        for n in 0..20u32 {
            data(world, 1 + 1_000 * n, 1_000);
        }
        blow(world, 20_001);
    });
}

/// Sends data from the server.
fn data(world: &mut World, seq: u32, len: usize) {
    world.inject(WAN, segment(conspirators(1).reversed(), header(seq, 1, Flags::ACK), &vec![7; len]));
}

/// Sends an ACK from the client.
fn ack(world: &mut World, ack: u32, window: u16, blocks: &[(u32, u32)]) {
    let mut options = TcpOptionsRepr::default();
    for &(start, end) in blocks {
        options.sack_blocks.push(Seq(start), Seq(end));
    }
    let repr = TcpRepr { window, options, ..header(1, ack, Flags::ACK) };
    world.inject(RADIO, segment(conspirators(1), repr, &[]));
}

/// Savage et al., "TCP Congestion Control with a Misbehaving Receiver": data is acknowledged before it is received.
#[test]
fn optimistic_acknowledgements() {
    with_flow(|world, end| {
        for n in 0..50 {
            ack(world, end + 1_000 * n, 60_000, &[]);
        }
    });
}

/// The gateway leaves such a flow to its server. It no longer keeps data or promises a window for the flow.
#[test]
fn a_flow_that_claims_what_was_never_sent_passes() {
    let mut world = World::new(config(FlowMode::Auto));
    let options = TcpOptionsRepr { mss: Some(1_460), window_scale: Some(7), ..Default::default() };
    open(&mut world, conspirators(1), options);
    for n in 0..2_000u32 {
        // The server believes the ACK and continues from there.
        ack(&mut world, 1 + 4_000 * n, 60_000, &[]);
        data(&mut world, 1 + 4_000 * n, 1_000);
    }
    assert_eq!(world.gateway.counters().auto_optimistic_acks, 1);
    world.run(|_| {});
}

/// The same paper: one acknowledgement for each byte.
#[test]
fn divided_acknowledgements() {
    with_flow(|world, _| {
        for n in 0..100 {
            ack(world, 1 + n, 60_000, &[]);
        }
    });
}

/// The same paper: duplicate ACKs that no segment caused.
#[test]
fn spoofed_duplicates() {
    with_flow(|world, _| {
        for _ in 0..100 {
            ack(world, 1, 60_000, &[]);
        }
    });
}

#[test]
fn windows_that_shrink_close_and_open() {
    with_flow(|world, _| {
        for n in 0..100u16 {
            ack(world, 1, [60_000, 0, 1, 30_000][usize::from(n % 4)], &[]);
        }
    });
}

#[test]
fn reports_of_what_was_never_sent() {
    with_flow(|world, end| ack(world, 1, 60_000, &[(end + 1_000_000, end + 2_000_000), (end, end + 1)]));
}

#[test]
fn reports_that_end_before_they_begin() {
    with_flow(|world, end| {
        let half = 1 << 31;
        ack(world, 1, 60_000, &[(end, 1), (end - 5, end - 5), (1, 1 + half), (half, 1)]);
    });
}

/// Many holes of one byte.
#[test]
fn reports_in_splinters() {
    with_flow(|world, _| {
        for n in 0..100 {
            let at = |k: u32| 3 + 2 * (4 * n + k);
            ack(world, 1, 60_000, &[0, 1, 2, 3].map(|k| (at(k), at(k) + 1)));
        }
    });
}

/// RFC 2018, Section 8: data is reported, then no longer.
#[test]
fn reports_that_are_taken_back() {
    with_flow(|world, end| {
        for _ in 0..20 {
            ack(world, 1, 60_000, &[(1_001, end)]);
            ack(world, 1_001, 60_000, &[]);
        }
    });
}

/// RFC 2883: reports of copies that were never sent.
#[test]
fn duplicates_reported_that_were_never_made() {
    with_flow(|world, end| {
        for n in 0..50 {
            ack(world, end, 60_000, &[(1 + n, 100 + n), (1, end)]);
        }
    });
}

/// The first copy counts, whatever later copies contain.
#[test]
fn segments_that_overlap() {
    with_flow(|world, _| {
        for n in 0..100u32 {
            data(world, 1 + 137 * n, 1 + (n as usize * 311) % 1_400);
        }
    });
}

#[test]
fn segments_far_ahead() {
    with_flow(|world, end| {
        for n in 0..30 {
            data(world, end.wrapping_add(1 << n), 1_000);
        }
    });
}

/// A stream with several ends.
#[test]
fn several_ends() {
    with_flow(|world, end| {
        for n in 0..20 {
            let fin = header(end + 500 * n, 1, Flags::FIN | Flags::ACK);
            world.inject(WAN, segment(conspirators(1).reversed(), fin, &[]));
            world.inject(RADIO, segment(conspirators(1), header(1 + n, 1, Flags::FIN | Flags::ACK), &[]));
        }
    });
}
