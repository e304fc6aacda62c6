//! Rate processes of the bottleneck.

use std::sync::Arc;

use paceline_path::Trace;
use paceline_wire::{Duration, Instant, Rate};

use crate::model::PACKET;

/// Determines when packets may leave.
#[derive(Clone, Debug)]
pub(crate) enum Service {
    /// Rates, each from a given time on.
    Steps(Arc<[(Duration, Rate)]>),
    /// Delivery opportunities in milliseconds, repeated. `next` counts the used ones.
    Opportunities { at_ms: Arc<[u64]>, period_ms: u64, next: u64 },
}

impl Service {
    pub(crate) fn constant(rate: Rate) -> Self {
        Service::Steps(Arc::new([(Duration::ZERO, rate)]))
    }

    pub(crate) fn steps(steps: &[(f64, f64)]) -> Self {
        Service::Steps(
            steps
                .iter()
                .map(|s| (Duration::from_secs_f64(s.0), Rate::from_mbps(s.1)))
                .collect::<Vec<_>>()
                .into(),
        )
    }

    /// Takes a trace as opportunities, repeated.
    pub(crate) fn trace(trace: &Trace) -> Self {
        let at_ms = trace.counts().flat_map(|(ms, count)| (0..count).map(move |_| u64::from(ms))).collect();
        Service::Opportunities { at_ms, period_ms: trace.period().as_millis().max(1), next: 0 }
    }

    /// Length of a recording.
    pub(crate) fn period(&self) -> Duration {
        match self {
            Service::Steps(_) => Duration::from_secs(60),
            Service::Opportunities { period_ms, .. } => Duration::from_millis(*period_ms),
        }
    }

    fn rate_at(steps: &[(Duration, Rate)], now: Instant) -> Rate {
        let elapsed = now.saturating_since(Instant::ZERO);
        steps.iter().rev().find(|s| s.0 <= elapsed).map_or(steps[0].1, |s| s.1)
    }

    fn opportunity(at_ms: &[u64], period_ms: u64, index: u64) -> Instant {
        let n = at_ms.len() as u64;
        Instant::ZERO + Duration::from_millis(at_ms[(index % n) as usize] + index / n * period_ms)
    }

    /// Returns the departure time of a packet that is at the head of the queue from `now` on.
    pub(crate) fn next_departure(&mut self, now: Instant, bytes: u64) -> Instant {
        match self {
            Service::Steps(steps) => {
                // At a step, the rest of the packet continues at the next rate.
                let (mut at, mut left) = (now, bytes);
                loop {
                    let rate = Self::rate_at(steps, at);
                    let elapsed = at.saturating_since(Instant::ZERO);
                    let end = at + rate.time_for(left);
                    let Some(step) = steps.iter().find(|s| s.0 > elapsed) else { return end };
                    let boundary = Instant::ZERO + step.0;
                    if end <= boundary {
                        return end;
                    }
                    left -= rate.bytes_in(boundary.saturating_since(at)).min(left);
                    at = boundary;
                }
            }
            Service::Opportunities { at_ms, period_ms, next } => {
                while Self::opportunity(at_ms, *period_ms, *next) < now {
                    *next += 1;
                }
                Self::opportunity(at_ms, *period_ms, *next)
            }
        }
    }

    /// Notes that a packet departed at `now`. Returns its serialisation time.
    pub(crate) fn on_departure(&mut self, now: Instant, bytes: u64) -> Duration {
        match self {
            Service::Steps(steps) => Self::rate_at(steps, now).time_for(bytes),
            Service::Opportunities { next, .. } => {
                *next += 1;
                Duration::ZERO
            }
        }
    }

    /// Returns the approximate time in which this number of packets leaves from now on.
    pub(crate) fn drain_time(&self, now: Instant, packets: u64) -> Duration {
        match self {
            Service::Steps(steps) => Self::rate_at(steps, now).time_for(packets * PACKET),
            Service::Opportunities { at_ms, period_ms, next } => {
                Self::opportunity(at_ms, *period_ms, *next + packets).saturating_since(now)
            }
        }
    }

    /// Bytes that the link could carry between two times.
    pub(crate) fn capacity(&self, from: Instant, to: Instant) -> u64 {
        match self {
            Service::Steps(steps) => {
                let mut sum = 0;
                for (i, step) in steps.iter().enumerate() {
                    let start = (Instant::ZERO + step.0).max(from);
                    let end = steps.get(i + 1).map_or(to, |s| (Instant::ZERO + s.0).min(to));
                    sum += step.1.bytes_in(end.saturating_since(start));
                }
                sum
            }
            Service::Opportunities { at_ms, period_ms, .. } => {
                let before = |t: Instant| {
                    let ms = t.as_nanos().div_ceil(1_000_000);
                    // Opportunities at the end of a period count to it.
                    let turns = ms.saturating_sub(1) / period_ms;
                    turns * at_ms.len() as u64 + at_ms.partition_point(|&x| x < ms - turns * period_ms) as u64
                };
                (before(to) - before(from)) * PACKET
            }
        }
    }
}
