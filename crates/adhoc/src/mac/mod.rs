//! Carrier sense with collision avoidance (IEEE 802.11, distributed coordination function) in one station.
//!
//! A frame is sent when the medium has been idle for DIFS and for the station's back-off. The back-off counts down in
//! idle slots and stops while the medium is busy. If so configured, RTS and CTS announce a frame to one station. The
//! receiver acknowledges it. Without an ACK the frame is sent again after a longer back-off, up to a limit.
//!
//! This file knows no places and no other stations. It is told what the radio hears.
//!
//! Left out of the standard: fragments, power saving, beacons and association, point coordination, several rates. The
//! reservation of an RTS is kept, even if nothing follows (Section 9.2.5.4). To sense the medium and to turn the radio
//! round takes no time, and signals travel in no time.

mod timing;

use paceline_path::random::Random;
use paceline_wire::{Duration, Instant};

pub use timing::Timing;

use super::StationId;
use super::store::DatagramId;

/// A frame on the air.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Frame {
    pub(super) from: StationId,
    /// [`EVERYBODY`] means all stations in range.
    pub(super) to: StationId,
    pub(super) kind: FrameKind,
    pub(super) airtime: Duration,
    /// Time after its end for which the medium is reserved.
    pub(super) reserves: Duration,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum FrameKind {
    Rts,
    Cts,
    Ack,
    /// `number` distinguishes a retransmission from the next frame.
    Data {
        datagram: DatagramId,
        number: u16,
    },
}

pub(super) const EVERYBODY: StationId = StationId::MAX;

/// A datagram that the station has to send.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Job {
    pub(super) datagram: DatagramId,
    pub(super) to: StationId,
    /// Bytes of the layers above.
    pub(super) bytes: u32,
}

/// Result of a timer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Step {
    None,
    /// The frame goes on the air.
    Transmit(Frame),
    /// The next station does not answer.
    GaveUp(Job),
}

/// Result of a frame.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Up {
    None,
    /// A datagram for the layers above, from a neighbour.
    Datagram(DatagramId, StationId),
    /// Sent, and acknowledged if it went to one station.
    Done(Job),
}

/// State of the exchange for the job.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Exchange {
    /// Waits for its turn.
    Contending,
    AwaitingCts {
        until: Instant,
    },
    /// The CTS is there: data after a SIFS.
    Cleared {
        at: Instant,
    },
    AwaitingAck {
        until: Instant,
    },
}

/// The medium access of one station.
#[derive(Clone, Debug)]
pub(super) struct Mac {
    me: StationId,
    timing: Timing,
    random: Random,
    /// True if others are on the air.
    sensed: bool,
    /// The frame that this station sends.
    sending: Option<Frame>,
    idle_since: Instant,
    /// The network allocation vector.
    reserved_until: Instant,
    /// DIFS or EIFS.
    gap: Duration,
    /// The contention window.
    cw: u32,
    /// Back-off that is left, in slots.
    slots: u32,
    /// Its turn came at the same instant as another station's, so it has not heard the other one.
    committed: bool,
    job: Option<Job>,
    exchange: Exchange,
    /// CTS or ACK to send, and its time.
    answer: Option<(Instant, Frame)>,
    short_failures: u32,
    long_failures: u32,
    number: u16,
    /// Number of the last data frame from each station.
    last_numbers: Vec<Option<u16>>,
}

impl Mac {
    pub(super) fn new(me: StationId, stations: usize, timing: Timing, random: Random) -> Self {
        Mac {
            me,
            timing,
            random,
            sensed: false,
            sending: None,
            idle_since: Instant::ZERO,
            reserved_until: Instant::ZERO,
            gap: timing.difs(),
            cw: timing.cw_min,
            slots: 0,
            committed: false,
            job: None,
            exchange: Exchange::Contending,
            answer: None,
            short_failures: 0,
            long_failures: 0,
            number: 0,
            last_numbers: vec![None; stations],
        }
    }

    /// True if the station can take a job.
    pub(super) fn is_free(&self) -> bool {
        self.job.is_none()
    }

    /// Takes a job. The station must be free.
    pub(super) fn offer(&mut self, now: Instant, job: Job) {
        self.job = Some(job);
        self.number = self.number.wrapping_add(1);
        self.exchange = Exchange::Contending;
        // Section 9.2.5.1: a frame leaves without back-off only if the medium is idle.
        let busy = self.sensed || self.sending.is_some() || self.reserved_until > now;
        if busy && self.slots == 0 {
            self.draw();
        }
    }

    /// Time at which [`timer`](Self::timer) has something to do.
    pub(super) fn next(&self) -> Option<Instant> {
        if self.sending.is_some() {
            return None;
        }
        let own = match self.exchange {
            _ if self.job.is_none() => None,
            Exchange::Contending if self.sensed && !self.committed => None,
            Exchange::Contending => Some(self.turn()),
            Exchange::AwaitingCts { until } | Exchange::AwaitingAck { until } => Some(until),
            Exchange::Cleared { at } => Some(at),
        };
        self.answer.map(|(at, _)| at).into_iter().chain(own).min()
    }

    /// Does one thing that is due.
    pub(super) fn timer(&mut self, now: Instant) -> Step {
        if self.sending.is_some() {
            return Step::None;
        }
        if let Some((_, frame)) = self.answer.take_if(|(at, _)| *at <= now) {
            return self.transmit(now, frame);
        }
        let Some(job) = self.job else { return Step::None };
        match self.exchange {
            Exchange::Contending if (!self.sensed || self.committed) && self.turn() <= now => {
                self.begin(now, job)
            }
            Exchange::Cleared { at } if at <= now => {
                let frame = self.data(job);
                self.transmit(now, frame)
            }
            Exchange::AwaitingCts { until } if until <= now => self.failed(now, true),
            Exchange::AwaitingAck { until } if until <= now => self.failed(now, !self.timing.rts),
            _ => Step::None,
        }
    }

    /// Others have begun to send. Before, nobody did.
    pub(super) fn busy(&mut self, now: Instant) {
        if self.sending.is_none() {
            self.freeze(now);
        }
        self.sensed = true;
    }

    /// Others have stopped sending.
    pub(super) fn idle(&mut self, now: Instant) {
        self.sensed = false;
        self.idle_since = now;
    }

    /// A signal has ended that the station could not understand.
    pub(super) fn garbled(&mut self) {
        self.gap = self.timing.eifs();
    }

    /// A frame has arrived.
    pub(super) fn received(&mut self, now: Instant, frame: &Frame) -> Up {
        self.gap = self.timing.difs();
        if frame.to == self.me {
            return self.received_own(now, frame);
        }
        match frame.kind {
            FrameKind::Data { datagram, .. } if frame.to == EVERYBODY => Up::Datagram(datagram, frame.from),
            _ => {
                self.reserved_until = self.reserved_until.max(now + frame.reserves);
                Up::None
            }
        }
    }

    /// This station's own frame has ended.
    pub(super) fn transmitted(&mut self, now: Instant) -> Up {
        let Some(frame) = self.sending.take() else { return Up::None };
        self.gap = self.timing.difs();
        self.idle_since = now;
        match (frame.kind, self.job) {
            (FrameKind::Rts, _) => {
                self.exchange =
                    Exchange::AwaitingCts { until: now + self.timing.patience(self.timing.cts()) };
            }
            (FrameKind::Data { .. }, Some(job)) if frame.to == EVERYBODY => return self.done(job),
            (FrameKind::Data { .. }, _) => {
                self.exchange =
                    Exchange::AwaitingAck { until: now + self.timing.patience(self.timing.ack()) };
            }
            (FrameKind::Cts | FrameKind::Ack, _) => {}
        }
        Up::None
    }

    fn received_own(&mut self, now: Instant, frame: &Frame) -> Up {
        match frame.kind {
            FrameKind::Rts => {
                let free = self.exchange == Exchange::Contending && self.answer.is_none();
                // Section 9.2.5.7: no CTS while the medium is reserved for others.
                if free && self.reserved_until <= now {
                    let taken = self.timing.sifs + self.timing.cts();
                    self.answer_after_sifs(now, frame, FrameKind::Cts, frame.reserves.saturating_sub(taken));
                }
                Up::None
            }
            FrameKind::Cts if self.waits_for(frame.from) => {
                if let Exchange::AwaitingCts { .. } = self.exchange {
                    self.short_failures = 0;
                    self.exchange = Exchange::Cleared { at: now + self.timing.sifs };
                }
                Up::None
            }
            FrameKind::Ack if self.waits_for(frame.from) => match (self.exchange, self.job) {
                (Exchange::AwaitingAck { .. }, Some(job)) => self.done(job),
                _ => Up::None,
            },
            FrameKind::Data { datagram, number } => {
                self.answer_after_sifs(now, frame, FrameKind::Ack, Duration::ZERO);
                let last = &mut self.last_numbers[usize::from(frame.from)];
                // Section 9.2.9: the ACK was lost, so the frame came again.
                if last.replace(number) == Some(number) {
                    Up::None
                } else {
                    Up::Datagram(datagram, frame.from)
                }
            }
            FrameKind::Cts | FrameKind::Ack => Up::None,
        }
    }

    fn waits_for(&self, station: StationId) -> bool {
        self.job.is_some_and(|job| job.to == station)
    }

    fn answer_after_sifs(&mut self, now: Instant, to: &Frame, kind: FrameKind, reserves: Duration) {
        let airtime = if kind == FrameKind::Cts { self.timing.cts() } else { self.timing.ack() };
        let frame = Frame { from: self.me, to: to.from, kind, airtime, reserves };
        self.answer = Some((now + self.timing.sifs, frame));
    }

    /// Time at which its back-off ends, if the medium stays idle.
    fn turn(&self) -> Instant {
        self.counts_from() + self.timing.slot * u64::from(self.slots)
    }

    fn counts_from(&self) -> Instant {
        self.idle_since.max(self.reserved_until) + self.gap
    }

    /// The medium becomes busy. The whole slots that have passed are counted.
    fn freeze(&mut self, now: Instant) {
        let contends = self.job.is_some() && self.exchange == Exchange::Contending;
        if contends && self.turn() <= now {
            self.committed = true;
            return;
        }
        let counted = now.saturating_since(self.counts_from()).as_nanos() / self.timing.slot.as_nanos();
        self.slots = self.slots.saturating_sub(u32::try_from(counted).unwrap_or(u32::MAX));
        // It would have sent right after DIFS. Now it needs a back-off.
        if contends && self.slots == 0 {
            self.draw();
        }
    }

    fn draw(&mut self) {
        self.slots = self.random.below(u64::from(self.cw) + 1) as u32;
    }

    fn begin(&mut self, now: Instant, job: Job) -> Step {
        let frame = if job.to == EVERYBODY || !self.timing.rts { self.data(job) } else { self.rts(job) };
        self.slots = 0;
        self.transmit(now, frame)
    }

    fn transmit(&mut self, now: Instant, frame: Frame) -> Step {
        // Its own frame stops its back-off, as frames of others do.
        if !self.sensed
            && self.exchange == Exchange::Contending
            && matches!(frame.kind, FrameKind::Cts | FrameKind::Ack)
        {
            self.freeze(now);
        }
        self.committed = false;
        self.sending = Some(frame);
        Step::Transmit(frame)
    }

    fn rts(&self, job: Job) -> Frame {
        let Timing { sifs, .. } = self.timing;
        let reserves = sifs * 3 + self.timing.cts() + self.timing.data(job.bytes) + self.timing.ack();
        Frame { from: self.me, to: job.to, kind: FrameKind::Rts, airtime: self.timing.rts_time(), reserves }
    }

    fn data(&self, job: Job) -> Frame {
        let kind = FrameKind::Data { datagram: job.datagram, number: self.number };
        let (airtime, reserves) = match job.to {
            EVERYBODY => (self.timing.broadcast(job.bytes), Duration::ZERO),
            _ => (self.timing.data(job.bytes), self.timing.sifs + self.timing.ack()),
        };
        Frame { from: self.me, to: job.to, kind, airtime, reserves }
    }

    /// No answer came (Section 9.2.5.3).
    fn failed(&mut self, now: Instant, short: bool) -> Step {
        self.idle_since = now;
        let Timing { cw_max, short_retries, long_retries, .. } = self.timing;
        let (failures, limit) = match short {
            true => (&mut self.short_failures, short_retries),
            false => (&mut self.long_failures, long_retries),
        };
        *failures += 1;
        if *failures >= limit {
            let gave_up = self.job.map_or(Step::None, Step::GaveUp);
            self.finish();
            return gave_up;
        }
        self.cw = (self.cw * 2 + 1).min(cw_max);
        self.exchange = Exchange::Contending;
        self.draw();
        Step::None
    }

    fn done(&mut self, job: Job) -> Up {
        self.finish();
        Up::Done(job)
    }

    /// Section 9.2.5.2: a back-off follows every exchange, even if there is nothing more to send.
    fn finish(&mut self) {
        self.job = None;
        self.exchange = Exchange::Contending;
        (self.short_failures, self.long_failures) = (0, 0);
        self.cw = self.timing.cw_min;
        self.draw();
    }
}

#[cfg(test)]
mod tests;
