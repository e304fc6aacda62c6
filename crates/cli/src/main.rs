//! `paceline`: run TCP accelerators on real packets, and measure them.

mod error;
mod result;
mod scenario;
mod units;

fn main() {}
