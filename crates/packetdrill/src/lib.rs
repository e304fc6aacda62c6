//! `paceline-tcp` as a shared object that packetdrill loads (`--so_filename`) in place of the kernel.
//!
//! packetdrill requests a struct of functions (`packetdrill_interface_init`): system calls, a device, and a clock. Time
//! is virtual. It advances with each query of the clock, while packetdrill sleeps, and while it waits for a packet.
//! Descriptors are real, because packetdrill also passes them to the C library. So the object is preloaded as well and
//! answers `getsockopt` for its own descriptors.
//!
//! The interface is written from its description. Nothing of packetdrill is linked or copied.

mod address;
mod calls;
mod info;
mod left_out;
mod middle;
mod offload;
mod queue;
mod sockets;
mod stack;
mod sysctl;

use std::ffi::{c_char, c_int, c_long, c_longlong, c_uint, c_ulong, c_void};

use libc::{
    epoll_event, iovec, loff_t, msghdr, nfds_t, pollfd, size_t, sockaddr, socklen_t, ssize_t, timeval,
};

type This = *mut c_void;

/// The functions that packetdrill calls, in its order.
#[repr(C)]
#[derive(Debug)]
pub struct Interface {
    userdata: This,
    free: unsafe extern "C" fn(This),
    socket: unsafe extern "C" fn(This, c_int, c_int, c_int) -> c_int,
    bind: unsafe extern "C" fn(This, c_int, *const sockaddr, socklen_t) -> c_int,
    listen: unsafe extern "C" fn(This, c_int, c_int) -> c_int,
    accept: unsafe extern "C" fn(This, c_int, *mut sockaddr, *mut socklen_t) -> c_int,
    connect: unsafe extern "C" fn(This, c_int, *const sockaddr, socklen_t) -> c_int,
    read: unsafe extern "C" fn(This, c_int, *mut c_void, size_t) -> ssize_t,
    readv: unsafe extern "C" fn(This, c_int, *const iovec, c_int) -> ssize_t,
    recv: unsafe extern "C" fn(This, c_int, *mut c_void, size_t, c_int) -> ssize_t,
    recvfrom: unsafe extern "C" fn(
        This,
        c_int,
        *mut c_void,
        size_t,
        c_int,
        *mut sockaddr,
        *mut socklen_t,
    ) -> ssize_t,
    recvmsg: unsafe extern "C" fn(This, c_int, *mut msghdr, c_int) -> ssize_t,
    write: unsafe extern "C" fn(This, c_int, *const c_void, size_t) -> ssize_t,
    writev: unsafe extern "C" fn(This, c_int, *const iovec, c_int) -> ssize_t,
    send: unsafe extern "C" fn(This, c_int, *const c_void, size_t, c_int) -> ssize_t,
    sendto: unsafe extern "C" fn(
        This,
        c_int,
        *const c_void,
        size_t,
        c_int,
        *const sockaddr,
        socklen_t,
    ) -> ssize_t,
    sendmsg: unsafe extern "C" fn(This, c_int, *const msghdr, c_int) -> ssize_t,
    fcntl: unsafe extern "C" fn(This, c_int, c_int, c_long) -> c_int,
    ioctl: unsafe extern "C" fn(This, c_int, c_ulong, *mut c_int) -> c_int,
    close: unsafe extern "C" fn(This, c_int) -> c_int,
    shutdown: unsafe extern "C" fn(This, c_int, c_int) -> c_int,
    getsockopt: unsafe extern "C" fn(This, c_int, c_int, c_int, *mut c_void, *mut socklen_t) -> c_int,
    setsockopt: unsafe extern "C" fn(This, c_int, c_int, c_int, *const c_void, socklen_t) -> c_int,
    poll: unsafe extern "C" fn(This, *mut pollfd, nfds_t, c_int) -> c_int,
    netdev_send: unsafe extern "C" fn(This, *const c_void, size_t) -> c_int,
    netdev_receive: unsafe extern "C" fn(This, *mut c_void, *mut size_t, *mut c_longlong) -> c_int,
    usleep: unsafe extern "C" fn(This, c_uint) -> c_int,
    gettimeofday: unsafe extern "C" fn(This, *mut timeval, *mut c_void) -> c_int,
    epoll_create: unsafe extern "C" fn(This, c_int) -> c_int,
    epoll_ctl: unsafe extern "C" fn(This, c_int, c_int, c_int, *mut epoll_event) -> c_int,
    epoll_wait: unsafe extern "C" fn(This, c_int, *mut epoll_event, c_int, c_int) -> c_int,
    pipe: unsafe extern "C" fn(This, *mut c_int) -> c_int,
    splice: unsafe extern "C" fn(This, c_int, *mut loff_t, c_int, *mut loff_t, size_t, c_uint) -> ssize_t,
}

/// Fills in the functions. `flags` are those of `--so_flags`: the address of this end, and `server` or `client` if a
/// split gateway is in front of it.
///
/// # Safety
/// `interface` points to memory for an [`Interface`]. `flags` is null or a text that ends with a zero byte.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn packetdrill_interface_init(flags: *const c_char, interface: *mut Interface) {
    let flags = match flags.is_null() {
        true => String::new(),
        // SAFETY: it is a text that ends with a zero, as said above.
        false => unsafe { std::ffi::CStr::from_ptr(flags) }.to_string_lossy().into_owned(),
    };
    stack::lock().set_up(&flags);
    let functions = Interface {
        userdata: std::ptr::null_mut(),
        free: calls::free,
        socket: calls::socket,
        bind: calls::bind,
        listen: calls::listen,
        accept: calls::accept,
        connect: calls::connect,
        read: calls::read,
        readv: calls::readv,
        recv: calls::recv,
        recvfrom: calls::recvfrom,
        recvmsg: calls::recvmsg,
        write: calls::write,
        writev: calls::writev,
        send: calls::send,
        sendto: calls::sendto,
        sendmsg: calls::sendmsg,
        fcntl: calls::fcntl,
        ioctl: calls::ioctl,
        close: calls::close,
        shutdown: calls::shutdown,
        getsockopt: calls::getsockopt,
        setsockopt: calls::setsockopt,
        poll: left_out::poll,
        netdev_send: calls::netdev_send,
        netdev_receive: calls::netdev_receive,
        usleep: calls::usleep,
        gettimeofday: calls::gettimeofday,
        epoll_create: left_out::epoll_create,
        epoll_ctl: left_out::epoll_ctl,
        epoll_wait: left_out::epoll_wait,
        pipe: left_out::pipe,
        splice: left_out::splice,
    };
    // SAFETY: there is room for it, as said above.
    unsafe { interface.write(functions) };
}

/// Replaces the function of the C library, because packetdrill itself queries sockets: `%{ assert tcpi_snd_cwnd == 10
/// }%`.
///
/// # Safety
/// As for the system call.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn getsockopt(
    fd: c_int,
    level: c_int,
    name: c_int,
    value: *mut c_void,
    len: *mut socklen_t,
) -> c_int {
    if stack::lock().sockets.contains(fd) {
        // SAFETY: the arguments are those of this call.
        return unsafe { calls::getsockopt(std::ptr::null_mut(), fd, level, name, value, len) };
    }
    // SAFETY: the arguments are those of this call, which the kernel checks.
    unsafe { libc::syscall(libc::SYS_getsockopt, fd, level, name, value, len) as c_int }
}
