//! Two workers, one of which is killed (needs root).

#![allow(clippy::unwrap_used, clippy::panic, reason = "a test fails by panicking")]

mod common;

use std::fs;
use std::io::{Read, Write};
use std::net::{IpAddr, SocketAddr, TcpListener, TcpStream};
use std::thread;
use std::time::Duration;

use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;
use paceline_lab::{Lab, LabConfig};
use serde_json::Value;
use socket2::{Domain, Socket, Type};

use common::{CONTROL, METRICS, Running, SHIFTS, STATS, flows, joined_lab, wait_for};

const CHUNK: usize = 300_000;

/// The gateway's main process, which ends its workers.
struct Gateway(Running);

impl Drop for Gateway {
    fn drop(&mut self) {
        if matches!(self.0.0.try_wait(), Ok(None)) {
            self.0.signal(Signal::SIGTERM);
            let _ = self.0.0.wait();
        }
    }
}

/// Returns the downlink bytes of the client's flow in the report.
fn downlink(report: &Value, client: IpAddr) -> Option<u64> {
    let flows = report["flows"].as_array().unwrap();
    let own = |flow: &&Value| flow["client"].as_str().unwrap().parse::<SocketAddr>().unwrap().ip() == client;
    flows.iter().find(own)?["downlink_bytes"].as_u64()
}

/// A client's connection, over which the server sends the requested bytes.
struct Asking {
    client: IpAddr,
    stream: TcpStream,
}

impl Asking {
    fn open(lab: &Lab, number: u8, port: u16) -> Asking {
        let client = lab.client_address(false, number);
        let server = SocketAddr::new(lab.server_address(false), port);
        let listener = lab.server.run(|| TcpListener::bind(server)).unwrap().unwrap();
        thread::spawn(move || {
            let (mut stream, _) = listener.accept().unwrap();
            while stream.read_exact(&mut [0]).is_ok() {
                stream.write_all(&[7; CHUNK]).unwrap();
            }
        });
        let socket = lab.client.run(|| Socket::new(Domain::IPV4, Type::STREAM, None)).unwrap().unwrap();
        socket.bind(&SocketAddr::new(client, 0).into()).unwrap();
        socket.connect(&server.into()).unwrap();
        let stream = TcpStream::from(socket);
        stream.set_read_timeout(Some(Duration::from_secs(30))).unwrap();
        Asking { client, stream }
    }

    fn ask(&mut self) {
        self.stream.write_all(b"?").unwrap();
        self.stream.read_exact(&mut [0; CHUNK]).unwrap();
    }
}

fn worker_processes(gateway: &Gateway) -> Vec<i32> {
    let pid = gateway.0.0.id();
    let path = format!("/proc/{pid}/task/{pid}/children");
    fs::read_to_string(path).unwrap().split_whitespace().map(|pid| pid.parse().unwrap()).collect()
}

/// Returns the worker index of a process.
fn index_of(process: i32) -> usize {
    let line = fs::read(format!("/proc/{process}/cmdline")).unwrap();
    let words: Vec<&[u8]> = line.split(|byte| *byte == 0).collect();
    let at = words.iter().position(|word| *word == b"--worker").unwrap();
    std::str::from_utf8(words[at + 1]).unwrap().parse().unwrap()
}

#[test]
fn a_killed_worker_costs_only_its_own_subscribers_their_acceleration() {
    let Some(lab) = joined_lab(LabConfig { clients: 4, ..LabConfig::default() }) else { return };
    let folder = tempfile::tempdir().unwrap();
    let folder = folder.path();
    let options = ["--workers", "2", "--metrics", METRICS];
    let mut gateway = Gateway(Running::gateway(&lab, folder, &options, &[CONTROL, SHIFTS, STATS]));
    let controls = [folder.join("socket-0"), folder.join("socket-1")];
    controls.iter().for_each(|control| drop(wait_for(|| flows(control))));

    let mut asking: Vec<Asking> =
        (0..4).map(|number| Asking::open(&lab, number, 8000 + u16::from(number))).collect();
    asking.iter_mut().for_each(Asking::ask);
    // Each flow is with one worker, and both workers have some.
    let reports = [flows(&controls[0]).unwrap(), flows(&controls[1]).unwrap()];
    let of = |worker: usize, flow: &Asking| downlink(&reports[worker], flow.client).is_some();
    assert!(asking.iter().all(|flow| of(0, flow) != of(1, flow)), "{reports:?}");
    assert!(asking.iter().any(|flow| of(0, flow)) && asking.iter().any(|flow| of(1, flow)), "{reports:?}");
    let together = flows(&folder.join("socket")).unwrap();
    assert_eq!(together["flows"].as_array().unwrap().len(), asking.len());
    assert_eq!(together["subscribers"].as_array().unwrap().len(), asking.len());

    // Upgrade both workers, in which nothing may be lost either.
    let before = worker_processes(&gateway);
    gateway.0.signal(Signal::SIGUSR2);
    let after = wait_for(|| {
        let now = worker_processes(&gateway);
        (now.len() == 2 && now.iter().all(|process| !before.contains(process))).then_some(now)
    });
    asking.iter_mut().for_each(Asking::ask);
    let together = wait_for(|| flows(&folder.join("socket")));
    for flow in &asking {
        assert_eq!(downlink(&together, flow.client), Some(2 * CHUNK as u64), "{together}");
    }

    let killed = after.iter().copied().find(|process| index_of(*process) == 0).unwrap();
    kill(Pid::from_raw(killed), Signal::SIGKILL).unwrap();
    // While the worker is gone, and after its return, no flow ends. Flows of the other worker stay accelerated.
    for _ in 0..3 {
        asking.iter_mut().for_each(Asking::ask);
    }
    wait_for(|| worker_processes(&gateway).iter().any(|process| !after.contains(process)).then_some(()));
    wait_for(|| flows(&controls[0]));
    asking.iter_mut().for_each(Asking::ask);
    let other = flows(&controls[1]).unwrap();
    for flow in &asking {
        let told = downlink(&other, flow.client);
        assert_eq!(told, of(1, flow).then_some(6 * CHUNK as u64), "{other}");
    }

    // Without a configuration to reload, SIGHUP (a terminal that closes) ends the gateway.
    gateway.0.signal(Signal::SIGHUP);
    assert!(gateway.0.0.wait().unwrap().success());
}
