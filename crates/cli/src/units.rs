//! Numbers with units: `7.2mbit`, `100ms`, `17kb`, `0.6%`. A bare number is refused wherever its unit could be guessed wrongly.

use std::fmt;
use std::str::FromStr;

use paceline_wire::{Duration as WireDuration, Rate as WireRate};
use serde::de::{Deserialize, Deserializer, Visitor};
use serde::{Serialize, Serializer};

/// A data rate: `7.2mbit`, `900kbit`, `1gbit` per second, or `unlimited`.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Rate {
    bits_per_s: Option<f64>,
}

/// A span of time: `100ms`, `1.5s`, `20us`, `2min`.
#[derive(Clone, Copy, Debug, Default, PartialEq, PartialOrd)]
pub(crate) struct Time {
    seconds: f64,
}

/// An amount of data: `17kb` (1000 bytes), `64kib` (1024), `3mb`, `1500b`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Size {
    bytes: u64,
}

/// A share or probability: `0.6%`.
#[derive(Clone, Copy, Debug, Default, PartialEq, PartialOrd)]
pub(crate) struct Percent {
    fraction: f64,
}

impl Rate {
    pub(crate) const UNLIMITED: Rate = Rate { bits_per_s: None };

    #[cfg(test)]
    pub(crate) fn mbit(value: f64) -> Self {
        Rate { bits_per_s: Some(value * 1e6) }
    }

    /// `None` when unlimited.
    pub(crate) fn to_wire(self) -> Option<WireRate> {
        self.bits_per_s.map(|bits| WireRate::from_mbps(bits / 1e6))
    }

    /// `None` when unlimited.
    pub(crate) fn mbps(self) -> Option<f64> {
        self.bits_per_s.map(|bits| bits / 1e6)
    }
}

impl Time {
    pub(crate) const ZERO: Time = Time { seconds: 0.0 };

    pub(crate) const fn from_secs_f64(seconds: f64) -> Self {
        Time { seconds }
    }

    pub(crate) fn to_wire(self) -> WireDuration {
        WireDuration::from_secs_f64(self.seconds)
    }

    pub(crate) fn to_std(self) -> std::time::Duration {
        std::time::Duration::from_secs_f64(self.seconds)
    }

    pub(crate) fn seconds(self) -> f64 {
        self.seconds
    }
}

impl Size {
    pub(crate) const fn from_bytes(bytes: u64) -> Self {
        Size { bytes }
    }

    pub(crate) fn bytes(self) -> u64 {
        self.bytes
    }
}

impl Percent {
    pub(crate) const ZERO: Percent = Percent { fraction: 0.0 };

    pub(crate) fn fraction(self) -> f64 {
        self.fraction
    }
}

impl FromStr for Rate {
    type Err = String;
    fn from_str(text: &str) -> Result<Self, String> {
        if text == "unlimited" {
            return Ok(Rate::UNLIMITED);
        }
        let (number, unit) = split(text, RATE_HINT)?;
        let unit = unit.strip_suffix("/s").unwrap_or(unit);
        let scale = match unit.to_ascii_lowercase().as_str() {
            "bit" => 1.0,
            "kbit" => 1e3,
            "mbit" => 1e6,
            "gbit" => 1e9,
            _ => return Err(bad_unit(text, unit, RATE_HINT)),
        };
        Ok(Rate { bits_per_s: Some(number * scale) })
    }
}

impl FromStr for Time {
    type Err = String;
    fn from_str(text: &str) -> Result<Self, String> {
        let (number, unit) = split(text, TIME_HINT)?;
        let scale = match unit {
            "us" => 1e-6,
            "ms" => 1e-3,
            "s" => 1.0,
            "min" => 60.0,
            _ => return Err(bad_unit(text, unit, TIME_HINT)),
        };
        // u64 nanoseconds end at 584 years; a day is more than any run lasts.
        let seconds = number * scale;
        if seconds > 1e6 {
            return Err(format!("`{text}` is longer than any run"));
        }
        Ok(Time { seconds })
    }
}

impl FromStr for Size {
    type Err = String;
    fn from_str(text: &str) -> Result<Self, String> {
        let (number, unit) = split(text, SIZE_HINT)?;
        let scale = match unit.to_ascii_lowercase().as_str() {
            "b" | "byte" | "bytes" => 1.0,
            "kb" => 1e3,
            "mb" => 1e6,
            "gb" => 1e9,
            "kib" => 1024.0,
            "mib" => 1024.0 * 1024.0,
            "gib" => 1024.0 * 1024.0 * 1024.0,
            _ => return Err(bad_unit(text, unit, SIZE_HINT)),
        };
        Ok(Size { bytes: (number * scale).round() as u64 })
    }
}

impl FromStr for Percent {
    type Err = String;
    fn from_str(text: &str) -> Result<Self, String> {
        let (number, unit) = split(text, PERCENT_HINT)?;
        if unit != "%" {
            return Err(bad_unit(text, unit, PERCENT_HINT));
        }
        if number > 100.0 {
            return Err(format!("`{text}` is more than 100%"));
        }
        Ok(Percent { fraction: number / 100.0 })
    }
}

impl fmt::Display for Rate {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.bits_per_s {
            None => f.write_str("unlimited"),
            Some(bits) if bits >= 1e9 => write!(f, "{}gbit", tidy(bits / 1e9)),
            Some(bits) if bits >= 1e6 => write!(f, "{}mbit", tidy(bits / 1e6)),
            Some(bits) if bits >= 1e3 => write!(f, "{}kbit", tidy(bits / 1e3)),
            Some(bits) => write!(f, "{}bit", tidy(bits)),
        }
    }
}

impl fmt::Display for Time {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.seconds {
            s if s == 0.0 => f.write_str("0ms"),
            s if s < 1e-3 => write!(f, "{}us", tidy(s * 1e6)),
            s if s < 1.0 => write!(f, "{}ms", tidy(s * 1e3)),
            s => write!(f, "{}s", tidy(s)),
        }
    }
}

impl fmt::Display for Size {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.bytes {
            b if b >= 1_000_000_000 && b % 1_000_000 == 0 => write!(f, "{}gb", tidy(b as f64 / 1e9)),
            b if b >= 1_000_000 && b % 1_000 == 0 => write!(f, "{}mb", tidy(b as f64 / 1e6)),
            b if b >= 1_000 && b % 10 == 0 => write!(f, "{}kb", tidy(b as f64 / 1e3)),
            b => write!(f, "{b}b"),
        }
    }
}

impl fmt::Display for Percent {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}%", tidy(self.fraction * 100.0))
    }
}

macro_rules! serde_as_text {
    ($type:ident, $hint:expr) => {
        impl<'de> Deserialize<'de> for $type {
            fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
                struct Text;
                impl Visitor<'_> for Text {
                    type Value = $type;
                    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                        f.write_str($hint)
                    }
                    fn visit_str<E: serde::de::Error>(self, text: &str) -> Result<$type, E> {
                        text.parse().map_err(E::custom)
                    }
                    fn visit_i64<E: serde::de::Error>(self, number: i64) -> Result<$type, E> {
                        Err(E::custom(format!("`{number}` has no unit; write {}", $hint)))
                    }
                    fn visit_u64<E: serde::de::Error>(self, number: u64) -> Result<$type, E> {
                        Err(E::custom(format!("`{number}` has no unit; write {}", $hint)))
                    }
                    fn visit_f64<E: serde::de::Error>(self, number: f64) -> Result<$type, E> {
                        Err(E::custom(format!("`{number}` has no unit; write {}", $hint)))
                    }
                }
                deserializer.deserialize_any(Text)
            }
        }
        impl Serialize for $type {
            fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
                serializer.collect_str(self)
            }
        }
    };
}

serde_as_text!(Rate, RATE_HINT);
serde_as_text!(Time, TIME_HINT);
serde_as_text!(Size, SIZE_HINT);
serde_as_text!(Percent, PERCENT_HINT);

/// `number` with at most six digits after the point and no trailing zeros.
pub(crate) fn tidy(number: f64) -> String {
    let text = format!("{number:.6}");
    text.trim_end_matches('0').trim_end_matches('.').to_string()
}

/// Splits `7.2mbit` into 7.2 and `mbit`.
fn split<'a>(text: &'a str, hint: &str) -> Result<(f64, &'a str), String> {
    let text = text.trim();
    let end = text.find(|c: char| !c.is_ascii_digit() && c != '.').unwrap_or(text.len());
    let (number, unit) = text.split_at(end);
    let number: f64 =
        number.parse().map_err(|_| format!("`{text}` is not a number with a unit; write {hint}"))?;
    match unit.trim() {
        "" => Err(format!("`{text}` has no unit; write {hint}")),
        unit => Ok((number, unit)),
    }
}

fn bad_unit(text: &str, unit: &str, hint: &str) -> String {
    let why = match unit {
        "mbps" | "kbps" | "gbps" | "Mbps" | "Kbps" | "Gbps" => {
            " (bits for some programs, bytes for others)".to_string()
        }
        _ => String::new(),
    };
    format!("`{text}`: unknown unit `{unit}`{why}; write {hint}")
}

const RATE_HINT: &str = "a rate such as \"7.2mbit\", \"900kbit\", \"1gbit\" or \"unlimited\"";
const TIME_HINT: &str = "a time such as \"100ms\", \"1.5s\", \"20us\" or \"2min\"";
const SIZE_HINT: &str = "a size such as \"17kb\" (1000 bytes), \"64kib\" (1024 bytes), \"3mb\" or \"1500b\"";
const PERCENT_HINT: &str = "a share such as \"0.6%\"";

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_with_units_parse() {
        assert_eq!("7.2mbit".parse(), Ok(Rate::mbit(7.2)));
        assert_eq!("7200kbit/s".parse(), Ok(Rate::mbit(7.2)));
        assert_eq!("unlimited".parse(), Ok(Rate::UNLIMITED));
        assert_eq!("100ms".parse::<Time>().map(|t| t.to_wire().as_millis()), Ok(100));
        assert_eq!("17kb".parse(), Ok(Size::from_bytes(17_000)));
        assert_eq!("64 KiB".parse(), Ok(Size::from_bytes(65_536)));
        assert_eq!("0.6%".parse::<Percent>().map(|p| tidy(p.fraction())), Ok("0.006".into()));
    }

    #[test]
    fn a_number_without_unit_is_refused_with_an_example() {
        for error in ["7.2".parse::<Rate>().unwrap_err(), "100".parse::<Time>().unwrap_err()] {
            assert!(error.contains("has no unit") && error.contains("such as"), "{error}");
        }
        assert!("8mbps".parse::<Rate>().unwrap_err().contains("bits for some programs"));
        assert!("-1ms".parse::<Time>().is_err());
        assert!("101%".parse::<Percent>().is_err());
        assert!("1e300s".parse::<Time>().is_err());
    }

    #[test]
    fn what_is_shown_parses_again() {
        for text in ["7.2mbit", "900kbit", "unlimited", "12bit"] {
            assert_eq!(text.parse::<Rate>().unwrap().to_string(), text);
        }
        for text in ["100ms", "1.5s", "20us", "0ms"] {
            assert_eq!(text.parse::<Time>().unwrap().to_string(), text);
        }
        for text in ["17kb", "1500b", "3mb"] {
            let size: Size = text.parse().unwrap();
            assert_eq!(size.to_string().parse(), Ok(size));
        }
        assert_eq!("0.01%".parse::<Percent>().unwrap().to_string(), "0.01%");
    }
}
