//! A state that somebody has changed and signed anew is handed over. Whatever it says, the gateway that continues with
//! it neither panics nor hangs, and it forwards.
//!
//! `PACELINE_TAMPERED=n` tries n changed states. `PACELINE_TAMPERED_FROM=n` starts at another seed. A failure prints
//! its seed.

#![allow(clippy::unwrap_used, clippy::panic)] // A test may panic.

use std::net::SocketAddr;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration as StdDuration;

use paceline_gateway::config::FlowMode;
use paceline_gateway::{Gateway, GatewayConfig, RADIO, RestoredGateway, RestoredSplitFlow, WAN};
use paceline_path::random::Random;
use paceline_wire::{
    Duration, Flags, FlowKey, Instant, Node, Packet, Payload, PortId, Seq, TcpOptionsRepr, TcpRepr,
};

/// Number of changed states in a test run, in each mode. They take some seconds in a debug build.
const RUNS: u64 = 1_000;
/// More packets, or turns at one moment, than any honest state has.
const PACKETS_MAX: usize = 20_000;
const TURNS_MAX: usize = 2_000;
const FLOWS: u16 = 6;
/// A call that takes this long counts as one that never returns. The longest takes a millisecond.
const HANGS: StdDuration = StdDuration::from_secs(120);

fn key(flow: u16) -> FlowKey {
    let client = SocketAddr::new([10, 0, 1, 1 + flow as u8 / 2].into(), 40_000 + flow);
    FlowKey { src: client, dst: "10.0.0.1:80".parse().unwrap() }
}

fn config(mode: FlowMode) -> GatewayConfig {
    let mut config = GatewayConfig { mode, ..GatewayConfig::default() };
    config.sharing.capacity_mbps = Some(20.0);
    config.limits.max_flows = 100;
    config
}

/// A gateway and the current time.
struct Stand {
    gateway: Gateway,
    now: Instant,
}

impl Stand {
    /// Sends everything that may leave now. Fails if that has no end.
    fn drain(&mut self) {
        for _ in 0..PACKETS_MAX {
            if self.gateway.poll_transmit(self.now).is_none() {
                return;
            }
        }
        panic!("packets without end");
    }

    fn tell(&mut self, port: PortId, packet: Packet) {
        self.gateway.handle_packet(self.now, port, packet);
        self.drain();
    }

    fn segment(&mut self, port: PortId, flow: u16, seq: u32, ack: u32, flags: Flags, len: u32) {
        let options = TcpOptionsRepr {
            mss: flags.contains(Flags::SYN).then_some(1_460),
            window_scale: flags.contains(Flags::SYN).then_some(7),
            sack_permitted: flags.contains(Flags::SYN),
            timestamps: Some((self.now.as_nanos() as u32 / 1_000_000, 1)),
            ..Default::default()
        };
        let repr =
            TcpRepr { seq: Seq(seq), ack: Seq(ack), flags, window: 4_000, options, ..Default::default() };
        let key = if port == WAN { key(flow).reversed() } else { key(flow) };
        let mut packet = Packet::build_tcp(key, &repr, Payload::from(vec![7; len as usize]));
        packet.complete_checksum();
        self.tell(port, packet);
    }

    /// Lets time pass, and handles whatever becomes due.
    fn pass(&mut self, time: Duration) {
        let end = self.now + time;
        while let Some(next) = self.gateway.poll_timeout().filter(|next| *next <= end) {
            self.now = self.now.max(next);
            self.turn();
        }
        self.now = end;
    }

    /// Handles what is due now. No timer stays due.
    fn turn(&mut self) {
        for _ in 0..TURNS_MAX {
            self.gateway.handle_timeout(self.now);
            self.drain();
            if self.gateway.poll_timeout().is_none_or(|next| next > self.now) {
                return;
            }
        }
        panic!("a timer stays due");
    }
}

/// Makes flows in all stages: half open, with a hole, with a loss, and over. Datagrams go beside them.
fn before(mode: FlowMode) -> Stand {
    let mut stand =
        Stand { gateway: Gateway::new(config(mode)), now: Instant::ZERO + Duration::from_secs(5) };
    for flow in 0..FLOWS {
        stand.segment(RADIO, flow, 0, 0, Flags::SYN, 0);
        if flow == 5 {
            continue;
        }
        stand.pass(Duration::from_millis(10));
        stand.segment(WAN, flow, 0, 1, Flags::SYN | Flags::ACK, 0);
        stand.pass(Duration::from_millis(20));
        stand.segment(RADIO, flow, 1, 1, Flags::ACK, 0);
        stand.segment(RADIO, flow, 1, 1, Flags::ACK, 100);
        for n in (0..20).filter(|n| n % 7 != 3 || flow % 2 == 0) {
            stand.segment(WAN, flow, 1 + 1_000 * n, 101, Flags::ACK, 1_000);
            stand.pass(Duration::from_millis(1));
        }
        stand.pass(Duration::from_millis(20));
        for n in 1..=8 {
            stand.segment(RADIO, flow, 101, 1 + 1_000 * n.min(6), Flags::ACK, 0);
            stand.pass(Duration::from_millis(2));
        }
        let datagram = Packet::build_udp(key(flow).reversed(), Payload::from(vec![1; 900]));
        (0..3).for_each(|_| stand.tell(WAN, datagram.clone()));
    }
    stand.segment(RADIO, 4, 101, 6_001, Flags::RST, 0);
    stand
}

/// Continues with what the ends do from there on. Then nothing happens until all is forgotten.
fn after(mut stand: Stand) {
    stand.turn();
    for round in 0..6u32 {
        for flow in 0..FLOWS {
            let sent = 20_001 + 1_000 * round;
            stand.segment(WAN, flow, sent, 101, Flags::ACK, 1_000);
            stand.segment(WAN, flow, 3_001, 101, Flags::ACK, 1_000);
            stand.segment(RADIO, flow, 101 + 50 * round, 6_001 + 3_000 * round, Flags::ACK, 50);
            stand.segment(RADIO, flow, 151 + 50 * round, 6_001 + 3_000 * round, Flags::ACK, 0);
        }
        stand.tell(WAN, Packet::build_udp(key(0).reversed(), Payload::from(vec![1; 900])));
        stand.pass(Duration::from_millis(30 << (2 * round)));
    }
    stand.segment(WAN, 0, 26_001, 401, Flags::ACK | Flags::FIN, 0);
    stand.segment(RADIO, 0, 401, 26_002, Flags::ACK | Flags::FIN, 0);
    stand.segment(RADIO, 1, 401, 21_001, Flags::RST, 0);
    stand.segment(RADIO, 9, 0, 0, Flags::SYN, 0);
    stand.gateway.set_hash_key([1, 2]);
    let _ = (stand.gateway.flow_statuses(0, 1_000), stand.gateway.subscriber_statuses(0, 1_000));
    let _ = rmp_serde::to_vec_named(&stand.gateway.state()).unwrap();
    stand.pass(Duration::from_secs(5));
}

/// Finds the numbers in MessagePack: the bytes of each.
fn numbers(bytes: &[u8], at: &mut usize, found: &mut Vec<std::ops::Range<usize>>) {
    let first = bytes[*at];
    *at += 1;
    let length = |width: usize, at: &mut usize| {
        let value = bytes[*at..*at + width].iter().fold(0, |sum, &byte| sum << 8 | usize::from(byte));
        *at += width;
        value
    };
    let (skip, items) = match first {
        0x00..=0x7f | 0xe0..=0xff => {
            found.push(*at - 1..*at);
            (0, 0)
        }
        0x80..=0x8f => (0, 2 * usize::from(first & 15)),
        0x90..=0x9f => (0, usize::from(first & 15)),
        0xa0..=0xbf => (usize::from(first & 31), 0),
        0xc4 | 0xd9 => (length(1, at), 0),
        0xc5 | 0xda => (length(2, at), 0),
        0xc6 | 0xdb => (length(4, at), 0),
        0xca..=0xd3 => {
            let width = [4, 8, 1, 2, 4, 8, 1, 2, 4, 8][usize::from(first - 0xca)];
            found.push(*at..*at + width);
            (width, 0)
        }
        0xdc => (0, length(2, at)),
        0xdd => (0, length(4, at)),
        0xde => (0, 2 * length(2, at)),
        0xdf => (0, 2 * length(4, at)),
        _ => (0, 0),
    };
    *at += skip;
    (0..items).for_each(|_| numbers(bytes, at, found));
}

/// Changes up to four numbers, or any bytes.
fn tamper(bytes: &mut [u8], numbers: &[std::ops::Range<usize>], random: &mut Random) {
    for _ in 0..1 + random.below(4) {
        let place = numbers[random.below(numbers.len() as u64) as usize].clone();
        match random.below(8) {
            0 => bytes[random.below(bytes.len() as u64) as usize] = random.below(256) as u8,
            1 => bytes[place].fill(0),
            // A number of one byte would no longer be a number after these changes.
            2 if place.len() > 1 => bytes[place].fill(0xff),
            3 if place.len() > 1 => bytes[place.start] = 0x7f,
            4 if place.len() > 1 => bytes[place].iter_mut().for_each(|byte| *byte = random.below(256) as u8),
            n => {
                let last = &mut bytes[place.end - 1];
                *last = if n % 2 == 0 { last.wrapping_add(1) } else { last.wrapping_sub(1) }
                    & if place.len() == 1 { 0x7f } else { 0xff };
            }
        }
    }
}

/// A state as it is written, and the places of its numbers.
struct Written(Vec<u8>, Vec<std::ops::Range<usize>>);

impl Written {
    fn new(bytes: Vec<u8>) -> Written {
        let mut found = Vec::new();
        numbers(&bytes, &mut 0, &mut found);
        Written(bytes, found)
    }

    fn tampered(&self, random: &mut Random) -> Vec<u8> {
        let mut bytes = self.0.clone();
        tamper(&mut bytes, &self.1, random);
        bytes
    }
}

/// Ends the tests with a message if a seed never ends.
fn watch(seed: &Arc<AtomicU64>) {
    let seed = Arc::downgrade(seed);
    std::thread::spawn(move || {
        let mut last = None;
        while let Some(now) = seed.upgrade().map(|seed| seed.load(Ordering::Relaxed)) {
            if last == Some(now) {
                println!("PACELINE_TAMPERED_FROM={now} hangs");
                std::process::abort();
            }
            last = Some(now);
            std::thread::sleep(HANGS);
        }
    });
}

fn number(name: &str, or: u64) -> u64 {
    std::env::var(name).ok().and_then(|text| text.parse().ok()).unwrap_or(or)
}

/// `pairs`: the split flows are also changed.
fn bears_tampered_states(mode: FlowMode, pairs: bool) {
    let stand = before(mode);
    let state = Written::new(rmp_serde::to_vec_named(&stand.gateway.state()).unwrap());
    let split =
        stand.gateway.split_states().map(|flow| Written::new(rmp_serde::to_vec_named(&flow).unwrap()));
    let split: Vec<Written> = split.collect();
    assert_eq!(split.len(), if mode == FlowMode::Split { 5 } else { 0 });
    let (seed_now, mut failures, mut read) = (Arc::new(AtomicU64::new(0)), Vec::new(), 0);
    watch(&seed_now);
    let from = number("PACELINE_TAMPERED_FROM", 1);
    let runs = number("PACELINE_TAMPERED", RUNS);
    for seed in from..from + runs {
        seed_now.store(seed, Ordering::Relaxed);
        let mut random = Random::named(seed, "tampered");
        let both = if pairs { random.below(3) } else { 0 };
        let table = if both != 1 || split.is_empty() { state.tampered(&mut random) } else { state.0.clone() };
        let flows = split.iter().filter_map(|flow| {
            let bytes = if both != 0 { flow.tampered(&mut random) } else { flow.0.clone() };
            rmp_serde::from_slice::<RestoredSplitFlow>(&bytes).ok()
        });
        let flows: Vec<RestoredSplitFlow> = flows.collect();
        let goes_on = catch_unwind(AssertUnwindSafe(|| {
            let taken: RestoredGateway = rmp_serde::from_slice(&table).ok()?;
            let gateway = Gateway::take_over(config(mode), Box::new(()), taken, flows);
            after(Stand { gateway, now: stand.now });
            Some(())
        }));
        match goes_on {
            Ok(done) => read += u64::from(done.is_some()),
            Err(_) => failures.push(seed),
        }
    }
    println!("{mode:?}: {read} of {runs} states were taken over");
    assert!(failures.is_empty(), "{} of {runs} seeds fail: {failures:?}", failures.len());
    assert!(runs < 100 || read > runs / 2, "most states were not even read");
}

#[test]
fn tampered_states_of_transparent_flows() {
    bears_tampered_states(FlowMode::Transparent, false);
}

#[test]
fn tampered_states_around_split_flows() {
    bears_tampered_states(FlowMode::Split, false);
}

#[test]
fn tampered_states_of_split_flows() {
    bears_tampered_states(FlowMode::Split, true);
}
