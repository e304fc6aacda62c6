//! Ways to end an event loop: signals, and a handle for other threads.

use std::io;
use std::os::fd::{AsFd, BorrowedFd};
use std::sync::Arc;

use nix::sys::eventfd::{EfdFlags, EventFd};
use nix::sys::signal::{SigSet, Signal};
use nix::sys::signalfd::{SfdFlags, SignalFd};

/// SIGTERM, SIGINT, SIGHUP and SIGUSR2 as a descriptor.
#[derive(Debug)]
pub struct Termination {
    fd: SignalFd,
}

impl Termination {
    /// Blocks the signals in the calling thread and in threads that it starts later. Must be called before other
    /// threads exist.
    pub fn block() -> io::Result<Self> {
        let mut signals = SigSet::empty();
        for signal in [Signal::SIGTERM, Signal::SIGINT, Signal::SIGHUP, Signal::SIGUSR2] {
            signals.add(signal);
        }
        signals.thread_block()?;
        Ok(Termination {
            fd: SignalFd::with_flags(&signals, SfdFlags::SFD_NONBLOCK | SfdFlags::SFD_CLOEXEC)?,
        })
    }

    /// Returns the signal that arrived, if any.
    pub fn received(&self) -> Option<i32> {
        let info = self.fd.read_signal().ok()??;
        Some(info.ssi_signo as i32)
    }
}

impl AsFd for Termination {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.fd.as_fd()
    }
}

/// Ends an event loop from any thread.
#[derive(Clone, Debug)]
pub struct StopHandle {
    fd: Arc<EventFd>,
}

impl StopHandle {
    pub(crate) fn new() -> io::Result<Self> {
        let flags = EfdFlags::EFD_NONBLOCK | EfdFlags::EFD_CLOEXEC;
        Ok(StopHandle { fd: Arc::new(EventFd::from_value_and_flags(0, flags)?) })
    }

    /// Asks the loop to end. It ends within a turn. May be called more than once.
    pub fn stop(&self) {
        // The only error is an overflow of the counter: the loop was already asked to end.
        let _ = self.fd.write(1);
    }
}

impl AsFd for StopHandle {
    fn as_fd(&self) -> BorrowedFd<'_> {
        (*self.fd).as_fd()
    }
}
