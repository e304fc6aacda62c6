//! Forty hostile inputs. None may crash the gateway, exhaust its memory, or harm a flow between two honest hosts; each is tried in
//! both modes. The honest hosts follow RFC 5961, as today's kernels do: what they are sent unharmed they bear.

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
