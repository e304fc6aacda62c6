//! No dependency has a published advisory of RustSec.
//!
//! `cargo deny check advisories` queries the database. For machines without access to it, this check uses a dated
//! copy of its entries for all crates. `cargo xtask advisories DIRECTORY` renews the copy from a checkout of
//! <https://github.com/RustSec/advisory-db> (CC0-1.0).

use std::path::Path;

use semver::{Version, VersionReq};
use serde::{Deserialize, Serialize};

const FILE: &str = "advisories.json";

/// The copy of the database.
#[derive(Deserialize, Serialize)]
struct Copy {
    /// Date of its newest advisory.
    newest: String,
    advisories: Vec<Advisory>,
}

#[derive(Deserialize, Serialize)]
struct Advisory {
    id: String,
    package: String,
    /// Versions that are patched or were never affected.
    free: Vec<String>,
}

/// The head of a database file.
#[derive(Deserialize)]
struct Document {
    advisory: Head,
    #[serde(default)]
    versions: Versions,
}

#[derive(Deserialize)]
struct Head {
    id: String,
    package: String,
    date: String,
    withdrawn: Option<String>,
    informational: Option<String>,
}

#[derive(Default, Deserialize)]
#[serde(default)]
struct Versions {
    patched: Vec<String>,
    unaffected: Vec<String>,
}

#[derive(Deserialize)]
struct Lock {
    package: Vec<Locked>,
}

#[derive(Deserialize)]
struct Locked {
    name: String,
    version: Version,
    source: Option<String>,
}

/// Returns one finding for each dependency of the lock file that an advisory affects.
pub(crate) fn check(root: &Path) -> Result<Vec<String>, String> {
    let copy: Copy = crate::read_json(root, FILE)?;
    let lock: Lock = crate::read_toml(root, "Cargo.lock")?;
    let mut findings = Vec::new();
    for locked in lock.package.iter().filter(|locked| locked.source.is_some()) {
        for advisory in copy.advisories.iter().filter(|advisory| advisory.package == locked.name) {
            if advisory.affects(&locked.version)? {
                let Locked { name, version, .. } = locked;
                findings.push(format!(
                    "{name} {version}: {}; take a version of {}, or leave it out",
                    advisory.id,
                    advisory.free.join(" or ")
                ));
            }
        }
    }
    Ok(findings)
}

/// Renews the copy from a checkout of the database.
pub(crate) fn renew(root: &Path, database: &Path) -> Result<Vec<String>, String> {
    let (mut advisories, mut newest) = (Vec::new(), String::new());
    for file in files(&database.join("crates"))? {
        let text = crate::read(database, &file)?;
        let head = text.split("```").nth(1).and_then(|block| block.strip_prefix("toml"));
        let Document { advisory, versions } = toml::from_str(head.ok_or(format!("{file}: no head"))?)
            .map_err(|error| format!("{file}: {error}"))?;
        // An unmaintained crate is no fault, but an unsound one is.
        let is_fault = advisory.informational.as_deref().is_none_or(|kind| kind == "unsound");
        if advisory.withdrawn.is_none() && is_fault {
            let free = versions.patched.into_iter().chain(versions.unaffected).collect();
            newest = newest.max(advisory.date);
            advisories.push(Advisory { id: advisory.id, package: advisory.package, free });
        }
    }
    advisories.sort_by(|a, b| (&a.package, &a.id).cmp(&(&b.package, &b.id)));
    let text = serde_json::to_string(&Copy { newest, advisories }).map_err(|error| error.to_string())?;
    // One line for each advisory, so that a diff shows what has changed.
    let text = text.replace("},{", "},\n{") + "\n";
    crate::write(root, FILE, &text)?;
    Ok(Vec::new())
}

/// Returns the files of all crates, as paths in the database.
fn files(crates: &Path) -> Result<Vec<String>, String> {
    let entries = |path: &Path| {
        std::fs::read_dir(path)
            .and_then(Iterator::collect::<Result<Vec<_>, _>>)
            .map_err(|error| format!("{}: {error}; give a checkout of the database", path.display()))
    };
    let mut files = Vec::new();
    for directory in entries(crates)? {
        for file in entries(&directory.path())? {
            let name = |entry: &std::fs::DirEntry| entry.file_name().to_string_lossy().into_owned();
            files.push(format!("crates/{}/{}", name(&directory), name(&file)));
        }
    }
    Ok(files)
}

impl Advisory {
    fn affects(&self, version: &Version) -> Result<bool, String> {
        for free in &self.free {
            let free = VersionReq::parse(free).map_err(|error| format!("{}: {free}: {error}", self.id))?;
            if free.matches(version) {
                return Ok(false);
            }
        }
        Ok(true)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn affects(free: &[&str], version: &str) -> bool {
        let free = free.iter().map(ToString::to_string).collect();
        let advisory = Advisory { id: "RUSTSEC-0".into(), package: "x".into(), free };
        advisory.affects(&Version::parse(version).unwrap()).unwrap()
    }

    #[test]
    fn what_is_patched_or_was_never_affected_is_free() {
        assert!(affects(&[">= 0.7.1"], "0.7.0"));
        assert!(!affects(&[">= 0.7.1"], "0.12.5"));
        assert!(!affects(&[">= 0.7.1", "< 0.3.0"], "0.2.9"));
        assert!(affects(&[], "1.0.0"), "nothing is patched");
    }
}
