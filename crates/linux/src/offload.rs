//! Offloads of an interface, set with the ethtool ioctl.

use std::io;
use std::os::fd::{AsRawFd, OwnedFd};

use nix::sys::socket::{AddressFamily, SockFlag, SockType, socket};

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
    /// All offloads that join or split segments. With these off, a capture shows the packets of a wire.
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

/// True if an offload is on, in the calling thread's network namespace.
pub fn get(interface: &str, offload: Offload) -> Result<bool, SystemError> {
    let value = exchange(interface, offload.commands().0, 0);
    value.map(|value| value != 0).context(|| format!("read {offload:?} of {interface}"))
}

/// Returns the name of an interface's driver, in the calling thread's network namespace.
pub fn driver(interface: &str) -> Result<String, SystemError> {
    let mut info = DriverInfo { command: GET_DRIVER_INFO, text: [0; DRIVER_INFO_LEN] };
    ioctl(interface, (&raw mut info).cast()).context(|| format!("read the driver of {interface}"))?;
    let name = &info.text[..32];
    let end = name.iter().position(|byte| *byte == 0).unwrap_or(name.len());
    Ok(String::from_utf8_lossy(&name[..end]).into_owned())
}

/// True if an interface joins received packets irreversibly (LRO). A forwarder must not use such an interface.
pub fn has_lro(interface: &str) -> Result<bool, SystemError> {
    let flags = exchange(interface, GET_FLAGS, 0).context(|| format!("read the flags of {interface}"))?;
    Ok(flags & FLAG_LRO != 0)
}

/// `struct ethtool_value`.
#[repr(C)]
struct Value {
    command: u32,
    data: u32,
}

/// `struct ethtool_drvinfo`, whose first text of 32 bytes is the driver's name.
#[repr(C)]
struct DriverInfo {
    command: u32,
    text: [u8; DRIVER_INFO_LEN],
}

fn exchange(interface: &str, command: u32, data: u32) -> io::Result<u32> {
    let mut value = Value { command, data };
    ioctl(interface, (&raw mut value).cast())?;
    Ok(value.data)
}

/// `command` points to the structure that the ethtool command at its start reads and writes.
fn ioctl(interface: &str, command: *mut libc::c_char) -> io::Result<()> {
    let socket: OwnedFd = socket(AddressFamily::Inet, SockType::Datagram, SockFlag::SOCK_CLOEXEC, None)?;
    // SAFETY: all-zero bytes are a valid ifreq.
    let mut request: libc::ifreq = unsafe { std::mem::zeroed() };
    if interface.len() >= request.ifr_name.len() {
        return Err(io::Error::from_raw_os_error(libc::ENODEV));
    }
    for (to, from) in request.ifr_name.iter_mut().zip(interface.bytes()) {
        *to = from as libc::c_char;
    }
    request.ifr_ifru.ifru_data = command;
    // SAFETY: the request names an interface and points to the structure of its command. Both outlive the call, which
    // writes nothing else.
    let result = unsafe { libc::ioctl(socket.as_raw_fd(), SIOCETHTOOL, &raw mut request) };
    if result < 0 { Err(io::Error::last_os_error()) } else { Ok(()) }
}

const SIOCETHTOOL: libc::Ioctl = 0x8946;
const GET_DRIVER_INFO: u32 = 0x3;
/// The structure has 196 bytes.
const DRIVER_INFO_LEN: usize = 192;
const GET_FLAGS: u32 = 0x25;
const FLAG_LRO: u32 = 1 << 15;
