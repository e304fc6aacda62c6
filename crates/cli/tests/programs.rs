//! Ordinary programs through both modes of the gateway: nginx with curl and wget, iperf3, ssh.
//! They run on a bridge and on a router, over IPv4 and IPv6. Needs root. Programs that the machine lacks are skipped
//! with a message. Debian's packages: nginx-light, curl, wget, iperf3, openssh-server, openssh-client.

#![allow(clippy::unwrap_used, clippy::panic, reason = "a test fails by panicking")]

mod common;

use std::fs;
use std::io::{Read, Write};
use std::net::{IpAddr, SocketAddr, TcpStream};
use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};
use std::thread;
use std::time::Duration;

use paceline_lab::netns::Netns;
use paceline_lab::{GatewayKind, Lab, LabConfig};

use common::{CONTROL, Running, SHIFTS, STATS, pattern};

const WEB_PORT: u16 = 8_080;
const SSH_PORT: u16 = 2_222;
const OBJECT: usize = 3_000_000;

/// A lab with plain links, and a gateway.
struct Site {
    gateway: Running,
    lab: Lab,
    folder: tempfile::TempDir,
}

impl Site {
    /// Starts the gateway. `None` if the test may not run, with a message.
    fn new(kind: GatewayKind, profile: &str) -> Option<Site> {
        let lab = common::joined_lab(LabConfig { gateway: kind, ..LabConfig::default() })?;
        let folder = tempfile::tempdir().unwrap();
        let routed = if kind == GatewayKind::Routed { common::routed(&lab) } else { Vec::new() };
        let mut options = vec!["--profile", profile];
        options.extend(routed.iter().map(String::as_str));
        let gateway = Running::gateway(&lab, folder.path(), &options, &[STATS, SHIFTS, CONTROL]);
        let stats = folder.path().join(STATS.1);
        assert!(until(|| stats.exists()), "the gateway did not begin");
        Some(Site { gateway, lab, folder })
    }

    fn server_at(&self, ipv6: bool) -> IpAddr {
        self.lab.server_address(ipv6)
    }

    fn url(&self, ipv6: bool, file: &str) -> String {
        format!("http://{}/{file}", SocketAddr::new(self.server_at(ipv6), WEB_PORT))
    }

    fn file(&self, name: &str) -> PathBuf {
        self.folder.path().join(name)
    }

    /// Starts a server program. `None`, with a message, if the machine lacks it.
    fn serve(&self, program: &str, arguments: &[&str]) -> Option<Running> {
        let log = fs::File::create(self.file("server.log")).unwrap();
        let mut command = Command::new(program);
        command.args(arguments).stdin(Stdio::null()).stdout(Stdio::null()).stderr(log);
        match self.lab.server.run(|| command.spawn()).unwrap() {
            Ok(child) => Some(Running(child)),
            Err(error) => {
                eprintln!("skipped: {program}: {error}");
                None
            }
        }
    }

    /// Returns the output of a program at the client. `None`, with a message, if the machine lacks it.
    fn client(&self, program: &str, arguments: &[&str]) -> Option<Vec<u8>> {
        let output = run(&self.lab.client, program, arguments, &[])?;
        let complaint = String::from_utf8_lossy(&output.stderr);
        assert!(output.status.success(), "{program} {arguments:?}: {}: {complaint}", output.status);
        Some(output.stdout)
    }

    fn is_listening(&self, port: u16) -> bool {
        let address = SocketAddr::new(self.server_at(false), port);
        until(|| self.lab.server.run(|| TcpStream::connect(address)).unwrap().is_ok())
    }

    fn counter(&self, name: &str) -> u64 {
        let text = fs::read_to_string(self.file(STATS.1)).unwrap_or_default();
        let stats: serde_json::Value = serde_json::from_str(&text).unwrap_or_default();
        stats["counters"][name].as_u64().unwrap_or(0)
    }
}

/// Runs a program with the given input.
fn run(host: &Netns, program: &str, arguments: &[&str], input: &[u8]) -> Option<Output> {
    let mut command = Command::new(program);
    command.args(arguments).stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
    let mut child = match host.run(|| command.spawn()).unwrap() {
        Ok(child) => child,
        Err(error) => {
            eprintln!("skipped: {program}: {error}");
            return None;
        }
    };
    let mut stdin = child.stdin.take().unwrap();
    Some(thread::scope(|scope| {
        scope.spawn(move || {
            // A program that needs no input may close it.
            let _ = stdin.write_all(input);
        });
        child.wait_with_output().unwrap()
    }))
}

fn until(mut done: impl FnMut() -> bool) -> bool {
    (0..1_000).any(|_| {
        let is_done = done();
        if !is_done {
            thread::sleep(Duration::from_millis(10));
        }
        is_done
    })
}

/// Starts nginx with an object, on both versions of IP.
fn web_server(site: &Site, object: &[u8]) -> Option<Running> {
    let (folder, config) = (site.folder.path(), site.file("nginx.conf"));
    fs::create_dir(folder.join("www")).unwrap();
    fs::write(folder.join("www/object"), object).unwrap();
    let listen = [false, true]
        .map(|ipv6| format!("listen {};", SocketAddr::new(site.server_at(ipv6), WEB_PORT)))
        .join(" ");
    let folder = folder.display();
    let text = format!(
        "daemon off; master_process off; pid {folder}/nginx.pid; error_log stderr;\nevents {{}}\nhttp {{ access_log off; \
         client_body_temp_path {folder}/t; proxy_temp_path {folder}/t; fastcgi_temp_path {folder}/t; uwsgi_temp_path {folder}/t; \
         scgi_temp_path {folder}/t; server {{ {listen} root {folder}/www; }} }}\n"
    );
    fs::write(&config, text).unwrap();
    // The folder of nginx may be missing in the path.
    let program = ["/usr/sbin/nginx", "nginx"].into_iter().find(|path| Path::new(path).exists());
    let error_log = site.file("early.log");
    let arguments = ["-e", error_log.to_str().unwrap(), "-c", config.to_str().unwrap()];
    let server = site.serve(program.unwrap_or("nginx"), &arguments)?;
    assert!(site.is_listening(WEB_PORT), "nginx: {:?}", fs::read_to_string(site.file("server.log")));
    Some(server)
}

fn web(site: &Site) {
    let object = pattern(OBJECT);
    let Some(_server) = web_server(site, &object) else { return };
    for ipv6 in [false, true] {
        curl(site, ipv6, &object);
        wget(site, ipv6, &object);
        pipelined(site, ipv6, &object);
    }
}

/// Fetches a whole object, a part of it, and several over one connection.
fn curl(site: &Site, ipv6: bool, object: &[u8]) {
    let url = site.url(ipv6, "object");
    let Some(whole) = site.client("curl", &["-gsSf", &url]) else { return };
    assert!(whole == object, "curl has other bytes");
    let part = site.client("curl", &["-gsSf", "-r", "1000000-1999999", &url]).unwrap();
    assert!(part == object[1_000_000..2_000_000], "curl has another part");
    let names = ["first", "second", "third"].map(|name| site.file(name));
    let mut arguments = vec!["-gsSf", "-w", "%{num_connects} "];
    for name in &names {
        arguments.extend(["-o", name.to_str().unwrap(), &url]);
    }
    let connects = site.client("curl", &arguments).unwrap();
    assert_eq!(String::from_utf8_lossy(&connects).trim(), "1 0 0", "the connection is used again");
    assert!(names.iter().all(|name| fs::read(name).unwrap() == object), "curl has other bytes");
}

/// Fetches a whole object, and the rest of one whose first part exists.
fn wget(site: &Site, ipv6: bool, object: &[u8]) {
    let (url, file) = (site.url(ipv6, "object"), site.file("resumed"));
    let Some(whole) = site.client("wget", &["-q", "-O", "-", &url]) else { return };
    assert!(whole == object, "wget has other bytes");
    fs::write(&file, &object[..1_234_567]).unwrap();
    site.client("wget", &["-q", "-c", "-O", file.to_str().unwrap(), &url]).unwrap();
    assert!(fs::read(&file).unwrap() == object, "wget goes on with other bytes");
}

/// Sends requests without waiting for answers. (nginx takes a half-closed connection for a client that has gone.)
fn pipelined(site: &Site, ipv6: bool, object: &[u8]) {
    const REQUESTS: usize = 4;
    let address = SocketAddr::new(site.server_at(ipv6), WEB_PORT);
    let mut stream = site.lab.client.run(|| TcpStream::connect(address)).unwrap().unwrap();
    stream.set_read_timeout(Some(Duration::from_secs(20))).unwrap();
    let request = |last| {
        format!("GET /object HTTP/1.1\r\nHost: a\r\n{}\r\n", if last { "Connection: close\r\n" } else { "" })
    };
    let requests: String = (1..=REQUESTS).map(|number| request(number == REQUESTS)).collect();
    stream.write_all(requests.as_bytes()).unwrap();
    let mut answers = Vec::new();
    stream.read_to_end(&mut answers).unwrap();
    let mut rest = answers.as_slice();
    for number in 1..=REQUESTS {
        let end = rest.windows(4).position(|bytes| bytes == b"\r\n\r\n").unwrap() + 4;
        assert!(rest.starts_with(b"HTTP/1.1 200"), "answer {number}");
        assert!(rest[end..].len() >= OBJECT && rest[end..end + OBJECT] == *object, "answer {number}");
        rest = &rest[end + OBJECT..];
    }
    assert!(rest.is_empty());
}

/// Tests both directions, and several connections at once.
fn iperf3(site: &Site) {
    let Some(_server) = site.serve("iperf3", &["-s"]) else { return };
    for ipv6 in [false, true] {
        let address = site.server_at(ipv6).to_string();
        // The upload is larger than a split flow's buffer. Otherwise all of it may be in flight when the client has
        // ended.
        for direction in [&["-n", "64M"][..], &["-n", "4M", "-R"], &["-n", "4M", "-P", "4", "-R"]] {
            let arguments = [&["-J", "-c", &address][..], direction].concat();
            let mut report = serde_json::Value::Null;
            // The server may not be ready, and runs one test at a time.
            let is_done = until(|| {
                let Some(output) = run(&site.lab.client, "iperf3", &arguments, &[]) else { return true };
                report = serde_json::from_slice(&output.stdout).unwrap_or_default();
                report["error"].is_null()
            });
            assert!(is_done, "iperf3 {arguments:?}: {report}");
            let bytes = |key: &str| report["end"][key]["bytes"].as_u64().unwrap();
            let (sent, received) = (bytes("sum_sent"), bytes("sum_received"));
            // Bytes in flight at the end are not counted. With a split flow these may be many.
            assert!(sent >= 4 << 20 && received > 0, "{arguments:?}: {sent} sent, {received} received");
        }
    }
}

/// Sends bytes there and back through a shell.
fn ssh(site: &Site) {
    let path = |name: &str| site.file(name).to_str().unwrap().to_string();
    for key in ["host", "user"] {
        let made =
            Command::new("ssh-keygen").args(["-q", "-t", "ed25519", "-N", "", "-f", &path(key)]).status();
        if !made.is_ok_and(|status| status.success()) {
            return eprintln!("skipped: no ssh-keygen");
        }
    }
    let listen = [false, true]
        .map(|ipv6| format!("ListenAddress {}\n", SocketAddr::new(site.server_at(ipv6), SSH_PORT)))
        .concat();
    let config = format!(
        "{listen}HostKey {}\nAuthorizedKeysFile {}\nStrictModes no\nPermitRootLogin yes\nPidFile none\nUseDNS no\n",
        path("host"),
        path("user.pub")
    );
    fs::write(path("sshd.conf"), config).unwrap();
    // The folder that sshd's unit would create.
    let _ = fs::create_dir_all("/run/sshd");
    let Some(_server) = site.serve("/usr/sbin/sshd", &["-D", "-e", "-f", &path("sshd.conf")]) else { return };
    assert!(site.is_listening(SSH_PORT), "sshd: {:?}", fs::read_to_string(site.file("server.log")));
    let (port, key, bytes) = (SSH_PORT.to_string(), path("user"), pattern(2_000_000));
    let echo = |host: &Netns, ipv6: bool, input: &[u8]| {
        let to = format!("root@{}", site.server_at(ipv6));
        let mut arguments = vec!["-F", "none", "-i", &key, "-p", &port];
        for option in
            ["BatchMode=yes", "StrictHostKeyChecking=no", "UserKnownHostsFile=/dev/null", "LogLevel=ERROR"]
        {
            arguments.extend(["-o", option]);
        }
        arguments.extend([to.as_str(), "cat"]);
        run(host, "ssh", &arguments, input)
    };
    // A machine may forbid root logins.
    match echo(&site.lab.server, false, b"hello") {
        Some(output) if output.stdout == b"hello" => {}
        Some(output) => {
            return eprintln!(
                "skipped: ssh at the server itself: {}",
                String::from_utf8_lossy(&output.stderr)
            );
        }
        None => return,
    }
    for ipv6 in [false, true] {
        let output = echo(&site.lab.client, ipv6, &bytes).unwrap();
        let complaint = String::from_utf8_lossy(&output.stderr);
        assert!(output.status.success(), "ssh: {}: {complaint}", output.status);
        assert!(output.stdout == bytes, "ssh brings other bytes back");
    }
}

fn is_installed(program: &str) -> bool {
    let path = std::env::var_os("PATH").unwrap_or_default();
    std::env::split_paths(&path).chain(["/usr/sbin".into()]).any(|folder| folder.join(program).is_file())
}

fn programs_work(kind: GatewayKind, profile: &str, counter: &str) {
    let servers = ["nginx", "iperf3", "sshd"];
    if !servers.into_iter().any(is_installed) {
        return eprintln!("skipped: none of {servers:?} is installed");
    }
    let Some(mut site) = Site::new(kind, profile) else { return };
    web(&site);
    iperf3(&site);
    ssh(&site);
    let is_counted = until(|| site.counter(counter) >= 1);
    assert!(is_counted, "no flow is counted in {counter}");
    assert!(site.gateway.0.try_wait().unwrap().is_none(), "the gateway has ended");
}

#[test]
fn programs_work_through_a_bridge() {
    programs_work(GatewayKind::Bridged, "full", "flows_accelerated");
}

#[test]
fn programs_work_through_a_router() {
    programs_work(GatewayKind::Routed, "full", "flows_accelerated");
}

#[test]
fn programs_work_through_a_bridge_that_splits() {
    programs_work(GatewayKind::Bridged, "split", "flows_split");
}

#[test]
fn programs_work_through_a_router_that_splits() {
    programs_work(GatewayKind::Routed, "split", "flows_split");
}
