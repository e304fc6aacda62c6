//! Passes open descriptors, and memory that nobody can change any more, from a process to its successor.

use std::fs::File;
use std::io::{self, IoSlice, IoSliceMut, Read};
use std::os::fd::{AsRawFd, BorrowedFd, FromRawFd, OwnedFd, RawFd};
use std::os::unix::net::UnixStream;

use memmap2::Mmap;
use nix::cmsg_space;
use nix::fcntl::{FcntlArg, SealFlag, fcntl};
use nix::sys::memfd::{MFdFlags, memfd_create};
use nix::sys::socket::{ControlMessage, ControlMessageOwned, MsgFlags, recvmsg, sendmsg};

/// Sends a line, which must not contain a line feed, together with descriptors.
pub fn send(stream: &UnixStream, line: &str, descriptors: &[BorrowedFd<'_>]) -> io::Result<()> {
    let descriptors: Vec<RawFd> = descriptors.iter().map(AsRawFd::as_raw_fd).collect();
    let text = format!("{line}\n");
    let control = [ControlMessage::ScmRights(&descriptors)];
    let sent = sendmsg::<()>(
        stream.as_raw_fd(),
        &[IoSlice::new(text.as_bytes())],
        &control,
        MsgFlags::MSG_NOSIGNAL,
        None,
    )?;
    // The socket's buffer is empty and far larger than the text.
    if sent == text.len() { Ok(()) } else { Err(io::ErrorKind::WriteZero.into()) }
}

/// Receives what [`send`] sent. The line is shorter than 16 KB, and there are at most 16 descriptors.
pub fn receive(stream: &UnixStream) -> io::Result<(String, Vec<OwnedFd>)> {
    let mut bytes = vec![0; LINE_MAX];
    let mut space = cmsg_space!([RawFd; DESCRIPTORS_MAX]);
    let mut descriptors = Vec::new();
    let mut parts = [IoSliceMut::new(&mut bytes)];
    let flags = MsgFlags::MSG_CMSG_CLOEXEC;
    let message = recvmsg::<()>(stream.as_raw_fd(), &mut parts, Some(&mut space), flags)?;
    for control in message.cmsgs()? {
        if let ControlMessageOwned::ScmRights(raw) = control {
            // SAFETY: the kernel has just made these descriptors for this process; nobody else knows of them.
            descriptors.extend(raw.into_iter().map(|fd| unsafe { OwnedFd::from_raw_fd(fd) }));
        }
    }
    let received = message.bytes;
    bytes.truncate(received);
    while !bytes.ends_with(b"\n") && bytes.len() < LINE_MAX {
        let mut more = [0; 1];
        if (&mut &*stream).read(&mut more)? == 0 {
            break;
        }
        bytes.push(more[0]);
    }
    let line = String::from_utf8(bytes).map_err(|_| io::ErrorKind::InvalidData)?;
    Ok((line.trim_end().to_owned(), descriptors))
}

/// Returns sealed memory that holds the bytes that `write` wrote.
pub fn sealed(write: impl FnOnce(&mut File) -> io::Result<()>) -> io::Result<File> {
    let mut file =
        File::from(memfd_create(c"paceline-state", MFdFlags::MFD_CLOEXEC | MFdFlags::MFD_ALLOW_SEALING)?);
    write(&mut file)?;
    fcntl(&file, FcntlArg::F_ADD_SEALS(seals() | SealFlag::F_SEAL_SEAL))?;
    Ok(file)
}

/// Maps the sealed memory of another process for reading.
pub fn mapped(descriptor: OwnedFd) -> io::Result<Mmap> {
    let file = File::from(descriptor);
    let found = SealFlag::from_bits_truncate(fcntl(&file, FcntlArg::F_GET_SEALS)?);
    if !found.contains(seals()) {
        return Err(io::Error::new(io::ErrorKind::InvalidData, "the memory is not sealed"));
    }
    // SAFETY: by its seals nobody can shorten or change it, for as long as it exists.
    unsafe { Mmap::map(&file) }
}

fn seals() -> SealFlag {
    SealFlag::F_SEAL_SHRINK | SealFlag::F_SEAL_GROW | SealFlag::F_SEAL_WRITE
}

const LINE_MAX: usize = 16 << 10;
const DESCRIPTORS_MAX: usize = 16;

#[cfg(test)]
mod tests {
    use std::io::Write;
    use std::os::fd::AsFd;

    use super::*;

    #[test]
    fn memory_and_descriptors_arrive() {
        let (here, there) = UnixStream::pair().unwrap();
        let memory = sealed(|file| file.write_all(b"state")).unwrap();
        assert!((&mut &memory).write_all(b"more").is_err(), "it is sealed");
        send(&here, "a line", &[memory.as_fd(), here.as_fd()]).unwrap();
        let (line, mut descriptors) = receive(&there).unwrap();
        assert_eq!((line.as_str(), descriptors.len()), ("a line", 2));
        let other = UnixStream::from(descriptors.remove(1));
        assert_eq!(&mapped(descriptors.remove(0)).unwrap()[..], b"state");
        (&mut &other).write_all(b"x").unwrap();
        let mut byte = [0];
        (&mut &there).read_exact(&mut byte).unwrap();
        assert_eq!(byte, *b"x");
    }

    #[test]
    fn memory_that_may_change_is_not_taken() {
        let memory = memfd_create(c"loose", MFdFlags::MFD_CLOEXEC | MFdFlags::MFD_ALLOW_SEALING).unwrap();
        assert!(mapped(memory).is_err());
    }
}
