//! The functions of the interface that no script for this endpoint needs.
// None uses its arguments.
#![allow(clippy::missing_safety_doc)]

use std::ffi::{c_int, c_uint};

use libc::{epoll_event, loff_t, nfds_t, pollfd, size_t, ssize_t};

use crate::This;
use crate::calls::told;

fn unknown() -> isize {
    told(Err(libc::ENOSYS))
}

pub(crate) unsafe extern "C" fn poll(_: This, _: *mut pollfd, _: nfds_t, _: c_int) -> c_int {
    unknown() as c_int
}

pub(crate) unsafe extern "C" fn epoll_create(_: This, _: c_int) -> c_int {
    unknown() as c_int
}

pub(crate) unsafe extern "C" fn epoll_ctl(
    _: This,
    _: c_int,
    _: c_int,
    _: c_int,
    _: *mut epoll_event,
) -> c_int {
    unknown() as c_int
}

pub(crate) unsafe extern "C" fn epoll_wait(
    _: This,
    _: c_int,
    _: *mut epoll_event,
    _: c_int,
    _: c_int,
) -> c_int {
    unknown() as c_int
}

pub(crate) unsafe extern "C" fn pipe(_: This, _: *mut c_int) -> c_int {
    unknown() as c_int
}

pub(crate) unsafe extern "C" fn splice(
    _: This,
    _: c_int,
    _: *mut loff_t,
    _: c_int,
    _: *mut loff_t,
    _: size_t,
    _: c_uint,
) -> ssize_t {
    unknown()
}
