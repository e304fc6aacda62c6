//! Every link of a page must lead somewhere. Every page that any file names must exist, and every source that a page
//! names.

use std::path::Path;

/// Extensions of files under docs/ that other files name.
const NAMED: [&str; 4] = [".md", ".toml", ".svg", ".png"];

/// Files whose text names pages: sources, scripts, data.
const WITH_NAMES: [&str; 8] =
    ["*.md", "*.rs", "*.toml", "*.py", "Makefile", "NOTICE", "scripts/*", "tests/*/prove"];

/// Pages that name the source files of a behaviour.
const PAGES_OF_SOURCES: [&str; 2] = ["ARCHITECTURE.md", "CONTRIBUTING.md"];

/// Returns one finding for each link and each name without a file.
pub(crate) fn check(root: &Path) -> Result<Vec<String>, String> {
    let mut findings = Vec::new();
    for page in crate::tidy::tracked(root, "*.md")? {
        let text = crate::read(root, &page)?;
        let folder = root.join(&page).parent().map(Path::to_path_buf).unwrap_or_default();
        let dead = targets(&text).into_iter().filter(|(_, target)| !leads_somewhere(&folder, &text, target));
        findings
            .extend(dead.map(|(line, target)| format!("{page}:{line}: the link to {target} leads nowhere")));
    }
    for pattern in WITH_NAMES {
        for file in crate::tidy::tracked(root, pattern)? {
            let bytes = std::fs::read(root.join(&file)).map_err(|error| format!("{file}: {error}"))?;
            let text = String::from_utf8_lossy(&bytes);
            let missing = named(&text).into_iter().filter(|name| !root.join(name).exists());
            findings.extend(missing.map(|name| format!("{file}: names {name}, which is not there")));
        }
    }
    for page in PAGES_OF_SOURCES {
        let text = crate::read(root, page)?;
        let is_there = |name: &str| root.join("crates").join(name).exists() || root.join(name).exists();
        let missing = sources(&text).into_iter().filter(|name| !is_there(name));
        findings.extend(missing.map(|name| format!("{page}: names {name}, which is not there")));
    }
    Ok(findings)
}

/// Returns the targets of a page's links, with their lines. Links in code do not count.
fn targets(page: &str) -> Vec<(usize, String)> {
    let (mut found, mut fenced) = (Vec::new(), false);
    for (index, line) in page.lines().enumerate() {
        if line.trim_start().starts_with("```") {
            fenced = !fenced;
        }
        if fenced || line.starts_with("    ") {
            continue;
        }
        let text: String = line.split('`').step_by(2).collect();
        let links = text.split("](").skip(1).filter_map(|rest| rest.split_once(')'));
        found.extend(links.map(|(target, _)| (index + 1, target.to_owned())));
    }
    found
}

fn leads_somewhere(folder: &Path, page: &str, target: &str) -> bool {
    if target.starts_with("http") {
        return true;
    }
    let (file, heading) = target.split_once('#').unwrap_or((target, ""));
    let path = folder.join(file);
    if !path.exists() {
        return false;
    }
    let text =
        if file.is_empty() { page.to_owned() } else { std::fs::read_to_string(path).unwrap_or_default() };
    heading.is_empty() || text.lines().any(|line| line.starts_with('#') && anchor(line) == heading)
}

/// Returns a heading's anchor.
fn anchor(heading: &str) -> String {
    let words = heading.trim_start_matches('#').trim().to_lowercase();
    let kept = words.chars().filter(|c| c.is_alphanumeric() || [' ', '-', '_'].contains(c));
    kept.map(|c| if c == ' ' { '-' } else { c }).collect()
}

/// Returns the files under docs/ that a text names.
fn named(text: &str) -> Vec<&str> {
    let is_part = |c: char| c.is_ascii_alphanumeric() || "_-./".contains(c);
    text.split(|c| !is_part(c))
        .map(|word| word.trim_end_matches('.').trim_start_matches("/../").trim_start_matches("../"))
        .filter(|word| word.starts_with("docs/") && NAMED.iter().any(|ending| word.ends_with(ending)))
        .collect()
}

/// Returns the sources that a page names in code: `gateway/src/flow/` or `crates/gateway/src/table.rs`, below
/// crates/. A name in capitals is a placeholder.
fn sources(page: &str) -> Vec<&str> {
    page.split('`')
        .skip(1)
        .step_by(2)
        .map(|code| code.strip_prefix("crates/").unwrap_or(code))
        .filter(|code| code.contains("/src/") || code.contains("/tests/"))
        .filter(|code| !code.contains(|c: char| c.is_uppercase() || c.is_whitespace() || c == '*'))
        .filter(|code| code.ends_with(".rs") || code.ends_with('/'))
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn links_are_found_outside_of_code() {
        let page = "[a](b.md) `[c](d.md)` ![e](f.svg)\n```\n[g](h.md)\n```\n    [i](j.md)\n[k](#l)\n";
        let found: Vec<String> = targets(page).into_iter().map(|(line, to)| format!("{line} {to}")).collect();
        assert_eq!(found, ["1 b.md", "1 f.svg", "6 #l"]);
    }

    #[test]
    fn a_dead_link_is_found_and_a_dead_heading_too() {
        let folder = Path::new(env!("CARGO_MANIFEST_DIR"));
        let page = "## What it `does`, now\n";
        for alive in
            ["src", "Cargo.toml", "#what-it-does-now", "https://example.org", "../README.md#paceline"]
        {
            assert!(leads_somewhere(folder, page, alive), "{alive}");
        }
        for dead in ["no-such-file.md", "#what", "../README.md#no-such-heading"] {
            assert!(!leads_somewhere(folder, page, dead), "{dead}");
        }
    }

    #[test]
    fn names_of_pages_are_found_in_any_text() {
        let page = concat!("docs/", "a/b.md");
        let plot = concat!("docs/", "c.svg");
        let text = format!("see {page}. include_str!(\"../../{plot}\") docs/folder /usr/docs/x.md");
        assert_eq!(named(&text), [page, plot]);
    }

    #[test]
    fn sources_are_named_below_crates() {
        let page = "`crates/tcp/src/rtt.rs` `gateway/src/flow/` `tcp/src/congestion/NAME.rs` `make test` tcp/src/a.rs";
        assert_eq!(sources(page), ["tcp/src/rtt.rs", "gateway/src/flow/"]);
    }

    /// `make test` runs this, so that a moved page fails the test if files still name it.
    #[test]
    fn no_link_of_ours_is_dead() {
        let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("..");
        assert_eq!(check(&root).unwrap(), [""; 0]);
    }
}
