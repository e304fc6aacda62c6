//! Forty hostile inputs. None may crash the gateway, exhaust its memory, or harm a flow between two honest hosts.
//! Each is tried in both modes. The honest hosts follow RFC 5961, as present kernels do, so they withstand packets
//! that reach them.

#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)] // A test may panic.
#![allow(unreachable_pub)]

mod blind;
mod crowds;
mod floods;
mod half_open;
mod liars;
mod malformed;
mod near;
mod world;
