//! A deterministic world around the gateway: TCP hosts, links, one clock, and a checker on both of its sides.
//!
//! `sim` runs it, and `scenario` sets it up in the ways of the published experiments. Its hosts (`host`, `connection`) have the TCP of crates/tcp.
// Every test binary uses another part of the kit, and a kit that finds something amiss is to fail the test.
#![allow(dead_code, unreachable_pub, missing_docs)]
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, clippy::wrong_self_convention)]

pub mod accelerated;
pub mod checker;
pub mod connection;
pub mod host;
pub mod parts;
pub mod record;
pub mod scenario;
pub mod script;
pub mod sim;
pub mod stream;
pub mod trace;

/// Asserts that a figure reaches its bound in the scenario table.
#[track_caller]
pub fn at_least(what: &str, measured: f64, bound: f64) {
    assert!(measured >= bound, "{what}: {measured:.4} is below {bound:.4}");
}

/// Prints a bound that is missed at present. The reached figure must not get worse. If the bound holds, `at_least`
/// must be used instead.
#[track_caller]
pub fn missed(what: &str, measured: f64, bound: f64, reached: f64) {
    println!("MISSED {what}: {measured:.4}, bound >= {bound:.4}");
    assert!(measured < bound, "{what}: {measured:.4} holds the bound of {bound:.4}, so it has to (at_least)");
    assert!(measured >= reached, "{what}: {measured:.4} fell below {reached:.4}, which had been reached");
}
