use std::net::Ipv4Addr;

use paceline_wire::{Duration, FlowKey, Payload, TcpOptionsRepr, TcpRepr};

use super::*;

/// A connection from client to server, watched at both ends. The test says what happens.
struct Script {
    checker: Checker,
    out: CheckerTap,
    into: CheckerTap,
}

const ISN: u32 = u32::MAX - 100;

fn address(host: u8) -> SocketAddr {
    SocketAddr::from((Ipv4Addr::new(10, 0, 0, host), 80))
}

impl Script {
    /// After the handshake: the client shows a window of 100 << 4.
    fn new() -> Script {
        let checker = Checker::default();
        let mut script = Script { out: checker.out_of_host(), into: checker.into_host(), checker };
        let options = TcpOptionsRepr { window_scale: Some(4), ..TcpOptionsRepr::default() };
        let syn = TcpRepr { seq: Seq(5), flags: Flags::SYN, window: 1_000, options, ..TcpRepr::default() };
        script.client(syn, 0);
        let flags = Flags::SYN | Flags::ACK;
        script.server(TcpRepr { seq: Seq(ISN), ack: Seq(6), flags, ..syn }, 0);
        script.client(ack(ISN.wrapping_add(1), 100), 0);
        script
    }

    fn client(&mut self, tcp: TcpRepr, payload: u32) {
        self.leaves(address(1), address(2), tcp, payload);
        self.arrives(address(1), address(2), tcp, payload);
    }

    fn server(&mut self, tcp: TcpRepr, payload: u32) {
        self.leaves(address(2), address(1), tcp, payload);
        self.arrives(address(2), address(1), tcp, payload);
    }

    fn leaves(&mut self, from: SocketAddr, to: SocketAddr, tcp: TcpRepr, payload: u32) {
        let packet = Packet::build_tcp(FlowKey::new(from, to), &tcp, Payload::Length(payload));
        self.out.sent(Instant::ZERO, &packet);
    }

    fn arrives(&mut self, from: SocketAddr, to: SocketAddr, tcp: TcpRepr, payload: u32) {
        let packet = Packet::build_tcp(FlowKey::new(from, to), &tcp, Payload::Length(payload));
        let (at, queue_delay) = (Instant::ZERO, Duration::ZERO);
        self.into.delivered(&Delivered { at, packet, sent: at, queue_delay });
    }

    #[track_caller]
    fn finds(&self, text: &str) {
        let findings = self.checker.findings();
        assert!(findings.iter().any(|f| f.contains(text)), "{findings:?}");
    }
}

fn data(offset: u32) -> TcpRepr {
    TcpRepr {
        seq: Seq(ISN.wrapping_add(1 + offset)),
        ack: Seq(6),
        flags: Flags::ACK,
        window: 1_000,
        ..TcpRepr::default()
    }
}

fn ack(number: u32, window: u16) -> TcpRepr {
    TcpRepr { seq: Seq(6), ack: Seq(number), flags: Flags::ACK, window, ..TcpRepr::default() }
}

fn ack_of(offset: u32, window: u16) -> TcpRepr {
    ack(ISN.wrapping_add(1 + offset), window)
}

#[test]
fn an_honest_connection_passes() {
    let mut script = Script::new();
    script.server(data(0), 500);
    script.server(data(1_000), 500);
    let blocks = [(Seq(ISN.wrapping_add(1_001)), Seq(ISN.wrapping_add(1_501)))];
    let mut report = ack_of(500, 69);
    report.options.sack_blocks = blocks.into_iter().collect();
    script.client(report, 0);
    script.server(data(500), 500);
    script.client(ack_of(1_500, 7), 0);
    script.server(TcpRepr { flags: Flags::ACK | Flags::FIN, ..data(1_500) }, 0);
    script.client(ack_of(1_501, 7), 0);
    assert_eq!(script.checker.findings(), [""; 0]);
    assert_eq!(script.checker.arrived_bytes(address(2), address(1)), 1_500);
}

#[test]
fn acknowledgements_must_be_true_and_rise() {
    let mut script = Script::new();
    script.server(data(0), 500);
    script.client(ack_of(501, 100), 0);
    script.finds("acknowledges");
    script.client(ack_of(500, 100), 0);
    script.client(ack_of(400, 200), 0);
    assert_eq!(script.checker.findings().len(), 2);
    let mut report = ack_of(500, 100);
    report.options.sack_blocks =
        [(Seq(ISN.wrapping_add(1_001)), Seq(ISN.wrapping_add(1_002)))].into_iter().collect();
    script.client(report, 0);
    script.finds("reports");
}

#[test]
fn windows_must_not_shrink() {
    let mut script = Script::new();
    script.client(ack_of(0, 99), 0);
    script.finds("moves back");
}

#[test]
fn windows_must_be_kept() {
    let mut script = Script::new();
    script.server(data(1_000), 600);
    assert_eq!(script.checker.findings(), [""; 0]);
    script.server(data(1_600), 1);
    assert_eq!(script.checker.findings(), [""; 0], "a probe");
    script.server(data(1_100), 501);
    script.finds("beyond the window");
    let script = &mut Script::new();
    script.checker.allow_beyond_window();
    script.server(data(1_100), 501);
    assert_eq!(script.checker.findings(), [""; 0]);
}

#[test]
fn a_fin_is_the_end() {
    let mut script = Script::new();
    script.server(TcpRepr { flags: Flags::ACK | Flags::FIN, ..data(100) }, 100);
    script.server(data(150), 100);
    script.finds("behind the FIN");
    script.server(TcpRepr { flags: Flags::ACK | Flags::FIN, ..data(0) }, 100);
    script.finds("second FIN");
}
