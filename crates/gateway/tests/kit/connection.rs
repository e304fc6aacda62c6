//! One end of a model TCP connection: handshake, options, and the two halves.

use paceline_wire::{
    Duration, Flags, FlowKey, Instant, Packet, SackBlocks, Seq, Tcp, TcpOptionsRepr, TcpRepr,
};

use super::receiver::{Receiver, ReceiverConfig};
use super::rto::{RTO_INIT, earliest};
use super::sender::{AckInput, Emit, Sender, SenderConfig, clock_ms};
use super::stream::{Content, Stream};

/// How one end behaves.
#[derive(Clone, Debug)]
pub struct EndpointConfig {
    pub sender: SenderConfig,
    pub receiver: ReceiverConfig,
    pub mss: u16,
    pub window_scale: Option<u8>,
    pub sack: bool,
    pub timestamps: bool,
    pub content: Content,
    pub isn: u32,
}

impl Default for EndpointConfig {
    fn default() -> Self {
        EndpointConfig {
            sender: SenderConfig::default(),
            receiver: ReceiverConfig::default(),
            mss: 1460,
            window_scale: Some(7),
            sack: true,
            timestamps: true,
            content: Content::Length,
            // Wraps after 20 MB. Most runs pass this point.
            isn: 0u32.wrapping_sub(20_000_000),
        }
    }
}

/// The data that the application at one end sends.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Workload {
    /// No data. Closes after the peer.
    #[default]
    Silent,
    /// This many bytes, then it closes.
    Bytes(u64),
    /// This many bytes, then the connection stays open.
    BytesAndStay(u64),
    /// Data without end.
    Endless,
}

/// State of the connection (RFC 9293, Section 3.3.2). The closing states are in the two halves.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum State {
    Closed,
    Listen,
    SynSent,
    SynReceived,
    Established,
    Reset,
}

/// One end of a connection.
#[derive(Debug)]
pub struct Connection {
    /// The direction in which this end sends.
    pub key: FlowKey,
    pub state: State,
    config: EndpointConfig,
    workload: Workload,
    iss: u64,
    irs: u64,
    peer_mss: u16,
    /// Shifts of the windows that this end sends and receives.
    scales: (u8, u8),
    peer_scales: bool,
    timestamps: bool,
    sack: bool,
    ts_recent: u32,
    wl1: u64,
    syn_at: Option<Instant>,
    syn_sent: Instant,
    syn_tries: u32,
    pub sender: Option<Sender>,
    pub receiver: Option<Receiver>,
    sends: Stream,
    receives: Stream,
    out: Vec<Packet>,
    pub opened_at: Option<Instant>,
    pub established_at: Option<Instant>,
    pub bad_checksums: u64,
    pub wrong_bytes: u64,
    pub paws_drops: u64,
}

impl Connection {
    pub fn new(key: FlowKey, config: EndpointConfig, workload: Workload, listen: bool) -> Self {
        Connection {
            key,
            state: if listen { State::Listen } else { State::Closed },
            workload,
            iss: (1 << 32) + u64::from(config.isn),
            irs: 0,
            peer_mss: 536,
            scales: (0, 0),
            peer_scales: false,
            timestamps: config.timestamps,
            sack: config.sack,
            ts_recent: 0,
            wl1: 0,
            syn_at: None,
            syn_sent: Instant::ZERO,
            syn_tries: 0,
            sender: None,
            receiver: None,
            sends: Stream::new(&key, config.content),
            receives: Stream::new(&key.reversed(), config.content),
            config,
            out: Vec::new(),
            opened_at: None,
            established_at: None,
            bad_checksums: 0,
            wrong_bytes: 0,
            paws_drops: 0,
        }
    }

    /// True if both streams are complete and everything is acknowledged.
    pub fn is_over(&self) -> bool {
        let sent = self.sender.as_ref().is_some_and(Sender::is_done);
        sent && self.receiver.as_ref().is_some_and(Receiver::is_finished)
    }

    pub fn open(&mut self, now: Instant) {
        self.opened_at = Some(now);
        self.state = State::SynSent;
        self.send_syn(now);
    }

    /// Writes more data, whatever the workload.
    pub fn write(&mut self, now: Instant, bytes: u64) {
        if let Some(sender) = &mut self.sender {
            sender.write(now, Some(bytes));
        }
        self.flush(now);
    }

    pub fn close(&mut self, now: Instant) {
        if let Some(sender) = &mut self.sender {
            sender.finish(now);
        }
        self.flush(now);
    }

    pub fn next_timeout(&self) -> Option<Instant> {
        let sender = self.sender.as_ref().and_then(Sender::next_timeout);
        earliest(&[self.syn_at, sender, self.receiver.as_ref().and_then(Receiver::next_timeout)])
    }

    pub fn on_timeout(&mut self, now: Instant) {
        if self.syn_at.is_some_and(|at| at <= now) {
            self.syn_tries += 1;
            if self.syn_tries > 7 {
                self.state = State::Reset;
                self.syn_at = None;
                return;
            }
            self.send_syn(now);
        }
        if let Some(receiver) = &mut self.receiver {
            receiver.on_timeout(now);
        }
        if let Some(sender) = &mut self.sender
            && sender.next_timeout().is_some_and(|at| at <= now)
        {
            sender.on_timeout(now);
        }
        self.flush(now);
    }

    pub fn on_packet(&mut self, now: Instant, packet: &Packet) {
        if !packet.verify_checksum() {
            self.bad_checksums += 1;
            return;
        }
        let Some(tcp) = packet.tcp() else { return };
        if tcp.flags().contains(Flags::RST) {
            self.on_reset(&tcp);
            return;
        }
        match self.state {
            State::Listen | State::SynSent if tcp.flags().contains(Flags::SYN) => self.on_syn(now, &tcp),
            State::SynReceived if tcp.flags().contains(Flags::SYN) && !tcp.flags().contains(Flags::ACK) => {
                self.send_syn(now);
            }
            State::SynReceived if tcp.flags().contains(Flags::ACK) && self.acks_our_syn(&tcp) => {
                self.establish(now, &tcp);
                self.on_segment(now, packet, &tcp);
            }
            State::Established => self.on_segment(now, packet, &tcp),
            _ => {}
        }
        self.flush(now);
    }

    pub fn take_packets(&mut self, into: &mut impl Extend<Packet>) {
        into.extend(self.out.drain(..));
    }

    fn on_reset(&mut self, tcp: &Tcp<'_>) {
        let in_window = self.receiver.as_ref().is_some_and(|r| tcp.seq() == Seq::from(r.nxt()));
        if in_window || self.state == State::SynSent && self.acks_our_syn(tcp) {
            self.state = State::Reset;
            self.syn_at = None;
            if let Some(sender) = &mut self.sender {
                sender.abort();
            }
        }
    }

    fn acks_our_syn(&self, tcp: &Tcp<'_>) -> bool {
        tcp.ack() == Seq::from(self.iss + 1) || self.state == State::SynReceived && tcp.payload_len() > 0
    }

    fn on_syn(&mut self, now: Instant, tcp: &Tcp<'_>) {
        let acked = tcp.flags().contains(Flags::ACK);
        if acked && (self.state != State::SynSent || !self.acks_our_syn(tcp)) {
            return;
        }
        self.irs = (1 << 32) + u64::from(tcp.seq().0);
        self.wl1 = self.irs;
        self.peer_mss = tcp.mss().unwrap_or(536);
        self.sack &= tcp.sack_permitted();
        self.timestamps &= tcp.timestamps().is_some();
        if let Some((value, _)) = tcp.timestamps() {
            self.ts_recent = value;
        }
        self.peer_scales = tcp.window_scale().is_some();
        self.scales = match (self.config.window_scale, tcp.window_scale()) {
            (Some(ours), Some(theirs)) => (ours, theirs),
            _ => (0, 0),
        };
        if acked {
            self.establish(now, tcp);
            if let Some(receiver) = &mut self.receiver {
                receiver.ack_soon();
            }
        } else {
            self.opened_at.get_or_insert(now);
            self.state = State::SynReceived;
            self.send_syn(now);
        }
    }

    fn establish(&mut self, now: Instant, tcp: &Tcp<'_>) {
        self.state = State::Established;
        self.established_at = Some(now);
        self.syn_at = None;
        let options = if self.timestamps { 12 } else { 0 };
        let mss = u32::from(self.config.mss.min(self.peer_mss)) - options;
        // The window in a SYN is not scaled (RFC 7323, Section 2.2). The window in the last ACK of the handshake is.
        let scale = if tcp.flags().contains(Flags::SYN) { 0 } else { self.scales.1 };
        let edge = self.iss + 1 + (u64::from(tcp.window()) << scale);
        let mut sender = Sender::new(self.config.sender.clone(), mss, self.sack, self.iss + 1, edge);
        if self.syn_tries == 0 {
            sender.seed_rtt(now.saturating_since(self.syn_sent));
        }
        match self.workload {
            Workload::Silent => {}
            Workload::Bytes(bytes) => {
                sender.write(now, Some(bytes));
                sender.close(now);
            }
            Workload::BytesAndStay(bytes) => sender.write(now, Some(bytes)),
            Workload::Endless => sender.write(now, None),
        }
        self.sender = Some(sender);
        let receiver = self.config.receiver.clone();
        self.receiver = Some(Receiver::new(receiver, self.irs + 1, self.scales.0, mss));
    }

    fn on_segment(&mut self, now: Instant, packet: &Packet, tcp: &Tcp<'_>) {
        let (Some(sender), Some(receiver)) = (&mut self.sender, &mut self.receiver) else { return };
        let start = tcp.seq().unwrap_near(receiver.nxt());
        let length = tcp.payload_len() as u64;
        let (syn, fin) = (tcp.flags().contains(Flags::SYN), tcp.flags().contains(Flags::FIN));
        let echo = tcp.timestamps().filter(|_| self.timestamps);
        if let Some((value, _)) = echo {
            if (value.wrapping_sub(self.ts_recent) as i32) < 0 {
                // RFC 7323, Section 5.3: PAWS.
                self.paws_drops += 1;
                if length > 0 || fin {
                    receiver.ack_soon();
                }
                return;
            }
            // RFC 7323, Section 4.3: no update from a segment without new data.
            let acceptable = start + length.max(1) > receiver.nxt();
            if acceptable && start <= receiver.last_ack() {
                self.ts_recent = value;
            }
        }
        if tcp.flags().contains(Flags::ACK) {
            let ack = tcp.ack().unwrap_near(sender.una());
            let shown = ack + (u64::from(tcp.window()) << self.scales.1);
            // RFC 9293, Section 3.10.7.4: an old segment does not change the window.
            let newer =
                start > self.wl1 || ack > sender.una() || (start == self.wl1 && shown > sender.edge());
            let same = start == self.wl1 && ack == sender.una();
            let edge = if newer || same { shown } else { sender.edge() };
            self.wl1 = if newer { start } else { self.wl1 };
            let blocks: Vec<(u64, u64)> =
                tcp.sack_blocks().map(|(a, b)| (a.unwrap_near(ack), b.unwrap_near(ack))).collect();
            sender.on_ack(&AckInput {
                now,
                ack,
                edge,
                sacks: &blocks,
                echo: echo.map(|(_, echo)| echo),
                has_data: length > 0 || fin || syn,
            });
        }
        if length > 0 || fin || syn || start < receiver.nxt() {
            let kept = receiver.on_segment(now, start, start + length, fin);
            if let Some(kept) = kept {
                self.wrong_bytes += self.receives.wrong_bytes(packet.payload(), start, kept);
            }
            if receiver.is_finished() && self.workload == Workload::Silent {
                sender.close(now);
            }
        }
    }

    fn flush(&mut self, now: Instant) {
        let emits = self.sender.as_mut().map(|s| std::mem::take(&mut s.out)).unwrap_or_default();
        for emit in emits {
            let packet = self.data_packet(now, emit);
            self.out.push(packet);
        }
        if self.receiver.as_ref().is_some_and(Receiver::wants_ack) {
            let at = self.sender.as_ref().map_or(0, Sender::nxt);
            let packet = self.data_packet(now, Emit { start: at, end: at, fin: false });
            self.out.push(packet);
        }
    }

    fn data_packet(&mut self, now: Instant, emit: Emit) -> Packet {
        let max_blocks = if self.timestamps { 3 } else { 4 };
        let Some(receiver) = &mut self.receiver else { unreachable!("sends before it is established") };
        let (ack, window, blocks) = receiver.make_ack(max_blocks);
        let mut flags = Flags::ACK;
        flags.set(Flags::PSH, emit.end > emit.start && emit.fin);
        flags.set(Flags::FIN, emit.fin);
        let blocks: SackBlocks = if self.sack {
            blocks.iter().map(|(a, b)| (Seq::from(*a), Seq::from(*b))).collect()
        } else {
            SackBlocks::default()
        };
        let options = TcpOptionsRepr {
            timestamps: self.timestamps.then(|| (clock_ms(now), self.ts_recent)),
            sack_blocks: blocks,
            ..TcpOptionsRepr::default()
        };
        let repr = TcpRepr {
            seq: Seq::from(emit.start),
            ack: Seq::from(ack),
            flags,
            window,
            options,
            ..TcpRepr::default()
        };
        let mut packet = Packet::build_tcp(self.key, &repr, self.sends.payload(emit.start, emit.end));
        let mss = self.sender.as_ref().map_or(0, Sender::mss);
        if emit.end - emit.start > u64::from(mss) {
            packet.set_gso_size(Some(mss as u16));
        } else if self.sends.content() == Content::Bytes {
            packet.complete_checksum();
        }
        packet
    }

    fn send_syn(&mut self, now: Instant) {
        self.syn_sent = now;
        self.syn_at = Some(now + RTO_INIT * (1 << self.syn_tries.min(6)));
        let answer = self.state == State::SynReceived;
        let options = TcpOptionsRepr {
            mss: Some(self.config.mss),
            window_scale: self.config.window_scale.filter(|_| !answer || self.peer_scales),
            sack_permitted: self.sack,
            timestamps: self.timestamps.then(|| (clock_ms(now), if answer { self.ts_recent } else { 0 })),
            ..TcpOptionsRepr::default()
        };
        let repr = TcpRepr {
            seq: Seq::from(self.iss),
            ack: if answer { Seq::from(self.irs + 1) } else { Seq(0) },
            flags: if answer { Flags::SYN | Flags::ACK } else { Flags::SYN },
            window: self.config.receiver.buffer.min(65_535) as u16,
            options,
            ..TcpRepr::default()
        };
        let mut packet = Packet::build_tcp(self.key, &repr, paceline_wire::Payload::default());
        packet.complete_checksum();
        self.out.push(packet);
    }
}

/// Returns the time from `a` to `b`, if both happened.
pub fn between(a: Option<Instant>, b: Option<Instant>) -> Option<Duration> {
    Some(b?.saturating_since(a?))
}
