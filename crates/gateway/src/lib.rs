//! placeholder
#![no_std]

#[cfg(test)]
extern crate alloc;

pub mod bound;
pub mod rtt_min;
