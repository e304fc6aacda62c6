//! The program as a user sees it: exit codes, one-line errors, and the commands that need no privilege.

#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

use std::fs;
use std::path::Path;

use assert_cmd::Command;
use predicates::prelude::*;
use predicates::str::{contains, is_match};

/// Returns a command for the program, with the words of a line.
fn paceline(line: &str) -> Command {
    let mut command = Command::cargo_bin("paceline").unwrap();
    command.args(line.split_whitespace());
    command
}

fn scenario(name: &str) -> String {
    format!("{}/../../scenarios/accelerator/{name}.toml", env!("CARGO_MANIFEST_DIR"))
}

#[test]
fn bad_arguments_end_with_code_2() {
    paceline("").assert().code(2);
    paceline("run x.toml --runs 0").assert().code(2);
    paceline("demo --duration 10").assert().code(2).stderr(contains("such as \"100ms\""));
    paceline("gateway --wan eth0").assert().code(2).stderr(contains("--radio"));
    paceline("gateway --wan a --radio b --tun t0").assert().code(2).stderr(contains("--clients"));
}

#[test]
fn output_that_cannot_be_written_is_an_error_and_one_that_nobody_reads_is_none() {
    let list = |stdout: std::process::Stdio| {
        let mut command = std::process::Command::new(env!("CARGO_BIN_EXE_paceline"));
        command.args(["run", &scenario("lossy"), "--list"]).stdout(stdout).output().unwrap()
    };
    let full = list(fs::File::options().write(true).open("/dev/full").unwrap().into());
    assert_eq!(full.status.code(), Some(1));
    let told = String::from_utf8(full.stderr).unwrap();
    assert!(told.starts_with("paceline: cannot write to standard output: "), "{told}");
    assert_eq!(told.lines().count(), 1);
    let (reader, writer) = std::io::pipe().unwrap();
    drop(reader);
    let closed = list(writer.into());
    assert!(closed.status.success() && closed.stderr.is_empty(), "{closed:?}");
}

#[test]
fn a_missing_scenario_is_named() {
    paceline("run nosuch.toml").assert().code(2).stderr(
        is_match(r"^paceline: cannot read scenario nosuch.toml: .*; give the path of a .toml file\n$")
            .unwrap(),
    );
}

#[test]
fn a_wrong_key_is_told_with_file_line_and_suggestion() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("wrong.toml");
    fs::write(&path, "name = \"x\"\nduration = \"10s\"\n[radio]\nrt = \"100ms\"\n[[flows]]\nname = \"d\"\n")
        .unwrap();
    paceline("run")
        .arg(&path)
        .assert()
        .code(2)
        .stderr(contains("wrong.toml:4: unknown key `rt`; did you mean `rtt`?"));
}

#[test]
fn variants_are_listed_and_chosen() {
    let path = scenario("window-limited");
    paceline("run --list").arg(&path).assert().success().stdout("unaccelerated\naccelerated\n");
    paceline("run")
        .args([&scenario("lossy"), "--list", "--only", "accelerated,loss=1%"])
        .assert()
        .success()
        .stdout("accelerated,client=17kb,loss=1%\naccelerated,client=192kb,loss=1%\n");
    paceline("run")
        .args([&path, "--only", "fast"])
        .assert()
        .code(2)
        .stderr(contains("there are: unaccelerated accelerated"));
}

#[test]
fn several_workers_behind_a_tun_are_refused_in_one_line() {
    paceline("gateway --wan a --radio b --workers 2 --tun t0 --clients 10.0.0.0/8")
        .assert()
        .code(2)
        .stderr(is_match("^paceline: several workers need a bridge.*--tun\n$").unwrap());
}

#[test]
fn a_configuration_error_of_the_gateway_has_its_line() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("g.toml");
    fs::write(&path, "[limits]\nmax-flow = 3\n").unwrap();
    paceline("gateway --wan a --radio b --config")
        .arg(&path)
        .assert()
        .code(2)
        .stderr(contains("g.toml:2: unknown key `max-flow`; did you mean `max-flows`?"));
}

#[test]
fn traces_are_made_converted_and_described() {
    let folder = tempfile::tempdir().unwrap();
    let file = |name: &str| folder.path().join(name);
    let generate = |name: &str| {
        paceline("trace generate lte-driving --length 30s --mean 10mbit --seed 7 --out")
            .arg(file(name))
            .assert()
            .success();
    };
    generate("one");
    generate("two");
    assert_eq!(fs::read(file("one")).unwrap(), fs::read(file("two")).unwrap());
    let info = |path: &Path| {
        paceline("trace info").arg(path).assert().success().stdout(
            is_match(r"length +30\.000 s")
                .unwrap()
                .and(is_match(r"mean rate +(10\.0|9\.9)\d\d Mbit/s").unwrap()),
        );
    };
    info(&file("one"));
    paceline("trace convert --to csv --window 100ms")
        .arg(file("one"))
        .arg("--out")
        .arg(file("csv"))
        .assert()
        .success();
    assert!(fs::read_to_string(file("csv")).unwrap().starts_with("second,mbps\n"));
    paceline("trace plot").arg(file("one")).arg("--out").arg(file("x.svg")).assert().success();
    assert!(fs::read_to_string(file("x.svg")).unwrap().contains("rate (Mbit/s)"));
}

#[test]
fn a_broken_trace_is_told_with_its_line() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("t");
    fs::write(&path, "1\n2\nx\n").unwrap();
    paceline("trace info").arg(&path).assert().code(2).stderr(contains("line 3: `x` is not a whole number"));
    paceline("trace info nosuch").assert().code(2).stderr(contains("cannot read trace nosuch"));
}

#[test]
fn predictions_are_printed_or_refused_in_a_line() {
    let path = "predict --rate 20mbit --rtt 100ms";
    paceline(path).args(["--burst", "50"]).assert().success().stdout(contains("29.4 %"));
    paceline(path).arg("--json").assert().success().stdout(contains("\"least_bdp_packets\""));
    paceline(path)
        .args(["--burst", "500"])
        .assert()
        .code(2)
        .stderr(is_match("^paceline: --burst: .*\n$").unwrap());
    paceline("predict --rate 20 --rtt 1s").assert().code(2).stderr(contains("7.2mbit"));
}

/// Returns arguments for `window-limited` in the simulator, with a folder for its results.
fn simulated(folder: &Path) -> Vec<String> {
    let path = scenario("window-limited");
    ["run", &path, "--on", "sim", "--duration", "3s", "--out"]
        .map(String::from)
        .into_iter()
        .chain([folder.display().to_string()])
        .collect()
}

#[test]
fn a_scenario_runs_in_the_simulator_without_privilege() {
    let folder = tempfile::tempdir().unwrap();
    paceline("")
        .args(simulated(folder.path()))
        .assert()
        .success()
        .stdout(contains("accelerated").and(contains("On: sim")));
    assert!(folder.path().join("accelerated-seed1.senders.csv").exists());
    paceline("")
        .args(simulated(folder.path()))
        .arg("--json")
        .assert()
        .success()
        .stdout(contains("\"on\": \"sim\""))
        .stderr(contains("2 of 2 runs, in"));
}

#[test]
fn what_the_simulator_cannot_do_is_told_before_anything_runs() {
    paceline("run")
        .args([&scenario("failure"), "--on", "sim"])
        .assert()
        .code(2)
        .stderr(is_match("^paceline: variant `.*`: gateway.events: .*--on lab\n$").unwrap());
}

#[test]
fn a_sweep_goes_on_where_it_was() {
    let folder = tempfile::tempdir().unwrap();
    let sweep = |losses: &str| {
        let mut command = paceline("sweep");
        command
            .args([&scenario("window-limited"), "--only", "unaccelerated", "--duration", "3s"])
            .args(["--runs", "2", "--vary", &format!("radio.down.loss={losses}"), "--out"])
            .arg(folder.path());
        command.assert().success()
    };
    let one = "{independent=\"0.1%\"}";
    sweep(one).stdout(contains("±")).stderr("");
    let first = fs::read(folder.path().join("means.csv")).unwrap();
    sweep(one).stderr(contains("2 of 2 runs, in"));
    assert_eq!(fs::read(folder.path().join("means.csv")).unwrap(), first);
    sweep(&format!("{one},{{independent=\"1%\"}}")).stderr(contains("2 of 4 runs, in"));
    let runs = fs::read_to_string(folder.path().join("runs.csv")).unwrap();
    assert!(runs.starts_with("variant,radio.down.loss,seed,flow,"), "{runs}");
    assert_eq!(runs.lines().count(), 5);
    assert!(folder.path().join("means.parquet").exists() && folder.path().join("runs.parquet").exists());
}

#[test]
fn a_sweep_names_what_it_cannot_vary() {
    let refused = |vary: &str, why: &str| {
        let command = ["sweep", &scenario("window-limited"), "--vary", vary];
        paceline("").args(command).assert().code(2).stderr(contains(why));
    };
    refused("radio.rt=1ms,2ms", "did you mean `rtt`?");
    refused("radio.rtt", "no `=`");
    refused("flows.3.size=1mb", "--vary: `flows.3.size`: there are 1 entries");
}

#[test]
fn a_table_is_reproduced() {
    paceline("reproduce or --table 16").assert().code(2);
    let folder = tempfile::tempdir().unwrap();
    let table = || {
        let mut command = paceline("reproduce or --table 4 --runs 1 --json --out");
        command.arg(folder.path()).assert().success()
    };
    let first = table().stderr("").get_output().stdout.clone();
    let report: serde_json::Value = serde_json::from_slice(&first).unwrap();
    let cells = report["cells"].as_array().unwrap();
    assert_eq!(cells.len(), 24);
    assert!(cells.iter().all(|cell| cell["value"].is_f64() && cell["published"].is_f64()));
    let bounds = report["bounds"].as_array().unwrap();
    let has = |bound: &serde_json::Value, key: &str| bound.get(key).is_some();
    assert!(
        bounds.iter().all(|bound| ["name", "bound", "measured", "holds"].iter().all(|key| has(bound, key)))
    );
    // docs/evidence/reproduction.md is not made from a part of the runs.
    assert!(!folder.path().join("or.json").exists());
    // Nothing runs twice, and the output is the same.
    assert_eq!(table().stderr(contains("13 of 13 runs, in")).get_output().stdout, first);
}

#[test]
fn help_names_units_and_exit_codes() {
    paceline("--help")
        .assert()
        .success()
        .stdout(contains("130 interrupted").and(contains("Numbers need units")));
    for command in ["demo", "run", "sweep", "reproduce", "predict", "gateway", "emulate", "trace", "bench"] {
        paceline(command).arg("--help").assert().success();
    }
}

#[test]
fn a_policy_is_checked_without_privilege() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("policy.toml");
    fs::write(&path, "[[rule]]\nport = 22\nmode = \"pass\"\n").unwrap();
    paceline("gateway --check").arg(&path).assert().success().stdout(contains(
        "policy.toml: all right: 1 rule for flows, 0 rules for subscribers, other flows auto",
    ));
    fs::write(&path, "[[rule]]\nport = 22\nmode = \"drop\"\n").unwrap();
    paceline("gateway --check")
        .arg(&path)
        .assert()
        .code(2)
        .stderr(contains("policy.toml:3: unknown value `drop`"));
}

#[test]
fn who_looks_at_no_gateway_is_told() {
    for command in ["flows", "top"] {
        paceline(command).args(["--control", "/nosuch/gateway.sock"]).assert().code(1).stderr(
            is_match(r"^paceline: no gateway answers at /nosuch/gateway.sock; is it running\?\n$").unwrap(),
        );
    }
}

#[test]
fn wrong_interfaces_leave_no_file() {
    let folder = tempfile::tempdir().unwrap();
    for (wan, radio, more, told) in [
        ("nosuch0", "nosuch1", "", "there is no interface nosuch0"),
        ("lo", "nosuch1", "", "there is no interface nosuch1"),
        ("lo", "lo", "", "--wan and --radio are both lo"),
        ("lo", "nosuch1", "--workers=2", "there is no interface nosuch1"),
    ] {
        let mut command = paceline("gateway");
        command.args(["--wan", wan, "--radio", radio]);
        command.args(more.split_terminator(' ')).arg("--shift-file").arg(folder.path().join("shifts"));
        command.assert().code(2).stderr(contains(told));
        assert_eq!(fs::read_dir(folder.path()).unwrap().count(), 0);
    }
}

#[test]
fn metrics_are_for_this_machine_only() {
    let folder = tempfile::tempdir().unwrap();
    paceline("gateway --wan nosuch0 --radio nosuch1 --metrics 0.0.0.0:9100 --shift-file")
        .arg(folder.path().join("shifts"))
        .assert()
        .code(2)
        .stderr(contains("give a loopback address such as 127.0.0.1:9100"));
}

#[test]
fn the_doctor_names_what_is_missing_and_what_to_do() {
    let output = paceline("gateway doctor --wan nosuch0 --radio nosuch1 --json")
        .assert()
        .code(1)
        .get_output()
        .stdout
        .clone();
    let report: serde_json::Value = serde_json::from_slice(&output).unwrap();
    assert_eq!(report["schema"], 1);
    let findings = report["findings"].as_array().unwrap();
    let missing = findings.iter().find(|one| one["subject"] == "nosuch0").unwrap();
    assert_eq!((&missing["status"], &missing["check"]), (&"problem".into(), &"interface".into()));
    assert!(missing["do"].as_str().unwrap().contains("ip link"));
}
