//! The system calls that a forwarding process may make: those that its threads and its successor use.
//!
//! This is a list of allowed calls. Any other call, by somebody who took over the process, ends the process. The
//! process first reports the number of the call. Its parent sees the signal (SIGSYS). Then the kernel forwards, as
//! after any other end.

use std::collections::BTreeMap;
use std::io;

use nix::sys::signal::{SaFlags, SigAction, SigHandler, SigSet, Signal, raise, sigaction};
use seccompiler::{
    BpfProgram, SeccompAction, SeccompCmpArgLen, SeccompCmpOp, SeccompCondition, SeccompFilter, SeccompRule,
    apply_filter_all_threads,
};

/// Restricts all threads of this process, and the programs that they start, to the listed system calls. Call
/// [`privilege::drop`](crate::privilege::drop) before, because programs with more privileges must not inherit a
/// filter.
///
/// # Errors
/// The kernel does not support these filters, or there is none for this processor. No filter is then installed.
pub fn restrict() -> io::Result<()> {
    let program = program().map_err(io::Error::other)?;
    let tell = SigHandler::SigAction(tell);
    let action = SigAction::new(tell, SaFlags::SA_SIGINFO, SigSet::empty());
    // SAFETY: the handler uses only what signal-safety(7) allows: write, signal, raise, and its own memory.
    unsafe { sigaction(Signal::SIGSYS, &action) }?;
    apply_filter_all_threads(&program).map_err(io::Error::other)
}

fn program() -> Result<BpfProgram, seccompiler::BackendError> {
    let mut rules: BTreeMap<i64, Vec<SeccompRule>> = BTreeMap::new();
    rules.extend(ALLOWED.iter().chain(ALLOWED_HERE).map(|&call| (call, Vec::new())));
    let of_family = |family: i32| {
        let domain = SeccompCondition::new(0, SeccompCmpArgLen::Dword, SeccompCmpOp::Eq, family as u64)?;
        SeccompRule::new(vec![domain])
    };
    let families: Result<Vec<_>, _> = FAMILIES.iter().map(|&family| of_family(family)).collect();
    rules.insert(libc::SYS_socket, families?);
    let arch = std::env::consts::ARCH.try_into()?;
    SeccompFilter::new(rules, SeccompAction::Trap, SeccompAction::Allow, arch)?.try_into()
}

/// Reports the number of the system call, and ends the process by the signal.
extern "C" fn tell(_: libc::c_int, info: *mut libc::siginfo_t, _: *mut libc::c_void) {
    // SAFETY: for SIGSYS the kernel fills in this part of the structure (sigaction(2)). The layout is that of
    // `asm-generic/siginfo.h`.
    let number = unsafe { info.cast::<u8>().add(SYSCALL_AT).cast::<i32>().read_unaligned() };
    let mut text = *b"stops: it made a system call that is not allowed, number         \n";
    let mut rest = number.unsigned_abs();
    for place in (0..text.len() - 1).rev().take(6) {
        text[place] = b'0' + (rest % 10) as u8;
        rest /= 10;
    }
    // SAFETY: the bytes outlive the call. Its result is ignored, because nothing can be done about an error.
    let _ = unsafe { libc::write(libc::STDERR_FILENO, text.as_ptr().cast(), text.len()) };
    let default = SigAction::new(SigHandler::SigDfl, SaFlags::empty(), SigSet::empty());
    // SAFETY: the default action has no handler.
    let _ = unsafe { sigaction(Signal::SIGSYS, &default) };
    let _ = raise(Signal::SIGSYS);
}

/// Offset of `si_syscall` in `siginfo_t` on 64-bit machines. Before it are three numbers, padding, and the address of
/// the instruction.
const SYSCALL_AT: usize = 24;

/// Socket families: for control and metrics, netlink, and packets.
const FAMILIES: [i32; 5] = [libc::AF_UNIX, libc::AF_NETLINK, libc::AF_PACKET, libc::AF_INET, libc::AF_INET6];

const ALLOWED: &[i64] = &[
    // Packets, control clients and metrics clients.
    libc::SYS_recvmmsg,
    libc::SYS_sendmmsg,
    libc::SYS_recvmsg,
    libc::SYS_sendmsg,
    libc::SYS_recvfrom,
    libc::SYS_sendto,
    libc::SYS_read,
    libc::SYS_write,
    libc::SYS_readv,
    libc::SYS_writev,
    libc::SYS_bind,
    libc::SYS_listen,
    libc::SYS_accept4,
    libc::SYS_connect,
    libc::SYS_shutdown,
    libc::SYS_socketpair,
    libc::SYS_getsockname,
    libc::SYS_getpeername,
    libc::SYS_getsockopt,
    libc::SYS_setsockopt,
    libc::SYS_ioctl,
    // Waiting, and time.
    libc::SYS_epoll_create1,
    libc::SYS_epoll_ctl,
    libc::SYS_epoll_pwait,
    libc::SYS_epoll_pwait2,
    libc::SYS_eventfd2,
    libc::SYS_timerfd_create,
    libc::SYS_timerfd_settime,
    libc::SYS_signalfd4,
    libc::SYS_ppoll,
    libc::SYS_futex,
    libc::SYS_nanosleep,
    libc::SYS_clock_nanosleep,
    libc::SYS_clock_gettime,
    libc::SYS_clock_getres,
    libc::SYS_gettimeofday,
    libc::SYS_restart_syscall,
    // Memory.
    libc::SYS_mmap,
    libc::SYS_munmap,
    libc::SYS_mremap,
    libc::SYS_mprotect,
    libc::SYS_madvise,
    libc::SYS_brk,
    libc::SYS_memfd_create,
    libc::SYS_getrandom,
    // Files: the configuration, records, captures, the file of flows, the control socket.
    libc::SYS_openat,
    libc::SYS_openat2,
    libc::SYS_close,
    libc::SYS_close_range,
    libc::SYS_pread64,
    libc::SYS_pwrite64,
    libc::SYS_lseek,
    libc::SYS_fstat,
    libc::SYS_newfstatat,
    libc::SYS_statx,
    libc::SYS_statfs,
    libc::SYS_fstatfs,
    libc::SYS_fcntl,
    libc::SYS_flock,
    libc::SYS_fsync,
    libc::SYS_fdatasync,
    libc::SYS_msync,
    libc::SYS_ftruncate,
    libc::SYS_fallocate,
    libc::SYS_fchmod,
    libc::SYS_fchmodat,
    libc::SYS_renameat,
    libc::SYS_renameat2,
    libc::SYS_unlinkat,
    libc::SYS_mkdirat,
    libc::SYS_getdents64,
    libc::SYS_readlinkat,
    libc::SYS_faccessat,
    libc::SYS_faccessat2,
    libc::SYS_getcwd,
    libc::SYS_umask,
    libc::SYS_dup,
    libc::SYS_dup3,
    libc::SYS_pipe2,
    // Threads, and signals.
    libc::SYS_clone,
    libc::SYS_clone3,
    libc::SYS_set_robust_list,
    libc::SYS_rseq,
    libc::SYS_set_tid_address,
    libc::SYS_membarrier,
    libc::SYS_sched_yield,
    libc::SYS_sched_getaffinity,
    libc::SYS_sched_getscheduler,
    libc::SYS_sched_getparam,
    libc::SYS_sched_setscheduler,
    libc::SYS_gettid,
    libc::SYS_getpid,
    libc::SYS_getppid,
    libc::SYS_getuid,
    libc::SYS_geteuid,
    libc::SYS_getgid,
    libc::SYS_getegid,
    libc::SYS_uname,
    libc::SYS_sysinfo,
    libc::SYS_getrusage,
    libc::SYS_prlimit64,
    libc::SYS_rt_sigaction,
    libc::SYS_rt_sigprocmask,
    libc::SYS_rt_sigreturn,
    libc::SYS_rt_sigtimedwait,
    libc::SYS_rt_sigpending,
    libc::SYS_sigaltstack,
    libc::SYS_tgkill,
    // Used by musl's `raise`.
    libc::SYS_tkill,
    libc::SYS_exit,
    libc::SYS_exit_group,
    // Successor and workers: their start, their first steps, and their end. `seccomp` adds filters and removes none.
    libc::SYS_execve,
    libc::SYS_kill,
    libc::SYS_wait4,
    libc::SYS_waitid,
    libc::SYS_pidfd_open,
    libc::SYS_pidfd_send_signal,
    libc::SYS_prctl,
    libc::SYS_capget,
    libc::SYS_capset,
    libc::SYS_seccomp,
    libc::SYS_setsid,
    libc::SYS_setpgid,
];

/// System calls that other processors have under newer names only.
#[cfg(target_arch = "x86_64")]
const ALLOWED_HERE: &[i64] = &[
    libc::SYS_arch_prctl,
    libc::SYS_epoll_create,
    libc::SYS_epoll_wait,
    libc::SYS_poll,
    libc::SYS_open,
    libc::SYS_stat,
    libc::SYS_lstat,
    libc::SYS_access,
    libc::SYS_rename,
    libc::SYS_unlink,
    libc::SYS_mkdir,
    libc::SYS_chmod,
    libc::SYS_readlink,
    libc::SYS_dup2,
    libc::SYS_pipe,
    libc::SYS_fork,
    libc::SYS_vfork,
    libc::SYS_time,
];
#[cfg(not(target_arch = "x86_64"))]
const ALLOWED_HERE: &[i64] = &[];

#[cfg(test)]
mod tests {
    use std::os::unix::process::ExitStatusExt;
    use std::process::{Command, Output};

    use super::*;

    const TRIES: &str = "PACELINE_SECCOMP_TRIES";

    /// Returns the result of a process that has restricted itself. It is a second run of this test program, because
    /// no thread can remove a filter.
    fn tried(what: &str) -> Output {
        let program = std::env::current_exe().unwrap();
        let test = ["seccomp::tests::a_restricted_process", "--exact", "--ignored", "--nocapture"];
        Command::new(program).args(test).env(TRIES, what).output().unwrap()
    }

    #[test]
    #[ignore = "run by the tests below"]
    fn a_restricted_process() {
        crate::privilege::drop().unwrap();
        restrict().unwrap();
        match std::env::var(TRIES).unwrap_or_default().as_str() {
            // SAFETY: the arguments are numbers only, and the call is refused.
            "ptrace" => drop(unsafe { libc::ptrace(libc::PTRACE_TRACEME, 0, 0, 0) }),
            "unshare" => drop(nix::sched::unshare(nix::sched::CloneFlags::CLONE_NEWUSER)),
            // SAFETY: the call returns a new descriptor, or none.
            "vsock" => drop(unsafe { libc::socket(libc::AF_VSOCK, libc::SOCK_STREAM, 0) }),
            _ => {
                let sockets = std::net::UdpSocket::bind("127.0.0.1:0").is_ok();
                let threads =
                    std::thread::spawn(|| std::fs::read("/proc/self/status").is_ok()).join().unwrap();
                let programs = Command::new("true").status().is_ok_and(|status| status.success());
                assert!(sockets && threads && programs);
            }
        }
    }

    #[test]
    fn what_is_needed_passes() {
        let output = tried("nothing");
        assert!(output.status.success(), "{output:?}");
    }

    #[test]
    fn another_system_call_ends_the_process_which_says_so() {
        for (what, number) in
            [("ptrace", libc::SYS_ptrace), ("unshare", libc::SYS_unshare), ("vsock", libc::SYS_socket)]
        {
            let output = tried(what);
            let said = String::from_utf8_lossy(&output.stderr).into_owned();
            assert_eq!(output.status.signal(), Some(libc::SIGSYS), "{what}: {said}");
            assert!(said.contains(&format!("not allowed, number   {number:06}")), "{what}: {said}");
        }
    }
}
