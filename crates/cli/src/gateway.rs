//! `paceline gateway`: the accelerator between two interfaces, or behind a TUN device.

mod attach;
mod board;
pub(crate) mod control;
mod http;
mod metrics;
mod observer;
mod records;
mod rescaling;
pub(crate) mod rows;
mod service;
mod totals;

use std::fs;
use std::io;
use std::path::Path;

use nix::libc::SIGHUP;
use nix::unistd::getppid;
use paceline_gateway::GatewayConfig;
use paceline_linux::{Ended, EventLoop, EventLoopConfig, Housekeeping, NullForwarder, Termination, timer};
use paceline_wire::Node;

use crate::args::GatewayArgs;
use crate::error::{Error, Result};
use crate::result::write_whole;
use crate::scenario::{explain, line_of, merge};
use rescaling::Rescaling;

pub(crate) fn command(args: &GatewayArgs) -> Result<()> {
    log_to_stderr(args);
    let config = configuration(args)?;
    if args.forward_only {
        return drive(args, &mut NullForwarder::new(), None, |_, _| write_whole_io(args, "{}\n"));
    }
    service::run(args, config)
}

/// What befalls a gateway besides packets.
pub(super) enum Moment<'a, 'b> {
    /// Packets pass from here on; signals are blocked in threads that are started now.
    Start,
    /// Eight times a second.
    Turn(&'a mut Housekeeping<'b>),
    /// SIGHUP.
    Hangup,
    /// Packets pass no more.
    End,
}

/// Lets packets pass through `node` until a signal comes.
fn drive<N: Node>(
    args: &GatewayArgs,
    node: &mut N,
    rescaling: Option<Rescaling>,
    mut tell: impl FnMut(&mut N, Moment<'_, '_>) -> io::Result<()>,
) -> Result<()> {
    // Before anything else runs: the threads of this process inherit the mask.
    let termination = Termination::block().map_err(|error| Error::io("watch for signals", &error))?;
    let config = EventLoopConfig { rejoin_segments: true, ..EventLoopConfig::default() };
    let mut event_loop = EventLoop::new(config).map_err(|error| Error::io("open a timer", &error))?;
    event_loop.end_on(termination).map_err(|error| Error::io("watch for signals", &error))?;
    let (wan, radio) = args.interfaces()?;
    let mut attached = match &args.tun {
        None => attach::bridged(&mut event_loop, wan, radio)?,
        Some(tun) => attach::routed(&mut event_loop, tun, args)?,
    };
    let rescaling = match (rescaling, attached.rescale_config(args)?) {
        (Some(rescaling), Some(config)) => Some(rescaling.start(config)),
        _ => None,
    };
    let wrong = |error: io::Error| Error::io("forward packets", &error);
    tell(node, Moment::Start).map_err(wrong)?;
    if let Err(error) = timer::schedule_realtime() {
        tracing::warn!(
            "no real-time priority ({error}): packets leave a millisecond late now and then; allow CAP_SYS_NICE"
        );
    }
    loop {
        let turn = |node: &mut N, housekeeping: &mut Housekeeping<'_>| {
            attached.refresh(housekeeping)?;
            if args.parent.is_some_and(|parent| getppid().as_raw() != parent) {
                housekeeping.stop();
            }
            tell(node, Moment::Turn(housekeeping))
        };
        let ended = event_loop.run(node, turn).map_err(wrong)?;
        if ended != Ended::Signal(SIGHUP) || args.config.is_none() {
            break;
        }
        tell(node, Moment::Hangup).map_err(wrong)?;
    }
    attached.detach()?;
    if let Some(rescaling) = rescaling {
        rescaling.finish();
    }
    tell(node, Moment::End).map_err(|error| Error::io("write what is left", &error))
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

fn write_whole_io(args: &GatewayArgs, text: &str) -> io::Result<()> {
    match &args.stats_json {
        Some(path) => write_whole(path, text).map_err(io::Error::other),
        None => Ok(()),
    }
}

/// Lines without time stamps where the journal adds them.
fn log_to_stderr(args: &GatewayArgs) {
    let log = tracing_subscriber::fmt()
        .with_max_level(args.log.filter())
        .with_writer(io::stderr)
        .with_target(false);
    // An earlier one, as in tests, stays.
    let _ = match std::env::var_os("JOURNAL_STREAM") {
        Some(_) => log.without_time().try_init(),
        None => log.try_init(),
    };
}
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
        assert_eq!(rules.sharing.flows.len(), 2);
    }

    #[test]
    fn mistakes_are_told_with_their_line() {
        let error = parse("[rtt-modulation]\nattempt = 2\n").unwrap_err();
        assert_eq!(error, "g.toml:2: unknown key `attempt`; did you mean `attempts`?");
        assert!(parse("[rtt-modulation]\nbeta = 9\n").unwrap_err().contains("give 1, 2 or 3"));
    }
}
