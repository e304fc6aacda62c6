//! `paceline gateway`: the accelerator between two interfaces, or behind a TUN device.

mod attach;
mod observer;
mod rescaling;

use std::fs;
use std::io;
use std::path::Path;
use std::sync::{Arc, Mutex, PoisonError};

use nix::unistd::getppid;
use paceline_gateway::{Gateway, GatewayConfig};
use paceline_linux::shift_file::ShiftFile;
use paceline_linux::{
    EventLoop, EventLoopConfig, Fallback, Housekeeping, NullForwarder, Termination, clock, timer,
};
use paceline_wire::{Duration, Node};
use serde_json::{Value, json};

use crate::args::GatewayArgs;
use crate::error::{Error, Result};
use crate::result::{Percentiles, write_whole};
use crate::run::lab::system;
use crate::scenario::{explain, line_of, merge};
use observer::{Log, Shared, Tap};
use rescaling::Rescaling;

pub(crate) fn command(args: &GatewayArgs) -> Result<()> {
    let config = configuration(args)?;
    if args.forward_only {
        return drive(args, &mut NullForwarder::new(), None, |_, _| write_whole_io(args, "{}\n"));
    }
    let log = Log::create(clock::now(), args.events.as_deref(), args.series.as_deref())
        .map_err(|error| Error::io("create the logs", &error))?;
    let log: Shared = Arc::new(Mutex::new(log));
    let default = ShiftFile::default_path(&format!("{}-{}", args.wan, args.radio));
    let path = args.shift_file.as_deref().unwrap_or(&default);
    let store = ShiftFile::open(path, config.limits.max_flows).map_err(system)?;
    let open_flows = store.load();
    let rescaling = Rescaling::new(&open_flows);
    let tap = Tap::new(log.clone(), Some(store), Some(rescaling.feed()));
    let mut node = Gateway::with_observer(config, Box::new(tap));
    for (flow, fallback) in open_flows {
        match fallback {
            Fallback::Rescale(shifts) => node.resume(clock::now(), flow, shifts),
            Fallback::Reset => node.end(flow),
        }
    }
    drive(args, &mut node, Some(rescaling), |node, housekeeping| write_stats(args, node, &log, housekeeping))
}

/// Lets packets pass through `node` until a signal comes; `tell` is called once a second and at the end.
fn drive<N: Node>(
    args: &GatewayArgs,
    node: &mut N,
    rescaling: Option<Rescaling>,
    mut tell: impl FnMut(&N, Option<&mut Housekeeping<'_>>) -> io::Result<()>,
) -> Result<()> {
    // Before anything else runs: the threads of this process inherit the mask.
    let termination = Termination::block().map_err(|error| Error::io("watch for signals", &error))?;
    let config = EventLoopConfig { rejoin_segments: true, ..EventLoopConfig::default() };
    let mut event_loop = EventLoop::new(config).map_err(|error| Error::io("open a timer", &error))?;
    event_loop.end_on(termination).map_err(|error| Error::io("watch for signals", &error))?;
    let mut attached = match &args.tun {
        None => attach::bridged(&mut event_loop, &args.wan, &args.radio)?,
        Some(tun) => attach::routed(&mut event_loop, tun, args)?,
    };
    let rescaling = rescaling.zip(attached.rescale_config(args)).map(|(it, config)| it.start(config));
    // Without the privilege packets leave a millisecond late now and then.
    let _ = timer::schedule_realtime();
    let mut due = clock::now();
    event_loop
        .run(node, |node, housekeeping| {
            attached.refresh(housekeeping)?;
            if args.parent.is_some_and(|parent| getppid().as_raw() != parent) {
                housekeeping.stop();
            }
            if housekeeping.now >= due {
                due = housekeeping.now + STATS_INTERVAL;
                tell(node, Some(housekeeping))?;
            }
            Ok(())
        })
        .map_err(|error| Error::io("forward packets", &error))?;
    attached.detach()?;
    if let Some(rescaling) = rescaling {
        rescaling.finish();
    }
    tell(node, None).map_err(|error| Error::io("write counters", &error))
}

/// The profile with what the file changes.
fn configuration(args: &GatewayArgs) -> Result<GatewayConfig> {
    let Some(base) = args.profile.config() else {
        return Err(Error::input(
            "--profile off is no gateway; for one that only forwards write --profile null",
        ));
    };
    let Some(path) = &args.config else {
        return Ok(base);
    };
    let text = fs::read_to_string(path)
        .map_err(|error| Error::input(format!("cannot read configuration {}: {error}", path.display())))?;
    parse_configuration(path, &text, &base)
}

fn parse_configuration(path: &Path, text: &str, base: &GatewayConfig) -> Result<GatewayConfig> {
    let at = |error: toml::de::Error| {
        let line = line_of(text, error.span());
        Error::input(format!("{}:{line}: {}", path.display(), explain(error.message())))
    };
    // Typed first, for the line of a mistake; then once more as a table, laid over the profile.
    toml::from_str::<GatewayConfig>(text).map_err(at)?;
    let changes: toml::Table = toml::from_str(text).map_err(at)?;
    let mut table = toml::Table::try_from(base).map_err(|error| Error::failed(error.to_string()))?;
    merge(&mut table, &changes);
    let config: GatewayConfig = table.try_into().map_err(at)?;
    config.check().map_err(|why| Error::input(format!("{}: {why}", path.display())))?;
    Ok(config)
}

fn write_stats(
    args: &GatewayArgs,
    node: &Gateway,
    log: &Shared,
    housekeeping: Option<&mut Housekeeping<'_>>,
) -> io::Result<()> {
    let mut log = log.lock().unwrap_or_else(PoisonError::into_inner);
    log.flush()?;
    let sojourn = Percentiles::of_histogram(log.sojourn.count(), |quantile| {
        log.sojourn.quantile(quantile).as_secs_f64() * 1e3
    });
    let mut stats = json!({ "sojourn_ms": sojourn, "flows": node.flows(), "counters": node.counters() });
    if let Some(housekeeping) = housekeeping {
        stats["payload_bytes"] = housekeeping.pool_bytes_in_use().into();
        let ports = housekeeping.port_counters();
        let dropped: u64 = ports.iter().map(|port| port.kernel_drops + port.pool_exhausted).sum();
        stats["receive_drops"] = Value::from(dropped);
    }
    write_whole_io(args, &format!("{stats}\n"))
}

fn write_whole_io(args: &GatewayArgs, text: &str) -> io::Result<()> {
    match &args.stats_json {
        Some(path) => write_whole(path, text).map_err(io::Error::other),
        None => Ok(()),
    }
}

const STATS_INTERVAL: Duration = Duration::from_secs(1);

#[cfg(test)]
mod tests {
    use super::*;
    use crate::scenario::Profile;

    fn parse(text: &str) -> std::result::Result<GatewayConfig, String> {
        let base = Profile::Thesis.config().unwrap();
        parse_configuration(Path::new("g.toml"), text, &base).map_err(|error| error.to_string())
    }

    #[test]
    fn a_file_changes_single_keys_of_a_profile() {
        let config = parse("[rtt-modulation]\nattempts = 2\n").unwrap();
        let expected = Profile::Thesis.config().unwrap();
        assert_eq!(config.rtt_modulation.attempts, 2);
        assert_eq!(config.virtual_window, expected.virtual_window);
    }

    #[test]
    fn the_documented_defaults_are_the_defaults() {
        let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/gateway.md");
        let document = fs::read_to_string(path).unwrap();
        let blocks: Vec<&str> =
            document.split("```toml\n").skip(1).filter_map(|b| b.split("```").next()).collect();
        assert_eq!(toml::from_str::<GatewayConfig>(blocks[0]).unwrap(), GatewayConfig::default());
        let all: toml::Table = toml::Table::try_from(GatewayConfig::default()).unwrap();
        let shown: toml::Table = toml::from_str(blocks[0]).unwrap();
        assert_eq!(all, shown);
        let rules: GatewayConfig = toml::from_str(blocks[1]).unwrap();
        assert_eq!(rules.check(), Ok(()));
        assert_eq!(rules.sharing.flows.len(), 4);
    }

    #[test]
    fn mistakes_are_told_with_their_line() {
        let error = parse("[rtt-modulation]\nattempt = 2\n").unwrap_err();
        assert_eq!(error, "g.toml:2: unknown key `attempt`; did you mean `attempts`?");
        assert!(parse("[rtt-modulation]\nbeta = 9\n").unwrap_err().contains("give 1, 2 or 3"));
    }
}
