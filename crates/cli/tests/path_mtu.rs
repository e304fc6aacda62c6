//! A routed gateway with links whose MTU is smaller than that of both ends: on its own interfaces, and behind further
//! routers.

#![allow(clippy::unwrap_used, clippy::panic, reason = "a test fails by panicking")]

use std::io::{Read, Write};
use std::net::{IpAddr, Shutdown, SocketAddr, TcpListener, TcpStream};
use std::thread;
use std::time::Duration;

use paceline_lab::{GatewayKind, Lab, LabConfig};
use paceline_linux::netlink::{Netlink, Prefix, Route, RouteTarget, Rule};

mod common;

use common::{CONTROL, Running, SHIFTS};

const MTU: u32 = 1400;
const BYTES: usize = 2_000_000;

/// The link with the smaller MTU.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Narrow {
    /// The link to which the gateway sends.
    Own,
    /// A link behind the next router.
    Behind,
}

/// Direction of the data.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Way {
    Down,
    Up,
}

/// A routed gateway with a profile between two further routers, all in namespaces.
struct World {
    _gateway: Running,
    lab: Lab,
    _folder: tempfile::TempDir,
}

impl World {
    /// Starts the gateway. `None` if the test may not run, with a message.
    fn new(profile: &str) -> Option<World> {
        if !common::is_permitted() {
            return None;
        }
        let lab = Lab::build(LabConfig { gateway: GatewayKind::Routed, ..LabConfig::default() }).unwrap();
        route_links(&lab);
        let folder = tempfile::tempdir().unwrap();
        let routed = common::routed(&lab);
        let mut options = vec!["--profile", profile];
        options.extend(routed.iter().map(String::as_str));
        let gateway = Running::gateway(&lab, folder.path(), &options, &[CONTROL, SHIFTS]);
        common::wait_for(|| common::flows(&folder.path().join(CONTROL.1)));
        // The gateway installs its routes in its first turn.
        thread::sleep(Duration::from_millis(300));
        Some(World { _gateway: gateway, lab, _folder: folder })
    }

    /// Sends in one direction while that direction has a narrow link. The ends' own interfaces have the full MTU.
    fn carries(&self, narrow: Narrow, way: Way, ipv6: bool) {
        let link = match (narrow, way) {
            (Narrow::Own, Way::Down) => (&self.lab.gateway, "g1"),
            (Narrow::Own, Way::Up) => (&self.lab.gateway, "g0"),
            (Narrow::Behind, Way::Down) => (&self.lab.net, "n3"),
            (Narrow::Behind, Way::Up) => (&self.lab.net, "n0"),
        };
        let set = |mtu| link.0.netlink().unwrap().set_mtu(link.1, mtu).unwrap();
        set(MTU);
        let address = SocketAddr::new(self.lab.server_address(ipv6), 0);
        let listener = self.lab.server.run(|| TcpListener::bind(address)).unwrap().unwrap();
        let to = listener.local_addr().unwrap();
        let client = self.lab.client.run(|| TcpStream::connect(to)).unwrap().unwrap();
        let server = listener.accept().unwrap().0;
        let (sender, receiver) = if way == Way::Down { (server, client) } else { (client, server) };
        let bytes = common::pattern(BYTES);
        let what = format!("{narrow:?} {way:?} IPv{}", if ipv6 { 6 } else { 4 });
        let got = thread::scope(|scope| {
            scope.spawn(|| {
                // This fails if the receiver has given up.
                let _ = (&sender).write_all(&bytes).and_then(|()| sender.shutdown(Shutdown::Write));
            });
            receiver.set_read_timeout(Some(Duration::from_secs(8))).unwrap();
            let mut got = Vec::new();
            let result = (&receiver).read_to_end(&mut got);
            let _ = receiver.shutdown(Shutdown::Both);
            let _ = sender.shutdown(Shutdown::Both);
            result.unwrap_or_else(|error| panic!("{what}: {error} after {} bytes", got.len()));
            got
        });
        assert!(got == bytes, "{what}: other bytes");
        set(1500);
        self.forget();
    }

    /// Discards what the hosts have learnt of the path, because it is no longer true.
    fn forget(&self) {
        for host in [&self.lab.server, &self.lab.client] {
            host.set_sysctls(&[("net.ipv4.route.flush", "1"), ("net.ipv6.route.flush", "1")]).unwrap();
        }
    }
}

/// Turns the namespace of the link ends into two routers, one between n0 and n1, and one between n2 and n3. Each has
/// its tables. Their own messages to the server leave by n2, and those to the client by n1, and so pass the gateway.
fn route_links(lab: &Lab) {
    let mut settings = vec![
        ("net.ipv6.conf.all.disable_ipv6".to_owned(), "0"),
        ("net.ipv4.ip_forward".to_owned(), "1"),
        ("net.ipv6.conf.all.forwarding".to_owned(), "1"),
        // A router's own messages pass through the other router.
        ("net.ipv4.conf.all.accept_local".to_owned(), "1"),
    ];
    for name in ["all", "n0", "n1", "n2", "n3"] {
        settings.push((format!("net.ipv4.conf.{name}.rp_filter"), "0"));
    }
    let settings: Vec<(&str, &str)> = settings.iter().map(|(name, value)| (name.as_str(), *value)).collect();
    lab.net.set_sysctls(&settings).unwrap();
    let [net, gateway, server, client] =
        [&lab.net, &lab.gateway, &lab.server, &lab.client].map(|host| host.netlink().unwrap());
    let mac = |netlink: &Netlink, name: &str| netlink.link(name).unwrap().mac;
    for ipv6 in [false, true] {
        let to = |address, interface: &str| {
            Route::new(
                Prefix::new(address, if ipv6 { 128 } else { 32 }),
                RouteTarget::Interface(interface.to_owned()),
            )
        };
        let any: IpAddr = if ipv6 { "::" } else { "0.0.0.0" }.parse().unwrap();
        let own: IpAddr = if ipv6 { "fd77:0:0:9::1" } else { "10.77.9.1" }.parse().unwrap();
        net.add_address("n1", Prefix::new(own, if ipv6 { 128 } else { 32 })).unwrap();
        let (at_server, at_client) = (lab.server_address(ipv6), lab.client_address(ipv6, 0));
        for (address, host, end, side, far, near, of_gateway) in
            [(at_server, &server, "s0", 1, "n0", "n1", "g0"), (at_client, &client, "c0", 2, "n3", "n2", "g1")]
        {
            host.add_neighbour(end, router(ipv6, side), &mac(&net, far)).unwrap();
            gateway.add_neighbour(of_gateway, address, &mac(&net, near)).unwrap();
            net.add_neighbour(far, address, &mac(host, end)).unwrap();
        }
        net.add_neighbour("n1", at_client, &mac(&gateway, "g0")).unwrap();
        net.add_neighbour("n2", at_server, &mac(&gateway, "g1")).unwrap();
        net.set_route(&to(at_server, "n2")).unwrap();
        net.set_route(&to(at_client, "n1")).unwrap();
        for (table, from, by) in [(100, "n0", "n1"), (101, "n1", "n0"), (102, "n2", "n3"), (103, "n3", "n2")]
        {
            let route = Route::new(Prefix::new(any, 0), RouteTarget::Interface(by.to_owned()));
            net.set_route(&Route { table: Some(table), ..route }).unwrap();
            let rule = Rule {
                ipv6,
                priority: 100,
                input_interface: from.to_owned(),
                protocol: None,
                source: None,
                destination: None,
                mark: None,
                table,
            };
            net.add_rule(&rule).unwrap();
        }
    }
}

/// Returns the address of an end's router.
fn router(ipv6: bool, side: u8) -> IpAddr {
    if ipv6 { format!("fd77:0:0:{side}::fe") } else { format!("10.77.{side}.254") }.parse().unwrap()
}

/// Tests every link in turn, with both versions of IP.
fn carries_everything(profile: &str, ways: &[Way]) {
    let Some(world) = World::new(profile) else { return };
    for ipv6 in [false, true] {
        for narrow in [Narrow::Own, Narrow::Behind] {
            for &way in ways {
                world.carries(narrow, way, ipv6);
            }
        }
    }
}

#[test]
fn split_flows_learn_of_smaller_paths() {
    carries_everything("split", &[Way::Down, Way::Up]);
}

#[test]
fn transparent_flows_learn_of_smaller_paths() {
    carries_everything("thesis", &[Way::Down, Way::Up]);
}
