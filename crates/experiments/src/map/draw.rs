//! The random values of one point. They are named, stored as columns, and rounded to the scenario's text.

use super::sequence::{below, coordinate};
use crate::units::format_number;

/// The draws of one point.
#[derive(Debug)]
pub(super) struct Draw {
    seed: u64,
    index: u32,
    /// Name and value of each draw, in order. The value is empty if there is none.
    pub(super) columns: Vec<(String, String)>,
}

impl Draw {
    pub(super) fn new(seed: u64, index: u32) -> Draw {
        Draw { seed, index, columns: Vec::new() }
    }

    /// Draws a number from 0 to below 1.
    pub(super) fn unit(&self, name: &str) -> f64 {
        coordinate(self.seed, name, self.index)
    }

    /// Draws a value from `low` to `high`, uniform on a logarithmic scale, with three digits.
    pub(super) fn log(&mut self, name: &str, low: f64, high: f64) -> f64 {
        let value = between(low, high, self.unit(name));
        self.note(name, &format_number(value));
        value
    }

    /// Picks one of `choices` by their weights.
    pub(super) fn pick<T: Clone>(&self, name: &str, choices: &[(T, u32)]) -> Option<T> {
        let sum: u32 = choices.iter().map(|(_, weight)| weight).sum();
        let mut left = self.unit(name) * f64::from(sum);
        for (choice, weight) in choices {
            left -= f64::from(*weight);
            if left < 0.0 {
                return Some(choice.clone());
            }
        }
        choices.last().map(|(choice, _)| choice.clone())
    }

    /// Picks a name like [`pick`](Self::pick), and notes it.
    pub(super) fn name(&mut self, name: &str, choices: &[(&'static str, u32)]) -> &'static str {
        let picked = self.pick(name, choices).unwrap_or_default();
        self.note(name, picked);
        picked
    }

    /// In `percent` of the points, returns a strength from 0 to below 1, also uniform.
    pub(super) fn chance(&self, name: &str, percent: f64) -> Option<f64> {
        let place = self.unit(name) * 100.0 / percent;
        (place < 1.0).then_some(place)
    }

    /// Draws a seed for another random generator.
    pub(super) fn seed(&self, name: &str) -> u64 {
        1 + below(self.seed, name, self.index, 1_000_000)
    }

    pub(super) fn note(&mut self, name: &str, value: &str) {
        self.columns.push((name.into(), value.into()));
    }
}

/// Returns the value at `unit` of a logarithmic scale, with three digits. `libm` gives the same bits on every machine.
pub(super) fn between(low: f64, high: f64, unit: f64) -> f64 {
    let (from, to) = (libm::log(low), libm::log(high));
    round3(libm::exp(from + unit * (to - from))).clamp(low, high)
}

/// Rounds to three digits, as written in a scenario.
pub(super) fn round3(value: f64) -> f64 {
    format!("{value:.2e}").parse().unwrap_or(value)
}

/// Formats Mbit/s like `12.3mbit`.
pub(super) fn rate(mbps: f64) -> String {
    format!("{}mbit", format_number(round3(mbps)))
}

/// Formats milliseconds like `85ms`.
pub(super) fn time(ms: f64) -> String {
    format!("{}ms", format_number(round3(ms)))
}

/// Formats percent like `1.5%`.
pub(super) fn share(percent: f64) -> String {
    format!("{}%", format_number(round3(percent)))
}

/// Formats a queue of `part` times the bandwidth-delay product, at least three full packets.
pub(super) fn queue(part: f64, mbps: f64, rtt_ms: f64) -> String {
    let bytes = round3(part * mbps * rtt_ms * 125.0).max(4_500.0);
    format!("{}kb", format_number(bytes / 1000.0))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn values_are_what_the_text_says() {
        assert_eq!((between(1.0, 100.0, 0.0), between(1.0, 100.0, 0.5)), (1.0, 10.0));
        assert_eq!(between(0.01, 4.0, 0.3), 0.0603);
        assert_eq!(
            (rate(12.345), time(0.5), share(0.0123)),
            ("12.3mbit".into(), "0.5ms".into(), "0.0123%".into())
        );
        assert_eq!((queue(1.0, 20.0, 50.0), queue(0.1, 1.0, 10.0)), ("125kb".into(), "4.5kb".into()));
    }

    #[test]
    fn choices_follow_their_weights() {
        let draws: Vec<Draw> = (0..1000).map(|index| Draw::new(3, index)).collect();
        let of = |wanted: &str| {
            let choices = [("a", 1), ("b", 3)];
            draws.iter().filter(|draw| draw.pick("x", &choices) == Some(wanted)).count()
        };
        assert!((248..=252).contains(&of("a")) && of("a") + of("b") == 1000, "{}", of("a"));
        let met: Vec<f64> = draws.iter().filter_map(|draw| draw.chance("y", 20.0)).collect();
        let low = met.iter().filter(|place| **place < 0.5).count();
        assert!((195..=205).contains(&met.len()) && (95..=105).contains(&low), "{} {low}", met.len());
    }
}
