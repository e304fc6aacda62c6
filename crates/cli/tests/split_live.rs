//! Split mode on live packets: kernel sockets on a lab's two hosts, and this program between them.

#![allow(clippy::unwrap_used, clippy::panic, reason = "a test fails by panicking")]

mod common;

use std::fs;
use std::io::{ErrorKind, Read, Write};
use std::net::{Shutdown, SocketAddr, TcpListener, TcpStream};
use std::path::PathBuf;
use std::thread;
use std::time::{Duration, Instant};

use nix::sys::signal::Signal;
use paceline_lab::netns::Netns;
use paceline_lab::{GatewayKind, Lab, LabConfig};

use common::{Running, SHIFTS, STATS, pattern, wait_for};

/// A lab with plain links, and a gateway that splits every flow.
struct Split {
    gateway: Option<Running>,
    lab: Lab,
    folder: tempfile::TempDir,
}

impl Split {
    /// Starts the gateway. `None` if the test may not run, with a message.
    fn new(kind: GatewayKind) -> Option<Split> {
        let lab = common::joined_lab(LabConfig { gateway: kind, ..LabConfig::default() })?;
        let mut split = Split { gateway: None, lab, folder: tempfile::tempdir().unwrap() };
        split.start(kind);
        Some(split)
    }

    fn start(&mut self, kind: GatewayKind) {
        let _ = fs::remove_file(self.stats_file());
        let routed = if kind == GatewayKind::Routed { common::routed(&self.lab) } else { Vec::new() };
        let mut options = vec!["--profile", "split"];
        options.extend(routed.iter().map(String::as_str));
        self.gateway = Some(Running::gateway(&self.lab, self.folder.path(), &options, &[STATS, SHIFTS]));
        wait_for(|| self.stats_file().exists().then_some(()));
    }

    fn stats_file(&self) -> PathBuf {
        self.folder.path().join(STATS.1)
    }

    /// Waits until a counter of the gateway is at least `least`, and returns it. It is written every second.
    fn counter(&self, name: &str, least: u64) -> u64 {
        let mut value = 0;
        for _ in 0..40 {
            let text = fs::read_to_string(self.stats_file()).unwrap_or_default();
            let stats: serde_json::Value = serde_json::from_str(&text).unwrap_or_default();
            value = stats["counters"][name].as_u64().unwrap_or(0);
            if value >= least {
                break;
            }
            thread::sleep(Duration::from_millis(100));
        }
        value
    }

    fn listen(&self, ipv6: bool) -> TcpListener {
        let address = SocketAddr::new(self.lab.server_address(ipv6), 0);
        self.lab.server.run(|| TcpListener::bind(address)).unwrap().unwrap()
    }

    fn connect(&self, to: SocketAddr) -> std::io::Result<TcpStream> {
        let stream = self.lab.client.run(|| TcpStream::connect(to)).unwrap()?;
        stream.set_read_timeout(Some(Duration::from_secs(20))).unwrap();
        Ok(stream)
    }

    /// Returns both ends of a new flow.
    fn flow(&self, listener: &TcpListener) -> (TcpStream, TcpStream) {
        let client = self.connect(listener.local_addr().unwrap()).unwrap();
        let server = listener.accept().unwrap().0;
        server.set_read_timeout(Some(Duration::from_secs(20))).unwrap();
        (client, server)
    }
}

/// Sends `bytes` and closes its half, while it reads the other half to its end.
fn exchange(stream: &TcpStream, bytes: &[u8]) -> Vec<u8> {
    let mut received = Vec::new();
    thread::scope(|scope| {
        scope.spawn(|| {
            let mut stream = stream;
            stream.write_all(bytes).unwrap();
            stream.shutdown(Shutdown::Write).unwrap();
        });
        let mut stream = stream;
        stream.read_to_end(&mut received).unwrap();
    });
    received
}

/// Sends bytes both ways at once, with halves that close one after the other, over both versions of IP.
fn carries_bytes(kind: GatewayKind) {
    let Some(split) = Split::new(kind) else { return };
    let (down, up) = (pattern(20_000_000), pattern(5_000_000));
    for ipv6 in [false, true] {
        let (client, server) = split.flow(&split.listen(ipv6));
        assert_eq!(server.peer_addr().unwrap(), client.local_addr().unwrap(), "each sees the other");
        let (got_down, got_up) = thread::scope(|scope| {
            let serving = scope.spawn(|| exchange(&server, &down));
            (exchange(&client, &up), serving.join().unwrap())
        });
        assert!(got_down == down && got_up == up, "what arrives is what was sent");
    }
    assert_eq!(split.counter("flows_split", 2), 2);
}

#[test]
fn bytes_pass_a_bridge_whole() {
    carries_bytes(GatewayKind::Bridged);
}

#[test]
fn bytes_pass_a_router_whole() {
    carries_bytes(GatewayKind::Routed);
}

#[test]
fn a_refusal_is_a_refusal_and_a_reset_a_reset() {
    let Some(split) = Split::new(GatewayKind::Bridged) else { return };
    let listener = split.listen(false);
    let address = listener.local_addr().unwrap();
    let (mut client, mut server) = split.flow(&listener);
    client.write_all(b"hello").unwrap();
    server.read_exact(&mut [0; 5]).unwrap();
    server.write_all(b"unread").unwrap();
    thread::sleep(Duration::from_millis(200));
    // Closing with unread data sends a reset (Linux tcp_close).
    drop(client);
    assert_eq!(server.read(&mut [0; 8]).unwrap_err().kind(), ErrorKind::ConnectionReset);
    drop(listener);
    assert_eq!(split.connect(address).unwrap_err().kind(), ErrorKind::ConnectionRefused);
    assert_eq!(split.counter("split_refused", 1), 1);
}

/// Returns the number of packets received and sent by a host's only interface.
fn packets(host: &Netns, interface: &str) -> u64 {
    let text = host.run(|| fs::read_to_string("/proc/thread-self/net/dev")).unwrap().unwrap();
    let line = text.lines().find_map(|line| line.trim().strip_prefix(&format!("{interface}:"))).unwrap();
    let fields: Vec<u64> = line.split_whitespace().map(|field| field.parse().unwrap()).collect();
    fields[1] + fields[9]
}

/// Writes to `stream`, and waits for the reset in answer.
fn is_reset_within(mut stream: &TcpStream, limit: Duration) -> Duration {
    let start = Instant::now();
    stream.set_read_timeout(Some(limit)).unwrap();
    stream.write_all(b"next").unwrap();
    let error = stream.read(&mut [0; 8]).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::ConnectionReset, "after {:?}", start.elapsed());
    start.elapsed()
}

/// Kills the gateway. The kernel must reset both ends of every split flow, and so must the next process.
fn ends_split_flows(kind: GatewayKind) {
    const FLOWS: usize = 100;
    const LIMIT: Duration = Duration::from_secs(2);
    let Some(mut split) = Split::new(kind) else { return };
    let listener = split.listen(false);
    let flows: Vec<(TcpStream, TcpStream)> = (0..2 * FLOWS).map(|_| split.flow(&listener)).collect();
    for (client, server) in &flows {
        let (mut client, mut server) = (client, server);
        client.write_all(b"up").unwrap();
        server.read_exact(&mut [0; 2]).unwrap();
        server.write_all(b"down").unwrap();
        client.read_exact(&mut [0; 4]).unwrap();
    }
    assert_eq!(split.counter("flows_split", 2 * FLOWS as u64), 2 * FLOWS as u64);
    split.gateway = None;
    // Until the rule lapses, nobody forwards arriving packets.
    thread::sleep(Duration::from_millis(600));
    let (first, second) = flows.split_at(FLOWS);
    let before = [packets(&split.lab.server, "s0"), packets(&split.lab.client, "c0")];
    let slowest = first
        .iter()
        .map(|(client, server)| is_reset_within(client, LIMIT).max(is_reset_within(server, LIMIT)));
    eprintln!("without a gateway: the slowest after {:?}", slowest.max());
    thread::sleep(Duration::from_millis(300));
    for (before, now) in
        before.into_iter().zip([packets(&split.lab.server, "s0"), packets(&split.lab.client, "c0")])
    {
        let each = (now - before) as f64 / FLOWS as f64;
        eprintln!("{each} packets a flow at one end");
        assert!(each <= 10.0, "{each} packets a flow");
    }
    split.start(kind);
    let slowest = second
        .iter()
        .map(|(client, server)| is_reset_within(client, LIMIT).max(is_reset_within(server, LIMIT)));
    eprintln!("with the next gateway: the slowest after {:?}", slowest.max());
    // New flows work.
    let (mut client, mut server) = split.flow(&listener);
    client.write_all(b"again").unwrap();
    server.read_exact(&mut [0; 5]).unwrap();
    assert_eq!(split.counter("flows_split", 1), 1);
}

#[test]
fn a_killed_gateway_on_a_bridge_leaves_no_split_flow_hanging() {
    ends_split_flows(GatewayKind::Bridged);
}

#[test]
fn a_killed_gateway_on_a_router_leaves_no_split_flow_hanging() {
    ends_split_flows(GatewayKind::Routed);
}

/// Servers send a little every ten milliseconds, while the gateway stands still for longer than transparent flows
/// would wait. If the kernel forwarded packets meanwhile, bytes would be missing, or a reset would come.
#[test]
fn a_gateway_that_stands_still_for_a_second_loses_nothing() {
    const PIECES: usize = 200;
    let Some(split) = Split::new(GatewayKind::Bridged) else { return };
    let listener = split.listen(false);
    let flows: Vec<_> = (0..32).map(|_| split.flow(&listener)).collect();
    let sent = pattern(PIECES * 4096);
    let gateway = split.gateway.as_ref().unwrap();
    thread::scope(|scope| {
        for (client, server) in &flows {
            let sent = &sent;
            scope.spawn(move || {
                let mut server = server;
                for piece in sent.chunks(4096) {
                    server.write_all(piece).unwrap();
                    thread::sleep(Duration::from_millis(10));
                }
                server.shutdown(Shutdown::Write).unwrap();
            });
            scope.spawn(move || {
                let (mut client, mut received) = (client, Vec::new());
                client.read_to_end(&mut received).unwrap();
                assert!(received == *sent, "{} bytes of {}", received.len(), sent.len());
            });
        }
        thread::sleep(Duration::from_millis(500));
        gateway.signal(Signal::SIGSTOP);
        thread::sleep(Duration::from_millis(1_200));
        gateway.signal(Signal::SIGCONT);
    });
}
