//! House rules for files that neither rustfmt nor clippy checks.

use std::path::Path;

/// A longer file must be divided. Tests may be longer.
const LINES_MAX: usize = 500;

/// Unfinished code, which must not enter the main branch.
const UNFINISHED: [&str; 6] =
    ["todo!(", "unimplemented!(", "dbg!(", "#[ignore]", concat!("TO", "DO"), concat!("FIX", "ME")];

/// Returns one finding for each file or line that breaks a rule.
pub(crate) fn check(root: &Path) -> Result<Vec<String>, String> {
    let mut findings = Vec::new();
    for file in tracked(root, "*.rs")? {
        let text = crate::read(root, &file)?;
        findings.extend(length_finding(&file, &text));
        if file != "xtask/src/tidy.rs" {
            findings.extend(line_findings(&file, &text));
        }
    }
    for file in tracked(root, "*.toml")?.into_iter().chain(tracked(root, "Makefile")?) {
        findings.extend(line_findings(&file, &crate::read(root, &file)?));
    }
    Ok(findings)
}

/// Returns the files under version control that match a pattern and still exist.
pub(crate) fn tracked(root: &Path, pattern: &str) -> Result<Vec<String>, String> {
    let listing = crate::output_of("git", &["ls-files", "--", pattern], root)?;
    Ok(listing.lines().filter(|file| root.join(file).exists()).map(Into::into).collect())
}

/// True if the whole file is test code.
pub(crate) fn is_test(file: &str) -> bool {
    file.ends_with("/tests.rs") || file.contains("/tests/") || file.starts_with("tests/")
}

fn length_finding(file: &str, text: &str) -> Option<String> {
    let lines = text.lines().count();
    (lines > LINES_MAX && !is_test(file)).then(|| format!("{file}: {lines} lines, more than {LINES_MAX}"))
}

fn line_findings(file: &str, text: &str) -> Vec<String> {
    let mut findings = Vec::new();
    for (index, line) in text.lines().enumerate() {
        let place = format!("{file}:{}", index + 1);
        if line.ends_with([' ', '\t']) {
            findings.push(format!("{place}: blanks at the end of the line"));
        }
        if let Some(found) = UNFINISHED.iter().find(|word| line.contains(*word)) {
            findings.push(format!("{place}: {found} left in"));
        }
    }
    if !text.is_empty() && !text.ends_with('\n') {
        findings.push(format!("{file}: no newline at the end"));
    }
    findings
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn long_files_are_found_unless_they_are_tests() {
        let text = "x\n".repeat(LINES_MAX + 1);
        assert!(length_finding("crates/wire/src/tcp.rs", &text).is_some());
        assert!(length_finding("crates/wire/src/tcp/tests.rs", &text).is_none());
        assert!(length_finding("crates/wire/src/tcp.rs", "x\n").is_none());
    }

    #[test]
    fn unfinished_work_and_stray_blanks_are_found() {
        assert_eq!(line_findings("f", "fn f() { todo!() }\n").len(), 1);
        assert_eq!(line_findings("f", "x \n").len(), 1);
        assert_eq!(line_findings("f", "x").len(), 1);
        assert!(line_findings("f", "fn f() {}\n").is_empty());
    }
}
