//! Numbers with units, as written in scenario files: `7.2mbit`, `100ms`, `300kb`, `0.6%`.
//!
//! Decimals are parsed without floating point, so that 0.1 % is 1,000,000 parts per billion on every machine.

use alloc::string::{String, ToString as _};

use paceline_wire::{Duration, Rate};

use crate::aqm::Aqm;
use crate::queue_limit::QueueLimit;
use crate::random::Probability;

/// Text that is not a number with a suitable unit.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("`{text}`: write {expected}")]
pub struct UnitError {
    text: String,
    expected: &'static str,
}

impl UnitError {
    fn new(text: &str, expected: &'static str) -> Self {
        UnitError { text: text.to_string(), expected }
    }
}

/// Parses a time: `20us`, `100ms`, `1.5s`, `2min`.
pub fn parse_duration(text: &str) -> Result<Duration, UnitError> {
    let scale = |unit: &str| match unit {
        "ns" => Some(1),
        "us" => Some(1_000),
        "ms" => Some(1_000_000),
        "s" => Some(1_000_000_000),
        "min" => Some(60_000_000_000),
        _ => None,
    };
    parse(text, DURATION, scale).map(Duration::from_nanos)
}

/// Parses a rate: `900kbit`, `7.2mbit`, `1gbit`, with or without `/s` at the end.
pub fn parse_rate(text: &str) -> Result<Rate, UnitError> {
    let scale = |unit: &str| match unit.strip_suffix("/s").unwrap_or(unit) {
        "bit" => Some(1),
        "kbit" => Some(1_000),
        "mbit" => Some(1_000_000),
        "gbit" => Some(1_000_000_000),
        _ => None,
    };
    parse(text, RATE, scale).map(Rate::from_bits_per_sec)
}

/// Parses an amount of data: `1500b`, `17kb` (1,000 bytes each), `64kib` (1,024), `4.3mb`.
pub fn parse_bytes(text: &str) -> Result<u64, UnitError> {
    let scale = |unit: &str| match unit {
        "b" => Some(1),
        "kb" => Some(1_000),
        "mb" => Some(1_000_000),
        "gb" => Some(1_000_000_000),
        "kib" => Some(1 << 10),
        "mib" => Some(1 << 20),
        "gib" => Some(1 << 30),
        _ => None,
    };
    parse(text, BYTES, scale)
}

/// Parses a probability: `0.6%`.
pub fn parse_probability(text: &str) -> Result<Probability, UnitError> {
    let ppb = parse(text, PROBABILITY, |unit| (unit == "%").then_some(10_000_000))?;
    if ppb > 1_000_000_000 {
        return Err(UnitError::new(text, "at most 100%"));
    }
    Ok(Probability::from_ppb(ppb))
}

/// Parses the limit of a queue: `300kb`, `200packets`, `unlimited`.
pub fn parse_queue(text: &str) -> Result<QueueLimit, UnitError> {
    if text == "unlimited" {
        return Ok(QueueLimit::Unlimited);
    }
    let packets = parse(text, QUEUE, |unit| matches!(unit, "packet" | "packets").then_some(1));
    match packets.map(u32::try_from) {
        Ok(Ok(packets)) => Ok(QueueLimit::Packets(packets)),
        _ => parse_bytes(text).map(QueueLimit::Bytes).map_err(|_| UnitError::new(text, QUEUE)),
    }
}

/// Parses the name of a queue discipline, such as `codel`. The parameters are those that its source recommends.
pub fn parse_aqm(text: &str) -> Result<Aqm, UnitError> {
    Aqm::named(text).ok_or_else(|| UnitError::new(text, AQM))
}

const AQM: &str = "\"codel\", \"fq-codel\", \"pie\", \"red\" or \"drop-tail\"";
const DURATION: &str = "a time such as \"100ms\", \"1.5s\", \"20us\" or \"2min\"";
const RATE: &str = "a rate such as \"7.2mbit\", \"900kbit\" or \"1gbit\"";
const BYTES: &str = "a size such as \"17kb\" (1000 bytes), \"64kib\" (1024 bytes), \"3mb\" or \"1500b\"";
const QUEUE: &str = "a size such as \"300kb\", a number such as \"200packets\", or \"unlimited\"";
const PROBABILITY: &str = "a share such as \"0.6%\"";

/// Multiplies the number before the unit by the unit's scale. Units are compared in lower case.
fn parse(text: &str, expected: &'static str, scale: impl Fn(&str) -> Option<u64>) -> Result<u64, UnitError> {
    let trimmed = text.trim();
    let end = trimmed.find(|c: char| !c.is_ascii_digit() && c != '.').unwrap_or(trimmed.len());
    let (number, unit) = trimmed.split_at(end);
    let unit = unit.trim().to_ascii_lowercase();
    scale(&unit).and_then(|scale| decimal(number, scale)).ok_or_else(|| UnitError::new(text, expected))
}

/// Returns `number * scale`, rounded to the nearest integer, halves up.
fn decimal(number: &str, scale: u64) -> Option<u64> {
    let (whole, fraction) = number.split_once('.').unwrap_or((number, ""));
    if whole.is_empty() && fraction.is_empty() || fraction.len() > 18 {
        return None;
    }
    let digits = |text: &str| if text.is_empty() { Some(0) } else { text.parse::<u64>().ok() };
    let unit = 10u128.pow(fraction.len() as u32);
    let value = u128::from(digits(whole)?) * unit + u128::from(digits(fraction)?);
    let scaled = value.checked_mul(u128::from(scale))?;
    u64::try_from((scaled + unit / 2) / unit).ok()
}

/// Functions for `#[serde(deserialize_with = "...")]`.
pub mod de {
    use alloc::string::String;

    use paceline_wire::{Duration, Rate};
    use serde::de::{Deserialize, Deserializer, Error};

    use crate::random::Probability;

    /// Deserializes a time with [`parse_duration`](super::parse_duration).
    pub fn duration<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Duration, D::Error> {
        super::parse_duration(&String::deserialize(deserializer)?).map_err(D::Error::custom)
    }

    /// Deserializes a rate with [`parse_rate`](super::parse_rate).
    pub fn rate<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Rate, D::Error> {
        super::parse_rate(&String::deserialize(deserializer)?).map_err(D::Error::custom)
    }

    /// Deserializes an amount of data with [`parse_bytes`](super::parse_bytes).
    pub fn bytes<'de, D: Deserializer<'de>>(deserializer: D) -> Result<u64, D::Error> {
        super::parse_bytes(&String::deserialize(deserializer)?).map_err(D::Error::custom)
    }

    /// Deserializes a probability with [`parse_probability`](super::parse_probability).
    pub fn probability<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Probability, D::Error> {
        super::parse_probability(&String::deserialize(deserializer)?).map_err(D::Error::custom)
    }

    /// Deserializes a share as a fraction that may exceed one, such as the variation `80%` or `120%`.
    pub fn share<'de, D: Deserializer<'de>>(deserializer: D) -> Result<f64, D::Error> {
        let text = String::deserialize(deserializer)?;
        let ppb = super::parse(&text, super::PROBABILITY, |unit| (unit == "%").then_some(10_000_000));
        ppb.map(|ppb| ppb as f64 / 1e9).map_err(D::Error::custom)
    }

    impl<'de> Deserialize<'de> for Probability {
        fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
            probability(deserializer)
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_with_units_are_exact() {
        assert_eq!(parse_duration("100ms"), Ok(Duration::from_millis(100)));
        assert_eq!(parse_duration("1.5 s"), Ok(Duration::from_millis(1_500)));
        assert_eq!(parse_rate("7.2mbit"), Ok(Rate::from_bytes_per_sec(900_000)));
        assert_eq!(parse_rate("7200 kbit/s"), Ok(Rate::from_bytes_per_sec(900_000)));
        assert_eq!(parse_bytes("64 KiB"), Ok(65_536));
        assert_eq!(parse_bytes("4.3mb"), Ok(4_300_000));
        assert_eq!(parse_probability("0.6%"), Ok(Probability::from_ppm(6_000)));
        assert_eq!(parse_probability("100%"), Ok(Probability::ONE));
        assert_eq!(parse_queue("300kb"), Ok(QueueLimit::Bytes(300_000)));
        assert_eq!(parse_queue("200 packets"), Ok(QueueLimit::Packets(200)));
        assert_eq!(parse_queue("unlimited"), Ok(QueueLimit::Unlimited));
        assert!(parse_queue("200").is_err());
    }

    #[test]
    fn what_is_no_number_with_a_unit_is_refused_with_an_example() {
        for text in ["", "7.2", "mbit", ".", "-1mbit", "8mbps", "1.2.3mbit", "99999999999999999999gbit"] {
            let error = parse_rate(text).unwrap_err().to_string();
            assert!(error.starts_with(&alloc::format!("`{text}`: write a rate such as")), "{error}");
        }
        assert!(parse_probability("101%").is_err());
        assert!(parse_probability("0.006").is_err());
    }
}
