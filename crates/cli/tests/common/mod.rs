//! What the tests of running gateways share.
#![allow(clippy::unwrap_used, clippy::panic, reason = "a test fails by panicking")]
#![allow(dead_code, reason = "each test binary uses a part")]

use std::io::{Read, Write};
use std::net::TcpStream;
use std::path::Path;
use std::process::Command;
use std::thread;
use std::time::Duration;

use paceline_lab::Lab;
use serde_json::Value;

pub(crate) const PROGRAM: &str = env!("CARGO_BIN_EXE_paceline");

/// Where a gateway of these tests exports metrics.
pub(crate) const METRICS: &str = "127.0.0.1:9100";

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
