//! A gateway without hosts and links, to which a test gives packets one by one: `script`, and as text `trace`.
// A kit that finds something amiss is to fail the test.
#![allow(unreachable_pub, missing_docs)]
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, clippy::wrong_self_convention)]

pub mod script;
pub mod trace;
