//! One run of a gateway: it takes its place, packets pass, signals and successors arrive, and it leaves.

use std::io;

use nix::libc::{SIGHUP, SIGUSR2};
use nix::unistd::getppid;
use paceline_linux::{
    EventLoop, EventLoopConfig, Housekeeping, LoopEnd, Termination, privilege, seccomp, timer,
};
use paceline_wire::Node;

use super::attach::{Absence, Attached, PacketScope, Refresh};
use super::handover::Inherited;
use super::rescaling::{Rescaling, RescalingThread};
use super::successor;
use crate::Options;
use crate::error::{Error, Result};

/// Events of a running gateway besides packets.
pub(super) enum LifecycleEvent<'a, 'b> {
    /// Packets pass from here on. Signals are blocked in threads that start from here on.
    Start,
    /// A turn, eight times a second. If the gateway is not in place, with the reason.
    Tick(&'a mut Housekeeping<'b>, Option<&'a Absence>),
    /// The gateway is in place again after an absence.
    Rejoined,
    /// SIGHUP.
    Hangup,
    /// The loop was stopped, perhaps for a successor.
    Stopped(&'a mut HandoverAttempt<'b>),
    /// Packets no longer pass.
    End,
}

/// The objects for a successor, and the outcome of the handover.
pub(super) struct HandoverAttempt<'a> {
    pub(super) event_loop: &'a mut EventLoop,
    pub(super) attached: &'a mut Attached,
    pub(super) outcome: HandoverOutcome,
}

/// Why a loop was stopped.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum HandoverOutcome {
    /// No handover: the gateway ends.
    NotAsked,
    /// A successor could not take over. The gateway goes on.
    Failed,
    TakenOver,
}

/// The parts of a gateway besides its node.
#[derive(Default)]
pub(super) struct LoopSetup {
    pub(super) rescaling: Option<Rescaling>,
    /// The state of the previous process.
    pub(super) inherited: Option<Inherited>,
    pub(super) scope: PacketScope,
    /// Bytes of packet memory. `None` means the loop's default.
    pub(super) pool_bytes: Option<usize>,
}

/// Passes packets through `node` until a signal or a successor arrives. `is_needed` is true if the node has flows
/// that cannot go on without it.
pub(super) fn drive<N: Node>(
    options: &Options,
    node: &mut N,
    setup: LoopSetup,
    is_needed: impl Fn(&N) -> bool,
    mut tell: impl FnMut(&mut N, LifecycleEvent<'_, '_>) -> io::Result<()>,
) -> Result<()> {
    let mut event_loop = open_loop(setup.pool_bytes)?;
    let LoopSetup { rescaling, mut inherited, scope, .. } = setup;
    let mut attached = Attached::new(&mut event_loop, options, scope, inherited.as_mut())?;
    if let Some(inherited) = &mut inherited {
        inherited.go_on(&mut event_loop);
        if let Err(error) = inherited.confirm() {
            // The place still belongs to the other process.
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
    request_realtime();
    loop {
        let turn = |node: &mut N, housekeeping: &mut Housekeeping<'_>| {
            if attached.refresh(housekeeping, is_needed(node))? == Refresh::Joined {
                rescaling.iter().for_each(RescalingThread::renew);
                tell(node, LifecycleEvent::Rejoined)?;
            }
            if options.parent.is_some_and(|parent| getppid().as_raw() != parent) {
                housekeeping.stop();
            }
            tell(node, LifecycleEvent::Tick(housekeeping, attached.absence()))
        };
        let ended = event_loop.run(node, turn).map_err(wrong)?;
        match ended {
            LoopEnd::Signal(SIGHUP) if options.config.is_some() => {
                tell(node, LifecycleEvent::Hangup).map_err(wrong)?
            }
            // The parent replaces the workers.
            LoopEnd::Signal(SIGUSR2) if options.worker.is_some() => {}
            LoopEnd::Signal(SIGUSR2) => successor::start(),
            LoopEnd::Signal(number) => break tracing::info!("stops: received signal {number}"),
            LoopEnd::Stopped => {
                let (event_loop, attached) = (&mut event_loop, &mut attached);
                let mut handing =
                    HandoverAttempt { event_loop, attached, outcome: HandoverOutcome::NotAsked };
                tell(node, LifecycleEvent::Stopped(&mut handing)).map_err(wrong)?;
                match handing.outcome {
                    HandoverOutcome::NotAsked => break,
                    HandoverOutcome::Failed => {}
                    HandoverOutcome::TakenOver => {
                        if let Some(rescaling) = rescaling {
                            rescaling.leave();
                        }
                        // Everything belongs to another process. This process must not undo any of it.
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

/// Opens an event loop that ends on signals. `pool_bytes` of packet memory; `None` means the default.
fn open_loop(pool_bytes: Option<usize>) -> Result<EventLoop> {
    // Block the signals first, because the threads of this process inherit the mask.
    let termination = Termination::block().map_err(|error| Error::io("watch for signals", &error))?;
    let config = EventLoopConfig {
        rejoin_segments: true,
        pool_bytes: pool_bytes.unwrap_or(EventLoopConfig::default().pool_bytes),
        ..EventLoopConfig::default()
    };
    let mut event_loop = EventLoop::new(config).map_err(|error| Error::io("open a timer", &error))?;
    event_loop.end_on(termination).map_err(|error| Error::io("watch for signals", &error))?;
    Ok(event_loop)
}

/// Requests real-time priority, and reports if the kernel refuses.
fn request_realtime() {
    if let Err(error) = timer::schedule_realtime() {
        tracing::warn!(
            "no real-time priority ({error}): some packets leave a millisecond late; allow CAP_SYS_NICE"
        );
    }
}

/// Reduces privileges and system calls to those that this process needs. Called when everything that needs more is
/// open, and before other threads start.
pub(super) fn confine() {
    if let Err(error) = privilege::drop() {
        return tracing::warn!("cannot drop privileges that the gateway does not need: {error}");
    }
    if let Err(error) = seccomp::restrict() {
        tracing::warn!("the system call filter is off: {error}");
    }
}
