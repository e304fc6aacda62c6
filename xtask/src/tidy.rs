//! House rules for files that neither rustfmt nor clippy checks.

use std::path::Path;

/// A longer file must be divided. Tests may be longer.
const LINES_MAX: usize = 500;

/// A struct of more fields must be divided, unless it is a configuration or has the layout of C.
const FIELDS_MAX: usize = 25;

/// Unfinished code, which must not enter the main branch.
const UNFINISHED: [&str; 6] =
    ["todo!(", "unimplemented!(", "dbg!(", "#[ignore]", concat!("TO", "DO"), concat!("FIX", "ME")];

/// Returns one finding for each file or line that breaks a rule.
pub(crate) fn check(root: &Path) -> Result<Vec<String>, String> {
    let mut findings = Vec::new();
    for file in tracked(root, "*.rs")? {
        let text = crate::read(root, &file)?;
        findings.extend(length_finding(&file, &text));
        findings.extend(field_findings(&file, &text));
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

/// Reports each struct of more than [`FIELDS_MAX`] fields. The code is formatted, so a struct ends with a `}` that is
/// indented as it is.
fn field_findings(file: &str, text: &str) -> Vec<String> {
    let lines: Vec<&str> = text.lines().collect();
    let mut findings = Vec::new();
    for (start, line) in lines.iter().enumerate() {
        let indent = line.len() - line.trim_start().len();
        let Some((_, rest)) = line.split_once("struct ").filter(|_| line.ends_with('{')) else { continue };
        let name: String = rest.chars().take_while(|c| c.is_ascii_alphanumeric()).collect();
        let mut attributes =
            lines[..start].iter().rev().take_while(|line| line.trim_start().starts_with("#["));
        let has_c_layout = attributes.any(|line| line.trim() == "#[repr(C)]");
        if line.trim_start().starts_with("//") || name.ends_with("Config") || has_c_layout {
            continue;
        }
        let end = format!("{}}}", " ".repeat(indent));
        let body = lines[start + 1..].iter().take_while(|line| **line != end);
        let is_field = |line: &&&str| {
            let words = line.get(indent + 4..).unwrap_or_default();
            let name = words.split_once(": ").map_or("", |(before, _)| before);
            let name = name.rsplit(' ').next().unwrap_or_default();
            let is_name = |c: char| c.is_ascii_lowercase() || c.is_ascii_digit() || c == '_';
            !words.starts_with([' ', '/', '#']) && !name.is_empty() && name.chars().all(is_name)
        };
        let fields = body.filter(is_field).count();
        if fields > FIELDS_MAX {
            findings
                .push(format!("{file}:{}: {name} has {fields} fields, more than {FIELDS_MAX}", start + 1));
        }
    }
    findings
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
    fn large_structs_are_found_unless_they_are_configurations() {
        let of = |name: &str, count: usize| {
            let fields: String =
                (0..count).map(|n| format!("    /// A: b.\n    pub(crate) f{n}: u8,\n")).collect();
            format!(
                "#[derive(Debug)]\npub struct {name}<'a> {{\n{fields}}}\n\nfn f() {{\n    let x: u8 = 1;\n}}\n"
            )
        };
        assert!(field_findings("a.rs", &of("Flow", FIELDS_MAX)).is_empty());
        assert_eq!(field_findings("a.rs", &of("Flow", FIELDS_MAX + 1)).len(), 1);
        assert!(field_findings("a.rs", &of("GatewayConfig", FIELDS_MAX + 1)).is_empty());
    }

    #[test]
    fn unfinished_work_and_stray_blanks_are_found() {
        assert_eq!(line_findings("f", "fn f() { todo!() }\n").len(), 1);
        assert_eq!(line_findings("f", "x \n").len(), 1);
        assert_eq!(line_findings("f", "x").len(), 1);
        assert!(line_findings("f", "fn f() {}\n").is_empty());
    }
}
