//! One absolute timer, and the scheduling class that makes it punctual.

use std::io;
use std::os::fd::{AsFd, BorrowedFd};
use std::time::Duration;

use nix::sys::time::TimeSpec;
use nix::sys::timerfd::{ClockId, Expiration, TimerFd, TimerFlags, TimerSetTimeFlags};
use paceline_wire::Instant;

/// A timer on `CLOCK_MONOTONIC` that makes a descriptor readable.
///
/// It must be watched edge-triggered. It is never read, because arming it again resets it.
#[derive(Debug)]
pub struct Timer {
    fd: TimerFd,
    armed: Option<Instant>,
}

impl Timer {
    /// Returns a timer that is not armed.
    pub fn new() -> io::Result<Self> {
        let flags = TimerFlags::TFD_NONBLOCK | TimerFlags::TFD_CLOEXEC;
        Ok(Timer { fd: TimerFd::new(ClockId::CLOCK_MONOTONIC, flags)?, armed: None })
    }

    /// Makes sure that the timer fires at `deadline` or earlier.
    ///
    /// A timer that is armed for an earlier time is not changed. Most deadlines move later with every packet. One
    /// wakeup in vain costs less than a system call for each packet.
    pub fn wake_by(&mut self, deadline: Instant) -> io::Result<()> {
        if self.armed.is_some_and(|armed| armed <= deadline) {
            return Ok(());
        }
        // A time of zero would disarm the timer.
        let time = TimeSpec::from_duration(Duration::from_nanos(deadline.as_nanos().max(1)));
        self.fd.set(Expiration::OneShot(time), TimerSetTimeFlags::TFD_TIMER_ABSTIME)?;
        self.armed = Some(deadline);
        Ok(())
    }

    /// Notes that the timer has fired. Returns the time for which it was armed.
    pub fn fired(&mut self) -> Option<Instant> {
        self.armed.take()
    }
}

impl AsFd for Timer {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.fd.as_fd()
    }
}

/// Puts the calling thread into `SCHED_FIFO`, so that it wakes within tens of microseconds of its timer.
/// Threads and programs that it starts do not inherit this. Fails without the privilege (`CAP_SYS_NICE`).
pub fn schedule_realtime() -> io::Result<()> {
    // The kernel's `sched_param` is one number. The direct system call is needed because musl's function of this name
    // always refuses.
    let priority: libc::c_int = REALTIME_PRIORITY;
    let policy = libc::SCHED_FIFO | libc::SCHED_RESET_ON_FORK;
    // SAFETY: `priority` outlives the call; 0 is the calling thread.
    let result = unsafe { libc::syscall(libc::SYS_sched_setscheduler, 0, policy, &raw const priority) };
    if result == 0 { Ok(()) } else { Err(io::Error::last_os_error()) }
}

/// Our choice: above all ordinary threads, below the kernel's own (50).
const REALTIME_PRIORITY: i32 = 10;

#[cfg(test)]
mod tests {
    use nix::poll::{PollFd, PollFlags, PollTimeout, poll};
    use paceline_wire::Duration;

    use super::*;
    use crate::clock;

    #[test]
    fn it_fires_at_the_earliest_deadline_and_not_before() {
        let mut timer = Timer::new().unwrap();
        let start = clock::now();
        let deadline = start + Duration::from_millis(2);
        timer.wake_by(deadline + Duration::from_secs(3600)).unwrap();
        timer.wake_by(deadline).unwrap();
        timer.wake_by(deadline + Duration::from_secs(3600)).unwrap();
        poll(&mut [PollFd::new(timer.as_fd(), PollFlags::POLLIN)], PollTimeout::NONE).unwrap();
        assert!(clock::now() >= deadline);
        assert_eq!(timer.fired(), Some(deadline));
        assert_eq!(timer.fired(), None);
    }
}
