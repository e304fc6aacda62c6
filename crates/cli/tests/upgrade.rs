//! Another process replaces the gateway while flows are open (needs root).

#![allow(clippy::unwrap_used, clippy::panic, reason = "a test fails by panicking")]

mod common;

use std::fs;
use std::io::{BufRead, BufReader, Read, Write};
use std::net::{Shutdown, SocketAddr, TcpListener, TcpStream};
use std::os::unix::net::UnixListener;
use std::path::Path;
use std::process::{Command, Stdio};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::thread::{self, JoinHandle};
use std::time::Duration;

use nix::sys::signal::Signal;
use paceline_lab::{GatewayKind, Lab, LabConfig};
use paceline_linux::timer;

use common::{CONTROL, METRICS, PROGRAM, RECORDS, Running, flows, joined_lab, metrics, wait_for};

const UPGRADES: usize = 4;
const WAYS: [Way; 4] = [Way::Down, Way::Down, Way::HalfClosed, Way::Up];

/// The newest process, or the one that has taken over from it.
struct Gateway<'a> {
    lab: &'a Lab,
    folder: &'a Path,
    options: Vec<&'a str>,
    process: Running,
}

impl<'a> Gateway<'a> {
    fn start(lab: &'a Lab, folder: &'a Path, options: &[&'a str]) -> Gateway<'a> {
        let process = launch(lab, folder, "shifts", options, &[]);
        let gateway = Gateway { lab, folder, options: options.to_vec(), process };
        wait_for(|| flows(&folder.join("socket")));
        gateway
    }

    fn upgrade(&mut self) {
        let mut old = std::mem::replace(
            &mut self.process,
            launch(self.lab, self.folder, "shifts", &self.options, &["--take-over"]),
        );
        assert!(old.has_ended_well(), "{}", self.log());
        wait_for(|| flows(&self.folder.join("socket")));
    }

    fn log(&self) -> String {
        fs::read_to_string(self.folder.join("log")).unwrap()
    }
}

fn launch(lab: &Lab, folder: &Path, shifts: &str, options: &[&str], more: &[&str]) -> Running {
    let options = [&["--metrics", METRICS], options, more].concat();
    let files = [CONTROL, RECORDS, ("--shift-file", shifts), ("--config", "config")];
    Running::gateway(lab, folder, &options, &files)
}

fn metric(lab: &Lab, name: &str) -> f64 {
    let text = metrics(lab);
    let line =
        text.lines().find(|line| line.starts_with(name)).unwrap_or_else(|| panic!("no {name}: {text}"));
    line.rsplit(' ').next().unwrap().parse().unwrap()
}

/// Returns the byte at a position of the stream.
fn byte_at(position: u64) -> u8 {
    (position ^ position >> 8 ^ position >> 16) as u8
}

/// A stream that its sender ends on request, and the number of bytes that its receiver has read.
struct Transfer {
    read: Arc<AtomicU64>,
    sent: JoinHandle<u64>,
    received: JoinHandle<u64>,
}

/// Direction of the data.
#[derive(Clone, Copy, PartialEq)]
enum Way {
    Down,
    /// The client has closed its direction.
    HalfClosed,
    Up,
}

fn transfer(lab: &Lab, port: u16, way: Way, ends: &Arc<AtomicBool>) -> Transfer {
    let address = SocketAddr::new(lab.server_address(false), port);
    let listener = lab.server.run(|| TcpListener::bind(address)).unwrap().unwrap();
    let client = lab.client.run(|| TcpStream::connect(address)).unwrap().unwrap();
    let (server, _) = listener.accept().unwrap();
    if way == Way::HalfClosed {
        client.shutdown(Shutdown::Write).unwrap();
    }
    let (sender, receiver) = if way == Way::Up { (client, server) } else { (server, client) };
    let (read, ends) = (Arc::new(AtomicU64::new(0)), ends.clone());
    let count = read.clone();
    let sent = thread::spawn(move || send(sender, &ends));
    let received = thread::spawn(move || receive(receiver, &count));
    Transfer { read, sent, received }
}

fn send(mut stream: TcpStream, ends: &AtomicBool) -> u64 {
    let mut position = 0u64;
    while !ends.load(Ordering::Relaxed) {
        let bytes: Vec<u8> = (position..position + 8_000).map(byte_at).collect();
        stream.write_all(&bytes).unwrap();
        position += bytes.len() as u64;
        // Some 10 Mbit/s, so that packets are in flight at any moment.
        thread::sleep(Duration::from_millis(6));
    }
    stream.shutdown(Shutdown::Write).unwrap();
    // The other end has read everything, and has sent nothing.
    assert_eq!(stream.read(&mut [0]).unwrap(), 0);
    position
}

fn receive(mut stream: TcpStream, count: &AtomicU64) -> u64 {
    let mut bytes = vec![0; 64 << 10];
    loop {
        let position = count.load(Ordering::Relaxed);
        let len = stream.read(&mut bytes).unwrap();
        if len == 0 {
            return position;
        }
        let wrong = bytes[..len].iter().zip(position..).find(|(byte, at)| **byte != byte_at(*at));
        assert_eq!(wrong, None);
        count.store(position + len as u64, Ordering::Relaxed);
    }
}

fn runs_through_upgrades(kind: GatewayKind, mode: &str, options: &[&str]) {
    let Some(lab) = joined_lab(LabConfig { gateway: kind, ..LabConfig::default() }) else { return };
    let folder = tempfile::tempdir().unwrap();
    let folder = folder.path();
    let prefix = lab.client_prefix(false).to_string();
    let options: Vec<&str> =
        options.iter().map(|option| option.replace("CLIENTS", &prefix).leak() as &str).collect();
    fs::write(folder.join("config"), format!("mode = \"{mode}\"\n")).unwrap();
    let options = options.as_slice();
    let mut gateway = Gateway::start(&lab, folder, options);
    let ends = Arc::new(AtomicBool::new(false));
    let transfers: Vec<Transfer> =
        (8000..).zip(WAYS).map(|(port, way)| transfer(&lab, port, way, &ends)).collect();
    let more_arrives = || {
        for transfer in &transfers {
            let before = transfer.read.load(Ordering::Relaxed);
            wait_for(|| (transfer.read.load(Ordering::Relaxed) > before + 20_000).then_some(()));
        }
    };
    more_arrives();
    for _ in 0..UPGRADES {
        gateway.upgrade();
        more_arrives();
        let report = flows(&folder.join("socket")).unwrap();
        let flows = report["flows"].as_array().unwrap();
        assert_eq!(flows.len(), WAYS.len(), "{report}");
        for flow in flows {
            assert_eq!((&flow["stage"], &flow["gave_up"]), (&"open".into(), &false.into()), "{flow}");
            assert_eq!(flow["mode"], mode, "{flow}");
            // An upload has no rate, and neither has a flow that leaves without pacing.
            let has_rate = mode == "transparent" && !flow["server"].as_str().unwrap().ends_with(":8003");
            assert!(!has_rate || !flow["rate_mbps"].is_null(), "{flow}");
            assert!(!flow["rtt_min_ms"].is_null(), "{flow}");
        }
    }
    // A process that cannot take over does not disturb the running one.
    for (shifts, more) in [("strange", "--take-over"), ("shifts", "--take-over --series /nosuch/file")] {
        let more: Vec<&str> = more.split(' ').collect();
        let mut strange = launch(&lab, folder, shifts, options, &more);
        assert!(!strange.has_ended_well());
        more_arrives();
        assert!(wait_for(|| flows(&folder.join("socket")))["flows"].as_array().is_some());
    }
    ends.store(true, Ordering::Relaxed);
    let mut total = 0;
    for (Transfer { sent, received, .. }, way) in transfers.into_iter().zip(WAYS) {
        let (sent, received) = (sent.join().unwrap(), received.join().unwrap());
        assert_eq!(sent, received);
        total += if way == Way::Up { 0 } else { received };
    }
    assert_eq!(metric(&lab, "paceline_flows_resumed_total"), 0.0);
    let split = if mode == "split" { WAYS.len() } else { 0 };
    assert_eq!(metric(&lab, "paceline_flows_split_total"), split as f64);
    assert_eq!(metric(&lab, "paceline_flows_accelerated_total"), (WAYS.len() - split) as f64);
    assert_eq!(metric(&lab, "paceline_flows_split_let_go_total"), 0.0);
    wait_for(|| (metric(&lab, "paceline_downlink_payload_bytes_total") as u64 == total).then_some(()));
    gateway.process.signal(Signal::SIGTERM);
    assert!(gateway.process.has_ended_well(), "{}", gateway.log());
    assert!(!folder.join("socket").exists());
}

const ROUTED: [&str; 4] = ["--tun", "pace0", "--clients", "CLIENTS"];

#[test]
fn bridged_flows_go_on_through_upgrades() {
    runs_through_upgrades(GatewayKind::default(), "transparent", &[]);
}

#[test]
fn routed_flows_go_on_through_upgrades() {
    runs_through_upgrades(GatewayKind::Routed, "transparent", &ROUTED);
}

#[test]
fn bridged_split_flows_go_on_through_upgrades() {
    runs_through_upgrades(GatewayKind::default(), "split", &[]);
}

#[test]
fn routed_split_flows_go_on_through_upgrades() {
    runs_through_upgrades(GatewayKind::Routed, "split", &ROUTED);
}

/// While a process takes over, nobody serves packets. Meanwhile its predecessor waits with the priority of a gateway.
/// Here the test is the predecessor. When the successor asks for the state, it must have that priority too. Otherwise
/// a busy machine could keep it from the processor for longer than the predecessor waits, and each upgrade would
/// fail.
#[test]
fn who_asks_to_take_over_has_the_priority_of_a_gateway() {
    if let Ok(Err(error)) = thread::spawn(timer::schedule_realtime).join() {
        eprintln!("skipped: no real-time priority here: {error}");
        return;
    }
    let folder = tempfile::tempdir().unwrap();
    let socket = folder.path().join("socket");
    let listener = UnixListener::bind(&socket).unwrap();
    let mut command = Command::new(PROGRAM);
    command.args(["gateway", "--take-over", "--wan", "none0", "--radio", "none1"]);
    command.arg("--control").arg(&socket).arg("--shift-file").arg(folder.path().join("shifts"));
    let mut successor = command.stdin(Stdio::null()).stderr(Stdio::null()).spawn().unwrap();
    let mut asked = String::new();
    let (stream, _) = listener.accept().unwrap();
    BufReader::new(&stream).read_line(&mut asked).unwrap();
    let stat = fs::read_to_string(format!("/proc/{}/stat", successor.id())).unwrap();
    drop(stream);
    assert!(!successor.wait().unwrap().success(), "there was nothing to take over");
    assert_eq!(asked.trim(), r#"{"get":"state"}"#);
    // proc_pid_stat(5): the name ends at the last parenthesis, and field 3 follows. Field 41 is the policy, in which
    // 1 is FIFO.
    let (_, fields) = stat.rsplit_once(") ").unwrap();
    assert_eq!(fields.split(' ').nth(41 - 3), Some("1"), "{stat}");
}
