//! Dependencies between the crates point one way: down.

use std::path::Path;

use serde::Deserialize;

/// Each of our crates with those of our crates that it depends on, from the bottom up. Tests and benchmarks may use
/// more.
const ARROWS: [(&str, &[&str]); 16] = [
    ("paceline-wire", &[]),
    ("paceline-theory", &[]),
    ("paceline-judge", &[]),
    ("paceline-path", &["paceline-wire"]),
    ("paceline-adhoc", &["paceline-wire", "paceline-path"]),
    ("paceline-tcp", &["paceline-wire"]),
    ("paceline-gateway", &["paceline-wire", "paceline-tcp"]),
    ("paceline-packetdrill", &["paceline-wire", "paceline-tcp", "paceline-gateway"]),
    (
        "paceline-sim",
        &[
            "paceline-wire", "paceline-theory", "paceline-judge", "paceline-path", "paceline-adhoc",
            "paceline-tcp", "paceline-gateway",
        ],
    ),
    ("paceline-linux", &["paceline-wire", "paceline-gateway"]),
    ("paceline-lab", &["paceline-wire", "paceline-path", "paceline-linux"]),
    ("paceline-service", &["paceline-wire", "paceline-path", "paceline-gateway", "paceline-linux"]),
    ("paceline-terminal", &["paceline-tcp", "paceline-gateway", "paceline-service"]),
    (
        "paceline-experiments",
        &[
            "paceline-wire", "paceline-theory", "paceline-judge", "paceline-path", "paceline-tcp",
            "paceline-gateway", "paceline-sim", "paceline-linux", "paceline-lab", "paceline-service",
            "paceline-terminal",
        ],
    ),
    ("paceline-cli", &["paceline-linux", "paceline-service", "paceline-terminal", "paceline-experiments"]),
    ("xtask", &["paceline-judge"]),
];

#[derive(Deserialize)]
struct Metadata {
    packages: Vec<Package>,
}

#[derive(Deserialize)]
struct Package {
    name: String,
    dependencies: Vec<Dependency>,
}

#[derive(Deserialize)]
struct Dependency {
    name: String,
    /// `None` for an ordinary dependency.
    kind: Option<String>,
}

/// Returns a finding for each dependency that is not in the list, each unused entry of the list, and each entry that
/// points up.
pub(crate) fn check(root: &Path) -> Result<Vec<String>, String> {
    let arguments = ["metadata", "--format-version", "1", "--no-deps", "--locked"];
    let metadata: Metadata = serde_json::from_str(&crate::output_of("cargo", &arguments, root)?)
        .map_err(|error| format!("cargo metadata: {error}"))?;
    let mut findings = upward(&ARROWS);
    findings.extend(metadata.packages.iter().flat_map(|package| differences(package, &ARROWS)));
    Ok(findings)
}

/// Finds entries that point at a later crate. The list is from the bottom up.
fn upward(arrows: &[(&str, &[&str])]) -> Vec<String> {
    let mut findings = Vec::new();
    for (place, (name, below)) in arrows.iter().enumerate() {
        let is_below = |other: &&&str| arrows[..place].iter().any(|(earlier, _)| earlier == *other);
        let above = below.iter().filter(|other| !is_below(other));
        findings.extend(above.map(|other| format!("xtask/src/arrows.rs: {name} -> {other} points up")));
    }
    findings
}

fn differences(package: &Package, arrows: &[(&str, &[&str])]) -> Vec<String> {
    let name = &package.name;
    let Some((_, below)) = arrows.iter().find(|(other, _)| other == name) else {
        return vec![format!("xtask/src/arrows.rs: {name} is not in the list")];
    };
    let ours = |dependency: &&Dependency| {
        dependency.kind.as_deref() != Some("dev") && arrows.iter().any(|(other, _)| *other == dependency.name)
    };
    let found: Vec<&str> =
        package.dependencies.iter().filter(ours).map(|dependency| dependency.name.as_str()).collect();
    let unlisted = found.iter().filter(|other| !below.contains(other));
    let unused = below.iter().filter(|other| !found.contains(other));
    unlisted
        .map(|other| format!("{name} may not depend on {other} (xtask/src/arrows.rs)"))
        .chain(unused.map(|other| format!("xtask/src/arrows.rs: {name} does not depend on {other}")))
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    const LIST: [(&str, &[&str]); 2] = [("a", &[]), ("b", &["a"])];

    fn package(name: &str, dependencies: &[(&str, Option<&str>)]) -> Package {
        let dependency = |(name, kind): &(&str, Option<&str>)| Dependency {
            name: name.to_string(),
            kind: kind.map(str::to_owned),
        };
        Package { name: name.into(), dependencies: dependencies.iter().map(dependency).collect() }
    }

    #[test]
    fn only_what_is_listed_may_be_depended_on() {
        assert!(differences(&package("b", &[("a", None), ("serde", None)]), &LIST).is_empty());
        assert_eq!(
            differences(&package("a", &[("b", None)]), &LIST),
            ["a may not depend on b (xtask/src/arrows.rs)"]
        );
        assert!(differences(&package("a", &[("b", Some("dev"))]), &LIST).is_empty(), "tests may");
        assert_eq!(differences(&package("b", &[]), &LIST), ["xtask/src/arrows.rs: b does not depend on a"]);
        assert_eq!(differences(&package("c", &[]), &LIST).len(), 1);
    }

    #[test]
    fn a_list_that_points_up_is_found() {
        assert!(upward(&LIST).is_empty());
        assert_eq!(upward(&[("a", &["b"]), ("b", &[])]), ["xtask/src/arrows.rs: a -> b points up"]);
        assert_eq!(upward(&[("a", &["a"])]).len(), 1);
    }
}
