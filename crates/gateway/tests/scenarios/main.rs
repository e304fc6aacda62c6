//! The scenarios of the thesis and of today, each with the bound that it must keep. They run on the gateway without
//! I/O, in virtual time. They share one binary, because each of them needs the whole kit.

#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]
#![allow(unreachable_pub)]
#[path = "../kit/mod.rs"]
mod kit;

mod blackout;
mod coexist;
mod corners;
mod counted;
mod fairness;
mod handover;
mod hostile;
mod long;
mod lossy;
mod lowered_window;
mod model;
mod modern;
mod passthrough;
mod paused_reader;
mod receiver_buffers;
mod repeated_syn;
mod resumed;
mod rtt_modulation;
mod shallow_radio;
mod sharing;
mod short;
mod shown;
mod slow_reader;
mod split;
mod twins;
mod upgrade;
mod uploads;
mod vanished;
mod whole;
mod whole_pieces;
mod window_limited;
