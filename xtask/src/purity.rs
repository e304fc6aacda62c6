//! The crates wire, path, gateway, tcp and theory use no clock, no I/O, no environment and no machine randomness.
//!
//! They are `#![no_std]`, so the compiler keeps the standard library out. This check finds code that brings it back:
//! `extern crate std` outside tests, or a dependency that reads the machine.

use std::path::Path;

const PURE: [&str; 5] = ["wire", "path", "gateway", "tcp", "theory"];

/// Crates that read a clock, a socket, the environment or the machine's random numbers.
const IMPURE_DEPENDENCIES: [&str; 12] = [
    "chrono", "fastrand", "getrandom", "libc", "mio", "nix", "rand_os", "rustix", "socket2", "time", "tokio",
    "web-time",
];

/// Names that the machine seeds, each with its replacement.
const BANNED: [(&str, &str); 4] = [
    ("RandomState", "a hasher with a fixed seed, so that a run repeats"),
    ("thread_rng", "a generator with a named seed"),
    ("OsRng", "a generator with a named seed"),
    ("core::arch", "the packet's own time: the virtual-time kernel does not see the processor's counters"),
];

/// Returns one finding for each crate or line that breaks the rule.
pub(crate) fn check(root: &Path) -> Result<Vec<String>, String> {
    let mut findings = Vec::new();
    for name in PURE {
        let lib = format!("crates/{name}/src/lib.rs");
        if !crate::read(root, &lib)?.contains("#![no_std]") {
            findings.push(format!("{lib}: must be #![no_std]"));
        }
        let package = format!("paceline-{name}");
        let tree = crate::output_of(
            "cargo",
            &["tree", "-p", &package, "-e", "normal", "--prefix", "none", "--locked"],
            root,
        )?;
        findings.extend(impure_dependencies(&tree).map(|found| format!("{package}: depends on {found}")));
        for file in crate::tidy::tracked(root, &format!("crates/{name}/src/*.rs"))? {
            if !crate::tidy::is_test(&file) {
                findings.extend(banned_lines(&file, &crate::read(root, &file)?));
            }
        }
    }
    Ok(findings)
}

fn impure_dependencies(tree: &str) -> impl Iterator<Item = &str> {
    tree.lines()
        .filter_map(|line| line.split_whitespace().next())
        .filter(|name| IMPURE_DEPENDENCIES.contains(name))
}

fn banned_lines(file: &str, text: &str) -> Vec<String> {
    let mut findings = Vec::new();
    let mut previous = "";
    for (index, line) in text.lines().enumerate() {
        if line.trim() == "mod tests {" {
            break; // Tests come last in a file.
        }
        if line.trim() == "extern crate std;"
            && !previous.contains("cfg(test)")
            && !previous.contains("cfg(any(test")
        {
            findings.push(format!("{file}:{}: `extern crate std` outside tests", index + 1));
        }
        for (name, remedy) in BANNED {
            if line.contains(name) && !line.trim_start().starts_with("//") {
                findings.push(format!("{file}:{}: {name} is banned; use {remedy}", index + 1));
            }
        }
        previous = line;
    }
    findings
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_standard_library_is_for_tests_only() {
        assert_eq!(banned_lines("f", "extern crate std;\n").len(), 1);
        assert!(banned_lines("f", "#[cfg(test)]\nextern crate std;\n").is_empty());
    }

    #[test]
    fn banned_names_are_found_in_code_but_not_in_comments_and_tests() {
        assert_eq!(banned_lines("f", "let x = RandomState::new();\n").len(), 1);
        assert!(banned_lines("f", "// no RandomState\nmod tests {\n  RandomState::new();\n}\n").is_empty());
    }

    #[test]
    fn dependencies_are_matched_by_whole_name() {
        assert_eq!(impure_dependencies("libm v0.2\nlibc v0.2 (*)\n").collect::<Vec<_>>(), ["libc"]);
    }
}
