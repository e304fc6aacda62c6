//! Times in milliseconds, as unit tests write them.

use paceline_wire::{Duration, Instant};

pub(crate) fn at(ms: u64) -> Instant {
    Instant::ZERO + Duration::from_millis(ms)
}

pub(crate) fn ms(ms: u64) -> Duration {
    Duration::from_millis(ms)
}
