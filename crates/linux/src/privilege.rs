//! What a process that forwards packets may do: no more than it needs, whoever started it.

use std::io;

/// Gives up the privileges of the calling thread, of threads that it starts from here on and of programs that those start, but for
/// setting up the network (`CAP_NET_ADMIN`), opening packet sockets (`CAP_NET_RAW`) and waking in time (`CAP_SYS_NICE`).
pub fn drop() -> io::Result<()> {
    nix::sys::prctl::set_no_new_privs()?;
    let held = Capabilities::of_this_thread()?;
    // As under the unit, whose filter of system calls allows no more of this.
    if held.permitted() & !KEPT == 0 {
        return Ok(());
    }
    for number in (0..u64::BITS).filter(|number| KEPT >> number & 1 == 0) {
        // SAFETY: a number, and no memory.
        let result = unsafe { libc::prctl(libc::PR_CAPBSET_DROP, libc::c_ulong::from(number), 0, 0, 0) };
        // EINVAL: the kernel knows no more of them.
        if result != 0 && io::Error::last_os_error().raw_os_error() != Some(libc::EINVAL) {
            return Err(io::Error::last_os_error());
        }
    }
    held.kept().set_on_this_thread()
}

/// `struct __user_cap_data_struct` twice: the low and the high half of effective, permitted and inheritable ones.
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
        // SAFETY: both are laid out as capget(2) has them for this version, and outlive the call.
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
        // SAFETY: both are laid out as capset(2) has them for this version, and outlive the call.
        let result = unsafe { libc::syscall(libc::SYS_capset, &raw mut header, &raw const self) };
        if result == 0 { Ok(()) } else { Err(io::Error::last_os_error()) }
    }
}

/// `_LINUX_CAPABILITY_VERSION_3`; zero is the calling thread.
const HEADER: Header = Header { version: 0x2008_0522, thread: 0 };
/// CAP_NET_ADMIN, CAP_NET_RAW, CAP_SYS_NICE: the numbers of `linux/capability.h`.
const KEPT: u64 = 1 << 12 | 1 << 13 | 1 << 23;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_thread_keeps_what_it_needs_and_gains_nothing() {
        // On a thread of its own: others of this process go on as they were.
        let status = std::thread::spawn(|| {
            drop().unwrap();
            // A second time there is nothing left to drop.
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
