//! Cost of a packet in the gateway by the number of flows: `cargo bench -p paceline-sim --bench flows`
//!
//! Downloads of 10, 1,000 and 10,000 flows go through the gateway. Each flow sends one packet in turn, which is the
//! worst order for the processor's caches. Another case has 1,000 flows, of which 1,000 a second end and are replaced.
//! The last case has 10 flows with super-packets of up to 53 KB, as a receiving device hands them over.
//!
//! Packets carry lengths only. So the bench measures the gateway's own work, without the kernel and without copies of
//! payload. Packets come in batches, as the event loop of paceline-linux has them from a device. Servers send no more
//! than the window allows. Processor time is the median of interleaved rounds. Instructions are counted under valgrind,
//! in one process for each case, without those of the opening. With `--check` the bench fails if a packet costs more
//! than 1.3 times as much as with 10 flows; super-packets do not count.

#![allow(clippy::unwrap_used)] // A bench may panic.

use std::collections::VecDeque;
use std::process::Command;

use paceline_gateway::config::FlowMode;
use paceline_gateway::{Gateway, GatewayConfig, RADIO, WAN};
use paceline_wire::{
    Checksum, Duration, Flags, FlowKey, Instant, Node, Packet, Payload, PortId, Seq, Tcp, TcpOptionsRepr,
    TcpRepr,
};

/// Number of flows, number of flows replaced each second, and segments in a packet of the servers.
const CASES: [(u32, u32, u32); 5] =
    [(10, 0, 1), (1_000, 0, 1), (10_000, 0, 1), (1_000, 1_000, 1), (10, 0, SUPER_PACKET)];
const MODES: [FlowMode; 2] = [FlowMode::Transparent, FlowMode::Split];
const BOUND: f64 = 1.3;
/// Segments of a super-packet.
const SUPER_PACKET: u32 = 37;
/// Packets that are handed over together. Our choice: a thread needs up to 37 us to wake (docs/evidence/cost.md). At
/// this rate, this many data packets and ACKs arrive meanwhile. A device's batch has at most 64. Super-packets come
/// singly.
const BATCH: u32 = 8;
/// 1.2 Gbit/s of full packets.
const PACKET_INTERVAL: Duration = Duration::from_micros(10);
const RTT: Duration = Duration::from_millis(20);
const SUBSCRIBERS: u32 = 100;
const PAYLOAD: u32 = 1_448;

fn main() {
    let arguments: Vec<String> = std::env::args().skip(1).filter(|argument| argument != "--bench").collect();
    if let [command, mode, case, packets] = arguments.as_slice()
        && command == "--case"
    {
        let (mode, case) = (mode.parse::<usize>().unwrap(), case.parse::<usize>().unwrap());
        let mut load = Load::open(MODES[mode], CASES[case]);
        load.packets(packets.parse().unwrap());
        return;
    }
    let quick = arguments.iter().any(|argument| argument == "--quick");
    let (rounds, packets) = if quick { (3, 100_000) } else { (7, 400_000) };
    let mut worst: f64 = 0.0;
    println!("{:<42} {:>12} {:>7} {:>14} {:>7}", "", "ns a packet", "", "instructions", "");
    for (mode, name) in ["transparent", "split"].into_iter().enumerate() {
        let times = times(MODES[mode], rounds, packets);
        let instructions: Vec<Option<f64>> =
            (0..CASES.len()).map(|case| (!quick).then(|| instructions(mode, case)).flatten()).collect();
        for (case, (flows, fresh, segments)) in CASES.into_iter().enumerate() {
            let ratio = times[case] / times[0];
            worst = worst.max(if segments == 1 { ratio } else { 0.0 });
            let counted = instructions[case].zip(instructions[0]);
            let counted = counted
                .map_or(String::new(), |(count, first)| format!("{count:>14.0} {:>6.2}x", count / first));
            let more = match (fresh, segments) {
                (0, 1) => String::new(),
                (0, _) => ", super-packets".to_owned(),
                _ => format!(", {fresh} new a second"),
            };
            let name = format!("{name}, {flows} flows{more}");
            println!("{name:<42} {:>12.0} {ratio:>6.2}x {counted}", times[case]);
        }
    }
    if arguments.iter().any(|argument| argument == "--check") && worst > BOUND {
        eprintln!("a packet costs {worst:.2} times what it costs with 10 flows; the bound is {BOUND}");
        std::process::exit(1);
    }
}

/// Medians of processor time, in ns a packet, by case.
fn times(mode: FlowMode, rounds: usize, packets: u64) -> Vec<f64> {
    let mut loads: Vec<Load> = CASES.iter().map(|&case| Load::open(mode, case)).collect();
    let mut samples = vec![Vec::new(); CASES.len()];
    for _ in 0..rounds {
        for (load, samples) in loads.iter_mut().zip(&mut samples) {
            // Warm-up: the caches hold this case again.
            load.packets(packets / 10);
            let (before, passed) = (processor_ns(), load.passed);
            load.packets(packets);
            assert!(load.passed - passed > packets, "streams that stand still cost nothing");
            samples.push((processor_ns() - before) as f64 / (load.passed - passed) as f64);
        }
    }
    samples
        .iter_mut()
        .map(|samples| {
            samples.sort_by(f64::total_cmp);
            samples[samples.len() / 2]
        })
        .collect()
}

/// Processor time of this thread, whatever else the machine does.
fn processor_ns() -> u64 {
    let text = std::fs::read_to_string("/proc/thread-self/schedstat").unwrap();
    text.split_whitespace().next().unwrap().parse().unwrap()
}

/// Instructions per packet, opening excluded.
fn instructions(mode: usize, case: usize) -> Option<f64> {
    let counted = |packets: u64| -> Option<u64> {
        let output = Command::new("valgrind")
            .args(["--tool=none", "--tool=callgrind", "--callgrind-out-file=/dev/null"])
            .arg(std::env::current_exe().ok()?)
            .args(["--case", &mode.to_string(), &case.to_string(), &packets.to_string()])
            .output()
            .ok()?;
        let text = String::from_utf8_lossy(&output.stderr).into_owned();
        text.lines().find_map(|line| line.split_once("Collected :"))?.1.trim().parse().ok()
    };
    let (half, whole) = (20_000, 60_000);
    // Each data packet brings an ACK, so two packets pass.
    Some((counted(whole)? - counted(half)?) as f64 / (2 * (whole - half)) as f64)
}

/// Servers and clients around a gateway.
struct Load {
    gateway: Gateway,
    now: Instant,
    flows: Vec<Ends>,
    segments: u32,
    next: usize,
    /// Flows to replace each second.
    fresh: u32,
    until_fresh: f64,
    oldest: usize,
    ports: u32,
    /// Packets that have arrived and are not handed over yet.
    batch: Vec<Arrived>,
    /// The window shown to a server during its handshake, with the shift of the SYN.
    shown: Shown,
    /// ACKs of clients: time of arrival, place of the flow, packet.
    answers: VecDeque<(Instant, u32, Packet)>,
    /// Data packets and answers that were handled.
    passed: u64,
}

/// A packet that a device has received.
struct Arrived {
    at: Instant,
    port: PortId,
    packet: Packet,
}

/// The window that a server was shown.
#[derive(Clone, Copy, Default)]
struct Shown {
    ack: Seq,
    field: u16,
    shift: u8,
}

impl Shown {
    fn edge(&self) -> Seq {
        self.ack.add(u32::from(self.field) << self.shift)
    }
}

#[derive(Clone, Copy)]
struct Ends {
    client_to_server: FlowKey,
    seq: Seq,
    /// The window that the server was shown.
    shown: Shown,
    /// The client's newest acknowledgement.
    acked: Seq,
}

impl Load {
    fn open(mode: FlowMode, (flows, fresh, segments): (u32, u32, u32)) -> Load {
        let mut config = GatewayConfig { mode, ..GatewayConfig::default() };
        // The memory that the test of 10,000 flows may take (docs/evidence/scale.md).
        config.limits.max_buffer_bytes = 1 << 30;
        let mut load = Load {
            gateway: Gateway::new(config),
            now: Instant::ZERO + Duration::from_secs(1),
            flows: Vec::new(),
            segments,
            next: 0,
            fresh,
            until_fresh: 0.0,
            oldest: 0,
            ports: 0,
            batch: Vec::new(),
            shown: Shown::default(),
            answers: VecDeque::new(),
            passed: 0,
        };
        for _ in 0..flows {
            let ends = load.handshake();
            load.flows.push(ends);
        }
        // After these packets, rates and round trips are known and windows are large.
        load.packets(u64::from(flows) * 20 + 2_000);
        load
    }

    fn handshake(&mut self) -> Ends {
        let number = self.ports;
        self.ports += 1;
        let client = [10, 0, (number % SUBSCRIBERS) as u8, 2];
        let port = 10_000 + (number / SUBSCRIBERS % 50_000) as u16;
        let key = FlowKey::new((client, port).into(), ([192, 0, 2, 1], 443).into());
        let options = TcpOptionsRepr {
            mss: Some(1_460),
            window_scale: Some(7),
            sack_permitted: true,
            ..TcpOptionsRepr::default()
        };
        let syn = TcpRepr { seq: Seq(0), flags: Flags::SYN, window: 65_535, options, ..TcpRepr::default() };
        self.flush();
        self.give(RADIO, packet(key, &syn, 0));
        let answer = TcpRepr { ack: Seq(1), flags: Flags::SYN | Flags::ACK, ..syn };
        self.give(WAN, packet(key.reversed(), &answer, 0));
        self.now += RTT / 1_000;
        self.give(RADIO, packet(key, &tcp(Seq(1), Seq(1), Flags::ACK), 0));
        Ends { client_to_server: key, seq: Seq(1), shown: self.shown, acked: Seq(1) }
    }

    /// Sends `count` data packets of the servers.
    fn packets(&mut self, count: u64) {
        for _ in 0..count {
            self.now += PACKET_INTERVAL * u64::from(self.segments);
            self.replace();
            self.answer();
            let place = self.next;
            self.next = (self.next + 1) % self.flows.len();
            let flow = &mut self.flows[place];
            let room = flow.shown.edge().distance(flow.seq).max(0) as u32;
            let segments = self.segments.min(room / PAYLOAD);
            if segments == 0 {
                continue;
            }
            let payload = PAYLOAD * segments;
            let mut data =
                packet(flow.client_to_server.reversed(), &tcp(flow.seq, Seq(1), Flags::ACK), payload);
            data.set_gso_size((segments > 1).then_some(PAYLOAD as u16));
            flow.seq = flow.seq.add(payload);
            self.passed += 1;
            self.arrive(WAN, data);
        }
        self.flush();
    }

    /// The client resets the oldest flow, and another one begins.
    fn replace(&mut self) {
        self.until_fresh += f64::from(self.fresh) * PACKET_INTERVAL.as_secs_f64();
        if self.until_fresh < 1.0 {
            return;
        }
        self.until_fresh -= 1.0;
        let place = self.oldest;
        self.oldest = (self.oldest + 1) % self.flows.len();
        let old = self.flows[place];
        self.give(RADIO, packet(old.client_to_server, &tcp(Seq(1), old.acked, Flags::RST | Flags::ACK), 0));
        self.flows[place] = self.handshake();
    }

    /// Clients' acknowledgements arrive.
    fn answer(&mut self) {
        while self.answers.front().is_some_and(|(at, ..)| *at <= self.now) {
            let Some((_, place, answer)) = self.answers.pop_front() else { return };
            let (key, ack) = (answer.flow_key().unwrap(), answer.tcp().unwrap().ack());
            // ACKs of a replaced flow are discarded.
            if let Some(flow) = self.flows.get_mut(place as usize).filter(|flow| flow.client_to_server == key)
            {
                flow.acked = ack;
                self.passed += 1;
                self.arrive(RADIO, answer);
            }
        }
    }

    fn arrive(&mut self, port: PortId, packet: Packet) {
        self.batch.push(Arrived { at: self.now, port, packet });
        if self.batch.len() >= (BATCH / self.segments).max(1) as usize {
            self.flush();
        }
    }

    /// Hands the batch over as the event loop of paceline-linux does.
    fn flush(&mut self) {
        let mut batch = std::mem::take(&mut self.batch);
        for Arrived { at, port, packet } in batch.drain(..) {
            if self.gateway.poll_timeout().is_some_and(|due| due < at) {
                self.gateway.handle_timeout(at);
            }
            self.gateway.handle_packet(at, port, packet);
        }
        self.batch = batch;
        if self.gateway.poll_timeout().is_some_and(|due| due <= self.now) {
            self.gateway.handle_timeout(self.now);
        }
        self.collect();
    }

    fn give(&mut self, port: PortId, packet: Packet) {
        self.gateway.handle_packet(self.now, port, packet);
        self.collect();
    }

    /// Each data packet that leaves for a client is answered a round trip later.
    fn collect(&mut self) {
        while let Some((port, packet)) = self.gateway.poll_transmit(self.now) {
            let Some((tcp, key)) = packet.tcp().zip(packet.flow_key()) else { continue };
            if port == WAN {
                self.show(key, tcp);
                continue;
            }
            if tcp.payload_len() == 0 {
                continue;
            }
            let key = key.reversed();
            let place = self.place(key);
            let answer = self::packet(key, &self::tcp(Seq(1), tcp.end_seq(), Flags::ACK), 0);
            self.answers.push_back((self.now + RTT, place, answer));
        }
    }

    /// A packet for a server opens its window.
    fn show(&mut self, key: FlowKey, tcp: Tcp<'_>) {
        let (ack, field) = (tcp.ack(), tcp.window());
        if let Some(shift) = tcp.window_scale() {
            self.shown.shift = shift;
            return;
        }
        let place = self.place(key) as usize;
        match self.flows.get_mut(place).filter(|flow| flow.client_to_server == key) {
            Some(flow) => flow.shown = Shown { ack, field, ..flow.shown },
            // Its handshake is not over.
            None => self.shown = Shown { ack, field, ..self.shown },
        }
    }

    fn place(&self, key: FlowKey) -> u32 {
        let number = u32::from(key.src.port() - 10_000) * SUBSCRIBERS + third_octet(key);
        number % self.flows.len().max(1) as u32
    }
}

fn third_octet(key: FlowKey) -> u32 {
    match key.src.ip() {
        std::net::IpAddr::V4(address) => u32::from(address.octets()[2]),
        std::net::IpAddr::V6(_) => 0,
    }
}

fn tcp(seq: Seq, ack: Seq, flags: Flags) -> TcpRepr {
    TcpRepr { seq, ack, flags, window: 40_000, ..TcpRepr::default() }
}

fn packet(key: FlowKey, tcp: &TcpRepr, payload: u32) -> Packet {
    let mut packet = Packet::build_tcp(key, tcp, Payload::Length(payload));
    packet.set_checksum(Checksum::Verified);
    packet
}
