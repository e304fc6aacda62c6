//! The two hosts of the lab: kernel settings, and the transfers that a scenario asks for.

use paceline_lab::Lab;
use paceline_lab::endpoint::{
    Amount, Direction, ReadPattern, SocketOptions, Start, Traffic, Transfer, UdpStream,
};
use paceline_linux::SystemError;
use paceline_linux::sysctl::allow_congestion_controls;
use paceline_path::random::Random;
use paceline_wire::{Duration, Rate};
use std::net::SocketAddr;

use super::kernel_proxy;
use crate::profile::Profile;
use crate::scenario::{self, Flow, IpVersion, Protocol, Scenario, SizeSpec};

/// One transfer or stream, and its place in the scenario.
#[derive(Clone, Debug)]
pub(super) struct Planned {
    /// Index of the flow in the scenario.
    pub(super) flow: usize,
    /// Index among the transfers of the same flow.
    pub(super) index: u32,
    /// Port at the server; every transfer has its own.
    pub(super) port: u16,
    /// Index in the traffic's transfers, or in its streams.
    pub(super) place: usize,
}

/// All traffic of a run, and its plan.
#[derive(Clone, Debug)]
pub(super) struct Plan {
    pub(super) traffic: Traffic,
    pub(super) planned: Vec<Planned>,
}

/// Configures both hosts as the scenario says.
pub(super) fn set_up(lab: &Lab, scenario: &Scenario) -> Result<(), SystemError> {
    let mut controls = vec![scenario.server.congestion_control.as_str(), &scenario.client.congestion_control];
    let proxy = kernel_proxy::congestion_control(scenario);
    controls.extend(proxy.as_deref());
    controls.extend(scenario.flows.iter().filter_map(|flow| flow.congestion_control.as_deref()));
    controls.sort_unstable();
    controls.dedup();
    allow_congestion_controls(&controls)?;
    let flag = |on: bool| if on { "1" } else { "0" };
    let client = &scenario.client;
    // The client's abilities apply to a flow because its SYN announces them.
    lab.client.set_sysctls(&[
        ("net.ipv4.tcp_window_scaling", flag(client.window_scaling)),
        ("net.ipv4.tcp_sack", flag(client.sack)),
        ("net.ipv4.tcp_timestamps", flag(client.timestamps)),
        ("net.ipv4.tcp_rmem", &format!("4096 131072 {}", client.receive_buffer_max.bytes().max(131_072))),
        ("net.ipv4.tcp_wmem", &format!("4096 65536 {}", scenario.server.send_buffer.bytes().max(65_536))),
    ])?;
    lab.server.set_sysctls(&[
        // 3: probes after two round trips; 0: none. RFC 8985, Section 7.
        ("net.ipv4.tcp_early_retrans", if scenario.server.tail_loss_probe { "3" } else { "0" }),
        ("net.ipv4.tcp_wmem", &format!("4096 65536 {}", scenario.server.send_buffer.bytes().max(65_536))),
        ("net.ipv4.tcp_rmem", "4096 131072 6291456"),
    ])?;
    if scenario.gateway.profile == Profile::KernelSplit {
        // The proxy runs in the gateway's namespace and gets the settings of a server.
        lab.gateway.set_sysctls(&[
            ("net.ipv4.tcp_wmem", &format!("4096 65536 {}", scenario.server.send_buffer.bytes().max(65_536))),
            ("net.ipv4.tcp_rmem", "4096 131072 6291456"),
            ("net.ipv4.tcp_no_metrics_save", "1"),
        ])?;
    }
    match scenario.server.rto_min {
        Some(rto_min) => {
            lab.set_server_rto_min(u32::try_from(rto_min.to_wire().as_millis()).unwrap_or(u32::MAX))
        }
        None => Ok(()),
    }
}

/// Plans every transfer and stream of the scenario. The seed determines sizes and contents.
pub(super) fn plan(lab: &Lab, scenario: &Scenario, seed: u64) -> Plan {
    let mut traffic = Traffic::new(scenario.patience().to_wire());
    let mut planned = Vec::new();
    let mut port = FIRST_PORT;
    for (number, flow) in scenario.flows.iter().enumerate() {
        let mut sizes = Random::named(seed, &format!("size of {}", flow.name));
        for index in 0..flow.count {
            let ipv6 = flow.ip == IpVersion::V6;
            let server = SocketAddr::new(lab.server_address(ipv6), port);
            let client = lab.client_address(ipv6, 0);
            let place = match flow.protocol {
                Protocol::Udp => {
                    traffic.streams.push(stream(flow, scenario, server, SocketAddr::new(client, port)));
                    traffic.streams.len() - 1
                }
                // `Place::check` has refused it.
                Protocol::Ping => continue,
                Protocol::Tcp => {
                    let size = flow.size.map(|size: SizeSpec| size.at(sizes.unit()));
                    let mut transfer = Transfer::new(&flow.name, server, client, amount(size, scenario));
                    transfer.start = start(flow, index, traffic.transfers.len());
                    transfer.direction = direction(flow.direction);
                    transfer.seed = seed.wrapping_mul(65_536).wrapping_add(u64::from(port));
                    transfer.read = read_pattern(flow, scenario);
                    transfer.server_socket = server_socket(flow, scenario);
                    transfer.client_socket = client_socket(flow, scenario);
                    traffic.transfers.push(transfer);
                    traffic.transfers.len() - 1
                }
            };
            planned.push(Planned { flow: number, index, port, place });
            port += 1;
        }
    }
    Plan { traffic, planned }
}

pub(super) fn direction(direction: scenario::Direction) -> Direction {
    match direction {
        scenario::Direction::Down => Direction::Down,
        scenario::Direction::Up => Direction::Up,
    }
}

fn amount(size: Option<u64>, scenario: &Scenario) -> Amount {
    size.map_or(Amount::Until(scenario.duration.to_wire()), Amount::Bytes)
}

fn start(flow: &Flow, index: u32, place: usize) -> Start {
    let interval = flow.interval.to_wire();
    match (flow.sequential, index, place.checked_sub(1)) {
        (true, 1.., Some(before)) => Start::After(before, interval),
        _ => Start::At(flow.start.to_wire() + interval * u64::from(index)),
    }
}

fn stream(flow: &Flow, scenario: &Scenario, server: SocketAddr, client: SocketAddr) -> UdpStream {
    UdpStream {
        name: flow.name.clone(),
        direction: direction(flow.direction),
        server,
        client,
        rate: flow.rate.map_or(Rate::ZERO, |rate| rate.to_wire()),
        datagram_bytes: DATAGRAM_BYTES,
        start: flow.start.to_wire(),
        stop: scenario.duration.to_wire(),
    }
}

fn read_pattern(flow: &Flow, scenario: &Scenario) -> ReadPattern {
    if flow.direction == scenario::Direction::Up {
        return ReadPattern::default();
    }
    let client = &scenario.client;
    let pause =
        client.read_pause.map(|pause| (pause.at.to_wire(), pause.at.to_wire() + pause.length.to_wire()));
    ReadPattern { rate: client.read_rate.map(|rate| rate.to_wire()), pauses: pause.into_iter().collect() }
}

fn server_socket(flow: &Flow, scenario: &Scenario) -> SocketOptions {
    let control = flow.congestion_control.as_ref().filter(|_| flow.direction == scenario::Direction::Down);
    SocketOptions {
        congestion_control: Some(control.unwrap_or(&scenario.server.congestion_control).clone()),
        unsent_bytes_max: Some(UNSENT_BYTES_MAX),
        ..SocketOptions::default()
    }
}

fn client_socket(flow: &Flow, scenario: &Scenario) -> SocketOptions {
    let control = flow.congestion_control.as_ref().filter(|_| flow.direction == scenario::Direction::Up);
    let window = scenario.client.receive_buffer.map(|size| u32::try_from(size.bytes()).unwrap_or(u32::MAX));
    SocketOptions {
        congestion_control: Some(control.unwrap_or(&scenario.client.congestion_control).clone()),
        window_bytes: window,
        unsent_bytes_max: Some(UNSENT_BYTES_MAX),
        ..SocketOptions::default()
    }
}

/// Interval between two samples of a sender's state.
pub(super) const SAMPLE_INTERVAL: Duration = Duration::from_millis(100);

const FIRST_PORT: u16 = 5001;
/// The largest UDP payload that fits into 1500 bytes over IPv6, so that both versions send the same.
const DATAGRAM_BYTES: u16 = 1452;
/// Our choice: unsent data in the sender's kernel prolongs a run, so it is limited. 100 ms at 10 Mbit/s are far more
/// than an application needs to refill it.
const UNSENT_BYTES_MAX: u32 = 131_072;
