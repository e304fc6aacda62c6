//! One run of a gateway: it takes its place, packets pass, signals and successors come, and it leaves.

use std::io;

use nix::libc::{SIGHUP, SIGUSR2};
use nix::unistd::getppid;
use paceline_linux::{
    Ended, EventLoop, EventLoopConfig, Housekeeping, Termination, privilege, seccomp, timer,
};
use paceline_wire::Node;

use super::attach::{Absence, Attached, Refresh, Which};
use super::handover::Inherited;
use super::rescaling::{Rescaling, Running};
use super::successor;
use crate::Options;
use crate::error::{Error, Result};

/// What happens to a gateway besides packets.
pub(super) enum LifecycleEvent<'a, 'b> {
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
    pub(super) event_loop: &'a mut EventLoop,
    pub(super) attached: &'a mut Attached,
    pub(super) outcome: Handed,
}

/// Why a loop was stopped.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Handed {
    /// For another reason: the gateway ends.
    Nothing,
    /// A successor could not take over: the gateway goes on.
    Failed,
    Over,
}

/// What a gateway begins with besides its node.
#[derive(Default)]
pub(super) struct Around {
    pub(super) rescaling: Option<Rescaling>,
    /// From the process before.
    pub(super) inherited: Option<Inherited>,
    pub(super) which: Which,
    /// The memory for packets, if not as much as a loop has by itself.
    pub(super) pool_bytes: Option<usize>,
}

/// Lets packets pass through `node` until a signal comes, or a successor. `is_needed` says whether it has flows that cannot go on
/// without it.
pub(super) fn drive<N: Node>(
    options: &Options,
    node: &mut N,
    around: Around,
    is_needed: impl Fn(&N) -> bool,
    mut tell: impl FnMut(&mut N, LifecycleEvent<'_, '_>) -> io::Result<()>,
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
    let mut attached = Attached::new(&mut event_loop, options, which, inherited.as_mut())?;
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
        (Some(rescaling), Some(config)) => Some(rescaling.start(config, inherited.map(|from| from.stream))),
        _ => None,
    };
    let wrong = |error: io::Error| Error::io("forward packets", &error);
    tell(node, LifecycleEvent::Start).map_err(wrong)?;
    if let Err(error) = timer::schedule_realtime() {
        tracing::warn!(
            "no real-time priority ({error}): some packets leave a millisecond late; allow CAP_SYS_NICE"
        );
    }
    loop {
        let turn = |node: &mut N, housekeeping: &mut Housekeeping<'_>| {
            if attached.refresh(housekeeping, is_needed(node))? == Refresh::Joined {
                rescaling.iter().for_each(Running::renew);
                tell(node, LifecycleEvent::Back)?;
            }
            if options.parent.is_some_and(|parent| getppid().as_raw() != parent) {
                housekeeping.stop();
            }
            tell(node, LifecycleEvent::Turn(housekeeping, attached.absence()))
        };
        let ended = event_loop.run(node, turn).map_err(wrong)?;
        match ended {
            Ended::Signal(SIGHUP) if options.config.is_some() => {
                tell(node, LifecycleEvent::Hangup).map_err(wrong)?
            }
            // Workers are replaced by whoever started them.
            Ended::Signal(SIGUSR2) if options.worker.is_some() => {}
            Ended::Signal(SIGUSR2) => successor::start(),
            Ended::Signal(number) => break tracing::info!("stops: received signal {number}"),
            Ended::Stopped => {
                let (event_loop, attached) = (&mut event_loop, &mut attached);
                let mut handing = Handing { event_loop, attached, outcome: Handed::Nothing };
                tell(node, LifecycleEvent::Stopped(&mut handing)).map_err(wrong)?;
                match handing.outcome {
                    Handed::Nothing => break,
                    Handed::Failed => {}
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
    tell(node, LifecycleEvent::End).map_err(|error| Error::io("write the last statistics", &error))
}

/// Before there are other threads, and when what needs more is open: this process keeps the privileges and system calls that it needs.
pub(super) fn confine() {
    if let Err(error) = privilege::drop() {
        return tracing::warn!("cannot drop privileges that the gateway does not need: {error}");
    }
    if let Err(error) = seccomp::restrict() {
        tracing::warn!("the system call filter is off: {error}");
    }
}
