//! Tests that the program reads the examples of docs/reference/scenario.md.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

use super::{load_file, parse_text};

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..")
}

fn document() -> String {
    std::fs::read_to_string(root().join("docs/reference/scenario.md")).unwrap()
}

/// Fenced blocks whose first line is exactly "```kind".
fn blocks(document: &str, kind: &str) -> Vec<String> {
    let mut blocks = Vec::new();
    let mut lines = document.lines();
    while let Some(line) = lines.next() {
        if line.strip_prefix("```") == Some(kind) {
            blocks.push(lines.by_ref().take_while(|line| *line != "```").collect::<Vec<_>>().join("\n"));
        } else if line.starts_with("```") {
            let _ = lines.by_ref().take_while(|line| *line != "```").count();
        }
    }
    blocks
}

/// Dotted keys of tables; entries of arrays get no index.
fn keys(value: &toml::Value, prefix: &str, found: &mut BTreeSet<String>) {
    match value {
        toml::Value::Table(table) => {
            for (key, inner) in table {
                let path = if prefix.is_empty() { key.clone() } else { format!("{prefix}.{key}") };
                found.insert(path.clone());
                keys(inner, &path, found);
            }
        }
        toml::Value::Array(entries) => entries.iter().for_each(|entry| keys(entry, prefix, found)),
        _ => {}
    }
}

#[test]
fn every_documented_scenario_parses() {
    let whole = blocks(&document(), "toml");
    assert_eq!(whole.len(), 2);
    for text in whole {
        parse_text(&text).unwrap_or_else(|error| panic!("{error}\n{text}"));
    }
}

#[test]
fn every_documented_path_parses() {
    let document = document();
    for text in blocks(&document, "toml path") {
        let path: super::Path = toml::from_str(&text).unwrap_or_else(|error| panic!("{error}\n{text}"));
        path.resolve(Path::new("")).unwrap_or_else(|error| panic!("{error}\n{text}"));
    }
    for text in blocks(&document, "toml trace") {
        toml::from_str::<super::Path>(&text).unwrap_or_else(|error| panic!("{error}\n{text}"));
    }
}

#[test]
fn every_documented_topology_parses() {
    let topologies = blocks(&document(), "toml topology");
    assert_eq!(topologies.len(), 4);
    for text in topologies {
        let whole = format!("name = \"x\"\nduration = \"5s\"\n{text}\n[[flows]]\nname = \"download\"\n");
        parse_text(&whole).unwrap_or_else(|error| panic!("{error}\n{text}"));
    }
}

#[test]
fn every_documented_key_is_in_the_example() {
    let document = document();
    let example: toml::Value = toml::from_str(&blocks(&document, "toml")[1]).unwrap();
    let mut found = BTreeSet::new();
    keys(&example, "", &mut found);
    let first_cells =
        document.lines().filter(|line| line.starts_with("| `")).filter_map(|line| line.split('|').nth(1));
    let documented: Vec<&str> = first_cells.flat_map(|cell| cell.split('`').skip(1).step_by(2)).collect();
    assert!(documented.len() > 50, "{}", documented.len());
    let profiles = [
        "off", "null", "window", "schedule", "local", "proactive", "thesis", "full", "drwa", "split",
        "kernel-split", "auto",
    ];
    for key in documented.into_iter().filter(|key| !profiles.contains(key)) {
        assert!(found.contains(key), "{key} is documented and not in the example");
    }
}

#[test]
fn every_scenario_of_the_repository_parses() {
    let folders = [
        "scenarios", "scenarios/accelerator", "scenarios/bound", "scenarios/changing",
        "scenarios/comparators", "scenarios/regression", "scenarios/rivals", "scenarios/rre",
        "scenarios/split", "scenarios/uploads", "scenarios/auto",
    ]
    .map(|folder| root().join(folder));
    let mut count = 0;
    for entry in folders.iter().flat_map(|folder| std::fs::read_dir(folder).unwrap()) {
        let path = entry.unwrap().path();
        if path.extension().is_none_or(|extension| extension != "toml") {
            continue;
        }
        count += 1;
        match load_file(&path, None) {
            Ok(file) => assert_eq!(Some(file.base.name.as_str()), path.file_stem().and_then(|s| s.to_str())),
            // Recorded traces are not part of the repository.
            Err(error) => assert!(error.to_string().contains("cannot read trace"), "{error}"),
        }
    }
    assert!(count >= 18, "{count}");
}
