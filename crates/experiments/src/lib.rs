//! Experiments: what `paceline` runs, measures, computes and draws in the simulator and in the lab. Each command of the program is
//! one function here, which is told by [`options`] what to do.

pub mod bench;
pub mod choices;
pub mod compare;
mod cpu_time;
pub mod demo;
#[cfg(test)]
mod documented;
pub mod emulate;
#[cfg(any(test, fuzzing))]
#[doc(hidden)]
pub mod exercise;
mod kept;
pub mod map;
pub mod options;
mod plot;
mod pool;
pub mod predict;
pub mod profiles;
pub mod reproduce;
mod result;
pub mod run;
#[cfg(test)]
mod samples;
mod scenario;
pub mod sweep;
pub mod trace;

use paceline_service::{error, files, percentiles, toml_text, units};
use paceline_terminal::{interrupt, output, profile, table};
