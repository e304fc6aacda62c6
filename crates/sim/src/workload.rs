//! Applications: what they send and how they read. They are small state machines without TCP.

use paceline_path::random::Random;
use paceline_wire::{Duration, Instant, Rate};

/// The sending application of one connection.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Workload {
    /// Data without end.
    Bulk,
    /// A number of bytes, then it closes.
    Bytes(u64),
    /// Data without end for a while, then a pause, in turns.
    OnOff {
        /// Length of a sending phase.
        on: Duration,
        /// Length of a pause.
        off: Duration,
    },
}

/// How the receiving application reads.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Reader {
    /// At once.
    #[default]
    Eager,
    /// Not faster than this, every 10 ms.
    Paced(Rate),
    /// At once, but not at all during one part of the run.
    Paused {
        /// Start of the pause, since the start of the run.
        from: Instant,
        /// End of the pause.
        to: Instant,
    },
}

/// Range of sizes. A size is drawn for each transfer, evenly on a logarithmic scale. Both ends are included.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SizeRange {
    /// The smallest, bytes.
    pub min: u64,
    /// The largest, bytes.
    pub max: u64,
}

/// The state of a sending application.
#[derive(Clone, Copy, Debug)]
pub struct Source {
    workload: Workload,
    started: Instant,
    written: u64,
}

/// The state of a receiving application.
#[derive(Clone, Copy, Debug)]
pub struct Sink {
    reader: Reader,
    /// A paced reader has used up its rate until this time.
    paid_until: Instant,
    /// Bytes read.
    pub read: u64,
}

/// Our choice: fine enough for any receive window, coarse enough to cost nothing.
const READ_INTERVAL: Duration = Duration::from_millis(10);

impl SizeRange {
    /// A range with one size.
    pub const fn exactly(bytes: u64) -> Self {
        SizeRange { min: bytes, max: bytes }
    }

    /// Draws a size.
    pub fn draw(self, random: &mut Random) -> u64 {
        let (min, max) = (self.min.max(1) as f64, self.max.max(1) as f64);
        // `unit` is drawn for every range. So the range does not change later draws.
        let share = random.unit();
        if self.min >= self.max { self.min } else { (min * (max / min).powf(share)).round() as u64 }
    }
}

impl Source {
    /// A source that begins at `started`.
    pub fn new(workload: Workload, started: Instant) -> Self {
        Source { workload, started, written: 0 }
    }

    /// Bytes that the application wants to write at `now`.
    pub fn wants(&self, now: Instant) -> u64 {
        match self.workload {
            Workload::Bulk => u64::MAX,
            Workload::Bytes(bytes) => bytes - self.written.min(bytes),
            Workload::OnOff { on, .. } => {
                if self.phase(now) < on {
                    u64::MAX
                } else {
                    0
                }
            }
        }
    }

    /// Notes that the connection took this many bytes.
    pub fn wrote(&mut self, bytes: u64) {
        self.written += bytes;
    }

    /// Stops writing and closes.
    pub fn stop(&mut self) {
        self.workload = Workload::Bytes(self.written);
    }

    /// Bytes written so far.
    pub fn written(&self) -> u64 {
        self.written
    }

    /// True if the application closes.
    pub fn is_over(&self) -> bool {
        matches!(self.workload, Workload::Bytes(bytes) if self.written >= bytes)
    }

    /// Next time at which the application wants to write, if it does not want to at `now`.
    pub fn next_change(&self, now: Instant) -> Option<Instant> {
        let Workload::OnOff { on, off } = self.workload else { return None };
        let phase = self.phase(now);
        (phase >= on).then(|| now + (on + off).saturating_sub(phase))
    }

    /// Time since the start of the last on-phase.
    fn phase(&self, now: Instant) -> Duration {
        let Workload::OnOff { on, off } = self.workload else { return Duration::ZERO };
        let period = (on + off).as_nanos().max(1);
        Duration::from_nanos(now.saturating_since(self.started).as_nanos() % period)
    }
}

impl Sink {
    /// A sink that begins at `started`.
    pub fn new(reader: Reader, started: Instant) -> Self {
        Sink { reader, paid_until: started, read: 0 }
    }

    /// Bytes that the application would read at `now`, if there were enough.
    pub fn wants(&self, now: Instant) -> u64 {
        match self.reader {
            Reader::Eager => u64::MAX,
            Reader::Paused { from, to } => {
                if now >= from && now < to {
                    0
                } else {
                    u64::MAX
                }
            }
            Reader::Paced(rate) => {
                // Unused rate is kept for one interval only.
                let since = now.saturating_since(self.paid_until).as_nanos().min(READ_INTERVAL.as_nanos());
                rate.bytes_in(Duration::from_nanos(since))
            }
        }
    }

    /// Notes that this many bytes were read at `now`.
    pub fn took(&mut self, now: Instant, bytes: u64) {
        self.read += bytes;
        if let Reader::Paced(rate) = self.reader {
            let earliest = now - READ_INTERVAL;
            self.paid_until = self.paid_until.max(earliest) + rate.time_for(bytes);
        }
    }

    /// Next time at which the application would read more than at `now`.
    pub fn next_change(&self, now: Instant) -> Option<Instant> {
        match self.reader {
            Reader::Eager => None,
            Reader::Paused { from, to } => (now >= from && now < to).then_some(to),
            Reader::Paced(_) => Some(now.max(self.paid_until) + READ_INTERVAL),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const fn at(ms: u64) -> Instant {
        Instant::from_nanos(ms * 1_000_000)
    }

    const fn ms(ms: u64) -> Duration {
        Duration::from_millis(ms)
    }

    #[test]
    fn a_source_of_bytes_ends() {
        let mut source = Source::new(Workload::Bytes(1_000), at(5));
        source.wrote(600);
        assert_eq!((source.wants(at(9)), source.is_over()), (400, false));
        source.wrote(400);
        assert_eq!((source.wants(at(9)), source.is_over()), (0, true));
        assert!(!Source::new(Workload::Bulk, at(0)).is_over());
    }

    #[test]
    fn on_and_off_take_turns() {
        let source = Source::new(Workload::OnOff { on: ms(10), off: ms(5) }, at(100));
        assert_eq!((source.wants(at(109)), source.next_change(at(109))), (u64::MAX, None));
        assert_eq!((source.wants(at(112)), source.next_change(at(112))), (0, Some(at(115))));
        assert_eq!(source.wants(at(115)), u64::MAX);
    }

    #[test]
    fn a_paced_reader_keeps_its_rate() {
        let mut sink = Sink::new(Reader::Paced(Rate::from_bytes_per_sec(1_000_000)), at(0));
        let mut now = at(0);
        while now < at(1_000) {
            let bytes = sink.wants(now);
            sink.took(now, bytes);
            now = sink.next_change(now).unwrap();
        }
        assert!((990_000..=1_000_000).contains(&sink.read), "{}", sink.read);
        // A second without data does not save a second's worth of bytes.
        assert_eq!(sink.wants(now + ms(1_000)), 10_000);
    }

    #[test]
    fn a_paused_reader_comes_back() {
        let sink = Sink::new(Reader::Paused { from: at(10), to: at(20) }, at(0));
        assert_eq!([at(9), at(10), at(20)].map(|now| sink.wants(now)), [u64::MAX, 0, u64::MAX]);
        assert_eq!([at(9), at(10)].map(|now| sink.next_change(now)), [None, Some(at(20))]);
    }

    #[test]
    fn sizes_lie_in_their_range() {
        let mut random = Random::named(1, "size");
        let range = SizeRange { min: 1_000, max: 2_000_000 };
        let sizes: Vec<u64> = (0..1_000).map(|_| range.draw(&mut random)).collect();
        assert!(sizes.iter().all(|size| (1_000..=2_000_000).contains(size)));
        let below = sizes.iter().filter(|size| **size < 44_721).count();
        assert!((400..600).contains(&below), "{below} of 1,000 below the middle of the scale");
        assert_eq!(SizeRange::exactly(7).draw(&mut random), 7);
    }
}
