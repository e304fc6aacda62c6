//! The bounds of scenarios/regression in the simulator, with all runs of each file.

use std::path::Path;

use paceline_judge::Misses;

use crate::result::{Run, check_bounds};
use crate::run::sim;
use crate::samples::{Nobody, each, root};
use crate::scenario::{ScenarioFile, Variant, load_file};

/// Returns what is wrong. Prints each bound that is known to be missed.
fn faults(path: &Path, misses: &Misses) -> Vec<String> {
    let ScenarioFile { folder, base, variants } = load_file(path, None).unwrap();
    let seeds = base.seed..base.seed + u64::from(base.runs);
    let jobs: Vec<(&Variant, u64)> =
        variants.iter().flat_map(|variant| seeds.clone().map(move |seed| (variant, seed))).collect();
    let runs: Vec<Run> =
        each(&jobs, |(variant, seed)| sim::execute(variant, *seed, &folder, None, &Nobody).unwrap());
    let mut faults = Vec::new();
    for bound in &base.bounds {
        let outcomes = check_bounds(std::slice::from_ref(bound), &runs);
        if outcomes.is_empty() {
            faults.push(format!("{}: no such variant: {bound:?}", base.name));
        }
        for outcome in outcomes {
            let measured = outcome.measured.map(|measured| measured.mean);
            let text = format!(
                "{} {} {}: {measured:?}, wanted {:?} to {:?}",
                base.name, outcome.variant, bound.metric, bound.min, bound.max
            );
            match (outcome.holds, misses.reason(&base.name, &outcome)) {
                (true, None) => {}
                (true, Some(_)) => faults.push(format!("holds, so it is no miss any more: {text}")),
                (false, Some(reason)) if misses.is_no_worse(&base.name, &outcome) => {
                    println!("MISSED {text}: {reason}");
                }
                (false, _) => faults.push(text),
            }
        }
    }
    faults
}

#[test]
fn the_bounds_hold_in_the_simulator() {
    let misses = std::fs::read_to_string(root().join("docs/evidence/differences.toml")).unwrap();
    let misses = toml::from_str(&misses).unwrap();
    let folder = std::fs::read_dir(root().join("scenarios/regression")).unwrap();
    let mut files: Vec<_> = folder.map(|entry| entry.unwrap().path()).collect();
    files.retain(|path| path.extension().is_some_and(|extension| extension == "toml"));
    files.sort();
    assert!(files.len() >= 15, "{files:?}");
    let faults: Vec<String> = files.iter().flat_map(|path| faults(path, &misses)).collect();
    assert!(faults.is_empty(), "{}", faults.join("\n"));
}
