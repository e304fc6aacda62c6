//! Measures rules for the bound on the bottleneck queue in a small model and prints Markdown tables.
//!
//! `cargo run --release -p paceline-gateway --example queue_bound -- [--traces DIR] [--write docs/design/queue-bound.md]`
//!
//! Recorded traces are read from DIR, or from `../shared/traces`. Without them, their tables are left out. With
//! `--write` the tables replace the text between the two marks of that file.

#![allow(clippy::print_stdout, clippy::expect_used, reason = "a measuring program")]

mod cubic;
mod link;
mod measure;
mod model;
mod rules;
mod tables;

use std::fs;
use std::path::PathBuf;

const BEGIN: &str = "<!-- measured: begin -->";
const END: &str = "<!-- measured: end -->";

fn main() {
    let mut traces = PathBuf::from("../shared/traces");
    let mut write = None;
    let mut arguments = std::env::args().skip(1);
    while let Some(argument) = arguments.next() {
        match argument.as_str() {
            "--traces" => traces = arguments.next().expect("--traces needs a directory").into(),
            "--write" => write = Some(PathBuf::from(arguments.next().expect("--write needs a file"))),
            other => {
                eprintln!("unknown argument `{other}`; known are --traces DIR and --write FILE");
                std::process::exit(2);
            }
        }
    }
    let text = tables::all(&traces);
    let Some(file) = write else {
        println!("{text}");
        return;
    };
    let old = fs::read_to_string(&file).expect("the file of --write can be read");
    let (before, rest) = old.split_once(BEGIN).expect("the file of --write has the first mark");
    let (_, after) = rest.split_once(END).expect("the file of --write has the second mark");
    fs::write(&file, format!("{before}{BEGIN}\n\n{text}\n{END}{after}")).expect("the file can be written");
}
