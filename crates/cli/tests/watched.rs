//! A running gateway, and what an operator sees of it (needs root).

#![allow(clippy::unwrap_used, clippy::panic, reason = "a test fails by panicking")]

mod common;

use std::fs;
use std::io::{Read, Write};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::thread;

use nix::sys::signal::Signal;
use paceline_lab::{Lab, LabConfig};
use serde_json::Value;

use common::{CONTROL, METRICS, RECORDS, Running, SHIFTS, flows, joined_lab, metrics, wait_for};

const DOWNLOAD: usize = 3_000_000;

/// Starts a server that sends to the client and waits until the client closes. Returns the client, which has read
/// everything.
fn connected(lab: &Lab, port: u16) -> TcpStream {
    let address = SocketAddr::new(lab.server_address(false), port);
    let listener = lab.server.run(|| TcpListener::bind(address)).unwrap().unwrap();
    thread::spawn(move || {
        let (mut stream, _) = listener.accept().unwrap();
        stream.write_all(&vec![7; DOWNLOAD]).unwrap();
        let _ = stream.read(&mut [0]);
    });
    let mut stream = lab.client.run(|| TcpStream::connect(address)).unwrap().unwrap();
    stream.read_exact(&mut vec![0; DOWNLOAD]).unwrap();
    stream
}

/// No thread has more privileges than packets need, although root started the process.
fn holds_no_more_than_it_needs(process: u32) {
    let threads = fs::read_dir(format!("/proc/{process}/task")).unwrap();
    let statuses = threads.map(|thread| fs::read_to_string(thread.unwrap().path().join("status")).unwrap());
    for status in statuses {
        // CAP_NET_ADMIN, CAP_NET_RAW and CAP_SYS_NICE.
        for line in ["CapPrm:\t0000000000803000", "CapEff:\t0000000000803000", "NoNewPrivs:\t1"] {
            assert!(status.contains(line), "{line}: {status}");
        }
    }
}

#[test]
fn a_running_gateway_is_seen_and_takes_a_new_policy() {
    let Some(lab) = joined_lab(LabConfig::default()) else { return };
    let folder = tempfile::tempdir().unwrap();
    let folder = folder.path();
    fs::write(folder.join("policy.toml"), "[[rule]]\nport = 443\nweight = 5\n").unwrap();
    let files = [CONTROL, RECORDS, SHIFTS, ("--config", "policy.toml")];
    let gateway = Running::gateway(&lab, folder, &["--metrics", METRICS], &files);
    wait_for(|| flows(&folder.join("socket")));

    holds_no_more_than_it_needs(gateway.0.id());

    let stream = connected(&lab, 443);
    // The client may have read everything before its last ACKs reach the gateway.
    let report = wait_for(|| {
        flows(&folder.join("socket")).filter(|report| report["flows"][0]["downlink_bytes"] == DOWNLOAD)
    });
    let flow = &report["flows"][0];
    assert_eq!(
        (&flow["stage"], &flow["mode"], &flow["weight"]),
        (&"open".into(), &"transparent".into(), &5.into())
    );
    assert_eq!(report["subscribers"][0]["flows"], 1);
    wait_for(|| {
        metrics(&lab).contains(&format!("paceline_downlink_payload_bytes_total {DOWNLOAD}\n")).then_some(())
    });

    let reloaded =
        |result: &str| metrics(&lab).contains(&format!("reloads_total{{result=\"{result}\"}} 1\n"));
    fs::write(folder.join("policy.toml"), "[[rule]]\nport = 443\nmode = \"drop\"\n").unwrap();
    gateway.signal(Signal::SIGHUP);
    wait_for(|| reloaded("refused").then_some(()));
    let log = fs::read_to_string(folder.join("log")).unwrap();
    assert!(log.contains("the old configuration stays in force") && log.contains("policy.toml:3"), "{log}");
    fs::write(folder.join("policy.toml"), "[[rule]]\nport = 80\nmode = \"split\"\n").unwrap();
    gateway.signal(Signal::SIGHUP);
    wait_for(|| reloaded("done").then_some(()));

    // The old flow stays as it was, and a new one is split.
    let other = connected(&lab, 80);
    let report = flows(&folder.join("socket")).unwrap();
    let of = |port: &str| {
        let ends = |flow: &&Value| flow["server"].as_str().unwrap().ends_with(port);
        report["flows"].as_array().unwrap().iter().find(ends).unwrap().clone()
    };
    assert_eq!((&of(":443")["mode"], &of(":443")["weight"]), (&"transparent".into(), &5.into()));
    assert_eq!(of(":80")["mode"], "split");

    drop((stream, other));
    let ended = |stage: &str| {
        let text = fs::read_to_string(folder.join("records")).unwrap();
        let records: Vec<Value> = text.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
        (records.len() == 2).then(|| records.iter().filter(|record| record["stage"] == stage).count())
    };
    wait_for(|| ended("finished"));
    gateway.signal(Signal::SIGTERM);
    wait_for(|| (!folder.join("socket").exists()).then_some(()));
}
