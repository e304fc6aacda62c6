//! Translates a cell of a scenario file into the simulator's scenario.

use std::path::Path as FilePath;

use paceline_path::random::Random;
use paceline_sim::result::Direction as SimDirection;
use paceline_sim::scenario::{
    Flow as SimFlow, GatewayAt, Load, PathLink, Scenario as SimScenario, TcpFlow, Transport,
};
use paceline_sim::workload::{Reader, SizeRange};
use paceline_tcp::{Config, CongestionName, DetectionName, ReceiveBuffer};
use paceline_wire::{Duration, Instant, Rate};

use crate::profile::Profile;
use crate::run::links::link_seeds;
use crate::scenario::{Direction, Flow, IpVersion, Path, Protocol, Scenario, Tcp};

/// # Errors
/// Names the key that the simulator does not support, and says why.
pub(super) fn setup(scenario: &Scenario, seed: u64, folder: &FilePath) -> Result<SimScenario, String> {
    if scenario.gateway.profile != Profile::Off && !scenario.gateway.events.is_empty() {
        return Err("gateway.events: the simulator has no process to kill or stop; use --on lab".into());
    }
    let duration = scenario.duration.to_wire();
    let named = scenario.topology.map(|topology| topology.path());
    let (path, link_seeds) = match &named {
        Some(path) => (path.links(seed, duration), Vec::new()),
        None => (links(scenario, folder)?, vec![link_seeds(seed, 0), link_seeds(seed, 1)]),
    };
    let config = scenario.gateway.resolve().map_err(|why| format!("gateway.config: {why}"))?;
    Ok(SimScenario {
        duration,
        seed,
        path,
        link_seeds,
        ad_hoc: named.and_then(|path| path.ad_hoc()),
        gateway: config.map(|config| GatewayAt { links_before: 1, config }),
        flows: flows(scenario, seed)?,
        patience: scenario.patience().to_wire() - duration,
        // Tests also watch both ends of each connection.
        checked: cfg!(test),
        ..SimScenario::default()
    })
}

fn links(scenario: &Scenario, folder: &FilePath) -> Result<Vec<PathLink>, String> {
    let links = [("wired", &scenario.wired), ("radio", &scenario.radio)];
    let link = |(name, link): (&str, &Path)| {
        let [down, up] = link.resolve(folder).map_err(|why| format!("{name}: {why}"))?;
        Ok(PathLink { name: name.into(), down, up })
    };
    links.into_iter().map(link).collect()
}

/// Our choice: each flow after the first starts up to a millisecond late, by seed. A host's processes do not start at
/// the same instant. Flows that share a queue then do not meet in the same way in every run.
fn flows(scenario: &Scenario, seed: u64) -> Result<Vec<SimFlow>, String> {
    let mut flows = Vec::with_capacity(scenario.flows.len());
    for (number, flow) in scenario.flows.iter().enumerate() {
        let mut flow = self::flow(flow, scenario)?;
        if number > 0 {
            let mut late = Random::named(seed, &format!("start of {}", flow.name));
            flow.start += late.duration_up_to(LATE_MAX);
        }
        flows.push(flow);
    }
    Ok(flows)
}

fn flow(flow: &Flow, scenario: &Scenario) -> Result<SimFlow, String> {
    let transport = match flow.protocol {
        Protocol::Udp => Transport::Udp {
            rate: flow.rate.map_or(Rate::ZERO, |rate| datagram_rate(rate.to_wire(), flow.ip)),
            ip_bytes: DATAGRAM_BYTES + datagram_headers(flow.ip),
        },
        Protocol::Ping => Transport::Ping,
        Protocol::Tcp => Transport::Tcp(Box::new(tcp(flow, scenario)?)),
    };
    Ok(SimFlow {
        name: flow.name.clone(),
        direction: match flow.direction {
            Direction::Down => SimDirection::Down,
            Direction::Up => SimDirection::Up,
        },
        transport,
        start: flow.start.to_wire(),
        count: flow.count,
        sequential: flow.sequential,
        interval: flow.interval.to_wire(),
        client: 0,
        share: flow.share(),
        pass: flow.pass,
        ipv6: flow.ip == IpVersion::V6,
    })
}

/// Converts the scenario's rate of payload into the rate of IP bytes.
fn datagram_rate(payload: Rate, ip: IpVersion) -> Rate {
    payload.mul_ratio(u64::from(DATAGRAM_BYTES + datagram_headers(ip)), u64::from(DATAGRAM_BYTES))
}

fn datagram_headers(ip: IpVersion) -> u32 {
    if ip == IpVersion::V6 { 48 } else { 28 }
}

fn tcp(flow: &Flow, scenario: &Scenario) -> Result<TcpFlow, String> {
    let down = flow.direction == Direction::Down;
    let load = match flow.size {
        None => Load::Bulk,
        Some(size) => Load::Size(SizeRange { min: size.min.bytes(), max: size.max.bytes() }),
    };
    let (mut server, mut client) = (server(scenario)?, client(scenario)?);
    if let Some(name) = &flow.congestion_control {
        let sender = if down { &mut server } else { &mut client };
        sender.congestion = congestion("flows.congestion-control", name)?;
    }
    if flow.ip == IpVersion::V6 {
        [server.mss, client.mss] = [MSS_IPV6; 2];
    }
    // As in the lab, only the client's application can be slow.
    Ok(TcpFlow { server, client, load, reader: if down { reader(scenario)? } else { Reader::Eager } })
}

fn reader(scenario: &Scenario) -> Result<Reader, String> {
    let client = &scenario.client;
    Ok(match (client.read_rate, client.read_pause) {
        (None, None) => Reader::Eager,
        (Some(rate), None) => Reader::Paced(rate.to_wire()),
        (None, Some(pause)) => {
            let from = Instant::ZERO + pause.at.to_wire();
            Reader::Paused { from, to: from + pause.length.to_wire() }
        }
        (Some(_), Some(_)) => {
            return Err("client.read-pause: the simulator's reader is either paced or paused; leave out \
                        client.read-rate, or use --on lab"
                .into());
        }
    })
}

fn server(scenario: &Scenario) -> Result<Config, String> {
    let server = &scenario.server;
    let mut config = Config {
        congestion: congestion("server.congestion-control", &server.congestion_control)?,
        send_buffer_max: server.send_buffer.bytes().max(INITIAL_BYTES.into()),
        receive_buffer: autotuned(SERVER_RECEIVE_BUFFER_BYTES),
        ..Config::default()
    };
    if let Some(rto_min) = server.rto_min {
        config.rto_min = rto_min.to_wire();
    }
    set(&mut config, &server.tcp);
    if !server.tail_loss_probe {
        // Probes belong to RACK-TLP. Our choice: FACK, which Linux had before, and which also detects lost
        // retransmissions.
        config.detection = server.tcp.loss_detection.unwrap_or(DetectionName::Fack);
        if config.detection == DetectionName::RackTlp {
            return Err("server.tail-loss-probe: the simulator's rack-tlp always probes; choose another \
                        server.tcp.loss-detection, or use --on lab"
                .into());
        }
    }
    Ok(config)
}

fn client(scenario: &Scenario) -> Result<Config, String> {
    let client = &scenario.client;
    let mut config = Config {
        congestion: congestion("client.congestion-control", &client.congestion_control)?,
        send_buffer_max: scenario.server.send_buffer.bytes().max(INITIAL_BYTES.into()),
        receive_buffer: match client.receive_buffer {
            Some(window) => ReceiveBuffer::Fixed(u32::try_from(window.bytes()).unwrap_or(u32::MAX)),
            None => autotuned(client.receive_buffer_max.bytes()),
        },
        window_scaling: client.window_scaling,
        sack: client.sack,
        timestamps: client.timestamps,
        ..Config::default()
    };
    set(&mut config, &client.tcp);
    Ok(config)
}

/// Half of a kernel's receive buffer becomes window (Linux tcp_adv_win_scale = 1).
fn autotuned(buffer_max_bytes: u64) -> ReceiveBuffer {
    let max = u32::try_from(buffer_max_bytes / 2).unwrap_or(u32::MAX);
    ReceiveBuffer::Auto { initial: INITIAL_BYTES, max: max.max(INITIAL_BYTES) }
}

fn set(config: &mut Config, tcp: &Tcp) {
    config.detection = tcp.loss_detection.unwrap_or(config.detection);
    config.reduction = tcp.rate_reduction.unwrap_or(config.reduction);
    config.send_buffer = tcp.send_buffer_growth.unwrap_or(config.send_buffer);
    config.hystart = tcp.hystart.unwrap_or(config.hystart);
    config.cwnd_clamp = tcp.cwnd_max.unwrap_or(config.cwnd_clamp);
    config.ncl.mrrl = tcp.ncl_mrrl.unwrap_or(config.ncl.mrrl);
    config.ncl.beta_percent = tcp.ncl_beta_percent.unwrap_or(config.ncl.beta_percent);
    config.opportunistic = tcp.opportunistic_retransmission;
    (config.hack1, config.hack1_text) = (tcp.hack1, tcp.hack1_text);
    config.ecn = tcp.ecn;
    config.delayed_ack = tcp.delayed_ack.unwrap_or(config.delayed_ack);
    config.schedule = tcp.schedule.unwrap_or(config.schedule);
    let clock = &mut config.timestamp_clock;
    clock.tick = tcp.timestamp_tick.map_or(clock.tick, |tick| tick.to_wire());
    // No oscillator is off by more than a thousandth.
    clock.drift_ppb = tcp.timestamp_drift_ppm.clamp(-1_000, 1_000) * 1_000;
    config.receive_window = tcp.receive_window.unwrap_or(config.receive_window);
    if let Some(lambda) = tcp.drwa_lambda {
        config.drwa_lambda_percent = (lambda * 100.0).round() as u32;
    }
}

fn congestion(key: &str, name: &str) -> Result<CongestionName, String> {
    name.parse().map_err(|_| {
        let known: Vec<&str> = CongestionName::ALL.iter().map(|known| known.as_str()).collect();
        format!("{key}: the simulator has no `{name}`; it has {}", known.join(", "))
    })
}

/// Half of the lab's 131,072 bytes (Linux, second value of `tcp_rmem`).
const INITIAL_BYTES: u32 = 65_536;
/// The same value as in the lab.
const SERVER_RECEIVE_BUFFER_BYTES: u64 = 6_291_456;
const LATE_MAX: Duration = Duration::from_millis(1);
/// UDP payload, the same as in the lab.
const DATAGRAM_BYTES: u32 = 1_452;
/// 1,500 bytes minus the headers of IPv6 and TCP.
const MSS_IPV6: u16 = 1_440;
