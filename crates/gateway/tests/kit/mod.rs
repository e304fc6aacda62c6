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

/// Holds a figure against its bound of the scenario table.
#[track_caller]
pub fn at_least(what: &str, measured: f64, bound: f64) {
    assert!(measured >= bound, "{what}: {measured:.4} is below {bound:.4}");
}

/// The same for a bound that is missed today, which is printed: what has been reached must not get worse, and a bound that holds is
/// no longer for this function.
#[track_caller]
pub fn missed(what: &str, measured: f64, bound: f64, reached: f64) {
    println!("MISSED {what}: {measured:.4}, bound >= {bound:.4}");
    assert!(measured < bound, "{what}: {measured:.4} holds the bound of {bound:.4}, so it has to (at_least)");
    assert!(measured >= reached, "{what}: {measured:.4} fell below {reached:.4}, which had been reached");
}
