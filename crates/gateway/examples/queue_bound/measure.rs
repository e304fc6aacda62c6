//! Computes figures from a run.

use paceline_wire::{Duration, Instant};

use crate::model::{Delivery, PACKET, Path, run};
use crate::rules::Rule;

/// Results of the bounded flow after its start.
pub(crate) struct Summary {
    /// Share of the link's capacity.
    pub(crate) utilization: f64,
    /// Queueing delay per packet, in milliseconds.
    pub(crate) p50: f64,
    pub(crate) p95: f64,
    pub(crate) p99: f64,
    pub(crate) drops: u64,
}

/// Runs `path` and leaves out the first two seconds.
pub(crate) fn summary(path: &Path, rule: &mut dyn Rule) -> Summary {
    let outcome = run(path, rule);
    let (from, to) = (2.0, path.length.as_secs_f64());
    let delays = delays(&outcome.deliveries, from, to);
    Summary {
        utilization: share(&outcome.deliveries, path, from, to),
        p50: percentile(&delays, 50),
        p95: percentile(&delays, 95),
        p99: percentile(&delays, 99),
        drops: outcome.drops,
    }
}

fn at(seconds: f64) -> Instant {
    Instant::ZERO + Duration::from_secs_f64(seconds)
}

fn between(deliveries: &[Delivery], from: f64, to: f64) -> impl Iterator<Item = &Delivery> {
    let (from, to) = (at(from), at(to));
    deliveries.iter().filter(move |d| d.at >= from && d.at < to)
}

/// Sorted queueing delays, in milliseconds.
pub(crate) fn delays(deliveries: &[Delivery], from: f64, to: f64) -> Vec<f64> {
    let mut delays: Vec<f64> =
        between(deliveries, from, to).map(|d| d.queue_delay.as_secs_f64() * 1e3).collect();
    delays.sort_by(f64::total_cmp);
    delays
}

/// A percentile of sorted values.
pub(crate) fn percentile(sorted: &[f64], percent: usize) -> f64 {
    sorted.get(sorted.len().saturating_sub(1) * percent / 100).copied().unwrap_or(f64::NAN)
}

/// Returns the delivered bytes as a share of the link's capacity.
pub(crate) fn share(deliveries: &[Delivery], path: &Path, from: f64, to: f64) -> f64 {
    let bytes = between(deliveries, from, to).count() as u64 * PACKET;
    bytes as f64 / path.link.capacity(at(from), at(to)) as f64
}

/// Reaction of a rule to a change of the path.
pub(crate) struct Reaction {
    /// The longest queueing delay after the change, in milliseconds.
    pub(crate) longest: f64,
    /// Seconds after the change until no packet waits longer than 200 ms.
    pub(crate) below_200ms: f64,
    /// Seconds after the change until the end of the last 200 ms that carried less than 95 % of the link.
    pub(crate) busy: f64,
}

/// Returns the reaction within the `seconds` after `event`.
pub(crate) fn reaction(deliveries: &[Delivery], path: &Path, event: f64, seconds: f64) -> Reaction {
    let mut reaction = Reaction { longest: 0.0, below_200ms: 0.0, busy: 0.0 };
    for delivery in between(deliveries, event, event + seconds) {
        let delay = delivery.queue_delay.as_secs_f64() * 1e3;
        reaction.longest = reaction.longest.max(delay);
        if delay > 200.0 {
            reaction.below_200ms = delivery.at.as_secs_f64() - event;
        }
    }
    let mut start = event;
    while start + 0.2 < event + seconds {
        if share(deliveries, path, start, start + 0.2) < 0.95 {
            reaction.busy = start + 0.2 - event;
        }
        start += 0.02;
    }
    reaction
}
