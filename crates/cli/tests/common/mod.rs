//! What the tests of running gateways share.
#![allow(clippy::unwrap_used, clippy::panic, reason = "a test fails by panicking")]
#![allow(dead_code, reason = "each test binary uses a part")]

use std::fs;
use std::io::{Read, Write};
use std::net::TcpStream;
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::thread;
use std::time::Duration;

use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;
use paceline_lab::netns::check_permitted;
use paceline_lab::{Lab, LabConfig};
use serde_json::Value;

pub(crate) const PROGRAM: &str = env!("CARGO_BIN_EXE_paceline");

/// Where a gateway of these tests exports metrics.
pub(crate) const METRICS: &str = "127.0.0.1:9100";

/// Where it writes what, in the folder of a test.
pub(crate) const CONTROL: (&str, &str) = ("--control", "socket");
pub(crate) const SHIFTS: (&str, &str) = ("--shift-file", "shifts");
pub(crate) const STATS: (&str, &str) = ("--stats-json", "stats.json");
pub(crate) const RECORDS: (&str, &str) = ("--records", "records");

/// Whether namespaces may be made; a word why, where not.
pub(crate) fn is_permitted() -> bool {
    check_permitted().inspect_err(|error| eprintln!("skipped: {error}")).is_ok()
}

/// A lab whose hosts stand behind plain links; `None` where it may not be built.
pub(crate) fn joined_lab(config: LabConfig) -> Option<Lab> {
    is_permitted().then(|| {
        let lab = Lab::build(config).unwrap();
        lab.join_links().unwrap();
        lab
    })
}

/// Options of a routed gateway, for all clients of the lab.
pub(crate) fn routed(lab: &Lab) -> Vec<String> {
    let clients = format!("{},{}", lab.client_prefix(false), lab.client_prefix(true));
    ["--tun", "paceline0", "--clients", &clients].map(String::from).into()
}

/// A process that ends with the value.
pub(crate) struct Running(pub(crate) Child);

impl Running {
    /// A gateway between the interfaces of the lab: options, and those that name files in `folder`, where its log is, too.
    pub(crate) fn gateway(lab: &Lab, folder: &Path, options: &[&str], files: &[(&str, &str)]) -> Running {
        let log = fs::File::options().append(true).create(true).open(folder.join("log")).unwrap();
        let mut command = Command::new(PROGRAM);
        command.args(["gateway", "--wan", "g0", "--radio", "g1"]).args(options);
        for (option, file) in files {
            command.arg(option).arg(folder.join(file));
        }
        command.stdin(Stdio::null()).stderr(log);
        Running(lab.gateway.run(|| command.spawn()).unwrap().unwrap())
    }

    pub(crate) fn signal(&self, signal: Signal) {
        kill(Pid::from_raw(self.0.id() as i32), signal).unwrap();
    }

    /// Until it has ended by itself; whether that was in order.
    pub(crate) fn has_ended_well(&mut self) -> bool {
        wait_for(|| self.0.try_wait().unwrap()).success()
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

/// Bytes that no two places have in common.
pub(crate) fn pattern(len: usize) -> Vec<u8> {
    (0..len as u64).map(|n| (n.wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 56) as u8).collect()
}

/// Until `done`, which says what there is.
pub(crate) fn wait_for<T>(mut done: impl FnMut() -> Option<T>) -> T {
    for _ in 0..1000 {
        if let Some(value) = done() {
            return value;
        }
        thread::sleep(Duration::from_millis(20));
    }
    panic!("nothing came within 20 s");
}

/// What `paceline flows --json` says at this socket, once somebody answers there.
pub(crate) fn flows(control: &Path) -> Option<Value> {
    let output = Command::new(PROGRAM).args(["flows", "--json", "--control"]).arg(control).output().unwrap();
    serde_json::from_slice(&output.stdout).ok()
}

/// What Prometheus would read.
pub(crate) fn metrics(lab: &Lab) -> String {
    let scrape = || {
        let mut stream = TcpStream::connect(METRICS).unwrap();
        stream.write_all(b"GET /metrics HTTP/1.1\r\n\r\n").unwrap();
        let mut text = String::new();
        stream.read_to_string(&mut text).unwrap();
        text
    };
    lab.gateway.run(scrape).unwrap()
}
