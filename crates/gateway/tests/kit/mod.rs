//! A deterministic world around the gateway: model TCP hosts, links, one clock, and a checker on both of its sides.
//!
//! `sim` runs it, `scenario` sets it up in the ways of the published experiments, `host`, `connection`, `sender` and
//! `receiver` are the TCP that stands for Linux and for the clients.
#![allow(dead_code)] // Every test binary uses another part of the kit.

pub mod checker;
pub mod congestion;
pub mod connection;
pub mod host;
pub mod receiver;
pub mod record;
pub mod rto;
pub mod scenario;
pub mod scoreboard;
pub mod sender;
pub mod sim;
pub mod stream;
