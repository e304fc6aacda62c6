//! A download through the lab's emulator, with or without a gateway process that does nothing: what the lab itself costs.
//!
//! `emulated_download MBPS SECONDS [null]`

use std::io::{Read, Write};
use std::net::{TcpListener, TcpStream};
use std::thread;
use std::time::Instant;

use paceline_lab::emulator::{DuplexConfig, Emulator, EmulatorConfig};
use paceline_lab::netns::Netns;
use paceline_lab::{Lab, LabConfig};
use paceline_linux::{
    Device, EventLoop, EventLoopConfig, Filter, NullForwarder, PacketSocket, PacketSocketConfig, clock, timer,
};
use paceline_path::{Delay, LinkConfig, QueueLimit, RateProcess};
use paceline_wire::{Duration, Node, PortId, Rate};

type Error = Box<dyn std::error::Error + Send + Sync>;

fn main() -> Result<(), Error> {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let [mbps, seconds, gateway @ ..] = &arguments[..] else {
        return Err("usage: emulated_download MBPS SECONDS [null]".into());
    };
    let seconds: f64 = seconds.parse()?;
    let lab = Lab::build(LabConfig::default())?;
    let emulator = Emulator::new(links(mbps.parse()?), clock::now())?;
    let emulating = drive(&lab.net, &["n0", "n1", "n2", "n3"], Filter::All, emulator)?;
    let forwarding = if gateway.is_empty() {
        None
    } else {
        lab.gateway.netlink()?.set_master("g0", None)?;
        lab.gateway.netlink()?.set_master("g1", None)?;
        Some(drive(&lab.gateway, &["g0", "g1"], Filter::All, NullForwarder::new())?)
    };

    let listener = lab.server.run(|| TcpListener::bind((lab.server_address(false), 0)))??;
    let address = listener.local_addr()?;
    let receiver = thread::spawn(move || -> std::io::Result<u64> { serve(&listener) });
    let bytes = lab.client.run(|| -> std::io::Result<u64> {
        let stream = TcpStream::connect(address)?;
        receive(stream, seconds)
    })??;
    receiver.join().map_err(|_| "the server panicked")??;

    println!("goodput {:.3} Mbit/s", bytes as f64 * 8.0 / seconds / 1e6);
    let (emulator, event_loop) = emulating.finish()?;
    print_loop("emulator", &event_loop);
    let report = emulator.report(clock::now());
    for direction in &report.directions {
        let [p50, p95] = [0.5, 0.95].map(|fraction| direction.queue_delay.quantile(fraction));
        let (name, packets) = (&direction.name, direction.delivered_packets);
        println!(
            "{name}: {packets} packets, queue delay p50 {p50:?} p95 {p95:?}, {:?}",
            direction.utilization()
        );
    }
    if let Some(path) = report.path_delay {
        let [p50, p95] = [0.5, 0.95].map(|fraction| path.delays.quantile(fraction));
        println!("path delay p50 {p50:?} p95 {p95:?}, {} unmatched, {} copies", path.unmatched, path.copies);
    }
    if let Some(forwarding) = forwarding {
        print_loop("null forwarder", &forwarding.finish()?.1);
    }
    Ok(())
}

fn print_loop(name: &str, event_loop: &EventLoop) {
    let late = event_loop.timer_lateness();
    let [p50, p99] = [0.5, 0.99].map(|fraction| late.quantile(fraction));
    println!("{name}: {:?}, timer late p50 {p50:?} p99 {p99:?}", event_loop.counters());
}

fn links(mbps: f64) -> EmulatorConfig {
    let wire = || LinkConfig { delay: Delay::Constant(Duration::from_millis(20)), ..LinkConfig::default() };
    let radio = |delay| LinkConfig {
        rate: RateProcess::Constant(Rate::from_mbps(mbps)),
        queue: QueueLimit::Bytes(500_000),
        delay: Delay::Constant(Duration::from_millis(delay)),
        ..LinkConfig::default()
    };
    let link = |name: &str, ports: [u8; 2], downlink, uplink, split| DuplexConfig {
        name: name.to_owned(),
        ports: ports.map(PortId),
        downlink,
        uplink,
        seeds: [1, 2],
        split,
        spare_neighbour_discovery: true,
    };
    EmulatorConfig {
        links: vec![
            link("wired", [0, 1], wire(), wire(), false),
            link("radio", [2, 3], radio(30), radio(30), true),
        ],
        path: Some((0, 1)),
        delivery: 1,
    }
}

struct Driven<N> {
    stop: paceline_linux::StopHandle,
    thread: thread::JoinHandle<Result<(N, EventLoop), Error>>,
}

impl<N> Driven<N> {
    fn finish(self) -> Result<(N, EventLoop), Error> {
        self.stop.stop();
        self.thread.join().map_err(|_| "an event loop panicked")?
    }
}

fn drive<N: Node + Send + 'static>(
    netns: &Netns,
    interfaces: &[&str],
    filter: Filter,
    mut node: N,
) -> Result<Driven<N>, Error> {
    let mut event_loop = EventLoop::new(EventLoopConfig::default())?;
    let config = PacketSocketConfig { filter, ..PacketSocketConfig::default() };
    for (number, interface) in interfaces.iter().enumerate() {
        let socket = netns.run(|| PacketSocket::open(interface, &config))??;
        event_loop.add(Device::Packet { port: PortId(number as u8), socket })?;
    }
    let stop = event_loop.stop_handle();
    let thread = thread::spawn(move || {
        if let Err(error) = timer::schedule_realtime() {
            println!("no real-time scheduling: {error}");
        }
        event_loop.run(&mut node, |_, _| Ok(()))?;
        Ok((node, event_loop))
    });
    Ok(Driven { stop, thread })
}

fn serve(listener: &TcpListener) -> std::io::Result<u64> {
    let (mut stream, _) = listener.accept()?;
    let chunk = vec![7; 64 << 10];
    let mut sent = 0;
    while stream.write_all(&chunk).is_ok() {
        sent += chunk.len() as u64;
    }
    Ok(sent)
}

fn receive(mut stream: TcpStream, seconds: f64) -> std::io::Result<u64> {
    let (start, mut chunk, mut bytes) = (Instant::now(), vec![0; 256 << 10], 0);
    while start.elapsed().as_secs_f64() < seconds {
        bytes += stream.read(&mut chunk)? as u64;
    }
    Ok(bytes)
}
