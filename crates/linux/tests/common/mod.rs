//! Shared code of the tests with real TCP connections.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, reason = "a test fails by panicking")]
#![allow(dead_code, reason = "each test binary uses a part")]

use std::io::{self, Read, Write};
use std::net::{IpAddr, SocketAddr, TcpListener, TcpStream};
use std::thread::{self, JoinHandle};

use paceline_lab::netns::{self, Netns};
use paceline_lab::{GatewayKind, Lab, LabConfig};
use paceline_linux::{
    Device, EventLoop, EventLoopConfig, Filter, LoopEnd, PacketSocket, PortCounters, StopHandle,
};
use paceline_wire::{Node, PortId};
use sha2::{Digest, Sha256};

/// False if namespaces may not be created. In that case prints a line about it.
pub(crate) fn permitted() -> bool {
    match netns::check_permitted() {
        Ok(()) => true,
        Err(error) => {
            eprintln!("skipped: {error}");
            false
        }
    }
}

/// Returns a lab with plain links and a gateway of this kind. `None` if namespaces may not be created.
pub(crate) fn joined_lab(gateway: GatewayKind) -> Option<Lab> {
    permitted().then(|| {
        let lab = Lab::build(LabConfig { gateway, ..LabConfig::default() }).unwrap();
        lab.join_links().unwrap();
        lab
    })
}

/// A node on its own thread, in a namespace, between interfaces.
pub(crate) struct Driven<N> {
    stop: StopHandle,
    thread: JoinHandle<(N, Vec<PortCounters>)>,
}

impl<N: Node + Send + 'static> Driven<N> {
    /// Starts `node` with `interfaces` as its ports, numbered from 0.
    pub(crate) fn start(netns: &Netns, interfaces: &[&str], filter: &Filter, node: N) -> Self {
        let mut event_loop = EventLoop::new(EventLoopConfig::default()).unwrap();
        for (number, interface) in interfaces.iter().enumerate() {
            let socket = netns.run(|| PacketSocket::open(interface, filter)).unwrap().unwrap();
            event_loop.add(Device::Packet { port: PortId(number as u8), socket }).unwrap();
        }
        Self::run(event_loop, node)
    }

    /// Starts `node` with the devices of `event_loop`.
    pub(crate) fn run(mut event_loop: EventLoop, mut node: N) -> Self {
        let stop = event_loop.stop_handle();
        let thread = thread::spawn(move || {
            let _ = paceline_linux::timer::schedule_realtime();
            let ended = event_loop.run(&mut node, |_, _| Ok(())).unwrap();
            assert_eq!(ended, LoopEnd::Stopped);
            (node, event_loop.port_counters())
        });
        Driven { stop, thread }
    }

    /// Ends the loop.
    pub(crate) fn finish(self) -> (N, Vec<PortCounters>) {
        self.stop.stop();
        self.thread.join().unwrap()
    }
}

/// Sends `len` bytes from a listener at `server` to `client`, and compares the hashes of sent and received bytes.
pub(crate) fn transfer(server: (&Netns, IpAddr), client: (&Netns, IpAddr), len: usize) {
    let listener = server.0.run(|| TcpListener::bind((server.1, 0))).unwrap().unwrap();
    let address = listener.local_addr().unwrap();
    let sender = thread::spawn(move || send(&listener, len).unwrap());
    let received = client.0.run(|| receive(address)).unwrap().unwrap();
    let sent = sender.join().unwrap();
    assert_eq!(received.0, len);
    assert_eq!(received.1, sent, "the bytes arrived as they were sent");
}

fn send(listener: &TcpListener, len: usize) -> io::Result<Vec<u8>> {
    let (mut stream, _) = listener.accept()?;
    let (mut hash, mut state, mut left) = (Sha256::new(), 1u32, len);
    let mut chunk = vec![0; 64 << 10];
    while left > 0 {
        for byte in &mut chunk {
            state = state.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
            *byte = (state >> 24) as u8;
        }
        let part = &chunk[..left.min(chunk.len())];
        hash.update(part);
        stream.write_all(part)?;
        left -= part.len();
    }
    Ok(hash.finalize().to_vec())
}

fn receive(address: SocketAddr) -> io::Result<(usize, Vec<u8>)> {
    let mut stream = TcpStream::connect(address)?;
    let (mut hash, mut len) = (Sha256::new(), 0);
    let mut chunk = vec![0; 64 << 10];
    loop {
        match stream.read(&mut chunk)? {
            0 => return Ok((len, hash.finalize().to_vec())),
            count => {
                hash.update(&chunk[..count]);
                len += count;
            }
        }
    }
}
