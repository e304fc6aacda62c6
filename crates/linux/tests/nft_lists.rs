//! The `nft` program lists everything while tables of a gateway exist, also that of Debian 12 (1.0.6). Otherwise an
//! operator could see nothing at all.

#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

mod common;

use std::process::Command;

use paceline_gateway::Shifts;
use paceline_lab::netns::Netns;
use paceline_linux::nft::{FailOpen, FailOpenConfig, RescaleConfig, RescaleTable, base_chains};
use paceline_linux::{Fallback, Slice};
use paceline_wire::FlowKey;

use common::permitted;

const FORMS: [&[&str]; 5] = [
    &["list", "tables"],
    &["list", "ruleset"],
    &["-a", "list", "ruleset"],
    &["-j", "list", "tables"],
    &["-j", "list", "ruleset"],
];

/// Returns the output of `nft` in each form. Empty if `nft` is not installed.
fn listed(namespace: &Netns) -> Vec<String> {
    let mut all = Vec::new();
    for form in FORMS {
        let Ok(output) = namespace.run(|| Command::new("nft").args(form).output()).unwrap() else {
            eprintln!("skipped: there is no nft");
            return Vec::new();
        };
        let complaint = String::from_utf8_lossy(&output.stderr).into_owned();
        // In JSON output, nft 1.0.6 omits statements that change maps, with this warning.
        let is_bad = |line: &str| line != "warning: stmt ops map have no json callback";
        assert!(output.status.success() && !complaint.lines().any(is_bad), "nft {form:?}: {complaint}");
        let text = String::from_utf8_lossy(&output.stdout).into_owned();
        all.push(text);
    }
    all
}

/// In JSON output, nft 1.0.6 writes invalid JSON for the flags of any table with an owner.
fn assert_lists(namespace: &Netns, names: &[&str], is_owned: bool) {
    for (text, form) in listed(namespace).iter().zip(FORMS) {
        if form[0] == "-j" {
            assert!(text.starts_with("{\"nftables\":"), "nft {form:?}: {text}");
            assert!(is_owned || text.trim_end().ends_with("}]}"), "nft {form:?}: {text}");
            if is_owned {
                continue;
            }
        }
        for name in names {
            assert!(text.contains(name), "nft {form:?}: {text}");
        }
    }
}

#[test]
fn rules_of_a_gateway_are_listed() {
    if !permitted() {
        return;
    }
    let namespace = Netns::create("lists").unwrap();
    let base = || FailOpenConfig::new("lists", &["lo", "lo"], vec![[2, 0, 0, 0, 0, 1]]);
    let slice = Slice { index: 0, of: 2, prefix_v4: 32, prefix_v6: 64 };
    for config in [
        FailOpenConfig { ports: vec!["lo".into()], datagrams: true, ..base() },
        FailOpenConfig { ports: vec!["lo".into()], slice: Some(slice), datagrams: true, ..base() },
        FailOpenConfig { datagrams: true, ..FailOpenConfig::marking("lists", &["lo"], 0x0800_0000) },
    ] {
        let (rule, _) = namespace.run(|| FailOpen::install(&config)).unwrap().unwrap();
        assert_lists(&namespace, &["paceline-lists"], true);
        rule.remove().unwrap();
    }
}

#[test]
fn rescaled_and_split_flows_are_listed() {
    if !permitted() {
        return;
    }
    let namespace = Netns::create("lists").unwrap();
    for mark in [None, Some(0x0800_0000)] {
        let config = RescaleConfig::new("lists", &["lo"], mark);
        let table = namespace.run(|| RescaleTable::open(config)).unwrap().unwrap();
        let shifts = Shifts { client: 0, shown: 7, server: 7, added: true };
        let flow = |client: &str, server: &str| FlowKey {
            src: client.parse().unwrap(),
            dst: server.parse().unwrap(),
        };
        let flows = [
            (flow("10.0.0.2:40000", "10.0.0.1:80"), Fallback::Rescale(shifts)),
            (flow("[fd00::2]:40000", "[fd00::1]:80"), Fallback::Rescale(shifts)),
            (flow("10.0.0.3:40000", "10.0.0.1:80"), Fallback::Reset),
        ];
        table.replace(flows).unwrap();
        assert_lists(&namespace, &["paceline-lists-windows"], false);
        table.remove().unwrap();
    }
}

#[test]
fn the_chains_of_a_namespace_are_found() {
    if !permitted() {
        return;
    }
    let namespace = Netns::create("inspect").unwrap();
    assert_eq!(namespace.run(base_chains).unwrap().unwrap(), []);
    let config = FailOpenConfig::new("test", &["lo"], Vec::new());
    let _rule = namespace.run(|| FailOpen::install(&config)).unwrap().unwrap();
    let chains = namespace.run(base_chains).unwrap().unwrap();
    assert_eq!(chains.len(), 1);
    assert_eq!((chains[0].family, chains[0].hook, chains[0].drops), ("netdev", 0, false));
    assert_eq!(chains[0].interfaces, ["lo"]);
    assert!(chains[0].rules > 0);
}
