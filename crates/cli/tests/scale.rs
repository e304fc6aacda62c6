//! Short runs of the tests in tests/scale (need root, python3 and iproute2).

#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

mod common;

use std::process::Command;

/// Runs a script of tests/scale with this program. The script reports what it skips.
fn script(name: &str, arguments: &[&str]) {
    if !common::is_permitted() {
        return;
    }
    let path = concat!(env!("CARGO_MANIFEST_DIR"), "/../../tests/scale/").to_owned() + name;
    let output = Command::new("python3")
        .arg(&path)
        .args(arguments)
        .env("PACELINE", common::PROGRAM)
        .env("PYTHONDONTWRITEBYTECODE", "1")
        .output();
    let Ok(output) = output else {
        eprintln!("skipped: python3 is missing");
        return;
    };
    let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
    print!("{}", text(&output.stdout));
    assert!(output.status.success(), "{}{}", text(&output.stdout), text(&output.stderr));
}

#[test]
fn a_gateway_of_three_goes_and_comes_back_under_load() {
    script("ecmp.py", &["9"]);
}

/// `PACELINE_INJECTION_RUNS=100` runs the full test, which takes some minutes.
#[test]
fn nobody_puts_bytes_into_a_download() {
    let runs = std::env::var("PACELINE_INJECTION_RUNS").unwrap_or_else(|_| "3".into());
    script("injection.py", &[&runs]);
}

/// The full test is `tests/scale/floods.py` (docs/evidence/scale.md). It also compares completion times with those
/// without floods.
#[test]
fn floods_cost_nobody_acceleration_or_memory() {
    script("floods.py", &["--short"]);
}

/// Not part of `make test`. Run it with `cargo test -p paceline-cli --test scale -- --ignored`.
#[test]
#[ignore = "takes over half a minute; the whole of it is half an hour (docs/evidence/scale.md)"]
fn half_a_minute_of_everything() {
    script("soak.py", &["30"]);
}
