//! The thread that emulates both links of the lab and measures them.

use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::mpsc;
use std::thread;

use paceline_linux::{
    Device, EventLoop, EventLoopConfig, Filter, PacketSocket, StopHandle, SystemError, clock, timer,
};
use paceline_wire::{Duration, Instant, PortId};

use crate::Lab;
use crate::emulator::{Emulator, EmulatorConfig, EmulatorReport};
use crate::lab::LINK_ENDS;
use crate::netns::Netns;

/// A running emulator.
#[derive(Debug)]
pub struct Links<'scope> {
    thread: thread::ScopedJoinHandle<'scope, std::io::Result<Reports>>,
    stop: StopHandle,
    start: std::sync::Arc<AtomicU64>,
}

/// Measurements of the links.
#[derive(Debug)]
pub struct Reports {
    /// Report at the end of the scenario's duration, or at the end of the traffic if that came first.
    pub at_end: EmulatorReport,
    /// Report at the end of the thread.
    pub last: EmulatorReport,
}

impl<'scope> Links<'scope> {
    /// Starts the thread in the lab's `net` namespace and waits until its sockets are open. A report is taken
    /// `duration` after [`Links::begin`].
    ///
    /// # Errors
    /// The system refuses a request, or a link's configuration is invalid.
    pub fn start<'env>(
        scope: &'scope thread::Scope<'scope, 'env>,
        lab: &'env Lab,
        config: EmulatorConfig,
        duration: Duration,
    ) -> Result<Self, SystemError> {
        let start = std::sync::Arc::new(AtomicU64::new(u64::MAX));
        let (ready, opened) = mpsc::channel();
        let shared = start.clone();
        let thread = scope.spawn(move || emulate(&lab.net, config, &shared, duration, &ready));
        match opened.recv() {
            Ok(stop) => Ok(Links { thread, stop, start }),
            Err(_) => Err(match thread.join() {
                Ok(Err(error)) => SystemError::new("start the link emulator", error),
                _ => failed("start the link emulator"),
            }),
        }
    }

    /// Starts the schedules of the links and the measurements at `start`.
    pub fn begin(&self, start: Instant) {
        self.start.store(start.as_nanos(), Ordering::Release);
    }

    /// Ends the emulator. Returns its measurements.
    ///
    /// # Errors
    /// The emulator ended earlier.
    pub fn finish(self) -> Result<Reports, SystemError> {
        self.stop.stop();
        match self.thread.join() {
            Ok(result) => result.map_err(|error| SystemError::new("emulate the links", error)),
            Err(_) => Err(failed("emulate the links")),
        }
    }
}

fn failed(what: &str) -> SystemError {
    SystemError::new(what, std::io::Error::other("its thread ended"))
}

fn emulate(
    net: &Netns,
    config: EmulatorConfig,
    start: &AtomicU64,
    duration: Duration,
    ready: &mpsc::Sender<StopHandle>,
) -> std::io::Result<Reports> {
    net.enter().map_err(std::io::Error::other)?;
    // Without the privilege departures are a little late, but right on average.
    let _ = timer::schedule_realtime();
    let mut event_loop = EventLoop::new(EventLoopConfig {
        housekeeping_interval: HOUSEKEEPING,
        ..EventLoopConfig::default()
    })?;
    for (port, name) in LINK_ENDS.into_iter().enumerate() {
        let socket = PacketSocket::open(name, &Filter::All)?;
        event_loop.add(Device::Packet { port: PortId(port as u8), socket })?;
    }
    let mut emulator = Emulator::new(config, clock::now()).map_err(std::io::Error::other)?;
    // The receiver is gone only when the whole run is given up.
    let _ = ready.send(event_loop.stop_handle());
    let (mut began, mut at_end) = (None, None);
    event_loop.run(&mut emulator, |emulator, housekeeping| {
        let wanted = start.load(Ordering::Acquire);
        if began.is_none() && housekeeping.now + HOUSEKEEPING * 2 >= Instant::from_nanos(wanted) {
            emulator.restart_at(Instant::from_nanos(wanted));
            began = Some(Instant::from_nanos(wanted));
        }
        if at_end.is_none() && began.is_some_and(|began| housekeeping.now >= began + duration) {
            at_end = Some(emulator.report(housekeeping.now));
        }
        Ok(())
    })?;
    let last = emulator.report(clock::now());
    Ok(Reports { at_end: at_end.unwrap_or_else(|| last.clone()), last })
}

/// Our choice: the precision with which the end of a run is cut.
const HOUSEKEEPING: Duration = Duration::from_millis(5);
