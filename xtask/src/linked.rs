//! The operator's program must not link the lab. A program in front of subscribers carries no code for plots or
//! experiments.

use std::path::Path;

/// Crates that only the lab or `paceline top` needs.
const NOT_OF_THE_OPERATOR: [&str; 9] = [
    "parquet", "ratatui", "plotters", "indicatif", "paceline-experiments", "paceline-sim", "paceline-lab",
    "paceline-theory", "paceline-judge",
];

/// Returns a finding for each of these crates that the program without features, or the running gateway, links. Also
/// one for each that the whole program no longer links.
pub(crate) fn check(root: &Path) -> Result<Vec<String>, String> {
    let tree = |package: &str, features: &[&str]| {
        let mut arguments = vec!["tree", "--locked", "--package", package];
        arguments.extend(["--edges", "normal", "--prefix", "none", "--format", "{p}"]);
        arguments.extend(features);
        crate::output_of("cargo", &arguments, root)
    };
    let operator = [
        ("crates/cli without features", tree("paceline-cli", &["--no-default-features"])?),
        ("crates/service", tree("paceline-service", &[])?),
    ];
    Ok(findings(&operator, &tree("paceline-cli", &[])?))
}

fn findings(operator: &[(&str, String)], whole: &str) -> Vec<String> {
    let has = |tree: &str, name: &str| tree.lines().any(|line| line.split(' ').next() == Some(name));
    let linked = operator.iter().flat_map(|(program, tree)| {
        let found = NOT_OF_THE_OPERATOR.iter().filter(|name| has(tree, name));
        found.map(move |name| format!("{program} links {name}"))
    });
    // A crate that is gone from the whole program proves nothing.
    let gone = NOT_OF_THE_OPERATOR.iter().filter(|name| !has(whole, name));
    linked.chain(gone.map(|name| format!("crates/cli does not link {name}: xtask/src/linked.rs"))).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_linked_and_what_is_gone_is_found() {
        let whole: String = NOT_OF_THE_OPERATOR.iter().map(|name| format!("{name} v1.0.0\n")).collect();
        let operator = |tree: &str| [("it", tree.to_owned())];
        assert!(findings(&operator("paceline-cli v0.1.0\nparquet-like v1.0.0\n"), &whole).is_empty());
        assert_eq!(findings(&operator("parquet v1.0.0\n"), &whole), ["it links parquet"]);
        assert_eq!(findings(&operator(""), "").len(), NOT_OF_THE_OPERATOR.len());
    }
}
