//! A path between two hosts: round-trip time, and a link in each direction. Absent keys mean no limit, no delay, no
//! fault.

use std::fs;
use std::path::Path as FilePath;

use paceline_path::units::de::duration;
use paceline_path::{Delay, DelayStep, LinkConfig, RateSource};
use paceline_wire::Duration;
use serde::Deserialize;

use crate::units::Time;

#[derive(Clone, Debug, Default, PartialEq, Deserialize)]
#[serde(rename_all = "kebab-case", deny_unknown_fields, default)]
pub(crate) struct Path {
    /// Propagation delay in both directions together. Each direction has half of it, unless it has its own `delay`.
    pub(crate) rtt: Time,
    /// Later values of `rtt`.
    pub(crate) rtt_steps: Vec<RttStep>,
    /// Towards the client.
    pub(crate) down: LinkConfig<RateSource>,
    /// Towards the server.
    pub(crate) up: LinkConfig<RateSource>,
}

#[derive(Clone, Copy, Debug, PartialEq, Deserialize)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
pub(crate) struct RttStep {
    #[serde(deserialize_with = "duration")]
    pub(crate) at: Duration,
    #[serde(deserialize_with = "duration")]
    pub(crate) rtt: Duration,
}

impl Path {
    /// Returns both directions, down and up, ready to be built. Trace files are read from `folder`, that of the
    /// scenario.
    ///
    /// # Errors
    /// A trace that cannot be read or generated, or an impossible link.
    pub(crate) fn resolve(&self, folder: &FilePath) -> Result<[LinkConfig; 2], String> {
        let delay = self.delay();
        let direction = |link: &LinkConfig<RateSource>| {
            let mut link = link.clone();
            if link.delay == Delay::default() {
                link.delay = delay.clone();
            }
            let read = |name: &str| {
                let path = folder.join(name);
                fs::read_to_string(&path)
                    .map_err(|error| format!("cannot read trace {}: {error}", path.display()))
            };
            let link = link.resolve(read).map_err(|error| error.to_string())?;
            link.check().map_err(|error| error.to_string())?;
            Ok::<LinkConfig, String>(link)
        };
        Ok([direction(&self.down)?, direction(&self.up)?])
    }

    fn delay(&self) -> Delay {
        let half = self.rtt.to_wire() / 2;
        if self.rtt_steps.is_empty() {
            return Delay::Constant(half);
        }
        let first = DelayStep { at: Duration::ZERO, delay: half };
        let later = self.rtt_steps.iter().map(|step| DelayStep { at: step.at, delay: step.rtt / 2 });
        Delay::Steps(std::iter::once(first).chain(later).collect())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn resolve(text: &str) -> Result<[LinkConfig; 2], String> {
        toml::from_str::<Path>(text).map_err(|error| error.message().to_string())?.resolve(FilePath::new("."))
    }

    #[test]
    fn a_round_trip_is_half_each_way() {
        let [down, up] = resolve("rtt = \"100ms\"\n[down]\nrate = \"7.2mbit\"\n").unwrap();
        assert_eq!(down.delay, Delay::Constant(Duration::from_millis(50)));
        assert_eq!(up.delay, down.delay);
        let [down, up] = resolve("rtt = \"100ms\"\nup = { delay = \"10ms\" }\n").unwrap();
        assert_eq!(down.delay, Delay::Constant(Duration::from_millis(50)));
        assert_eq!(up.delay, Delay::Constant(Duration::from_millis(10)));
    }

    #[test]
    fn round_trips_change_in_steps() {
        let [down, _] = resolve("rtt = \"40ms\"\nrtt-steps = [{ at = \"20s\", rtt = \"80ms\" }]\n").unwrap();
        assert_eq!(down.delay.at(Duration::from_secs(19)), Duration::from_millis(20));
        assert_eq!(down.delay.at(Duration::from_secs(20)), Duration::from_millis(40));
    }

    #[test]
    fn a_missing_trace_is_named() {
        let error = resolve("[down]\nrate = { trace = { file = \"nothing.down\" } }\n").unwrap_err();
        assert!(error.starts_with("cannot read trace ./nothing.down:"), "{error}");
    }
}
