//! `paceline emulate`: a link between two interfaces of this machine.

use std::fs;
use std::path::Path as FilePath;

use paceline_lab::emulator::{DirectionReport, DuplexConfig, Emulator, EmulatorConfig};
use paceline_linux::{Device, EventLoop, EventLoopConfig, Filter, PacketSocket, Termination, clock, timer};
use paceline_path::{Loss, RateSource};
use paceline_wire::{Duration, PortId};

use crate::error::{Error, Result};
use crate::files::write_whole;
use crate::options::EmulateOptions;
use crate::output::say;
use crate::run::{link_result, links_table};
use crate::scenario::Path;
use crate::toml_text::{explain, line_of};

/// Carries packets until a signal comes, then prints the counters of the link.
pub(crate) fn command(options: &EmulateOptions) -> Result<()> {
    let (path, folder) = described(options)?;
    let [downlink, uplink] = path.resolve(folder).map_err(Error::input)?;
    let termination = Termination::block().map_err(|error| Error::io("watch for signals", &error))?;
    let config = EmulatorConfig {
        links: vec![DuplexConfig {
            name: "link".into(),
            ports: [PortId(0), PortId(1)],
            downlink,
            uplink,
            seeds: [options.seed.wrapping_mul(2), options.seed.wrapping_mul(2).wrapping_add(1)],
            split: true,
            spare_neighbour_discovery: true,
        }],
        path: None,
        delivery: 0,
    };
    let mut emulator = Emulator::new(config, clock::now())
        .map_err(|error| Error::input(format!("no such link: {error}")))?;
    let mut event_loop =
        EventLoop::new(EventLoopConfig::default()).map_err(|e| Error::io("open a timer", &e))?;
    event_loop.end_on(termination).map_err(|error| Error::io("watch for signals", &error))?;
    for (port, interface) in [(0, &options.up), (1, &options.down)] {
        let socket = open(interface)?;
        event_loop
            .add(Device::Packet { port: PortId(port), socket })
            .map_err(|error| Error::io(format_args!("use interface {interface}"), &error))?;
    }
    let _ = timer::schedule_realtime();
    eprintln!("Emulating the link between {} and {}; Ctrl-C ends it.", options.up, options.down);
    event_loop.run(&mut emulator, |_, _| Ok(())).map_err(|error| Error::io("emulate the link", &error))?;
    let report = emulator.report(clock::now());
    say!("{}", links_table(&report.directions, report.duration));
    match &options.stats_json {
        Some(path) => write_stats(path, &report.directions, report.duration),
        None => Ok(()),
    }
}

/// The file's link with the changes of the options, and the folder of its traces.
fn described(options: &EmulateOptions) -> Result<(Path, &FilePath)> {
    let mut path = Path::default();
    let mut folder = FilePath::new("");
    if let Some(file) = &options.link {
        let text = fs::read_to_string(file)
            .map_err(|error| Error::input(format!("cannot read link {}: {error}", file.display())))?;
        path = toml::from_str(&text).map_err(|error: toml::de::Error| {
            let line = line_of(&text, error.span());
            Error::input(format!("{}:{line}: {}", file.display(), explain(error.message())))
        })?;
        folder = file.parent().unwrap_or(folder);
    }
    if let Some(rtt) = options.rtt {
        path.rtt = rtt;
    }
    if let Some(rate) = options.rate {
        path.down.rate = RateSource::Constant(rate.to_wire());
    }
    if let Some(rate) = options.up_rate {
        path.up.rate = RateSource::Constant(rate.to_wire());
    }
    if let Some(queue) = options.queue {
        path.down.queue = queue;
    }
    if let Some(loss) = options.loss {
        path.down.loss = Loss::Independent(loss);
    }
    Ok((path, folder))
}

fn open(interface: &str) -> Result<PacketSocket> {
    PacketSocket::open(interface, &Filter::All).map_err(|error| match error.raw_os_error() {
        Some(ENODEV) => Error::input(format!("there is no interface {interface}; `ip link` lists them")),
        _ => Error::io(format_args!("open interface {interface}"), &error),
    })
}

fn write_stats(path: &FilePath, directions: &[DirectionReport], duration: Duration) -> Result<()> {
    let links: serde_json::Map<String, serde_json::Value> = directions
        .iter()
        .filter_map(|d| Some((d.name.clone(), serde_json::to_value(link_result(d, duration)).ok()?)))
        .collect();
    write_whole(path, &format!("{}\n", serde_json::Value::from(links)))
}

/// "No such device".
const ENODEV: i32 = 19;
