//! `paceline gateway`: the accelerator between two interfaces, or behind a TUN device.

mod attach;
mod board;
pub(crate) mod capture;
pub(crate) mod control;
mod doctor;
#[cfg(any(test, fuzzing))]
pub(crate) mod exercise;
pub(crate) mod handover;
mod http;
mod metrics;
mod notify;
mod observer;
mod plain_text;
mod policy;
mod records;
mod reload;
mod rescaling;
pub(crate) mod rows;
mod scribe;
mod service;
mod sides;
mod successor;
mod totals;
mod workers;

use std::io;
use std::path::Path;

use nix::libc::{SIGHUP, SIGUSR2};
use nix::unistd::getppid;
use paceline_gateway::GatewayConfig;
use paceline_linux::{
    Ended, EventLoop, EventLoopConfig, Housekeeping, NullForwarder, Termination, privilege, seccomp, timer,
};
use paceline_wire::Node;

use crate::args::{GatewayAction, GatewayArgs, GatewayCommand};
use crate::error::{Error, Result};
use crate::output::say;
use crate::result::write_whole;
use attach::{Absence, Attached, Refresh, Which};
use handover::Inherited;
use rescaling::{Rescaling, Running};

pub(crate) fn command(command: &GatewayCommand) -> Result<()> {
    if let Some(GatewayAction::Doctor(args)) = &command.action {
        return doctor::command(args);
    }
    let args = &command.args;
    log_to_stderr(args);
    if let Some(path) = &args.check {
        return check(args, path);
    }
    let config = configuration(args, args.config.as_deref())?;
    if args.workers > 1 && args.worker.is_none() {
        return workers::run(args, &config);
    }
    let args = &args.of_worker();
    if args.forward_only {
        let mut told = false;
        let tell = |_: &mut NullForwarder, moment: Moment<'_, '_>| match moment {
            // Once, for those who wait until it forwards.
            Moment::Turn(..) if !std::mem::replace(&mut told, true) => write_whole_io(args, "{}\n"),
            _ => Ok(()),
        };
        return drive(args, &mut NullForwarder::new(), Around::default(), |_| false, tell);
    }
    service::run(args, config)
}

/// What befalls a gateway besides packets.
pub(super) enum Moment<'a, 'b> {
    /// Packets pass from here on; signals are blocked in threads that are started now.
    Start,
    /// Eight times a second, and why the gateway is not in its place, if it is not.
    Turn(&'a mut Housekeeping<'b>, Option<&'a Absence>),
    /// It was not in its place for a while, and is again.
    Back,
    /// SIGHUP.
    Hangup,
    /// The loop was stopped, perhaps for a successor.
    Stopped(&'a mut Handing<'b>),
    /// Packets pass no more.
    End,
}

/// What a successor gets, and whether it has it.
pub(super) struct Handing<'a> {
    event_loop: &'a mut EventLoop,
    attached: &'a mut Attached,
    outcome: Handed,
}

/// Why a loop was stopped.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Handed {
    /// For another reason: the gateway ends.
    Nothing,
    /// A successor could not take over: the gateway goes on.
    InVain,
    Over,
}

/// What a gateway begins with besides its node.
#[derive(Default)]
struct Around {
    rescaling: Option<Rescaling>,
    /// From the process before.
    inherited: Option<Inherited>,
    which: Which,
    /// The memory for packets, if not as much as a loop has by itself.
    pool_bytes: Option<usize>,
}

/// Lets packets pass through `node` until a signal comes, or a successor. `is_needed` says whether it has flows that cannot go on
/// without it.
fn drive<N: Node>(
    args: &GatewayArgs,
    node: &mut N,
    around: Around,
    is_needed: impl Fn(&N) -> bool,
    mut tell: impl FnMut(&mut N, Moment<'_, '_>) -> io::Result<()>,
) -> Result<()> {
    // Before anything else runs: the threads of this process inherit the mask.
    let termination = Termination::block().map_err(|error| Error::io("watch for signals", &error))?;
    let config = EventLoopConfig {
        rejoin_segments: true,
        pool_bytes: around.pool_bytes.unwrap_or(EventLoopConfig::default().pool_bytes),
        ..EventLoopConfig::default()
    };
    let mut event_loop = EventLoop::new(config).map_err(|error| Error::io("open a timer", &error))?;
    event_loop.end_on(termination).map_err(|error| Error::io("watch for signals", &error))?;
    let Around { rescaling, mut inherited, which, .. } = around;
    let mut attached = Attached::new(&mut event_loop, args, which, inherited.as_mut())?;
    if let Some(inherited) = &mut inherited {
        inherited.go_on(&mut event_loop);
        if let Err(error) = inherited.confirm() {
            // It is the other process's.
            std::mem::forget(attached);
            return Err(Error::io("take over", &error));
        }
    }
    confine();
    let rescaling = match (rescaling, attached.rescale_config()?) {
        (Some(rescaling), Some(config)) => {
            Some(rescaling.start(config, inherited.map(|inherited| inherited.stream)))
        }
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
            if attached.refresh(housekeeping, is_needed(node))? == Refresh::Joined {
                rescaling.iter().for_each(Running::renew);
                tell(node, Moment::Back)?;
            }
            if args.parent.is_some_and(|parent| getppid().as_raw() != parent) {
                housekeeping.stop();
            }
            tell(node, Moment::Turn(housekeeping, attached.absence()))
        };
        let ended = event_loop.run(node, turn).map_err(wrong)?;
        match ended {
            Ended::Signal(SIGHUP) if args.config.is_some() => tell(node, Moment::Hangup).map_err(wrong)?,
            // Workers are replaced by whoever started them.
            Ended::Signal(SIGUSR2) if args.worker.is_some() => {}
            Ended::Signal(SIGUSR2) => successor::start(),
            Ended::Signal(number) => break tracing::info!("ends by signal {number}"),
            Ended::Stopped => {
                let (event_loop, attached) = (&mut event_loop, &mut attached);
                let mut handing = Handing { event_loop, attached, outcome: Handed::Nothing };
                tell(node, Moment::Stopped(&mut handing)).map_err(wrong)?;
                match handing.outcome {
                    Handed::Nothing => break,
                    Handed::InVain => {}
                    Handed::Over => {
                        if let Some(rescaling) = rescaling {
                            rescaling.leave();
                        }
                        // Everything is another process's: nothing of it may be undone here.
                        std::process::exit(0);
                    }
                }
            }
        }
    }
    attached.detach()?;
    if let Some(rescaling) = rescaling {
        rescaling.finish();
    }
    tell(node, Moment::End).map_err(|error| Error::io("write what is left", &error))
}

/// Before there are other threads, and when what needs more is open: this process keeps the privileges and system calls that it needs.
fn confine() {
    if let Err(error) = privilege::drop() {
        return tracing::warn!("keeps privileges that it does not need: {error}");
    }
    if let Err(error) = seccomp::restrict() {
        tracing::warn!("any system call is possible from here on: {error}");
    }
}

/// The profile with what the file changes.
fn configuration(args: &GatewayArgs, path: Option<&Path>) -> Result<GatewayConfig> {
    let Some(base) = args.profile.config() else {
        return Err(Error::input(
            "--profile off is no gateway; for one that only forwards write --profile null",
        ));
    };
    let mut config = match path {
        Some(path) => from_file(args, path, &base)?,
        None => base,
    };
    if args.worker.is_some() {
        workers::divide(&mut config.limits, args.workers);
    }
    Ok(config)
}

fn from_file(args: &GatewayArgs, path: &Path, base: &GatewayConfig) -> Result<GatewayConfig> {
    let interfaces: Vec<&str> = [&args.wan, &args.radio].into_iter().flatten().map(String::as_str).collect();
    let config = policy::load(path, base, &interfaces)?;
    if args.tun.is_some() && config.sharing.flows.iter().any(|rule| rule.matches.vlan.is_some()) {
        return Err(Error::input(format!(
            "{}: a rule matches by `vlan`, which a routed gateway never sees; match by `client`, or run it on a bridge",
            path.display()
        )));
    }
    Ok(config)
}

/// `--check`: says whether the file would be taken, and what is in it.
fn check(args: &GatewayArgs, path: &Path) -> Result<()> {
    let config = configuration(args, Some(path))?;
    say!("{}: all right: {}", path.display(), policy::summary(&config));
    Ok(())
}

fn write_whole_io(args: &GatewayArgs, text: &str) -> io::Result<()> {
    match &args.stats_json {
        Some(path) => write_whole(path, text).map_err(io::Error::other),
        None => Ok(()),
    }
}

/// Of files that say who talks to whom: for their owner, and for a group to read.
const LOG_MODE: u32 = 0o640;

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
    use std::fs;

    use super::*;
    use crate::scenario::Profile;

    fn parse(text: &str) -> std::result::Result<GatewayConfig, String> {
        let base = Profile::Thesis.config().unwrap();
        policy::parse(Path::new("g.toml"), text, &base, &[]).map_err(|error| error.to_string())
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
        let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/reference/configuration.md");
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
