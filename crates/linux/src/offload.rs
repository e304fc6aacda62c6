//! Offloads of an interface, through the ethtool ioctl.

use std::io;
use std::os::fd::{AsRawFd, OwnedFd};

use nix::sys::socket::{AddressFamily, SockFlag, SockType, socket};

use crate::netns::Netns;
use crate::system_error::{Context, SystemError};

/// Work that the kernel leaves to an interface.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Offload {
    /// Checksums of sent packets.
    TransmitChecksum,
    /// Checksums of received packets.
    ReceiveChecksum,
    /// Packets sent from several pieces of memory.
    ScatterGather,
    /// Splitting of large TCP segments by the interface.
    TcpSegmentation,
    /// Splitting of large segments just before the interface.
    GenericSegmentation,
    /// Joining of received segments.
    GenericReceive,
}

impl Offload {
    /// All that join or split segments; with these off a capture shows what a wire would carry.
    pub const SEGMENTATION: [Offload; 3] =
        [Offload::TcpSegmentation, Offload::GenericSegmentation, Offload::GenericReceive];

    fn commands(self) -> (u32, u32) {
        match self {
            Offload::ReceiveChecksum => (0x14, 0x15),
            Offload::TransmitChecksum => (0x16, 0x17),
            Offload::ScatterGather => (0x18, 0x19),
            Offload::TcpSegmentation => (0x1e, 0x1f),
            Offload::GenericSegmentation => (0x23, 0x24),
            Offload::GenericReceive => (0x2b, 0x2c),
        }
    }
}

/// Switches offloads of an interface in the calling thread's network namespace.
pub fn set(interface: &str, offloads: &[Offload], on: bool) -> Result<(), SystemError> {
    let state = if on { "on" } else { "off" };
    for offload in offloads {
        exchange(interface, offload.commands().1, u32::from(on))
            .context(|| format!("switch {offload:?} of {interface} {state}"))?;
    }
    Ok(())
}

/// Whether an offload is on, in the calling thread's network namespace.
pub fn get(interface: &str, offload: Offload) -> Result<bool, SystemError> {
    let value = exchange(interface, offload.commands().0, 0);
    value.map(|value| value != 0).context(|| format!("read {offload:?} of {interface}"))
}

impl Netns {
    /// Switches offloads of an interface inside this namespace.
    pub fn set_offloads(&self, interface: &str, offloads: &[Offload], on: bool) -> Result<(), SystemError> {
        self.run(|| set(interface, offloads, on))?
    }
}

/// `struct ethtool_value`.
#[repr(C)]
struct Value {
    command: u32,
    data: u32,
}

fn exchange(interface: &str, command: u32, data: u32) -> io::Result<u32> {
    let socket: OwnedFd = socket(AddressFamily::Inet, SockType::Datagram, SockFlag::SOCK_CLOEXEC, None)?;
    let mut value = Value { command, data };
    // SAFETY: all-zero bytes are a valid ifreq.
    let mut request: libc::ifreq = unsafe { std::mem::zeroed() };
    if interface.len() >= request.ifr_name.len() {
        return Err(io::Error::from_raw_os_error(libc::ENODEV));
    }
    for (to, from) in request.ifr_name.iter_mut().zip(interface.bytes()) {
        *to = from as libc::c_char;
    }
    request.ifr_ifru.ifru_data = (&raw mut value).cast();
    // SAFETY: the request names an interface and points to an ethtool_value; both outlive the call, which writes nothing else.
    let result = unsafe { libc::ioctl(socket.as_raw_fd(), SIOCETHTOOL, &raw mut request) };
    if result < 0 { Err(io::Error::last_os_error()) } else { Ok(value.data) }
}

const SIOCETHTOOL: libc::Ioctl = 0x8946;
