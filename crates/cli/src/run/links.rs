//! The thread that emulates both links of the lab and measures at them.

use std::path::Path;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::mpsc;
use std::thread;

use paceline_linux::emulator::{DuplexConfig, Emulator, EmulatorConfig, EmulatorReport};
use paceline_linux::lab::Lab;
use paceline_linux::netns::Netns;
use paceline_linux::{
    Device, EventLoop, EventLoopConfig, PacketSocket, PacketSocketConfig, StopHandle, clock, timer,
};
use paceline_path::LinkConfig;
use paceline_wire::{Duration, Instant, PortId};

use crate::error::{Error, Result};
use crate::scenario::Scenario;

/// A running emulator.
#[derive(Debug)]
pub(super) struct Links<'scope> {
    thread: thread::ScopedJoinHandle<'scope, std::io::Result<Reports>>,
    stop: StopHandle,
    start: std::sync::Arc<AtomicU64>,
}

/// What was measured.
#[derive(Debug)]
pub(super) struct Reports {
    /// Up to the end of the scenario's duration, or of the traffic if that came first.
    pub(super) at_end: EmulatorReport,
    /// Until everything was over.
    pub(super) last: EmulatorReport,
}

impl<'scope> Links<'scope> {
    /// Starts the thread in the lab's `net` namespace and waits until its sockets are open.
    pub(super) fn start<'env>(
        scope: &'scope thread::Scope<'scope, 'env>,
        lab: &'env Lab,
        scenario: &'env Scenario,
        folder: &'env Path,
        seed: u64,
    ) -> Result<Self> {
        let config = config(scenario, folder, seed)?;
        let start = std::sync::Arc::new(AtomicU64::new(u64::MAX));
        let (ready, opened) = mpsc::channel();
        let (shared, duration) = (start.clone(), scenario.duration.to_wire());
        let thread = scope.spawn(move || emulate(&lab.net, config, &shared, duration, &ready));
        match opened.recv() {
            Ok(stop) => Ok(Links { thread, stop, start }),
            Err(_) => Err(match thread.join() {
                Ok(Err(error)) => Error::io("start the link emulator", &error),
                _ => Error::failed("the link emulator ended before it began"),
            }),
        }
    }

    /// Lets the schedules of the links and the measurements begin at `start`.
    pub(super) fn begin(&self, start: Instant) {
        self.start.store(start.as_nanos(), Ordering::Release);
    }

    pub(super) fn finish(self) -> Result<Reports> {
        self.stop.stop();
        match self.thread.join() {
            Ok(result) => result.map_err(|error| Error::io("emulate the links", &error)),
            Err(_) => Err(Error::failed("the link emulator failed")),
        }
    }
}

fn config(scenario: &Scenario, folder: &Path, seed: u64) -> Result<EmulatorConfig> {
    let mut links = Vec::new();
    for (number, (name, path)) in
        [("wired", &scenario.wired), ("radio", &scenario.radio)].into_iter().enumerate()
    {
        let [downlink, uplink] =
            path.resolve(folder).map_err(|why| Error::input(format!("{name}: {why}")))?;
        let number = number as u8;
        links.push(DuplexConfig {
            name: name.into(),
            ports: [PortId(2 * number), PortId(2 * number + 1)],
            // Splitting costs time, and shows nothing where every packet passes alike.
            split: !(is_plain(&downlink) && is_plain(&uplink)),
            downlink,
            uplink,
            seeds: link_seeds(seed, number),
            spare_neighbour_discovery: true,
        });
    }
    Ok(EmulatorConfig { links, path: Some((0, 1)), delivery: 1 })
}

/// Of the directions of a link: the same in the lab and in the simulator, so that the same packets are lost.
pub(super) fn link_seeds(seed: u64, number: u8) -> [u64; 2] {
    [0, 1].map(|direction| seed.wrapping_mul(4).wrapping_add(u64::from(2 * number) + direction))
}

fn is_plain(link: &LinkConfig) -> bool {
    *link == LinkConfig { delay: link.delay.clone(), ..LinkConfig::default() }
}

fn emulate(
    net: &Netns,
    config: EmulatorConfig,
    start: &AtomicU64,
    duration: Duration,
    ready: &mpsc::Sender<StopHandle>,
) -> std::io::Result<Reports> {
    net.enter().map_err(std::io::Error::other)?;
    // Without the privilege departures are a little late; they stay right on average.
    let _ = timer::schedule_realtime();
    let mut event_loop = EventLoop::new(EventLoopConfig {
        housekeeping_interval: HOUSEKEEPING,
        ..EventLoopConfig::default()
    })?;
    for (port, name) in ["n0", "n1", "n2", "n3"].into_iter().enumerate() {
        let socket = PacketSocket::open(name, &PacketSocketConfig::default())?;
        event_loop.add(Device::Packet { port: PortId(port as u8), socket })?;
    }
    let mut emulator = Emulator::new(config, clock::now()).map_err(std::io::Error::other)?;
    // The receiver is gone only when the whole run is being given up.
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

/// Our choice: how exactly the end of a run is cut.
const HOUSEKEEPING: Duration = Duration::from_millis(5);
