//! Reduces the privileges of a process that forwards packets to those that it needs, whoever started it.

use std::io;

/// Drops all privileges but three: setting up the network (`CAP_NET_ADMIN`), opening packet sockets (`CAP_NET_RAW`)
/// and waking in time (`CAP_SYS_NICE`). This holds for the calling thread, for threads that it starts later, and for
/// programs that those start.
pub fn drop() -> io::Result<()> {
    nix::sys::prctl::set_no_new_privs()?;
    let held = Capabilities::of_this_thread()?;
    // Nothing to drop, as under the systemd unit, whose filter of system calls forbids more.
    if held.permitted() & !KEPT == 0 {
        return Ok(());
    }
    for number in (0..u64::BITS).filter(|number| KEPT >> number & 1 == 0) {
        // SAFETY: the arguments are numbers; no memory is passed.
        let result = unsafe { libc::prctl(libc::PR_CAPBSET_DROP, libc::c_ulong::from(number), 0, 0, 0) };
        // EINVAL: the kernel knows no more capabilities.
        if result != 0 && io::Error::last_os_error().raw_os_error() != Some(libc::EINVAL) {
            return Err(io::Error::last_os_error());
        }
    }
    held.kept().set_on_this_thread()
}

/// Two `struct __user_cap_data_struct`: the low and the high half of the effective, permitted and inheritable
/// capabilities.
#[derive(Clone, Copy, Debug, Default)]
#[repr(C)]
struct Capabilities([[u32; 3]; 2]);

/// `struct __user_cap_header_struct`.
#[repr(C)]
struct Header {
    version: u32,
    thread: i32,
}

impl Capabilities {
    fn of_this_thread() -> io::Result<Self> {
        let mut held = Capabilities::default();
        let mut header = HEADER;
        // SAFETY: both structures have the layout of capget(2) for this version, and outlive the call.
        let result = unsafe { libc::syscall(libc::SYS_capget, &raw mut header, &raw mut held) };
        if result == 0 { Ok(held) } else { Err(io::Error::last_os_error()) }
    }

    fn permitted(self) -> u64 {
        let [[_, low, _], [_, high, _]] = self.0;
        u64::from(high) << 32 | u64::from(low)
    }

    fn kept(self) -> Self {
        let halves = [KEPT as u32, (KEPT >> 32) as u32];
        let mut kept = self;
        for (sets, mask) in kept.0.iter_mut().zip(halves) {
            sets.iter_mut().for_each(|set| *set &= mask);
        }
        kept
    }

    fn set_on_this_thread(self) -> io::Result<()> {
        let mut header = HEADER;
        // SAFETY: both structures have the layout of capset(2) for this version, and outlive the call.
        let result = unsafe { libc::syscall(libc::SYS_capset, &raw mut header, &raw const self) };
        if result == 0 { Ok(()) } else { Err(io::Error::last_os_error()) }
    }
}

/// `_LINUX_CAPABILITY_VERSION_3`. Thread zero is the calling thread.
const HEADER: Header = Header { version: 0x2008_0522, thread: 0 };
/// CAP_NET_ADMIN, CAP_NET_RAW, CAP_SYS_NICE, with the numbers of `linux/capability.h`.
const KEPT: u64 = 1 << 12 | 1 << 13 | 1 << 23;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_thread_keeps_what_it_needs_and_gains_nothing() {
        // A separate thread, so that the other threads of this process keep their privileges.
        let status = std::thread::spawn(|| {
            drop().unwrap();
            // The second call has nothing to drop.
            drop().unwrap();
            std::fs::read_to_string("/proc/thread-self/status").unwrap()
        });
        let status = status.join().unwrap();
        let set = |name: &str| {
            let line = status.lines().find_map(|line| line.strip_prefix(name)).unwrap();
            u64::from_str_radix(line.trim(), 16).unwrap()
        };
        for name in ["CapEff:", "CapPrm:", "CapInh:"] {
            assert_eq!(set(name) & !KEPT, 0, "{name}");
        }
        assert_eq!(set("NoNewPrivs:"), 1);
    }
}
