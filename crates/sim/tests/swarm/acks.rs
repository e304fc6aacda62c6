//! If the radio link loses nothing, the server gets what the client says: each ACK passes the gateway with its SACK
//! blocks.
//!
//! This need not hold while a repair by the gateway is out; its timers may send one without need. Some ACKs do not
//! count:
//!
//! - window updates, which the gateway makes itself,
//! - D-SACKs, which may be about the gateway's copies,
//! - answers to data that the client has long had. 16 of them pass at a time.
//!
//! Links before the gateway lose, duplicate and delay, but keep their order and their delay. The gateway hides mere
//! reordering on purpose.

use std::cell::RefCell;
use std::collections::VecDeque;
use std::rc::Rc;

use paceline_gateway::GatewayConfig;
use paceline_gateway::config::{FlowMode, LimitsConfig, RetransmissionMode, VirtualWindowMode};
use paceline_path::random::Random;
use paceline_path::{Delay, Delivered, LinkConfig, QueueLimit, RateProcess};
use paceline_sim::faults::draw_link;
use paceline_sim::result::Direction;
use paceline_sim::scenario::{GatewayAt, PathLink, Scenario, TcpFlow, Transport};
use paceline_sim::{Tap, run_tapped};
use paceline_tcp::ReceiveBuffer;
use paceline_wire::{Duration, Flags, FlowKey, Instant, Packet};
use rustc_hash::FxHashMap;

use crate::covered::{Covered, Unwrap};
use crate::{FAULTS_LAST, draw, draw_gateway, one_of, seeds};

/// Time after the ACK of a repair in which the client may still answer needless copies.
const LINGER: Duration = Duration::from_secs(1);

#[test]
fn without_loss_behind_the_gateway_the_server_hears_all() {
    let mut failures = Vec::new();
    for seed in seeds() {
        let watch = Rc::new(RefCell::new(Watch::default()));
        let tap = |place| Box::new(AckTap { watch: Rc::clone(&watch), place }) as Box<dyn Tap>;
        let taps = vec![
            ("radio_up", tap(Place::FromClient)),
            ("radio_down", tap(Place::ToClient)),
            ("wired_up", tap(Place::ToServer)),
        ];
        run_tapped(&draw_clean_radio(seed), taps).unwrap();
        let findings: Vec<String> = watch.borrow().flows.values().flat_map(Acks::findings).collect();
        if let Some(first) = findings.first() {
            failures.push(format!("SWARM_SEED={seed}: {} findings, the first: {first}", findings.len()));
        }
    }
    assert!(failures.is_empty(), "{}", failures.join("\n"));
}

/// A path with losses on the wired link and none on the radio link.
fn draw_clean_radio(seed: u64) -> Scenario {
    let mut random = Random::named(seed, "clean radio");
    let wired = |name: &str| {
        let mut random = Random::named(seed, name);
        let link = draw_link(&mut random, FAULTS_LAST);
        let delay = Delay::Constant(random.duration_up_to(Duration::from_millis(150)));
        let jitter = link.jitter.map(|jitter| paceline_path::Jitter { keep_order: true, ..jitter });
        LinkConfig { delay, reorder: None, jitter, ..link }
    };
    let radio = |name: &str| {
        let mut random = Random::named(seed, name);
        let mbps = 0.3 * 300f64.powf(random.unit());
        LinkConfig {
            rate: RateProcess::Constant(paceline_wire::Rate::from_mbps(mbps)),
            delay: Delay::Constant(random.duration_up_to(Duration::from_millis(150))),
            queue: QueueLimit::Packets(1_000_000),
            ..LinkConfig::default()
        }
    };
    let path = vec![
        PathLink { name: "wired".into(), down: wired("wired down"), up: wired("wired up") },
        PathLink { name: "radio".into(), down: radio("radio down"), up: radio("radio up") },
    ];
    let mut config: GatewayConfig = draw_gateway(&mut random);
    // A packet without room passes before packets that wait. So the limits are the defaults.
    (config.mode, config.limits) = (FlowMode::Transparent, LimitsConfig::default());
    let is_larger = matches!(config.virtual_window.mode, VirtualWindowMode::Fixed | VirtualWindowMode::Sized);
    config.retransmission.mode =
        one_of(&mut random, &[RetransmissionMode::Local, RetransmissionMode::Proactive]);
    let mut scenario = draw(seed);
    for flow in &mut scenario.flows {
        flow.direction = Direction::Down;
        if let Transport::Tcp(tcp) = &mut flow.transport {
            keep_all(tcp, is_larger);
        }
    }
    Scenario { path, gateway: Some(GatewayAt { links_before: 1, config }), ..scenario }
}

/// Lets the client discard nothing. Packets without room would be lost behind the gateway. `is_larger`: the server is
/// shown more than the client's window. Timestamps distinguish a server's timeout from reordering, if the timeout comes
/// within a round trip of the packet behind the gap.
fn keep_all(tcp: &mut TcpFlow, is_larger: bool) {
    (tcp.server.opportunistic, tcp.server.hack1) = (false, false);
    (tcp.server.timestamps, tcp.client.timestamps) = (true, true);
    if is_larger {
        tcp.client.receive_buffer = ReceiveBuffer::Fixed(8 << 20);
        (tcp.client.window_scaling, tcp.server.window_scaling) = (true, true);
    }
}

#[derive(Clone, Copy)]
enum Place {
    FromClient,
    ToClient,
    ToServer,
}

/// A tap beside the gateway. All taps share one watch.
struct AckTap {
    watch: Rc<RefCell<Watch>>,
    place: Place,
}

impl Tap for AckTap {
    fn sent(&mut self, now: Instant, packet: &Packet) {
        match self.place {
            Place::ToClient => self.see(packet, true, |acks| acks.data_leaves(now, packet)),
            Place::ToServer => self.see(packet, false, |acks| acks.ack_leaves(packet)),
            Place::FromClient => {}
        }
    }

    fn delivered(&mut self, delivered: &Delivered) {
        if let Place::FromClient = self.place {
            self.see(&delivered.packet, false, |acks| acks.ack_comes(delivered.at, &delivered.packet));
        }
    }
}

impl AckTap {
    fn see(&self, packet: &Packet, from_server: bool, look: impl FnOnce(&mut Acks)) {
        let Some(key) = packet.flow_key() else { return };
        let key = if from_server { key.reversed() } else { key };
        look(self.watch.borrow_mut().flows.entry(key).or_default());
    }
}

#[derive(Default)]
struct Watch {
    /// Keys are from client to server.
    flows: FxHashMap<FlowKey, Acks>,
}

/// An ACK without data.
#[derive(Clone, Debug, PartialEq)]
struct Ack {
    ack: u64,
    /// SACK blocks above `ack`.
    blocks: Vec<(u64, u64)>,
}

#[derive(Default)]
struct Acks {
    unwrap: Unwrap,
    data: Unwrap,
    sent: Covered,
    /// The highest acknowledgement that has come. `last` is the newest ACK and its window.
    una: u64,
    last: Option<(Ack, u16)>,
    /// ACKs that have come and not left, and whether the gateway may keep them.
    pending: VecDeque<(Instant, Ack, bool)>,
    withheld: Vec<(Instant, Ack)>,
    invented: Vec<Ack>,
    /// Times when repairs were out. `repaired_to` is the end of the present ones.
    repairs: Vec<(Instant, Option<Instant>)>,
    repaired_to: u64,
    /// Number of SYNs that the client has not answered.
    syns: u32,
}

impl Acks {
    fn read(&mut self, packet: &Packet) -> Option<(Ack, bool, u16)> {
        let tcp = packet.tcp()?;
        if tcp.flags() & (Flags::SYN | Flags::FIN | Flags::RST | Flags::ACK) != Flags::ACK
            || tcp.seq_len() > 0
        {
            return None;
        }
        let ack = self.unwrap.position(tcp.ack());
        let all = tcp.sack_blocks().map(|(start, end)| (start.unwrap_near(ack), end.unwrap_near(ack)));
        let (above, below): (Vec<_>, Vec<_>) = all.partition(|&(start, _)| start >= ack);
        Some((Ack { ack, blocks: above }, !below.is_empty(), tcp.window()))
    }

    fn ack_comes(&mut self, at: Instant, packet: &Packet) {
        let Some((ack, has_duplicate, window)) = self.read(packet) else { return };
        self.una = self.una.max(ack.ack);
        let is_duplicate = self.last.as_ref().is_some_and(|(last, _)| *last == ack);
        let answers_syn = is_duplicate && self.syns > 0;
        self.syns -= u32::from(answers_syn);
        let is_update = self.last.as_ref().is_some_and(|(last, shown)| *last == ack && *shown != window);
        self.last = Some((ack.clone(), window));
        if self.una >= self.repaired_to
            && let Some((_, end @ None)) = self.repairs.last_mut()
        {
            *end = Some(at + LINGER);
        }
        self.pending.push_back((at, ack, is_update || has_duplicate || answers_syn));
    }

    fn ack_leaves(&mut self, packet: &Packet) {
        let Some((ack, ..)) = self.read(packet) else { return };
        let Some(place) = self.pending.iter().position(|(_, come, _)| *come == ack) else {
            self.invented.push(ack);
            return;
        };
        let stayed = self.pending.drain(..=place).take(place).filter(|(.., may_stay)| !may_stay);
        self.withheld.extend(stayed.map(|(at, ack, _)| (at, ack)));
    }

    fn data_leaves(&mut self, now: Instant, packet: &Packet) {
        let is_syn = packet.tcp().is_some_and(|tcp| tcp.flags().contains(Flags::SYN));
        self.syns += u32::from(is_syn);
        let Some((start, end)) = self.data.payload(packet) else { return };
        if end <= self.una {
            self.repairs.push((now, Some(now + LINGER)));
        }
        let is_repair = self.sent.add(start, end) < end - start && end > self.una;
        if !is_repair {
            return;
        }
        self.repaired_to = self.repaired_to.max(end);
        if self.repairs.last().is_none_or(|(_, ended)| ended.is_some()) {
            self.repairs.push((now, None));
        }
    }

    fn findings(&self) -> Vec<String> {
        let withheld = self.withheld.iter().filter(|(at, _)| !self.is_excused(*at));
        let withheld = withheld.map(|(at, ack)| format!("{ack:?}, come at {at:?}, was not shown"));
        // A cut ACK looks invented, and the original one looks withheld.
        let invented = self.invented.iter().filter(|_| self.repairs.is_empty());
        withheld.chain(invented.map(|ack| format!("{ack:?} was not said"))).collect()
    }

    /// True if a repair was out, or if the faults had stopped. Then the links begin anew and lose their packets.
    fn is_excused(&self, at: Instant) -> bool {
        at >= Instant::ZERO + FAULTS_LAST
            || self.repairs.iter().any(|(from, to)| *from <= at && to.is_none_or(|to| at <= to))
    }
}
