//! A TUN device with virtio headers: packet I/O of a routed gateway.
//!
//! The device is not persistent. It disappears with the process, and so does every route that leads to it.

use std::ffi::CStr;
use std::fs::{File, OpenOptions};
use std::io::{self, IoSlice, Read};
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, OwnedFd};
use std::os::unix::fs::OpenOptionsExt;

use nix::sys::uio;

use crate::frame::{self, Frame, FrameError, PREFIX_MAX};
use crate::outbox::{Outbox, SendProgress};
use crate::read_batch::ReadBatch;
use crate::virtio::HEADER_LEN;

/// A TUN device of this process.
#[derive(Debug)]
pub struct Tun {
    file: File,
    name: String,
    batch: ReadBatch,
}

impl Tun {
    /// Creates the device `name` in the current network namespace. It is down and has no address yet.
    pub fn open(name: &str) -> io::Result<Self> {
        let file =
            OpenOptions::new().read(true).write(true).custom_flags(libc::O_NONBLOCK).open("/dev/net/tun")?;
        let mut request = interface_request(name)?;
        request.ifr_ifru.ifru_flags = (libc::IFF_TUN | libc::IFF_NO_PI | libc::IFF_VNET_HDR) as i16;
        let header_len = HEADER_LEN as i32;
        let offloads = libc::TUN_F_CSUM | libc::TUN_F_TSO4 | libc::TUN_F_TSO6 | libc::TUN_F_TSO_ECN;
        // SAFETY: the descriptor is open, and the request is an `ifreq` that outlives the call.
        unsafe { ioctl::set_interface(file.as_raw_fd(), &raw const request) }?;
        // SAFETY: the descriptor is open, and the pointer leads to an integer that outlives the call.
        unsafe { ioctl::set_header_len(file.as_raw_fd(), &raw const header_len) }?;
        // SAFETY: the descriptor is open; the argument is a number.
        unsafe { ioctl::set_offloads(file.as_raw_fd(), offloads as i32) }?;
        Ok(Tun::over(file, name))
    }

    /// Takes over the device `name` that another process created, with the packets that wait in it.
    pub fn adopt(descriptor: OwnedFd, name: &str) -> Self {
        Tun::over(File::from(descriptor), name)
    }

    fn over(file: File, name: &str) -> Self {
        Tun { file, name: name.to_owned(), batch: ReadBatch::new(BATCH, SLOT_BYTES) }
    }

    /// The name of the device.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// Reads waiting packets, up to one batch. No system call reads several packets from a TUN.
    pub(crate) fn receive(&mut self) -> io::Result<usize> {
        self.batch.fill(|slot| (&self.file).read(slot))
    }

    /// The largest number of packets in a batch.
    pub(crate) fn batch(&self) -> usize {
        BATCH
    }

    /// Returns packet `index` of the last batch.
    pub(crate) fn frame(&self, index: usize) -> Result<Frame<'_>, FrameError> {
        self.batch.frame(index)
    }

    /// Hands the packets of `outbox` to the kernel.
    pub(crate) fn send(&mut self, outbox: &mut Outbox) -> SendProgress {
        let mut prefix = [0; PREFIX_MAX];
        while let Some(packet) = outbox.first() {
            let (len, payload) = frame::assemble(packet, &mut prefix);
            let parts = [IoSlice::new(&prefix[..len]), IoSlice::new(payload)];
            match uio::writev(&self.file, &parts) {
                Ok(_) => outbox.sent(1),
                Err(error) => match outbox.refused(&error.into()) {
                    SendProgress::All => {}
                    wait => return wait,
                },
            }
        }
        SendProgress::All
    }
}

impl AsFd for Tun {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.file.as_fd()
    }
}

mod ioctl {
    use nix::{ioctl_write_int_bad, ioctl_write_ptr_bad};

    ioctl_write_ptr_bad!(set_interface, libc::TUNSETIFF, libc::ifreq);
    ioctl_write_ptr_bad!(set_header_len, libc::TUNSETVNETHDRSZ, i32);
    ioctl_write_int_bad!(set_offloads, libc::TUNSETOFFLOAD);
}

/// Our choice: packets read in one turn, the same number as for a packet socket.
const BATCH: usize = 64;
const SLOT_BYTES: usize = (HEADER_LEN + 65_535).next_multiple_of(64);

fn interface_request(name: &str) -> io::Result<libc::ifreq> {
    let mut request = libc::ifreq {
        ifr_name: [0; libc::IFNAMSIZ],
        ifr_ifru: libc::__c_anonymous_ifr_ifru { ifru_flags: 0 },
    };
    let invalid = || io::Error::new(io::ErrorKind::InvalidInput, "an interface name has 1 to 15 bytes");
    let name = std::ffi::CString::new(name).map_err(|_| invalid())?;
    let bytes = CStr::to_bytes(&name);
    if bytes.is_empty() || bytes.len() >= libc::IFNAMSIZ {
        return Err(invalid());
    }
    for (place, byte) in request.ifr_name.iter_mut().zip(bytes) {
        *place = *byte as libc::c_char;
    }
    Ok(request)
}
