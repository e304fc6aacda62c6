//! Processor time of a thread, which other programs on the machine change little.

use std::time::Duration;

use nix::time::{ClockId, clock_gettime};

/// A clock that runs only while its thread does.
#[derive(Clone, Copy, Debug)]
pub(crate) struct CpuTime(Duration);

impl CpuTime {
    /// This thread's time; zero if the system does not count it.
    pub(crate) fn now() -> CpuTime {
        CpuTime(clock_gettime(ClockId::CLOCK_THREAD_CPUTIME_ID).map(Duration::from).unwrap_or_default())
    }

    /// Seconds that the same thread has run since then.
    pub(crate) fn elapsed_s(self) -> f64 {
        CpuTime::now().0.saturating_sub(self.0).as_secs_f64()
    }
}
