//! The parts of a scenario that a kind of points makes of its draws.

/// The parts of one point's scenario.
#[derive(Debug, Default)]
pub(super) struct Parts {
    pub(super) wired: Side,
    pub(super) radio: Side,
    /// Tables such as `[server]` and `[client]`, each with its header.
    pub(super) hosts: String,
    /// The `[[flows]]` tables.
    pub(super) flows: String,
    /// Short description.
    pub(super) label: Vec<String>,
    pub(super) objects: bool,
    pub(super) radio_mbps: f64,
    pub(super) downloads: u32,
}

/// One side of the path.
#[derive(Debug, Default)]
pub(super) struct Side {
    pub(super) rtt: String,
    /// Later round-trip times, as TOML; empty if the round-trip time is constant.
    pub(super) rtt_steps: String,
    pub(super) down: Link,
    pub(super) up: Link,
}

/// Keys of one direction of a link, with their values as TOML.
#[derive(Debug, Default)]
pub(super) struct Link(pub(super) Vec<(&'static str, String)>);

impl Link {
    pub(super) fn new(rate: &str, queue: &str) -> Link {
        Link(vec![("rate", format!("\"{rate}\"")), ("queue", format!("\"{queue}\""))])
    }

    pub(super) fn has(&self, key: &str) -> bool {
        self.0.iter().any(|(known, _)| *known == key)
    }

    /// Sets a key to `value`, which is TOML.
    pub(super) fn set(&mut self, key: &'static str, value: String) {
        self.0.retain(|(known, _)| *known != key);
        self.0.push((key, value));
    }
}
