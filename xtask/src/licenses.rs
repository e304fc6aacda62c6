//! Every dependency must have a licence that deny.toml allows.

use std::path::Path;

use serde::Deserialize;

#[derive(Deserialize)]
struct Deny {
    licenses: Licenses,
}

#[derive(Deserialize)]
struct Licenses {
    allow: Vec<String>,
}

#[derive(Deserialize)]
struct Metadata {
    packages: Vec<Package>,
}

#[derive(Deserialize)]
struct Package {
    name: String,
    version: String,
    license: Option<String>,
}

/// Returns one finding for each dependency without an allowed licence.
pub(crate) fn check(root: &Path) -> Result<Vec<String>, String> {
    let deny: Deny = crate::read_toml(root, "deny.toml")?;
    let arguments = ["metadata", "--format-version", "1", "--locked"];
    let metadata: Metadata = serde_json::from_str(&crate::output_of("cargo", &arguments, root)?)
        .map_err(|error| format!("cargo metadata: {error}"))?;
    Ok(metadata.packages.iter().filter_map(|package| finding(package, &deny.licenses.allow)).collect())
}

fn finding(package: &Package, allowed: &[String]) -> Option<String> {
    let Package { name, version, license } = package;
    let Some(license) = license else {
        return Some(format!("{name} {version}: states no licence"));
    };
    // Some older crates write "MIT/Apache-2.0", which crates.io interpreted as OR.
    let expression = match spdx::Expression::parse_mode(license, spdx::ParseMode::LAX) {
        Ok(expression) => expression,
        Err(error) => return Some(format!("{name} {version}: licence {license:?}: {}", error.reason)),
    };
    let is_allowed = expression.evaluate(|requirement| {
        allowed.iter().any(|name| requirement.license.id().is_some_and(|id| id.name == name))
    });
    (!is_allowed).then(|| format!("{name} {version}: licence {license} is not allowed by deny.toml"))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn verdict(license: Option<&str>) -> bool {
        let package = Package { name: "x".into(), version: "1.0.0".into(), license: license.map(Into::into) };
        finding(&package, &["MIT".into(), "Apache-2.0".into()]).is_none()
    }

    #[test]
    fn one_allowed_alternative_is_enough_and_all_of_a_conjunction_are_needed() {
        assert!(verdict(Some("MIT OR GPL-3.0-only")));
        assert!(verdict(Some("MIT/Apache-2.0")));
        assert!(!verdict(Some("MIT AND GPL-3.0-only")));
        assert!(!verdict(Some("GPL-3.0-only")));
        assert!(!verdict(None));
    }
}
