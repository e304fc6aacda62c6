//! Real TCP connections through a TUN in place of the gateway, and without it when it is gone.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, reason = "a test fails by panicking")]

mod common;

use common::{Driven, joined_lab, transfer};
use paceline_lab::{GatewayKind, Lab};
use paceline_linux::netlink::{Prefix, Protocol, Route, RouteTarget, Rule};
use paceline_linux::{Device, EventLoop, EventLoopConfig, NullForwarder, Tun};
use paceline_wire::PortId;

#[test]
fn tcp_passes_over_a_tun_and_without_it() {
    let Some(lab) = joined_lab(GatewayKind::Routed) else { return };
    let tun = lab.gateway.run(|| Tun::open("pace0")).unwrap().unwrap();
    route_through(&lab, tun.name());
    let clients = [false, true].map(|ipv6| lab.client_prefix(ipv6));
    let clients = clients.map(|prefix| ipnet::IpNet::new(prefix.address, prefix.length).unwrap()).to_vec();
    let mut event_loop = EventLoop::new(EventLoopConfig::default()).unwrap();
    event_loop.add(Device::Tun { tun, clients, wan: PortId(0), radio: PortId(1) }).unwrap();
    let driven = Driven::run(event_loop, NullForwarder::new());
    transfers(&lab);
    let (_, ports) = driven.finish();
    let port = ports[0];
    assert!(port.received_ip_bytes > 80_000_000, "{port:?}");
    assert!(port.received_ip_bytes / port.received_packets > 1_500, "super-packets pass whole: {port:?}");
    assert_eq!((port.malformed, port.out.dropped_refused, port.out.segmented), (0, 0, 0));
    // The device disappeared with the event loop, and so did its routes.
    transfers(&lab);
}

fn transfers(lab: &Lab) {
    for ipv6 in [false, true] {
        let server = (&lab.server, lab.server_address(ipv6));
        let client = (&lab.client, lab.client_address(ipv6, 0));
        transfer(server, client, 20_000_000);
        transfer(client, server, 20_000_000);
    }
}

/// TCP between the two interfaces uses a table that leads to the TUN. Packets from the TUN do not.
fn route_through(lab: &Lab, tun: &str) {
    const TABLE: u32 = 77;
    let netlink = lab.gateway.netlink().unwrap();
    netlink.set_up(tun, true).unwrap();
    for ipv6 in [false, true] {
        let unspecified = if ipv6 { "::" } else { "0.0.0.0" };
        let everything = Prefix::new(unspecified.parse::<std::net::IpAddr>().unwrap(), 0);
        let route = Route::new(everything, RouteTarget::Interface(tun.to_owned()));
        netlink.set_route(&Route { table: Some(TABLE), ..route }).unwrap();
        for (interface, client_is_source) in [("g0", false), ("g1", true)] {
            let prefix = Some(lab.client_prefix(ipv6));
            let rule = Rule {
                ipv6,
                priority: 100,
                input_interface: interface.to_owned(),
                protocol: Some(Protocol::Tcp),
                source: prefix.filter(|_| client_is_source),
                destination: prefix.filter(|_| !client_is_source),
                mark: None,
                table: TABLE,
            };
            netlink.add_rule(&rule).unwrap();
        }
    }
}
