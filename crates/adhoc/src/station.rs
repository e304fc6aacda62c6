//! Stations have numbers.

/// A station, numbered from 0.
pub type StationId = u8;
