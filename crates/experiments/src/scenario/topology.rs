//! Named wireless paths, which replace `wired` and `radio`.

use paceline_path::random::Probability;
use paceline_sim::wireless::{AdHocPath, LastHop, VaryingDelay, WirelessHops, WirelessPath};
use serde::Deserialize;

use crate::units::Time;

/// A path that the simulator knows by name, with changes to its defaults.
#[derive(Clone, Copy, Debug, Deserialize)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
pub(crate) struct Topology {
    name: Name,
    /// Error rate of `last-hop`, and of each attempt of `hops`, in both directions.
    error: Option<Probability>,
    /// Largest one-way delay of the bottleneck of `varying-delay`.
    delay_max: Option<Time>,
    /// Largest speed of the stations of `ad-hoc`, in metres per second.
    speed_max: Option<f64>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "kebab-case")]
enum Name {
    LastHop,
    Hops,
    VaryingDelay,
    AdHoc,
}

impl Topology {
    /// # Errors
    /// A key that this path does not have, or an invalid value.
    pub(super) fn check(&self) -> Result<(), String> {
        let lossy = matches!(self.name, Name::LastHop | Name::Hops);
        let strangers = [
            ("error", self.error.is_some() && !lossy),
            ("delay-max", self.delay_max.is_some() && self.name != Name::VaryingDelay),
            ("speed-max", self.speed_max.is_some() && self.name != Name::AdHoc),
        ];
        if let Some((key, _)) = strangers.iter().find(|(_, is_strange)| *is_strange) {
            return Err(format!("`{key}` belongs to another topology"));
        }
        if let WirelessPath::AdHoc(path) = self.path() {
            path.config.check().map_err(|error| error.to_string())?;
        }
        Ok(())
    }

    pub(crate) fn path(&self) -> WirelessPath {
        let error = self.error.map_or(0.0, Probability::as_fraction);
        match self.name {
            Name::LastHop => WirelessPath::LastHop(LastHop { error, ..LastHop::default() }),
            Name::Hops => WirelessPath::Hops(WirelessHops { error, ..WirelessHops::default() }),
            Name::VaryingDelay => {
                let usual = VaryingDelay::default();
                let delay_max = self.delay_max.map_or(usual.delay_max, Time::to_wire);
                WirelessPath::VaryingDelay(VaryingDelay { delay_max, ..usual })
            }
            Name::AdHoc => {
                WirelessPath::AdHoc(self.speed_max.map_or_else(AdHocPath::default, AdHocPath::with_speed))
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use crate::scenario::parse_text;

    fn parse(topology: &str) -> Result<(), String> {
        let text = format!("name = \"x\"\nduration = \"5s\"\n{topology}\n[[flows]]\nname = \"download\"\n");
        parse_text(&text).map(|_| ()).map_err(|error| error.to_string())
    }

    #[test]
    fn paths_have_names_and_keys_of_their_own() {
        for right in
            ["name = \"hops\", error = \"5%\"", "name = \"ad-hoc\", speed-max = 20.0", "name = \"last-hop\""]
        {
            parse(&format!("topology = {{ {right} }}")).unwrap();
        }
        let wrong = [
            ("name = \"hops\", speed-max = 20.0", "`speed-max` belongs to another topology"),
            ("name = \"ad-hoc\", speed-max = -1.0", "above zero"),
            ("name = \"hop\"", "did you mean `hops`?"),
        ];
        for (keys, why) in wrong {
            let error = parse(&format!("topology = {{ {keys} }}")).unwrap_err();
            assert!(error.contains(why), "{error}");
        }
    }

    #[test]
    fn there_is_one_path() {
        assert!(parse("").unwrap_err().contains("radio"));
        let both = parse("topology = { name = \"hops\" }\nradio = { rtt = \"20ms\" }").unwrap_err();
        assert!(both.contains("either"), "{both}");
    }
}
