//! The configuration of a gateway: its profile with the changes of the operator's file.

use std::path::Path;

use paceline_gateway::GatewayConfig;

use super::{policy, workers};
use crate::Options;
use crate::error::{Error, Result};

/// Returns the profile with the changes of the file.
pub(super) fn load(options: &Options, path: Option<&Path>) -> Result<GatewayConfig> {
    let Some(base) = options.base.clone() else {
        return Err(Error::input(
            "--profile off means no gateway; --profile null gives one that only forwards",
        ));
    };
    let mut config = match path {
        Some(path) => from_file(options, path, &base)?,
        None => base,
    };
    if options.worker.is_some() {
        workers::divide(&mut config.limits, options.workers);
    }
    Ok(config)
}

fn from_file(options: &Options, path: &Path, base: &GatewayConfig) -> Result<GatewayConfig> {
    let interfaces: Vec<&str> =
        [&options.wan, &options.radio].into_iter().flatten().map(String::as_str).collect();
    let config = policy::load(path, base, &interfaces)?;
    if options.tun.is_some() && config.rules.flows.iter().any(|rule| rule.matches.vlan.is_some()) {
        return Err(Error::input(format!(
            "{}: a rule matches by `vlan`, which a routed gateway never sees; match by `client`, or run it on a bridge",
            path.display()
        )));
    }
    Ok(config)
}

#[cfg(test)]
mod tests {
    use std::fs;

    use paceline_gateway::config::Profile;

    use super::*;

    fn parse(text: &str) -> std::result::Result<GatewayConfig, String> {
        let base = Profile::Thesis.config();
        policy::parse(Path::new("g.toml"), text, &base, &[]).map_err(|error| error.to_string())
    }

    #[test]
    fn a_file_changes_single_keys_of_a_profile() {
        let config = parse("[rtt-modulation]\nattempts = 2\n").unwrap();
        let expected = Profile::Thesis.config();
        assert_eq!(config.rtt_modulation.attempts, 2);
        assert_eq!(config.virtual_window, expected.virtual_window);
    }

    #[test]
    fn the_documented_defaults_are_the_defaults() {
        let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/reference/configuration.md");
        let document = fs::read_to_string(path).unwrap();
        let blocks: Vec<&str> =
            document.split("```toml\n").skip(1).filter_map(|b| b.split("```").next()).collect();
        assert_eq!(toml::from_str::<GatewayConfig>(blocks[0]).unwrap(), GatewayConfig::default());
        let all: toml::Table = toml::Table::try_from(GatewayConfig::default()).unwrap();
        let shown: toml::Table = toml::from_str(blocks[0]).unwrap();
        assert_eq!(all, shown);
    }

    #[test]
    fn mistakes_are_told_with_their_line() {
        let error = parse("[rtt-modulation]\nattempt = 2\n").unwrap_err();
        assert_eq!(error, "g.toml:2: unknown key `attempt`; did you mean `attempts`?");
        assert!(parse("[rtt-modulation]\nbeta = 9\n").unwrap_err().contains("give 1, 2 or 3"));
    }
}
