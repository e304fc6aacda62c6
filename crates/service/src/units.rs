//! Numbers with units in scenario files and on the command line. The parser is that of `path`.

use std::fmt;
use std::str::FromStr;

use paceline_path::units;
use paceline_wire::{Duration as WireDuration, Rate as WireRate};
use serde::de::{Deserialize, Deserializer, Error as _};

/// A data rate: `7.2mbit`, `900kbit`, `1gbit` per second.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Rate(WireRate);

/// A span of time: `100ms`, `1.5s`, `20us`, `2min`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub struct Time(WireDuration);

/// An amount of data: `17kb` (1000 bytes), `64kib` (1024), `3mb`, `1500b`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Size(u64);

impl Rate {
    /// Converts to the type of the packet path.
    pub fn to_wire(self) -> WireRate {
        self.0
    }
}

impl Time {
    /// A time of this many milliseconds.
    pub const fn from_millis(ms: u64) -> Self {
        Time(WireDuration::from_millis(ms))
    }

    /// Converts to the type of the packet path.
    pub fn to_wire(self) -> WireDuration {
        self.0
    }

    /// Converts to the type of the standard library.
    pub fn to_std(self) -> std::time::Duration {
        std::time::Duration::from_nanos(self.0.as_nanos())
    }

    /// Returns the seconds.
    pub fn seconds(self) -> f64 {
        self.0.as_secs_f64()
    }
}

impl Size {
    /// A size of this many bytes.
    pub const fn from_bytes(bytes: u64) -> Self {
        Size(bytes)
    }

    /// Returns the bytes.
    pub fn bytes(self) -> u64 {
        self.0
    }
}

impl FromStr for Rate {
    type Err = units::UnitError;
    fn from_str(text: &str) -> Result<Self, Self::Err> {
        units::parse_rate(text).map(Rate)
    }
}

impl FromStr for Time {
    type Err = units::UnitError;
    fn from_str(text: &str) -> Result<Self, Self::Err> {
        units::parse_duration(text).map(Time)
    }
}

impl FromStr for Size {
    type Err = units::UnitError;
    fn from_str(text: &str) -> Result<Self, Self::Err> {
        units::parse_bytes(text).map(Size)
    }
}

macro_rules! deserialize_from_text {
    ($($type:ident),*) => {$(
        impl<'de> Deserialize<'de> for $type {
            fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
                String::deserialize(deserializer)?.parse().map_err(D::Error::custom)
            }
        }
    )*};
}

deserialize_from_text!(Rate, Time, Size);

impl fmt::Display for Time {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.0.as_nanos() {
            ns if ns >= 1_000_000_000 => write!(f, "{}s", format_number(ns as f64 / 1e9)),
            ns => write!(f, "{}ms", format_number(ns as f64 / 1e6)),
        }
    }
}

/// Formats `number` with at most six digits after the point and without trailing zeros.
pub fn format_number(number: f64) -> String {
    let text = format!("{number:.6}");
    text.trim_end_matches('0').trim_end_matches('.').to_string()
}

/// Formats a count, as in `1 flow`, `2 flows`.
pub fn counted(count: usize, what: &str) -> String {
    match count {
        1 => format!("1 {what}"),
        _ => format!("{count} {what}s"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_is_singular() {
        assert_eq!([0, 1, 2].map(|count| counted(count, "flow")), ["0 flows", "1 flow", "2 flows"]);
    }

    #[test]
    fn numbers_with_units_parse() {
        assert_eq!("7.2mbit".parse::<Rate>().unwrap().to_wire(), WireRate::from_mbps(7.2));
        assert_eq!("17kb".parse(), Ok(Size::from_bytes(17_000)));
        assert_eq!("100ms".parse(), Ok(Time::from_millis(100)));
        assert!("100".parse::<Time>().unwrap_err().to_string().contains("such as \"100ms\""));
    }

    #[test]
    fn times_are_shown_as_they_are_written() {
        for text in ["100ms", "1.5s", "0.02ms", "60s"] {
            assert_eq!(text.parse::<Time>().unwrap().to_string(), text);
        }
        assert_eq!(format_number(0.0060), "0.006");
    }
}
