//! The lab in real namespaces. Skipped, with a line of output, if namespaces are not permitted.

#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

use std::io::{Read, Write};
use std::net::{IpAddr, TcpListener, TcpStream};
use std::thread;

use paceline_lab::netns;
use paceline_lab::{GatewayKind, Lab, LabConfig};
use paceline_linux::offload::{self, Offload};
use paceline_linux::sysctl;

/// True if namespaces cannot be created. In that case prints a line on standard error.
fn skipped() -> bool {
    match netns::check_permitted() {
        Ok(()) => false,
        Err(error) => {
            eprintln!("skipped: {error}");
            true
        }
    }
}

fn download(lab: &Lab, ipv6: bool, bytes: usize) -> usize {
    let address: IpAddr = lab.server_address(ipv6);
    let listener = lab.server.run(|| TcpListener::bind((address, 5001))).unwrap().unwrap();
    let sender = thread::spawn(move || listener.accept().unwrap().0.write_all(&vec![7; bytes]).unwrap());
    let mut received = Vec::new();
    let mut stream = lab.client.run(|| TcpStream::connect((address, 5001))).unwrap().unwrap();
    stream.read_to_end(&mut received).unwrap();
    sender.join().unwrap();
    received.len()
}

#[test]
fn both_kinds_of_gateway_forward_both_families() {
    if skipped() {
        return;
    }
    for gateway in [GatewayKind::Bridged, GatewayKind::Routed] {
        let lab = Lab::build(LabConfig { gateway, clients: 3, ..LabConfig::default() }).unwrap();
        lab.join_links().unwrap();
        for ipv6 in [false, true] {
            assert_eq!(download(&lab, ipv6, 300_000), 300_000, "{gateway:?}, IPv6 {ipv6}");
        }
    }
}

#[test]
fn a_dropped_lab_leaves_nothing() {
    if skipped() {
        return;
    }
    let lab = Lab::build(LabConfig::default()).unwrap();
    let names: Vec<String> =
        [&lab.server, &lab.net, &lab.gateway, &lab.client].map(|n| n.name().to_owned()).to_vec();
    let own = netns::own_names();
    assert!(names.iter().all(|name| own.contains(name)), "{names:?} {own:?}");
    drop(lab);
    let own = netns::own_names();
    assert!(!names.iter().any(|name| own.contains(name)), "{names:?} {own:?}");
}

#[test]
fn settings_and_offloads_belong_to_one_namespace() {
    if skipped() {
        return;
    }
    let lab = Lab::build(LabConfig::default()).unwrap();
    lab.client.set_sysctls(&[("net.ipv4.tcp_window_scaling", "0")]).unwrap();
    assert_eq!(lab.client.sysctl("net.ipv4.tcp_window_scaling").unwrap(), "0");
    assert_eq!(lab.server.sysctl("net.ipv4.tcp_window_scaling").unwrap(), "1");
    lab.client.set_offloads("c0", &Offload::SEGMENTATION, false).unwrap();
    let state = lab.client.run(|| offload::get("c0", Offload::TcpSegmentation)).unwrap();
    assert!(!state.unwrap());
    let state = lab.server.run(|| offload::get("s0", Offload::TcpSegmentation)).unwrap();
    assert!(state.unwrap());
    assert!(sysctl::get("net.ipv4.no_such_setting").is_err());
}

#[test]
fn namespaces_of_a_dead_process_are_swept() {
    if skipped() {
        return;
    }
    // A number beyond the kernel's process numbers stands for a dead process.
    let path = "/run/netns/paceline-99999999-server";
    std::fs::write(path, "").unwrap();
    netns::sweep();
    assert!(!std::path::Path::new(path).exists());
}
