//! Shared code of the tests of running gateways.
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

/// Address at which a gateway of these tests exports metrics.
pub(crate) const METRICS: &str = "127.0.0.1:9100";

/// Options with their files, which are in a test's folder.
pub(crate) const CONTROL: (&str, &str) = ("--control", "socket");
pub(crate) const SHIFTS: (&str, &str) = ("--shift-file", "shifts");
pub(crate) const STATS: (&str, &str) = ("--stats-json", "stats.json");
pub(crate) const RECORDS: (&str, &str) = ("--records", "records");

/// True if namespaces may be created. Otherwise prints the reason.
pub(crate) fn is_permitted() -> bool {
    check_permitted().inspect_err(|error| eprintln!("skipped: {error}")).is_ok()
}

/// Returns a lab whose hosts are behind plain links. `None` if it may not be built.
pub(crate) fn joined_lab(config: LabConfig) -> Option<Lab> {
    is_permitted().then(|| {
        let lab = Lab::build(config).unwrap();
        lab.join_links().unwrap();
        lab
    })
}

/// Returns options of a routed gateway for all clients of the lab.
pub(crate) fn routed(lab: &Lab) -> Vec<String> {
    let clients = format!("{},{}", lab.client_prefix(false), lab.client_prefix(true));
    ["--tun", "paceline0", "--clients", &clients].map(String::from).into()
}

/// A process that is killed when the value is dropped.
pub(crate) struct Running(pub(crate) Child);

impl Running {
    /// Starts a gateway between the interfaces of the lab. `files` has options that name files in `folder`, where the
    /// log is too.
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

    /// Waits until the process ends. True if it ended without an error.
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

/// Returns bytes that differ from place to place.
pub(crate) fn pattern(len: usize) -> Vec<u8> {
    (0..len as u64).map(|n| (n.wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 56) as u8).collect()
}

/// Waits until `done` returns a value.
pub(crate) fn wait_for<T>(mut done: impl FnMut() -> Option<T>) -> T {
    for _ in 0..1000 {
        if let Some(value) = done() {
            return value;
        }
        thread::sleep(Duration::from_millis(20));
    }
    panic!("nothing came within 20 s");
}

/// Returns the output of `paceline flows --json` for this socket. `None` if no gateway answers.
pub(crate) fn flows(control: &Path) -> Option<Value> {
    let output = Command::new(PROGRAM).args(["flows", "--json", "--control"]).arg(control).output().unwrap();
    serde_json::from_slice(&output.stdout).ok()
}

/// Returns the metrics as Prometheus reads them.
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
