//! The proxy between two hosts of a lab (needs root).

use std::io::{ErrorKind, Read, Write};
use std::net::{Shutdown, SocketAddr, TcpListener, TcpStream};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc;
use std::thread;
use std::time::Duration as StdDuration;

use super::*;
use crate::netns::check_permitted;
use crate::{GatewayKind, Lab, LabConfig};

const PORT: u16 = 7_000;

/// Runs `check` in a lab with the proxy between its hosts. Returns the proxy's counters. `None` if the test may not
/// run.
fn with_proxy(check: impl FnOnce(&Lab) + Send) -> Option<ProxyCounters> {
    if let Err(error) = check_permitted() {
        eprintln!("skipped: {error}");
        return None;
    }
    let lab = Lab::build(LabConfig { gateway: GatewayKind::Routed, ..LabConfig::default() }).unwrap();
    lab.join_links().unwrap();
    let config = ProxyConfig {
        interfaces: vec!["g0".into(), "g1".into()],
        ports: vec![PORT],
        congestion_control: "reno".into(),
    };
    let stop = AtomicBool::new(false);
    let (lab, config, stop) = (&lab, &config, &stop);
    thread::scope(|scope| {
        let (opened, is_open) = mpsc::channel();
        let proxy = scope.spawn(move || {
            lab.gateway.enter().unwrap();
            let proxy = Proxy::open(config).unwrap();
            opened.send(()).unwrap();
            proxy.run(stop).unwrap()
        });
        is_open.recv().unwrap();
        let checked = std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| check(lab)));
        stop.store(true, Ordering::Relaxed);
        let counters = proxy.join().unwrap();
        checked.unwrap();
        Some(counters)
    })
}

fn listen(lab: &Lab, ipv6: bool) -> TcpListener {
    let address = SocketAddr::new(lab.server_address(ipv6), PORT);
    lab.server.run(|| TcpListener::bind(address)).unwrap().unwrap()
}

fn connect(lab: &Lab, ipv6: bool) -> TcpStream {
    let address = SocketAddr::new(lab.server_address(ipv6), PORT);
    let stream = lab.client.run(|| TcpStream::connect(address)).unwrap().unwrap();
    stream.set_read_timeout(Some(StdDuration::from_secs(20))).unwrap();
    stream
}

/// Returns bytes that differ from place to place.
fn pattern(len: usize) -> Vec<u8> {
    (0..len as u64).map(|n| (n.wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 56) as u8).collect()
}

#[test]
fn bytes_and_halves_pass_and_addresses_stay() {
    let (down, up) = (pattern(5_000_000), pattern(1_000_000));
    let counters = with_proxy(|lab| {
        for ipv6 in [false, true] {
            let listener = listen(lab, ipv6);
            let mut client = connect(lab, ipv6);
            let (mut server, peer) = listener.accept().unwrap();
            assert_eq!(peer, client.local_addr().unwrap(), "the server sees the client");
            assert_eq!(client.peer_addr().unwrap(), server.local_addr().unwrap());
            // One half is sent and closed, then the other.
            let mut got = Vec::new();
            thread::scope(|scope| {
                scope.spawn(|| {
                    client.write_all(&up).unwrap();
                    client.shutdown(Shutdown::Write).unwrap();
                });
                server.read_to_end(&mut got).unwrap();
            });
            assert!(got == up, "what arrives is what was sent");
            got.clear();
            thread::scope(|scope| {
                scope.spawn(|| {
                    server.write_all(&down).unwrap();
                    server.shutdown(Shutdown::Write).unwrap();
                });
                client.read_to_end(&mut got).unwrap();
            });
            assert!(got == down, "what arrives is what was sent");
        }
    });
    if let Some(counters) = counters {
        assert_eq!((counters.flows, counters.failed), (2, 0));
    }
}

#[test]
fn a_reset_and_a_refusal_end_the_other_connection() {
    let counters = with_proxy(|lab| {
        let listener = listen(lab, false);
        let mut client = connect(lab, false);
        let (mut server, _) = listener.accept().unwrap();
        server.write_all(b"unread").unwrap();
        client.read_exact(&mut [0; 6]).unwrap();
        client.write_all(b"unread").unwrap();
        thread::sleep(StdDuration::from_millis(100));
        // Closing with unread data sends a reset (Linux tcp_close).
        drop(server);
        assert_eq!(client.read(&mut [0; 8]).unwrap_err().kind(), ErrorKind::ConnectionReset);
        drop(listener);
        // The proxy answers the client before it connects to the server.
        let mut client = connect(lab, false);
        assert_eq!(client.read(&mut [0; 8]).unwrap_err().kind(), ErrorKind::ConnectionReset);
    });
    if let Some(counters) = counters {
        assert_eq!((counters.flows, counters.failed), (2, 2));
    }
}
