//! Devices, rules and carriers disappear and come back under a running gateway (needs root). TCP must pass again,
//! with or without the gateway, and the gateway must return to its place.
//!
//! PACELINE_CARRIER_LOST_S sets the seconds without carrier. The default is three.

#![allow(clippy::unwrap_used, clippy::panic, reason = "a test fails by panicking")]

mod common;

use std::fs;
use std::io::{self, Read, Write};
use std::net::{IpAddr, Ipv4Addr, SocketAddr, TcpListener, TcpStream};
use std::process::Command;
use std::thread;
use std::time::{Duration, Instant};

use nix::sys::signal::Signal;
use paceline_lab::{GatewayKind, Lab, LabConfig};
use paceline_linux::netlink::Prefix;
use paceline_linux::tun_routes::PRIORITY;

use common::{CONTROL, PROGRAM, Running, SHIFTS, flows, joined_lab, wait_for};

const BYTES: usize = 100_000;

/// A gateway in a lab, and a connection through it that stays open.
struct Stand {
    process: Running,
    lab: Lab,
    folder: tempfile::TempDir,
    server: SocketAddr,
    /// `None` in split mode: a connection may end there if the kernel forwarded some of its packets.
    old: Option<TcpStream>,
}

impl Stand {
    fn start(kind: GatewayKind, mode: &str) -> Option<Stand> {
        let lab = joined_lab(LabConfig { gateway: kind, ..LabConfig::default() })?;
        let folder = tempfile::tempdir().unwrap();
        fs::write(folder.path().join("config"), format!("mode = \"{mode}\"\n")).unwrap();
        let clients = lab.client_prefix(false).to_string();
        let routed = ["--tun", "pace0", "--clients", &clients];
        let options = if kind == GatewayKind::Routed { &routed[..] } else { &[] };
        let files = [CONTROL, SHIFTS, ("--config", "config")];
        let process = Running::gateway(&lab, folder.path(), options, &files);
        let server = SocketAddr::new(lab.server_address(false), 7);
        let listener = lab.server.run(|| TcpListener::bind(server)).unwrap().unwrap();
        thread::spawn(move || listener.incoming().for_each(|stream| drop(thread::spawn(|| echo(stream)))));
        let mut stand = Stand { lab, folder, process, server, old: None };
        stand.wait_until_in_place();
        let mut old = stand.lab.client.run(|| TcpStream::connect(server)).unwrap().unwrap();
        exchange(&mut old, Duration::from_secs(60)).unwrap();
        stand.old = (mode == "transparent").then_some(old);
        Some(stand)
    }

    fn log(&self) -> String {
        fs::read_to_string(self.folder.path().join("log")).unwrap()
    }

    /// Returns why the gateway is not in place, as it reports. Empty if it is in place.
    fn absent(&self) -> Option<String> {
        let report = flows(&self.folder.path().join("socket"))?;
        Some(report.get("absent")?.as_str().unwrap_or_default().to_owned())
    }

    fn wait_until_in_place(&self) {
        wait_for(|| self.absent().filter(String::is_empty));
    }

    fn wait_until_absent(&self) -> String {
        wait_for(|| self.absent().filter(|reason| !reason.is_empty()))
    }

    /// Tries a new connection once, with a timeout short enough for retries.
    fn passes(&self) -> io::Result<()> {
        let patience = Duration::from_millis(400);
        let connect = || TcpStream::connect_timeout(&self.server, patience);
        exchange(&mut self.lab.client.run(connect).unwrap()?, patience)
    }

    /// Waits until TCP passes, whoever forwards it.
    fn passes_soon(&mut self, what: &str) {
        let since = Instant::now();
        wait_for(|| self.passes().ok());
        println!("{what}: TCP passes after {} ms", since.elapsed().as_millis());
    }

    /// Waits until all is as before: the old connection goes on, and new ones are accelerated.
    fn recovers(&mut self, what: &str) {
        self.passes_soon(what);
        self.wait_until_in_place();
        let since = Instant::now();
        if let Some(old) = &mut self.old {
            exchange(old, Duration::from_secs(60)).unwrap();
        }
        println!("{what}: the old connection goes on after {} ms", since.elapsed().as_millis());
        // The first attempt may come before the gateway has noticed the change.
        wait_for(|| self.is_accelerated().then_some(()));
    }

    fn is_accelerated(&self) -> bool {
        let Ok(stay) = self.lab.client.run(|| TcpStream::connect(self.server)).unwrap() else { return false };
        let port = stay.local_addr().unwrap().to_string();
        let report = flows(&self.folder.path().join("socket")).unwrap();
        report["flows"].as_array().unwrap().iter().any(|flow| flow["client"] == port.as_str())
    }

    fn ends_in_order(mut self) {
        self.process.signal(Signal::SIGTERM);
        assert!(self.process.has_ended_well(), "{}", self.log());
        assert!(self.passes().is_ok(), "the kernel goes on");
        assert!(self.log().contains("stops: received signal 15"), "{}", self.log());
    }

    /// Creates the radio port again, as a reloaded driver does.
    fn make_radio_port(&self) {
        let (net, gateway) = (self.lab.net.netlink().unwrap(), self.lab.gateway.netlink().unwrap());
        net.add_veth("n2", "g1", &self.lab.gateway).unwrap();
        net.set_master("n2", Some("radio")).unwrap();
        net.set_up("n2", true).unwrap();
        if gateway.link("br0").is_ok() {
            gateway.set_master("g1", Some("br0")).unwrap();
        }
        gateway.set_up("g1", true).unwrap();
    }

    /// A second gateway at these interfaces is refused. It would forward everything a second time.
    fn refuses_another(&self) {
        let shifts = self.folder.path().join("other");
        let mut command = Command::new(PROGRAM);
        command.args(["gateway", "--wan", "g1", "--radio", "g0", "--shift-file"]).arg(&shifts);
        let output = self.lab.gateway.run(|| command.output()).unwrap().unwrap();
        let text = String::from_utf8(output.stderr).unwrap();
        assert!(
            !output.status.success() && text.contains("another gateway already uses g0 and g1"),
            "{text}"
        );
        assert!(!shifts.exists());
    }

    /// The `nft` program lists all rules, the gateway's included, in every form. That of Debian 12 aborted.
    fn lists_rules(&self) {
        for form in [&["list", "tables"][..], &["list", "ruleset"], &["-j", "list", "ruleset"]] {
            let output = self.lab.gateway.run(|| Command::new("nft").args(form).output()).unwrap().unwrap();
            let text = String::from_utf8_lossy(&output.stdout);
            // In JSON output, nft 1.0.6 breaks off at the flags of any table with an owner.
            let names = if form[0] == "-j" { &[][..] } else { &["paceline-g0-g1", "paceline-g0-g1-windows"] };
            assert!(output.status.success(), "{form:?}: {text}");
            assert!(names.iter().all(|name| text.contains(name)), "{form:?}: {text}");
        }
    }

    fn run(&self, program: &str, arguments: &[&str]) {
        let status = self.lab.gateway.run(|| Command::new(program).args(arguments).status());
        assert!(status.unwrap().unwrap().success(), "{program} {arguments:?}");
    }
}

fn echo(stream: io::Result<TcpStream>) {
    let Ok(mut stream) = stream else { return };
    let mut bytes = vec![0; 64 << 10];
    while let Ok(count @ 1..) = stream.read(&mut bytes) {
        if stream.write_all(&bytes[..count]).is_err() {
            return;
        }
    }
}

/// Sends bytes and receives them back.
fn exchange(stream: &mut TcpStream, patience: Duration) -> io::Result<()> {
    stream.set_read_timeout(Some(patience))?;
    stream.set_write_timeout(Some(patience))?;
    let sent: Vec<u8> = (0..BYTES).map(|place| (place ^ place >> 8) as u8).collect();
    let mut received = vec![0; BYTES];
    stream.write_all(&sent)?;
    stream.read_exact(&mut received)?;
    assert!(sent == received, "the bytes are those that were sent");
    Ok(())
}

fn carrier_lost() -> Duration {
    let seconds = std::env::var("PACELINE_CARRIER_LOST_S").ok().and_then(|text| text.parse().ok());
    Duration::from_secs(seconds.unwrap_or(3))
}

fn survives_on_a_bridge(mode: &str) {
    let Some(mut stand) = Stand::start(GatewayKind::Bridged, mode) else { return };
    let gateway = stand.lab.gateway.netlink().unwrap();
    let net = stand.lab.net.netlink().unwrap();
    stand.lists_rules();

    gateway.delete_link("g1").unwrap();
    assert_eq!(stand.wait_until_absent(), "there is no interface g1");
    stand.make_radio_port();
    stand.recovers("port made anew");
    // Too fast for the gateway to notice that the port was gone.
    gateway.delete_link("g1").unwrap();
    stand.make_radio_port();
    stand.recovers("port made anew at once");

    gateway.rename("g1", "x1").unwrap();
    stand.passes_soon("port renamed");
    stand.wait_until_absent();
    gateway.rename("x1", "g1").unwrap();
    stand.recovers("port has its name again");

    gateway.add_bridge("br1").unwrap();
    gateway.set_up("br1", true).unwrap();
    gateway.set_master("g1", Some("br1")).unwrap();
    assert_eq!(stand.wait_until_absent(), "g0 and g1 are not ports of one bridge");
    gateway.set_master("g1", Some("br0")).unwrap();
    stand.recovers("port back from another bridge");

    for mtu in [1400, 1500] {
        ["g0", "g1"].iter().for_each(|port| gateway.set_mtu(port, mtu).unwrap());
        if mtu == 1500 {
            stand.recovers("MTU as before");
        }
    }
    gateway.set_up("g1", false).unwrap();
    if mode == "transparent" {
        assert_eq!(stand.wait_until_absent(), "g1 is down");
    }
    gateway.set_up("g1", true).unwrap();
    stand.recovers("port up again");

    net.set_up("n2", false).unwrap();
    thread::sleep(carrier_lost());
    net.set_up("n2", true).unwrap();
    stand.recovers("carrier back");

    stand.run("nft", &["flush", "ruleset"]);
    stand.recovers("nft flushed");

    stand.refuses_another();

    let log = stand.log();
    for line in ["started between g0 and g1", "interface g1 is gone", "interface g1 is back", "in place:"] {
        assert!(log.contains(line), "{line}: {log}");
    }
    stand.ends_in_order();
}

#[test]
fn transparent_flows_pass_again_on_a_bridge() {
    survives_on_a_bridge("transparent");
}

#[test]
fn split_flows_pass_again_on_a_bridge() {
    survives_on_a_bridge("split");
}

fn survives_behind_a_tun(mode: &str) {
    let Some(mut stand) = Stand::start(GatewayKind::Routed, mode) else { return };
    let gateway = stand.lab.gateway.netlink().unwrap();
    stand.lists_rules();

    gateway.delete_link("pace0").unwrap();
    stand.recovers("TUN deleted");
    gateway.set_up("pace0", false).unwrap();
    stand.recovers("TUN down");
    for port in ["g0", "g1"] {
        gateway.delete_rules(false, PRIORITY, port).unwrap();
        stand.recovers("rule deleted");
    }
    ["g0", "g1"].iter().for_each(|port| gateway.set_mtu(port, 1400).unwrap());
    wait_for(|| (gateway.link("pace0").unwrap().mtu == 1400).then_some(()));
    stand.recovers("MTU smaller");
    ["g0", "g1"].iter().for_each(|port| gateway.set_mtu(port, 1500).unwrap());
    wait_for(|| (gateway.link("pace0").unwrap().mtu == 1500).then_some(()));
    stand.recovers("MTU as before");
    stand.run("nft", &["flush", "ruleset"]);
    stand.recovers("nft flushed");

    gateway.delete_link("g1").unwrap();
    assert_eq!(stand.wait_until_absent(), "there is no interface g1");
    stand.make_radio_port();
    let router = IpAddr::V4(Ipv4Addr::new(10, 77, 2, 254));
    gateway.add_address("g1", Prefix::new(router, 24)).unwrap();
    let client = stand.lab.client.netlink().unwrap();
    client.add_neighbour("c0", router, &gateway.link("g1").unwrap().mac).unwrap();
    stand.recovers("interface made anew");
    stand.ends_in_order();
}

#[test]
fn transparent_flows_pass_again_behind_a_tun() {
    survives_behind_a_tun("transparent");
}

#[test]
fn split_flows_pass_again_behind_a_tun() {
    survives_behind_a_tun("split");
}
