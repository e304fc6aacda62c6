//! Readiness of many sockets, each change reported once.

use std::io;
use std::os::fd::AsFd;

use nix::sys::epoll::{Epoll, EpollCreateFlags, EpollEvent, EpollFlags, EpollTimeout};
use paceline_wire::Duration;

use super::connection::Ready;

/// An epoll instance with its event buffer.
#[derive(Debug)]
pub(super) struct Poller {
    epoll: Epoll,
    events: Vec<EpollEvent>,
}

impl Poller {
    pub(super) fn new() -> io::Result<Self> {
        let epoll = Epoll::new(EpollCreateFlags::EPOLL_CLOEXEC)?;
        Ok(Poller { epoll, events: vec![EpollEvent::empty(); 256] })
    }

    /// Watches a socket until it is closed.
    pub(super) fn watch(&self, socket: impl AsFd, token: u64) -> io::Result<()> {
        let flags = EpollFlags::EPOLLIN | EpollFlags::EPOLLOUT | EpollFlags::EPOLLRDHUP | EpollFlags::EPOLLET;
        Ok(self.epoll.add(socket, EpollEvent::new(flags, token))?)
    }

    /// Waits for at most `timeout`. Returns the changes.
    pub(super) fn wait(&mut self, timeout: Duration) -> io::Result<impl Iterator<Item = (u64, Ready)>> {
        // Rounded up, so that a due timer has expired when it is checked.
        let ms = timeout.as_nanos().div_ceil(1_000_000);
        let ms = EpollTimeout::from(u16::try_from(ms).unwrap_or(u16::MAX));
        let count = match self.epoll.wait(&mut self.events, ms) {
            Ok(count) => count,
            Err(nix::errno::Errno::EINTR) => 0,
            Err(error) => return Err(error.into()),
        };
        Ok(self.events[..count].iter().map(|event| (event.data(), ready(event.events()))))
    }
}

fn ready(flags: EpollFlags) -> Ready {
    let broken = flags.intersects(EpollFlags::EPOLLHUP | EpollFlags::EPOLLERR);
    Ready {
        readable: broken || flags.intersects(EpollFlags::EPOLLIN | EpollFlags::EPOLLRDHUP),
        writable: broken || flags.contains(EpollFlags::EPOLLOUT),
        hung_up: broken || flags.contains(EpollFlags::EPOLLRDHUP),
    }
}
