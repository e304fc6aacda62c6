//! Departure times at the bottleneck: a virtual clock that depends only on arrivals and bytes.

use paceline_wire::Duration;

use crate::outage::Outages;
use crate::rate::{NANOS_PER_S, RateProcess};
use crate::trace::{OPPORTUNITY_BYTES, Trace};

/// Times at which a packet is sent, since the start of the link.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct ServiceTimes {
    /// Time at which its first byte leaves the queue.
    pub(crate) start: Duration,
    /// Time at which its last byte has left.
    pub(crate) finish: Duration,
    /// Time in which the link was sending it: from start to finish, minus pauses. Zero for opportunities, which are
    /// instants.
    pub(crate) sending: Duration,
}

/// The bottleneck without its queue. Packets are served one after the other, in the order of the calls.
#[derive(Clone, Debug)]
pub(crate) struct Bottleneck {
    process: RateProcess,
    holds: Outages,
    cursor: Cursor,
    carry: Carry,
}

/// The remainder of rounding to whole nanoseconds, so that the rate is exact over a busy period.
#[derive(Clone, Copy, Debug, Default)]
struct Carry {
    at: Duration,
    work: u64,
}

/// The next unused opportunity, and the remaining bytes of the last one used.
#[derive(Clone, Copy, Debug, Default)]
struct Cursor {
    cycle: u64,
    slot: usize,
    left: u32,
    taken_at: Duration,
    bytes_left: u64,
}

/// Our choice: a packet that meets an outage at this number of opportunities in a row never leaves. It meets all of
/// them if the periods of trace and outage are in step.
const HELD_MAX: u32 = 1_000_000;

impl Bottleneck {
    /// `holds` are the outages in which the link stands still.
    pub(crate) fn new(process: RateProcess, holds: Outages) -> Self {
        let mut bottleneck =
            Bottleneck { process, holds, cursor: Cursor::default(), carry: Carry::default() };
        bottleneck.restart();
        bottleneck
    }

    /// Restarts the schedule of rates.
    pub(crate) fn restart(&mut self) {
        self.carry = Carry::default();
        self.cursor = Cursor::default();
        if let RateProcess::Opportunities(trace) = &self.process {
            self.cursor.left = trace.count(0);
        }
    }

    /// True if every packet leaves when it arrives.
    #[inline]
    pub(crate) fn is_instant(&self) -> bool {
        matches!(self.process, RateProcess::Unlimited) && self.holds.is_empty()
    }

    /// Sends a packet that is at the head of the queue from `ready` on. `ready` is never before the finish of the
    /// packet served last. Returns `None` if the packet never leaves.
    pub(crate) fn serve(&mut self, ready: Duration, bytes: u64) -> Option<ServiceTimes> {
        match &self.process {
            RateProcess::Unlimited => {
                let at = self.holds.covering(ready).unwrap_or(ready);
                Some(ServiceTimes { start: at, finish: at, sending: Duration::ZERO })
            }
            RateProcess::Opportunities(trace) => self.cursor.serve(trace, &self.holds, ready, bytes),
            RateProcess::Constant(rate) if self.holds.is_empty() => {
                self.serve_at_one_rate(rate.as_bytes_per_sec(), ready, bytes)
            }
            RateProcess::Constant(_) | RateProcess::Steps(_) => self.serve_at_rate(ready, bytes),
        }
    }

    /// Bytes that can leave between two times.
    pub(crate) fn capacity_bytes(&self, from: Duration, to: Duration) -> Option<u64> {
        self.process.capacity_bytes(from, to, &self.holds)
    }

    /// Like [`serve_at_rate`](Self::serve_at_rate), for a rate that never changes.
    fn serve_at_one_rate(&mut self, bytes_per_s: u64, ready: Duration, bytes: u64) -> Option<ServiceTimes> {
        if bytes_per_s == 0 {
            return None;
        }
        let work = bytes.saturating_mul(NANOS_PER_S as u64).saturating_sub(self.carried(ready));
        let needed = work.div_ceil(bytes_per_s);
        let sending = Duration::from_nanos(needed);
        let finish = ready + sending;
        // The result is below the rate, so the bits that the product loses above 64 do not matter.
        self.carry = Carry { at: finish, work: needed.wrapping_mul(bytes_per_s).wrapping_sub(work) };
        Some(ServiceTimes { start: ready, finish, sending })
    }

    fn carried(&self, ready: Duration) -> u64 {
        if self.carry.at == ready { self.carry.work } else { 0 }
    }

    fn serve_at_rate(&mut self, ready: Duration, bytes: u64) -> Option<ServiceTimes> {
        let mut work = (u128::from(bytes) * NANOS_PER_S).saturating_sub(self.carried(ready).into());
        let mut at = ready;
        let mut start = None;
        let mut sending = Duration::ZERO;
        loop {
            if let Some(end) = self.holds.covering(at) {
                at = end;
                continue;
            }
            let (rate, until) = self.process.rate_at(at)?;
            if rate.is_zero() {
                at = until?;
                continue;
            }
            start = start.or(Some(at));
            let end = until.into_iter().chain(self.holds.next_after(at)).min().unwrap_or(Duration::MAX);
            let rate = u128::from(rate.as_bytes_per_sec());
            let needed = work.div_ceil(rate);
            let span = u128::from((end - at).as_nanos());
            if needed <= span {
                let needed_ns = Duration::from_nanos(u64::try_from(needed).ok()?);
                let finish = at + needed_ns;
                self.carry = Carry { at: finish, work: (needed * rate - work) as u64 };
                return Some(ServiceTimes { start: start?, finish, sending: sending + needed_ns });
            }
            work -= span * rate;
            sending += end - at;
            at = end;
        }
    }
}

impl Cursor {
    /// Uses the rest of the last opportunity if the packet was there in time, and further opportunities as needed.
    fn serve(&mut self, trace: &Trace, holds: &Outages, ready: Duration, bytes: u64) -> Option<ServiceTimes> {
        let mut ready = ready;
        let mut left = bytes;
        let mut start = None;
        let mut held = 0;
        loop {
            if self.bytes_left == 0 || self.taken_at < ready {
                self.take(trace, ready);
                if let Some(end) = holds.covering(self.taken_at) {
                    self.bytes_left = 0;
                    ready = end;
                    held += 1;
                    if held > HELD_MAX {
                        return None;
                    }
                    continue;
                }
            }
            held = 0;
            start = start.or(Some(self.taken_at));
            let part = left.min(self.bytes_left);
            left -= part;
            self.bytes_left -= part;
            if left == 0 {
                return Some(ServiceTimes { start: start?, finish: self.taken_at, sending: Duration::ZERO });
            }
        }
    }

    /// Takes the first unused opportunity at or after `ready`.
    fn take(&mut self, trace: &Trace, ready: Duration) {
        if self.left == 0 {
            self.move_to_next_slot(trace);
        }
        if self.at(trace) < ready {
            self.seek(trace, ready);
        }
        self.left -= 1;
        self.taken_at = self.at(trace);
        self.bytes_left = OPPORTUNITY_BYTES;
    }

    fn move_to_next_slot(&mut self, trace: &Trace) {
        self.slot += 1;
        if self.slot == trace.slots().len() {
            self.slot = 0;
            self.cycle += 1;
        }
        self.left = trace.count(self.slot);
    }

    /// Moves to the first slot at or after `ready`, which is later than zero. A slot at the end of a period is the last
    /// of that period, not the first of the next.
    fn seek(&mut self, trace: &Trace, ready: Duration) {
        let period = trace.period_ns();
        self.cycle = (ready.as_nanos() - 1) / period;
        let rest = ready.as_nanos() - self.cycle * period;
        self.slot = trace.slots().partition_point(|slot| slot.at_ns() < rest);
        self.left = trace.count(self.slot);
    }

    fn at(&self, trace: &Trace) -> Duration {
        let slot_ns = trace.slots()[self.slot].at_ns();
        Duration::from_nanos(self.cycle.saturating_mul(trace.period_ns()).saturating_add(slot_ns))
    }
}

#[cfg(test)]
mod tests;
