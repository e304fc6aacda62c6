//! Formulas for TCP loss recovery over mobile links. No I/O, no clock, no randomness.
//!
//! [`or`] holds the model of K. Liu et al., "Optimizing TCP Loss Recovery Performance Over Mobile Data Networks". It
//! gives the idle time of the bottleneck while losses are repaired (Theorems 1 to 9). It tells when the sending
//! application stalls (Theorems 10, 11). It adds what the authors leave open: the utilisation of whole flows, and the
//! smallest bandwidth-delay product at which a promised efficiency is lost.
//!
//! [`ncl`] holds the model of a smart sender of C. Lai et al., "Enhancing Wireless TCP: A Serialized-Timer Approach".
//! It tells when the sender answers a loss as congestion (Eqs. 8 to 23, Lemmas 1 to 4).
//!
//! Units are packets and seconds, as in the paper, and are part of every name. Results are for people and reports. They
//! use floating point and are not part of any simulation.
#![no_std]

extern crate alloc;

pub mod ncl;
pub mod or;
