//! The unit of packaging/, judged by systemd (needs systemd-analyze of systemd 250 or later).

#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

use std::fs;
use std::process::{Command, Output};

/// Largest exposure in tenths, on a scale to ten. 2.6 remains because packets need CAP_NET_ADMIN, CAP_NET_RAW, the
/// machine's network, and its name for each subscriber.
const EXPOSURE_MAX_TENTHS: &str = "27";

fn analyze(arguments: &[&str], unit: &str) -> Option<Output> {
    let output = Command::new("systemd-analyze").args(arguments).arg("--man=no").arg(unit).output();
    output.inspect_err(|error| eprintln!("skipped: systemd-analyze: {error}")).ok()
}

#[test]
fn systemd_finds_nothing_wrong_with_the_unit_and_little_exposed() {
    let folder = tempfile::tempdir().unwrap();
    let source =
        fs::read_to_string(concat!(env!("CARGO_MANIFEST_DIR"), "/../../packaging/paceline-gateway.service"));
    // The test does not install the program.
    let unit = source.unwrap().replace("/usr/bin/paceline", env!("CARGO_BIN_EXE_paceline"));
    let path = folder.path().join("paceline-gateway.service");
    fs::write(&path, unit).unwrap();
    let path = path.to_str().unwrap();
    let Some(verified) = analyze(&["verify"], path) else { return };
    let said = String::from_utf8_lossy(&verified.stderr).into_owned();
    assert!(verified.status.success() && said.is_empty(), "{said}");
    let judged = ["security", "--offline=true", "--threshold", EXPOSURE_MAX_TENTHS];
    let Some(judged) = analyze(&judged, path) else { return };
    let table = String::from_utf8_lossy(&judged.stdout).into_owned();
    if table.is_empty() {
        return eprintln!("skipped: {}", String::from_utf8_lossy(&judged.stderr));
    }
    assert!(judged.status.success(), "{table}");
}
