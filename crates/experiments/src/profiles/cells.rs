//! A scenario without its own gateway, combined with each profile.

use std::path::Path;

use toml::{Table, Value};

use crate::compare::scenario_of_trace;
use crate::error::{Error, Result};
use crate::options::ProfilesOptions;
use crate::scenario::{Case, ScenarioFile, Vary, parse_varied};
use crate::toml_text::explain;

/// The profile that forwards flows unchanged.
pub(super) const PASS: &str = "pass";
/// `auto` without knowledge of the flows, and `auto` after the same flows were seen before.
pub(super) const AUTO: [&str; 2] = ["auto", "auto-later"];

const SENDER: &str = "gateway.config.split.sender.";

/// The file's cells with every profile.
pub(super) fn load(path: &Path, options: &ProfilesOptions) -> Result<ScenarioFile> {
    let wanted = |case: &Case| options.profile.is_empty() || options.profile.contains(&case.name);
    let cases: Vec<Case> = profiles().into_iter().filter(wanted).collect();
    if cases.is_empty() {
        let known: Vec<String> = profiles().into_iter().map(|case| case.name).collect();
        return Err(Error::input(format!("--profile: known are {}", known.join(", "))));
    }
    let profiles = Vary { cases, ..Vary::default() };
    let text = if path.extension().is_some_and(|extension| extension == "toml") {
        let text = std::fs::read_to_string(path)
            .map_err(|error| Error::input(format!("cannot read scenario {}: {error}", path.display())))?;
        let table = without_gateway(&text)
            .map_err(|why| Error::input(format!("{}: {}", path.display(), explain(&why))))?;
        toml::to_string(&table).map_err(|error| Error::failed(error.to_string()))?
    } else {
        scenario_of_trace(path, options.rtt, &options.queue)
    };
    parse_varied(path, &text, options.of.duration, &[profiles])
}

/// The fixed profiles that an operator would choose from, with the names of docs/design/auto.md, and `auto`.
fn profiles() -> Vec<Case> {
    let sender = |congestion: &str| {
        [
            ("gateway.profile".to_string(), Value::from("split")),
            (format!("{SENDER}congestion-control"), congestion.into()),
            (format!("{SENDER}rate-reduction"), "prr".into()),
            (format!("{SENDER}opportunistic-retransmission"), false.into()),
        ]
    };
    let split =
        |name: &str, congestion| Case { name: name.into(), set: Table::from_iter(sender(congestion)) };
    let profile = |name: &str, profile: &str| Case {
        name: name.into(),
        set: Table::from_iter([("gateway.profile".to_string(), Value::from(profile))]),
    };
    let mut later = profile(AUTO[1], "auto");
    later.set.insert("gateway.seen-before".into(), true.into());
    vec![
        profile(PASS, "off"),
        profile("transparent", "full"),
        profile("drwa", "drwa"),
        profile("split-qarr", "split"),
        split("split-cubic", "cubic"),
        split("split-bbr", "bbr"),
        split("split-rre", "rre"),
        profile(AUTO[0], "auto"),
        later,
    ]
}

/// Removes the gateway, the bounds, and dimensions that only vary the gateway.
fn without_gateway(text: &str) -> std::result::Result<Table, String> {
    let mut table: Table = toml::from_str(text).map_err(|error| error.message().to_string())?;
    table.remove("gateway");
    table.remove("bounds");
    let Some(Value::Array(dimensions)) = table.remove("vary") else { return Ok(table) };
    let left: Vec<Value> = dimensions.into_iter().filter_map(dimension).collect();
    if !left.is_empty() {
        table.insert("vary".into(), left.into());
    }
    Ok(table)
}

fn is_about_gateway(key: &str) -> bool {
    key == "gateway" || key.starts_with("gateway.")
}

fn dimension(mut dimension: Value) -> Option<Value> {
    if dimension.get("key").and_then(Value::as_str).is_some_and(is_about_gateway) {
        return None;
    }
    if let Some(Value::Array(cases)) = dimension.get_mut("cases") {
        let mut seen: Vec<Option<Value>> = Vec::new();
        cases.retain_mut(|case| {
            if let Some(Value::Table(set)) = case.get_mut("set") {
                set.retain(|key, _| !is_about_gateway(key));
            }
            // Cases that differ only in their gateway become one.
            let set =
                case.get("set").filter(|set| set.as_table().is_some_and(|set| !set.is_empty())).cloned();
            let is_new = !seen.contains(&set);
            if is_new {
                seen.push(set);
            }
            is_new
        });
        if seen == [None] {
            return None;
        }
    }
    Some(dimension)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn cases_that_differ_in_their_gateway_only_are_one() {
        let text = "name=\"x\"\n[gateway]\nprofile=\"full\"\n[[bounds]]\nmetric=\"y\"\n\
                    [[vary]]\nkey=\"gateway.profile\"\nvalues=[\"off\",\"full\"]\n\
                    [[vary]]\n[[vary.cases]]\nname=\"a\"\n[[vary.cases]]\nname=\"b\"\nset={\"gateway.profile\"=\"full\"}\n\
                    [[vary]]\n[[vary.cases]]\nname=\"c\"\n[[vary.cases]]\nname=\"d\"\nset={\"radio.rtt\"=\"5ms\",\"gateway.io\"=\"tun\"}\n";
        let table = without_gateway(text).unwrap();
        assert!(!table.contains_key("gateway") && !table.contains_key("bounds"));
        let vary = table["vary"].as_array().unwrap();
        assert_eq!(vary.len(), 1);
        let cases = vary[0]["cases"].as_array().unwrap();
        assert_eq!(cases.len(), 2);
        assert_eq!(cases[1]["set"].as_table().unwrap().len(), 1);
    }

    #[test]
    fn every_profile_is_one_of_the_scenarios() {
        let text =
            "name = \"x\"\nduration = \"1s\"\n[radio.down]\nrate = \"1mbit\"\n[[flows]]\nname = \"f\"\n";
        let dimension = Vary { cases: profiles(), ..Vary::default() };
        let file = parse_varied(Path::new("x.toml"), text, None, &[dimension]).unwrap();
        assert_eq!(file.variants.len(), 9);
        assert!(file.variants.iter().all(|variant| variant.scenario.gateway.resolve().is_ok()));
        assert!(file.variants[8].scenario.gateway.seen_before);
    }
}
