//! A capture of a running gateway, read back by tcpdump (needs root).

#![allow(clippy::unwrap_used, clippy::panic, reason = "a test fails by panicking")]

mod common;

use std::fs;
use std::io::{Read, Write};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::path::Path;
use std::process::{Command, Stdio};
use std::thread;
use std::time::Duration;

use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;
use paceline_lab::{Lab, LabConfig};

use common::{CONTROL, PROGRAM, Running, SHIFTS, joined_lab};

const DOWNLOAD: usize = 300_000;

fn capture(folder: &Path, flow: &str, file: &str) -> Command {
    let mut command = Command::new(PROGRAM);
    command.args(["capture", "--flow", flow, "--snap", "96", "--control"]).arg(folder.join("socket"));
    command.arg("--out").arg(folder.join(file));
    command
}

fn download(lab: &Lab, port: u16) {
    let address = SocketAddr::new(lab.server_address(false), port);
    let listener = lab.server.run(|| TcpListener::bind(address)).unwrap().unwrap();
    let serving = thread::spawn(move || {
        let (mut stream, _) = listener.accept().unwrap();
        stream.write_all(&vec![7; DOWNLOAD]).unwrap();
    });
    let mut stream = lab.client.run(|| TcpStream::connect(address)).unwrap().unwrap();
    let mut all = Vec::new();
    stream.read_to_end(&mut all).unwrap();
    assert_eq!(all.len(), DOWNLOAD);
    serving.join().unwrap();
}

#[test]
fn a_chosen_flow_is_captured_on_both_sides() {
    let Some(lab) = joined_lab(LabConfig::default()) else { return };
    let folder = tempfile::tempdir().unwrap();
    let folder = folder.path();
    let _gateway = Running::gateway(&lab, folder, &[], &[CONTROL, SHIFTS]);
    let flow = format!("any,{}:80", lab.server_address(false));
    let mut capturing = (0..500)
        .find_map(|_| {
            thread::sleep(Duration::from_millis(20));
            let mut child = capture(folder, &flow, "f.pcapng").stderr(Stdio::null()).spawn().unwrap();
            // The file appears when the gateway has accepted the request.
            while child.try_wait().unwrap().is_none() {
                if folder.join("f.pcapng").exists() {
                    return Some(child);
                }
                thread::sleep(Duration::from_millis(5));
            }
            None
        })
        .unwrap();
    let refused = capture(folder, &flow, "second").output().unwrap();
    assert!(String::from_utf8_lossy(&refused.stderr).contains("another capture is running"));
    // The packet thread checks for requests eight times a second.
    thread::sleep(Duration::from_millis(500));
    download(&lab, 80);
    download(&lab, 81);
    thread::sleep(Duration::from_millis(700));
    kill(Pid::from_raw(capturing.id() as i32), Signal::SIGINT).unwrap();
    assert!(capturing.wait().unwrap().success());

    let bytes = fs::read(folder.join("f.pcapng")).unwrap();
    for words in ["g0", "g1", "flow accelerated", "window field"] {
        assert!(bytes.windows(words.len()).any(|window| window == words.as_bytes()), "{words}");
    }
    let Ok(read) = Command::new("tcpdump").args(["-n", "-r"]).arg(folder.join("f.pcapng")).output() else {
        eprintln!("not read back: tcpdump is missing");
        return;
    };
    let text = String::from_utf8_lossy(&read.stdout);
    assert!(read.status.success(), "{}", String::from_utf8_lossy(&read.stderr));
    let client_side = text.lines().filter(|line| line.contains("Flags [S]")).count();
    assert_eq!(client_side, 2, "a SYN on each side: {text}");
    assert!(text.lines().count() > 20 && text.lines().all(|line| line.contains(".80")), "{text}");
}
