//! Promises of the event loop besides forwarding.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, reason = "a test fails by panicking")]

mod common;

use std::net::UdpSocket;
use std::process::Command;

use common::{Driven, permitted, transfer};
use paceline_lab::{Lab, LabConfig};
use paceline_linux::{Device, EventLoop, EventLoopConfig, Filter, LoopEnd, NullForwarder, PacketSocket};
use paceline_wire::{Duration, PortId};

#[test]
fn packets_from_before_a_lapse_are_discarded() {
    if !permitted() {
        return;
    }
    let lab = Lab::build(LabConfig::default()).unwrap();
    let mut event_loop = EventLoop::new(EventLoopConfig {
        housekeeping_interval: Duration::from_millis(10),
        ..Default::default()
    })
    .unwrap();
    for (number, interface) in ["n0", "n1"].iter().enumerate() {
        let socket = lab.net.run(|| PacketSocket::open(interface, &Filter::All)).unwrap().unwrap();
        event_loop.add(Device::Packet { port: PortId(number as u8), socket }).unwrap();
    }
    let sender = lab.server.run(|| UdpSocket::bind((lab.server_address(false), 0))).unwrap().unwrap();
    let client = lab.client_address(false, 0);
    let send = |len| assert_eq!(sender.send_to(&vec![0; len], (client, 9)).unwrap(), len);
    (0..5).for_each(|_| send(1400));
    let mut calls = 0;
    let ended = event_loop.run(&mut NullForwarder::new(), |_, housekeeping| {
        calls += 1;
        match calls {
            1 => housekeeping.discard_before(housekeeping.now),
            2 => send(100),
            _ if housekeeping.port_counters()[1].out.sent_packets > 0 => housekeeping.stop(),
            _ => {}
        }
        Ok(())
    });
    assert_eq!(ended.unwrap(), LoopEnd::Stopped);
    let [wan, radio] = event_loop.port_counters()[..] else { panic!("two ports") };
    assert!(wan.stale >= 5, "{wan:?}");
    // The hosts themselves may send a few packets.
    assert!(wan.received_ip_bytes < 1400 && wan.received_packets == radio.out.sent_packets, "{wan:?}");
}

#[test]
fn vlan_tags_pass() {
    if !permitted() {
        return;
    }
    let lab = Lab::build(LabConfig::default()).unwrap();
    for (host, parent, address) in
        [(&lab.server, "s0", "192.168.5.1/24"), (&lab.client, "c0", "192.168.5.2/24")]
    {
        let tagged = format!("link add link {parent} name tag5 type vlan id 5");
        for arguments in [&tagged[..], &format!("addr add {address} dev tag5"), "link set tag5 up"] {
            let run = || Command::new("ip").args(arguments.split(' ')).status();
            match host.run(run).unwrap() {
                Ok(status) if status.success() => {}
                result => return eprintln!("skipped: ip {arguments}: {result:?}"),
            }
        }
    }
    let wired = Driven::start(&lab.net, &["n0", "n1"], &Filter::All, NullForwarder::new());
    let radio = Driven::start(&lab.net, &["n2", "n3"], &Filter::All, NullForwarder::new());
    let [server, client] = ["192.168.5.1", "192.168.5.2"].map(|address| address.parse().unwrap());
    transfer((&lab.server, server), (&lab.client, client), 5_000_000);
    transfer((&lab.client, client), (&lab.server, server), 5_000_000);
    for (_, ports) in [wired.finish(), radio.finish()] {
        for port in ports {
            assert!(port.received_ip_bytes > 5_000_000 && port.malformed == 0, "{port:?}");
        }
    }
}
