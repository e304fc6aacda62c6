//! What a kind of points makes of its draws.

/// What a kind makes of its draws.
#[derive(Debug, Default)]
pub(super) struct Parts {
    pub(super) wired: Side,
    pub(super) radio: Side,
    /// Lines of `[server]`, `[client]` and their like, each table with its header.
    pub(super) hosts: String,
    /// `[[flows]]`.
    pub(super) flows: String,
    /// In a few words.
    pub(super) label: Vec<String>,
    pub(super) objects: bool,
    pub(super) radio_mbps: f64,
    pub(super) downloads: u32,
}

/// One side of the path.
#[derive(Debug, Default)]
pub(super) struct Side {
    pub(super) rtt: String,
    /// Later round trips, as TOML; empty where it stays as it is.
    pub(super) rtt_steps: String,
    pub(super) down: Link,
    pub(super) up: Link,
}

/// Keys of one direction with their values as TOML.
#[derive(Debug, Default)]
pub(super) struct Link(pub(super) Vec<(&'static str, String)>);

impl Link {
    pub(super) fn new(rate: &str, queue: &str) -> Link {
        Link(vec![("rate", format!("\"{rate}\"")), ("queue", format!("\"{queue}\""))])
    }

    pub(super) fn has(&self, key: &str) -> bool {
        self.0.iter().any(|(known, _)| *known == key)
    }

    /// `value` is TOML.
    pub(super) fn set(&mut self, key: &'static str, value: String) {
        self.0.retain(|(known, _)| *known != key);
        self.0.push((key, value));
    }
}
