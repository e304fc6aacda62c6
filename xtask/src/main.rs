//! Checks and reports of this repository.
//!
//! - `cargo xtask check`: before every commit.
//! - `cargo xtask results`: after the proofs. `verdicts`: after any page of evidence.
//! - `cargo xtask virtual-lab`, then `reproduction`: before and after `paceline reproduce`.
//! - `cargo xtask compare`, `rivals`, `split`, `auto`: after scripts/compare-traces, `make rivals`, `make split` and
//!   scripts/profiles.
//! - `cargo xtask advisories DIRECTORY`: with a newer checkout of the advisory database.
//! - `cargo xtask moved OLD NEW`: after the move of a file that sealed pages name. `reworded`: after sentences of
//!   sealed pages were rewritten.
//! - `cargo xtask circles`: lists files that use each other.

mod advisories;
mod arrows;
mod auto;
mod circles;
mod compare;
mod files;
mod fuzz;
mod licenses;
mod linked;
mod links;
mod model;
mod purity;
mod reproduction;
mod results;
mod rivals;
mod seal;
mod split;
mod tidy;
mod verdicts;
mod virtual_lab;
mod words;

use std::path::Path;
use std::process::ExitCode;

use files::{output_of, read, read_json, read_toml, write};

fn main() -> ExitCode {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("..");
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let findings = match arguments.first().map(String::as_str) {
        Some("check") => [
            tidy::check(&root),
            purity::check(&root),
            arrows::check(&root),
            circles::check(&root),
            linked::check(&root),
            licenses::check(&root),
            advisories::check(&root),
            fuzz::check(&root),
            seal::check(&root),
            links::check(&root),
            words::check(&root),
            verdicts::check(&root),
        ]
        .into_iter()
        .flat_map(|outcome| outcome.unwrap_or_else(|error| vec![error]))
        .collect(),
        Some("circles") => circles::list(&root).unwrap_or_else(|error| vec![error]),
        Some("advisories") if arguments.len() == 2 => {
            advisories::renew(&root, Path::new(&arguments[1])).unwrap_or_else(|error| vec![error])
        }
        Some("results") => results::write(&root).unwrap_or_else(|error| vec![error]),
        Some("reproduction") => reproduction::write(&root).unwrap_or_else(|error| vec![error]),
        Some("auto") => auto::write(&root).unwrap_or_else(|error| vec![error]),
        Some("compare") => compare::write(&root).unwrap_or_else(|error| vec![error]),
        Some("rivals") => rivals::write(&root).unwrap_or_else(|error| vec![error]),
        Some("split") => split::write(&root).unwrap_or_else(|error| vec![error]),
        Some("verdicts") => verdicts::write(&root).unwrap_or_else(|error| vec![error]),
        Some("reworded") => seal::reworded(&root).unwrap_or_else(|error| vec![error]),
        Some("moved") if arguments.len() == 3 => {
            seal::moved(&root, &arguments[1], &arguments[2]).unwrap_or_else(|error| vec![error])
        }
        Some("virtual-lab") => virtual_lab::write(&root).unwrap_or_else(|error| vec![error]),
        _ => {
            vec![
                "usage: cargo xtask check|circles|results|reproduction|compare|auto|rivals|split|verdicts|virtual-lab|reworded|advisories DIRECTORY|moved OLD NEW"
                    .to_string(),
            ]
        }
    };
    for finding in &findings {
        eprintln!("{finding}");
    }
    if findings.is_empty() { ExitCode::SUCCESS } else { ExitCode::FAILURE }
}
