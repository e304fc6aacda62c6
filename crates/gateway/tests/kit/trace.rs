//! A download packet by packet, as text: what arrives at the gateway, and what leaves it.
//!
//!     0    server 3                    -> data 3
//!     60   client lacks 3 has 5-6      -> lacks 3 has 5-6
//!     60   client lacks 3 has 5-7 4    -> nothing
//!     200  wait                        -> data 4
//!
//! Each line has a time in milliseconds, an event, and what leaves at once. For `wait` it has what timers have sent
//! since the line before. Data is numbered by segments of 1,000 bytes. `lacks 3` acknowledges all before segment 3.
//! The ranges after `has` are its SACK blocks, ends included. `server 3-5` is one packet of three segments, as a
//! network card merges them. `window 3` is an acknowledgement that moves only the right edge of the window. It is no
//! duplicate.

use paceline_gateway::{GatewayConfig, RADIO, WAN};
use paceline_wire::{Duration, Flags, Instant, Packet, PortId, Seq, TcpOptionsRepr};

use super::script::{SERVER_ISN, Script};

/// Round trips in milliseconds: to the server, to the client.
const ROUND_TRIPS: [u64; 2] = [40, 60];
const SEGMENT: u64 = 1_000;
/// Segments that the client has acknowledged before the trace begins.
const BEFORE: u64 = 4;
/// The window as in the handshake, in units of 128 bytes. Its right edge moves with the acknowledgements.
const WINDOW: u16 = 17_520;

/// Plays `text` and compares what leaves. Then plays it again for each line, and moves the gateway's state into
/// another process before that line.
#[track_caller]
pub fn plays(text: &str) {
    plays_with(&GatewayConfig::default(), true, text);
}

/// The same as [`plays`], with a client without SACK.
#[track_caller]
pub fn plays_without_sack(text: &str) {
    plays_with(&GatewayConfig::default(), false, text);
}

/// The same as [`plays`], with another gateway and a client that may have no SACK.
#[track_caller]
pub fn plays_with(config: &GatewayConfig, sack: bool, text: &str) {
    let lines: Vec<&str> = text.lines().map(str::trim).filter(|line| !line.is_empty()).collect();
    let played = Trace::new(config, sack).play(&lines, None);
    let expected: Vec<String> =
        lines.iter().map(|line| line.split_whitespace().collect::<Vec<_>>().join(" ")).collect();
    assert_eq!(played.told, expected, "left what happened, right what was expected");
    for moves_at in 0..lines.len() {
        let moved = Trace::new(config, sack).play(&lines, Some(moves_at));
        assert!(moved == played, "after a move before line {moves_at}: {:#?}", moved.told);
    }
}

/// The outcome of a trace.
#[derive(Debug, Default, PartialEq)]
struct Played {
    /// The lines of the trace, with what has left.
    told: Vec<String>,
    /// All packets that have left.
    bytes: Vec<Vec<u8>>,
}

struct Trace {
    config: GatewayConfig,
    script: Script,
    start: Instant,
    /// The right edge of the window that the server was shown.
    edge: u64,
    shown: u64,
    played: Played,
}

impl Trace {
    fn new(config: &GatewayConfig, sack: bool) -> Self {
        let mut script = Script::new(config.clone());
        let options = TcpOptionsRepr {
            mss: Some(SEGMENT as u16),
            window_scale: Some(7),
            sack_permitted: sack,
            ..TcpOptionsRepr::default()
        };
        script.handshake_over(ROUND_TRIPS, options, options);
        let start = script.now;
        let mut trace =
            Trace { config: config.clone(), script, start, edge: 0, shown: 0, played: Played::default() };
        for number in 0..BEFORE {
            trace.from_server(&format!("{number}"));
        }
        trace.script.wait(ROUND_TRIPS[1]);
        trace.from_client(&["lacks", &BEFORE.to_string()]);
        trace.script.wait(500);
        trace.start = trace.script.now;
        trace.played = Played::default();
        trace
    }

    fn play(mut self, lines: &[&str], moves_at: Option<usize>) -> Played {
        for (number, line) in lines.iter().enumerate() {
            let event = line.split("->").next().unwrap();
            let words: Vec<&str> = event.split_whitespace().collect();
            let at = self.start + Duration::from_millis(words[0].parse().unwrap());
            assert!(at >= self.script.now, "{line}: back in time");
            let wait = at.saturating_since(self.script.now).as_nanos() / 1_000_000;
            let waited = self.script.wait(wait);
            let waited = self.tell(waited);
            if moves_at == Some(number) {
                self.moves();
            }
            let left = match words[1] {
                "wait" => waited,
                who => {
                    assert_eq!(waited, "nothing", "before {line}");
                    if who == "server" { self.from_server(words[2]) } else { self.from_client(&words[2..]) }
                }
            };
            self.played.told.push(format!("{} -> {left}", words.join(" ")));
        }
        self.played
    }

    fn from_server(&mut self, segments: &str) -> String {
        let (first, end) = range(segments);
        let len = (end - first) as usize;
        let mut data =
            self.script.from_server(first as u32, 1, Flags::ACK, 500, TcpOptionsRepr::default(), len);
        if len as u64 > SEGMENT {
            data.set_gso_size(Some(SEGMENT as u16));
        }
        let out = self.script.arrive(WAN, data);
        self.tell(out)
    }

    /// `words` are for example `lacks 3 has 5-6 8`.
    fn from_client(&mut self, words: &[&str]) -> String {
        let blocks: Vec<(u64, u64)> = words.iter().skip(3).map(|segments| range(segments)).collect();
        let mut option = Vec::new();
        if !blocks.is_empty() {
            option.extend([1, 1, 5, 2 + 8 * blocks.len() as u8]);
        }
        for position in blocks.iter().flat_map(|&(start, end)| [start, end]) {
            option.extend(Seq(SERVER_ISN).add(position as u32).0.to_be_bytes());
        }
        let options = TcpOptionsRepr { extra: option.leak(), ..TcpOptionsRepr::default() };
        let ack = range(words[1]).0 as u32;
        let ack = self.script.from_client(1, ack, Flags::ACK, WINDOW, options, 0);
        let out = self.script.arrive(RADIO, ack);
        self.tell(out)
    }

    /// Returns what leaves, in words.
    fn tell(&mut self, out: Vec<(PortId, Packet)>) -> String {
        let mut words = Vec::new();
        for (port, packet) in &out {
            self.played.bytes.push(packet.to_vec());
            words.push(if *port == RADIO { tell_data(packet) } else { self.tell_ack(packet) });
        }
        if words.is_empty() { "nothing".to_string() } else { words.join(", ") }
    }

    fn tell_ack(&mut self, packet: &Packet) -> String {
        let tcp = packet.tcp().unwrap();
        let ack = position(tcp.ack());
        let edge = ack + (u64::from(tcp.window()) << 7);
        let is_update = ack == self.shown && edge > self.edge;
        (self.shown, self.edge) = (ack, self.edge.max(edge));
        let mut told = format!("{} {}", if is_update { "window" } else { "lacks" }, ack / SEGMENT);
        for (number, (start, end)) in tcp.sack_blocks().enumerate() {
            told += if number == 0 { " has " } else { " " };
            told += &segments(position(start), position(end));
        }
        told
    }

    fn moves(&mut self) {
        use paceline_gateway::{Gateway, RestoredGateway};
        let written = rmp_serde::to_vec_named(&self.script.gateway.state()).unwrap();
        let read: RestoredGateway = rmp_serde::from_slice(&written).unwrap();
        self.script.gateway = Gateway::take_over(self.config.clone(), Box::new(()), read, Vec::new());
    }
}

fn tell_data(packet: &Packet) -> String {
    let tcp = packet.tcp().unwrap();
    let start = position(tcp.seq());
    format!("data {}", segments(start, start + packet.payload().len() as u64))
}

/// Returns the position in the stream, whose first byte has number 1.
fn position(seq: Seq) -> u64 {
    u64::from(seq.0.wrapping_sub(SERVER_ISN))
}

/// Returns the first byte and the end of these segments: `3` or `3-5`.
fn range(segments: &str) -> (u64, u64) {
    let (first, last) = segments.split_once('-').unwrap_or((segments, segments));
    let number = |text: &str| text.parse::<u64>().unwrap();
    (1 + number(first) * SEGMENT, 1 + (number(last) + 1) * SEGMENT)
}

fn segments(start: u64, end: u64) -> String {
    let (first, last) = (start / SEGMENT, (end - 1) / SEGMENT);
    let is_one = end - start <= SEGMENT;
    let last = if end % SEGMENT == 1 { last - 1 } else { last };
    if is_one { first.to_string() } else { format!("{first}-{last}") }
}
