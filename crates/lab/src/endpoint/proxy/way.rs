//! One direction of a flow: a socket, a pipe, a socket.

use std::io;
use std::net::Shutdown;
use std::os::fd::{AsFd, OwnedFd};

use nix::errno::Errno;
use nix::fcntl::{FcntlArg, OFlag, SpliceFFlags, fcntl, splice};
use nix::unistd::pipe2;

use super::pair::{End, Turn};

/// The pipe, and the progress of the stream.
#[derive(Debug)]
pub(super) struct Way {
    exit: OwnedFd,
    entry: OwnedFd,
    capacity: usize,
    /// Bytes in the pipe.
    held: usize,
    /// The sender has closed its half, and no more bytes will come.
    is_read: bool,
    /// The receiver's half was closed too.
    is_closed: bool,
}

impl Way {
    pub(super) fn new() -> io::Result<Way> {
        let (exit, entry) = pipe2(OFlag::O_NONBLOCK | OFlag::O_CLOEXEC)?;
        // A pipe holds a limited number of pieces, and a small segment takes as much room as a page. A smaller pipe
        // also works.
        let capacity = fcntl(entry.as_fd(), FcntlArg::F_SETPIPE_SZ(PIPE_BYTES)).unwrap_or(PIPE_BYTES_MIN);
        Ok(Way { exit, entry, capacity: capacity as usize, held: 0, is_read: false, is_closed: false })
    }

    /// Moves bytes until nothing moves any more, for at most [`ROUNDS`] rounds.
    pub(super) fn work(&mut self, from: &mut End, to: &mut End) -> io::Result<Turn> {
        for _ in 0..ROUNDS {
            let filled = self.fill(from)?;
            let drained = self.drain(to)?;
            if self.is_read && self.held == 0 {
                if !self.is_closed {
                    to.socket.shutdown(Shutdown::Write)?;
                    self.is_closed = true;
                }
                return Ok(Turn::Finished);
            }
            if !filled && !drained {
                return Ok(Turn::Wait);
            }
        }
        Ok(Turn::Again)
    }

    fn fill(&mut self, from: &mut End) -> io::Result<bool> {
        if self.is_read || !from.ready.readable || self.held >= self.capacity {
            return Ok(false);
        }
        match splice(&from.socket, None, &self.entry, None, self.capacity - self.held, FLAGS) {
            Ok(0) => self.is_read = true,
            Ok(bytes) => self.held += bytes,
            Err(Errno::EAGAIN) => {
                // If the pipe holds bytes, either the socket was empty or the pipe was full.
                from.ready.readable &= self.held > 0;
                return Ok(false);
            }
            Err(error) => return Err(error.into()),
        }
        Ok(true)
    }

    fn drain(&mut self, to: &mut End) -> io::Result<bool> {
        if self.held == 0 || !to.ready.writable {
            return Ok(false);
        }
        match splice(&self.exit, None, &to.socket, None, self.held, FLAGS) {
            Ok(bytes) => self.held -= bytes.min(self.held),
            Err(Errno::EAGAIN) => {
                to.ready.writable = false;
                return Ok(false);
            }
            Err(error) => return Err(error.into()),
        }
        Ok(true)
    }
}

const FLAGS: SpliceFFlags = SpliceFFlags::SPLICE_F_MOVE.union(SpliceFFlags::SPLICE_F_NONBLOCK);
/// Our choice: a quarter of the largest size for ordinary users. Bytes in a pipe are delay, and the sockets' buffers
/// already hold megabytes.
const PIPE_BYTES: i32 = 262_144;
/// A page, which every pipe has.
const PIPE_BYTES_MIN: i32 = 4_096;
/// Our choice: some megabytes in a turn, then other connections follow.
const ROUNDS: usize = 16;
