//! One gateway process hands over to another, so that flows lose nothing, not even their acceleration.
//!
//! The processes talk over the control socket. The successor asks for the state. The predecessor stops reading
//! packets and writes its state into sealed memory. It passes this memory, its devices, the netlink socket that owns
//! its fail-open rule, the file of flows and its listening sockets. Packets that arrive meanwhile wait in the
//! devices. The successor answers `taken` when every step that could fail is done. The predecessor answers `go` and
//! ends without undoing anything. Until then the predecessor can go on as before.

mod digest;
#[cfg(any(test, fuzzing))]
pub(crate) mod exercise;
mod read;
mod split;

use std::io::{self, BufRead, BufReader, BufWriter, Read, Write};
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::os::unix::net::UnixStream;
use std::path::{Path, PathBuf};
use std::time::Duration;

use paceline_gateway::{Gateway, GatewayState, RestoredGateway, RestoredSplitFlow};
use paceline_linux::{EventLoop, PortCounters, handover};
use paceline_wire::{Instant, Packet, PortId};
use serde::{Deserialize, Serialize};

use super::attach::Attached;
use super::control;
use super::place::{Place, Role};
use super::totals::Totals;
use crate::Options;
use crate::error::{Error, Result};

/// The line of JSON that comes with descriptors and state.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(super) struct Offer {
    format: u32,
    program: String,
    wan: String,
    radio: String,
    tun: Option<String>,
    flows_file: PathBuf,
    pub(super) place: Place,
    /// Time until which the fail-open rule is in force, on the machine's clock.
    pub(super) fresh_until_ns: u64,
    /// The roles of the descriptors, in order.
    roles: Vec<Role>,
}

/// Content of the sealed memory, for writing. Fields have names, so that a newer program can read the state of an
/// older one.
#[derive(Serialize)]
struct OutgoingState<'a> {
    started: Instant,
    time: Instant,
    totals: Totals,
    ports: Vec<PortCounters>,
    waiting: Vec<(PortId, Packet)>,
    gateway: GatewayState<'a>,
    split: split::OutgoingSplitFlows<'a>,
}

/// Content of the sealed memory, for reading.
#[derive(Deserialize)]
pub(super) struct IncomingState {
    /// Start time of the first of all these processes.
    pub(super) started: Instant,
    time: Instant,
    pub(super) totals: Totals,
    ports: Vec<PortCounters>,
    waiting: Vec<(PortId, Packet)>,
    #[serde(default)]
    gateway: Option<RestoredGateway>,
    #[serde(default)]
    split: split::IncomingSplitFlows,
}

/// What the predecessor hands over.
pub(super) struct HandoverState<'a> {
    pub(super) options: &'a Options,
    pub(super) flows_file: &'a Path,
    pub(super) started: Instant,
    pub(super) totals: Totals,
    pub(super) event_loop: &'a mut EventLoop,
    pub(super) attached: &'a Attached,
    pub(super) flows: BorrowedFd<'a>,
    pub(super) control: BorrowedFd<'a>,
    pub(super) metrics: Option<BorrowedFd<'a>>,
}

/// Hands over. Called after [`EventLoop::finish_turn`]. After an error the caller goes on: only a pause has happened.
pub(super) fn give(stream: &UnixStream, node: &Gateway, state: HandoverState<'_>) -> io::Result<()> {
    let memory = handover::sealed(|file| {
        let written = OutgoingState {
            started: state.started,
            time: state.event_loop.time(),
            totals: state.totals,
            ports: state.event_loop.port_counters(),
            waiting: state.event_loop.waiting(),
            gateway: node.state(),
            split: split::OutgoingSplitFlows(node),
        };
        digest::write(BufWriter::with_capacity(1 << 20, file), |out| {
            rmp_serde::encode::write_named(out, &written).map_err(io::Error::other)
        })
    })?;
    let (place, rule) = state.attached.place()?;
    let mut passed =
        vec![(Role::State, memory.as_fd()), (Role::Flows, state.flows), (Role::Control, state.control)];
    passed.extend(state.event_loop.descriptors().into_iter().map(|device| (Role::Device, device)));
    passed.extend(rule.as_ref().map(|(socket, _)| (Role::Rule, socket.as_fd())));
    passed.extend(state.metrics.map(|listener| (Role::Metrics, listener)));
    let (roles, descriptors): (Vec<Role>, Vec<BorrowedFd<'_>>) = passed.into_iter().unzip();
    let (wan, radio) = state.options.interfaces().map_err(io::Error::other)?;
    let offer = Offer {
        format: FORMAT,
        program: PROGRAM.to_owned(),
        wan: wan.to_owned(),
        radio: radio.to_owned(),
        tun: state.options.tun.clone(),
        flows_file: state.flows_file.to_owned(),
        place,
        fresh_until_ns: rule.as_ref().map_or(0, |(_, until)| until.as_nanos()),
        roles,
    };
    stream.set_read_timeout(Some(PATIENCE))?;
    stream.set_write_timeout(Some(PATIENCE))?;
    handover::send(stream, &serde_json::to_string(&offer)?, &descriptors)?;
    match read_line(stream)?.as_str() {
        TAKEN => (&mut &*stream).write_all(format!("{GO}\n").as_bytes()),
        "" => Err(io::Error::other("the other process gave up")),
        said => Err(io::Error::other(said.to_owned())),
    }
}

/// What the successor received.
pub(super) struct Inherited {
    pub(super) stream: UnixStream,
    pub(super) offer: Offer,
    descriptors: Vec<(Role, OwnedFd)>,
    /// `None` if this program cannot read it.
    pub(super) memory: Option<IncomingState>,
}

/// Asks the running gateway for everything. That gateway then waits until [`Inherited::confirm`], or until the
/// connection ends.
pub(super) fn ask(options: &Options, flows_file: &Path) -> Result<Inherited> {
    let (wan, radio) = options.interfaces()?;
    let path = control_path(options)?;
    let failed = |error: &io::Error| {
        Error::io(format_args!("take over from the gateway at {}", path.display()), error)
    };
    let stream = UnixStream::connect(&path).map_err(|error| {
        Error::failed(format!(
            "no gateway answers at {} ({error}); if none runs, start without --take-over",
            path.display()
        ))
    })?;
    let receive = || {
        stream.set_read_timeout(Some(10 * PATIENCE))?;
        stream.set_write_timeout(Some(PATIENCE))?;
        (&mut &stream).write_all(format!("{ASK}\n").as_bytes())?;
        handover::receive(&stream)
    };
    let (line, descriptors) = receive().map_err(|error| failed(&error))?;
    let offer: Offer = serde_json::from_str(&line)
        .map_err(|_| Error::failed(format!("{} cannot hand over; it said: {line}", path.display())))?;
    let is_same = offer.format == FORMAT
        && (offer.wan.as_str(), offer.radio.as_str(), &offer.tun) == (wan, radio, &options.tun)
        && offer.flows_file == flows_file
        && offer.roles.len() == descriptors.len();
    if !is_same {
        return Err(Error::input(format!(
            "the gateway at {} ({}) has other interfaces, other files or another mode; start with its options",
            path.display(),
            offer.program
        )));
    }
    let descriptors = offer.roles.iter().copied().zip(descriptors).collect();
    let mut inherited = Inherited { stream, offer, descriptors, memory: None };
    inherited.memory = inherited
        .read()
        .inspect_err(|error| {
            tracing::warn!("{error}: flows are resumed as after a restart");
        })
        .ok();
    Ok(inherited)
}

impl Inherited {
    /// Returns the next descriptor of this role.
    pub(super) fn take(&mut self, role: Role) -> io::Result<OwnedFd> {
        let place = self.descriptors.iter().position(|(other, _)| *other == role);
        let place = place.ok_or_else(|| io::Error::other(format!("the other gateway sent no {role:?}")))?;
        Ok(self.descriptors.remove(place).1)
    }

    /// Returns the gateway's own state and its split flows. `None` at a second call.
    pub(super) fn gateway(&mut self) -> Option<(RestoredGateway, Vec<RestoredSplitFlow>)> {
        let memory = self.memory.as_mut()?;
        Some((memory.gateway.take()?, std::mem::take(&mut memory.split.0)))
    }

    /// Continues the loop of the other process.
    pub(super) fn go_on(&mut self, event_loop: &mut EventLoop) {
        if let Some(memory) = &mut self.memory {
            event_loop.go_on(memory.time, std::mem::take(&mut memory.waiting), &memory.ports);
        }
    }

    /// Confirms the handover, when no step can fail any more. After the return, the other process no longer serves
    /// packets, and does not resume.
    pub(super) fn confirm(&self) -> io::Result<()> {
        (&mut &self.stream).write_all(format!("{TAKEN}\n").as_bytes())?;
        match read_line(&self.stream)?.as_str() {
            GO => Ok(()),
            _ => Err(io::Error::other("the other gateway waited too long, and goes on")),
        }
    }

    fn read(&mut self) -> Result<IncomingState> {
        let failed = |error: &dyn std::fmt::Display| {
            Error::failed(format!("cannot read the other gateway's state: {error}"))
        };
        let memory = self.take(Role::State).and_then(handover::mapped).map_err(|error| failed(&error))?;
        let state = digest::checked(&memory).map_err(|error| failed(&error))?;
        read::from_slice(state).map_err(|error| failed(&error))
    }
}

/// Waits until the process at the other end has ended, or for a limited time.
pub(super) fn wait_for_end(stream: &UnixStream) {
    let _ = stream.set_read_timeout(Some(10 * PATIENCE));
    let _ = (&mut &*stream).read(&mut [0]);
}

/// Returns the control socket's path for these options.
pub(super) fn control_path(options: &Options) -> Result<PathBuf> {
    let default = control::default_path(&options.name()?);
    Ok(options.control.clone().unwrap_or(default))
}

fn read_line(stream: &UnixStream) -> io::Result<String> {
    let mut line = String::new();
    BufReader::new(stream.take(LINE_MAX)).read_line(&mut line)?;
    Ok(line.trim_end().to_owned())
}

const PROGRAM: &str = concat!("paceline ", env!("CARGO_PKG_VERSION"));
/// Version of the offer and the dialogue, not of the state.
const FORMAT: u32 = 1;
const ASK: &str = r#"{"get":"state"}"#;
const TAKEN: &str = "taken";
const GO: &str = "go";
const LINE_MAX: u64 = 1024;
/// How long the fail-open rule stays in force while nobody serves packets. Our choice: more than [`PATIENCE`] and the
/// time to write the state of a full gateway on a busy machine. When a process dies, its rule disappears at once.
pub(super) const PAUSE_MAX: paceline_wire::Duration = paceline_wire::Duration::from_secs(5);
/// Our choice: shorter than the service manager's watchdog (2 s), which takes the pause for a hang.
const PATIENCE: Duration = Duration::from_millis(1500);
