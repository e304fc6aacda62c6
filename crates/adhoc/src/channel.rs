//! The stations' medium access on the shared medium: frames begin, end, and are heard or not.

use paceline_path::random::Random;
use paceline_wire::{Duration, Instant};

use super::StationId;
use super::config::AdHocConfig;
use super::mac::{Frame, FrameKind, Job, Mac, Step, Up};
use super::medium::{Heard, Medium};
use super::mobility::{Mobility, Point};
use super::store::DatagramId;
use super::timers::Timers;

/// Neighbours that talk to each other. Other files find routes.
#[derive(Debug)]
pub(super) struct Channel {
    mobility: Mobility,
    places: Vec<Point>,
    placed_at: Option<Instant>,
    medium: Medium,
    macs: Vec<Mac>,
    /// The frame that each station sends.
    air: Vec<Option<Frame>>,
    /// First the ends of frames, then the stations' own timers.
    timers: Timers,
    first: Vec<StationId>,
    heard: Vec<Heard>,
    counters: AirCounters,
}

/// Events for the layers above.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Event {
    /// A datagram has arrived. It still belongs to the sender.
    Arrived { at: StationId, datagram: DatagramId, from: StationId },
    /// A station is done with a job.
    Done(StationId, Job),
    /// A neighbour of a station does not answer.
    GaveUp(StationId, Job),
}

/// Counts of frames on the air.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct AirCounters {
    /// Frames of any kind that were sent.
    pub frames: u64,
    /// Data frames among them.
    pub data_frames: u64,
    /// Data frames, RTS, CTS and ACKs that their receiver did not understand.
    pub not_understood: u64,
    /// Data frames that were given up.
    pub given_up: u64,
}

/// Our choice: in this time a station at 50 m/s moves half a metre.
const PLACES_KEPT: Duration = Duration::from_millis(10);

impl Channel {
    pub(super) fn new(config: &AdHocConfig, seed: u64) -> Self {
        let stations = config.stations();
        let mac = |station: usize| {
            let random = Random::named(seed, &format!("back-off of station {station}"));
            Mac::new(station as StationId, stations, config.timing, random)
        };
        Channel {
            mobility: Mobility::new(&config.movement, seed),
            places: Vec::with_capacity(stations),
            placed_at: None,
            medium: Medium::new(stations, &config.radio),
            macs: (0..stations).map(mac).collect(),
            air: vec![None; stations],
            timers: Timers::new(2 * stations),
            first: Vec::with_capacity(stations),
            heard: Vec::with_capacity(stations),
            counters: AirCounters::default(),
        }
    }

    pub(super) fn is_free(&self, station: StationId) -> bool {
        self.macs[usize::from(station)].is_free()
    }

    /// Gives a free station a datagram to send.
    pub(super) fn offer(&mut self, now: Instant, station: StationId, job: Job) {
        self.macs[usize::from(station)].offer(now, job);
        self.refresh(now, station);
    }

    pub(super) fn next(&self) -> Option<Instant> {
        self.timers.next()
    }

    pub(super) fn counters(&self) -> AirCounters {
        self.counters
    }

    /// Handles one event that is due at `now`, if there is one.
    pub(super) fn step(&mut self, now: Instant, events: &mut Vec<Event>) {
        let Some(which) = self.timers.take(now) else { return };
        let stations = self.macs.len();
        if which < stations {
            self.end(now, which as StationId, events);
        } else {
            self.timer(now, (which - stations) as StationId, events);
        }
    }

    fn timer(&mut self, now: Instant, station: StationId, events: &mut Vec<Event>) {
        match self.macs[usize::from(station)].timer(now) {
            Step::None => {}
            Step::Transmit(frame) => self.begin(now, frame),
            Step::GaveUp(job) => {
                self.counters.given_up += 1;
                events.push(Event::GaveUp(station, job));
            }
        }
        self.refresh(now, station);
    }

    fn begin(&mut self, now: Instant, frame: Frame) {
        if self.placed_at.is_none_or(|at| now.saturating_since(at) >= PLACES_KEPT) {
            self.mobility.positions(now, &mut self.places);
            self.placed_at = Some(now);
        }
        self.counters.frames += 1;
        self.counters.data_frames += u64::from(matches!(frame.kind, FrameKind::Data { .. }));
        self.air[usize::from(frame.from)] = Some(frame);
        self.timers.set(usize::from(frame.from), Some(now + frame.airtime));
        self.medium.begin(frame.from, &self.places, &mut self.first);
        for at in 0..self.first.len() {
            let station = self.first[at];
            self.macs[usize::from(station)].busy(now);
            self.refresh(now, station);
        }
    }

    fn end(&mut self, now: Instant, from: StationId, events: &mut Vec<Event>) {
        let Some(frame) = self.air[usize::from(from)].take() else { return };
        self.medium.end(from, &mut self.heard);
        let mut arrived = false;
        for at in 0..self.heard.len() {
            let Heard { by, understood, last } = self.heard[at];
            let mac = &mut self.macs[usize::from(by)];
            if understood {
                arrived |= by == frame.to;
                match mac.received(now, &frame) {
                    Up::Datagram(datagram, from) => events.push(Event::Arrived { at: by, datagram, from }),
                    Up::Done(job) => events.push(Event::Done(by, job)),
                    Up::None => {}
                }
            } else {
                mac.garbled();
            }
            if last {
                mac.idle(now);
            }
            self.refresh(now, by);
        }
        self.counters.not_understood += u64::from(!arrived && frame.to != super::mac::EVERYBODY);
        if let Up::Done(job) = self.macs[usize::from(from)].transmitted(now) {
            events.push(Event::Done(from, job));
        }
        self.refresh(now, from);
    }

    /// A turn that came before there was anything to send is due at `now`.
    fn refresh(&mut self, now: Instant, station: StationId) {
        let next = self.macs[usize::from(station)].next().map(|at| at.max(now));
        self.timers.set(self.macs.len() + usize::from(station), next);
    }
}

#[cfg(test)]
mod tests;
