//! Seals of generated pages. A seal has the commit, and the digests of the page's sources and of its text. So a
//! figure changed by hand is found.
//!
//! A seal is a line. It covers the text from the seal before it, or from the begin of the page's generated part.

use std::path::Path;

use sha2::{Digest, Sha256};

const OPENING: &str = "<!-- sealed: ";
const CLOSING: &str = " -->";
/// Begin of the generated part in a page that is partly written by hand.
const BEGIN: &str = "<!-- measured: begin -->";
/// Pages with seals, and the samples of each part, in order. Some pages have no samples
/// (crates/experiments/src/samples.rs gives the reason).
const PAGES: [(&str, &[&str]); 6] = [
    ("docs/evidence/reproduction.md", &["or", "printed", "accelerator", "ncl", "rre", "drwa"]),
    ("docs/evidence/split.md", &["split"]),
    ("docs/evidence/rivals.md", &["rivals"]),
    ("docs/design/auto.md", &["auto"]),
    ("docs/evidence/compare.md", &[]),
    ("docs/evidence/results.md", &[]),
];

/// The origin of a text.
#[derive(Clone, Debug, Default)]
pub(crate) struct Origin {
    commit: String,
    results: String,
}

impl Origin {
    /// The origin of a text made from present results, by the present commit.
    pub(crate) fn of(root: &Path, results: &[u8]) -> Origin {
        Origin { commit: commit(root), results: digest(results) }
    }

    /// Notes that a part of the text stays from earlier commits, because its results are not present.
    pub(crate) fn in_part(mut self, in_part: bool) -> Origin {
        if in_part {
            self.commit.push_str(", in part of earlier ones");
        }
        self
    }

    /// The origin of a text made from all files of a folder of results.
    pub(crate) fn of_folder(root: &Path, folder: &Path) -> Origin {
        let mut all = Vec::new();
        gather(folder, &mut all);
        Origin::of(root, &all)
    }
}

/// Returns a page without its seals, for parts that are kept.
pub(crate) fn unsealed(page: &str) -> String {
    page.lines().filter(|line| !line.starts_with(OPENING)).map(|line| format!("{line}\n")).collect()
}

/// Returns the commit, and whether crates or scenarios differ from it.
fn commit(root: &Path) -> String {
    let git = |arguments: &[&str]| crate::output_of("git", arguments, root);
    let Ok(head) = git(&["rev-parse", "--short=12", "HEAD"]) else { return "none".into() };
    let changed = git(&["status", "--porcelain", "--", "crates", "scenarios"]).unwrap_or_default();
    format!("{}{}", head.trim(), if changed.is_empty() { "" } else { ", and changes" })
}

fn gather(folder: &Path, all: &mut Vec<u8>) {
    let Ok(entries) = std::fs::read_dir(folder) else { return };
    let mut paths: Vec<_> = entries.filter_map(Result::ok).map(|entry| entry.path()).collect();
    paths.sort();
    for path in paths {
        if path.is_dir() {
            gather(&path, all);
        } else if path.extension().is_some_and(|extension| extension == "json") {
            all.extend(std::fs::read(&path).unwrap_or_default());
        }
    }
}

fn digest(of: &[u8]) -> String {
    Sha256::digest(of)[..8].iter().map(|byte| format!("{byte:02x}")).collect()
}

/// Returns `text` with a seal behind it.
pub(crate) fn sealed(text: &str, origin: &Origin) -> String {
    let text = text.trim_end();
    let Origin { commit, results } = origin;
    format!(
        "{text}\n\n{OPENING}commit {commit}; results {results}; text {}{CLOSING}\n",
        digest(text.trim().as_bytes())
    )
}

/// Returns a finding for each text that does not agree with its seal, and for each page without a seal.
pub(crate) fn check(root: &Path) -> Result<Vec<String>, String> {
    let mut findings = Vec::new();
    for (page, samples) in PAGES {
        let text = crate::read(root, page)?;
        findings.extend(broken(&text).into_iter().map(|finding| format!("{page}: {finding}")));
        let missing = samples.iter().filter(|name| !root.join(format!("docs/samples/{name}.jsonl")).exists());
        findings.extend(missing.map(|name| format!("{page}: no docs/samples/{name}.jsonl")));
    }
    Ok(findings)
}

fn broken(page: &str) -> Vec<String> {
    let mut findings = Vec::new();
    let mut seals = 0;
    for (text, seal) in parts(page) {
        seals += 1;
        let of_text = seal.split_once("; text ").map(|(_, of_text)| of_text);
        if of_text != Some(&digest(text.as_bytes())) {
            let heading = text.lines().rev().find(|line| line.starts_with("## ")).unwrap_or("the page");
            findings.push(format!("{heading}: changed by hand, or made without its seal"));
        }
    }
    if seals == 0 {
        findings.push("no seal".into());
    }
    findings
}

/// Returns each sealed text with the content of its seal.
fn parts(page: &str) -> Vec<(&str, &str)> {
    let mut rest = page.split_once(BEGIN).map_or(page, |(_, generated)| generated);
    let mut parts = Vec::new();
    while let Some((text, after)) = rest.split_once(OPENING) {
        let Some((seal, further)) = after.split_once(CLOSING) else { break };
        parts.push((text.trim(), seal));
        rest = further;
    }
    parts
}

/// Replaces a file's path by a new one in sealed texts. Seals stay valid, with their earlier origin.
pub(crate) fn moved(root: &Path, from: &str, to: &str) -> Result<Vec<String>, String> {
    let is_path = |name: &str| name.contains('.') && !name.contains(|c: char| c.is_ascii_digit());
    if !is_path(from) || !is_path(to) {
        return Err("moved: two paths without digits, so that no figure changes".into());
    }
    let mut findings = Vec::new();
    for (page, _) in PAGES {
        let text = crate::read(root, page)?;
        let broken = broken(&text);
        if broken.is_empty() {
            crate::write(root, page, &renamed(&text, from, to))?;
        }
        findings.extend(broken.into_iter().map(|finding| format!("{page}: {finding}")));
    }
    Ok(findings)
}

fn renamed(page: &str, from: &str, to: &str) -> String {
    resealed(&page.replace(from, to))
}

/// Returns the page with seals for its present texts. The origins do not change.
fn resealed(page: &str) -> String {
    let seal_of = |of_text: &str| format!("; text {of_text}{CLOSING}");
    parts(page).into_iter().fold(page.to_owned(), |sealed, (text, seal)| {
        let (_, before) = seal.split_once("; text ").unwrap_or_default();
        sealed.replace(&seal_of(before), &seal_of(&digest(text.as_bytes())))
    })
}

/// Seals pages whose sentences were rewritten, if all else is as in the last commit. Their origins do not change.
pub(crate) fn reworded(root: &Path) -> Result<Vec<String>, String> {
    let mut findings = Vec::new();
    for (page, _) in PAGES {
        let text = crate::read(root, page)?;
        let earlier = crate::output_of("git", &["show", &format!("HEAD:{page}")], root)?;
        if text == earlier {
            continue;
        }
        match more_than_words(&earlier, &text) {
            Some(finding) => findings.push(format!("{page}: {finding}")),
            None => crate::write(root, page, &resealed(&text))?,
        }
    }
    Ok(findings)
}

/// Returns a difference between two texts of a page that is more than the words of its sentences. Reasons of missed
/// rows may have other figures: they are no results of the page.
fn more_than_words(earlier: &str, page: &str) -> Option<String> {
    if !broken(earlier).is_empty() {
        return Some("its seals did not hold before".into());
    }
    let (before, after) = (figures(earlier), figures(page));
    if before == after {
        return None;
    }
    let differs = before.iter().zip(&after).find(|(old, new)| old != new);
    Some(differs.map_or("more or fewer figures than before".into(), |(old, new)| {
        format!("more than words differ: {old:?} was, {new:?} is")
    }))
}

/// Returns all of a page except the words of its sentences: numbers, headings, code, seals, and short cells of
/// tables, which hold verdicts.
fn figures(page: &str) -> Vec<&str> {
    let mut figures = Vec::new();
    for line in page.lines() {
        match line {
            _ if line.starts_with('|') => {
                before_reason(line).split('|').for_each(|cell| figures.extend(of_cell(cell)));
            }
            _ if line.starts_with(['#', '<', '!']) || line.starts_with("    ") => figures.push(line),
            _ => figures.extend(numbers(line)),
        }
    }
    figures
}

/// Returns a missed row without its last cell, the reason. Experiments beside the results find it, also later.
fn before_reason(row: &str) -> &str {
    const MISSED: &str = "| **missed** |";
    row.find(MISSED).map_or(row, |at| &row[..at + MISSED.len()])
}

fn of_cell(cell: &str) -> Vec<&str> {
    if cell.split_whitespace().count() < SENTENCE_WORDS { vec![cell.trim()] } else { numbers(cell) }
}

/// Our choice: every verdict is shorter.
const SENTENCE_WORDS: usize = 6;

fn numbers(text: &str) -> Vec<&str> {
    let bare = text.split_whitespace().map(|word| word.trim_matches(|c: char| ",.;:()`".contains(c)));
    bare.filter(|word| word.chars().any(|c| c.is_ascii_digit())).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn page() -> String {
        let origin = Origin { commit: "abc".into(), results: digest(b"{}") };
        let first = sealed("# Page\n\n| a | 1.25 |\n", &origin);
        format!("{first}\n{}", sealed("## Part\n\n| b | 2.50 |\n", &origin))
    }

    #[test]
    fn a_figure_that_was_changed_by_hand_is_found() {
        assert_eq!(broken(&page()), [""; 0]);
        let found = broken(&page().replace("2.50", "2.51"));
        assert!(found.len() == 1 && found[0].starts_with("## Part"), "{found:?}");
        assert_eq!(broken(&page().replace("1.25", "1.26")).len(), 1);
        assert_eq!(broken("# Page\n\nno seal\n").len(), 1);
    }

    #[test]
    fn what_is_written_by_hand_around_it_is_free() {
        let page = format!("by hand\n\n{BEGIN}\n\n{}\n<!-- measured: end -->\nby hand", page());
        assert_eq!(broken(&page.replace("by hand", "by another hand")), [""; 0]);
        assert_eq!(broken(&page.replace("1.25", "1.26")).len(), 1);
    }

    #[test]
    fn a_file_gets_its_new_name_and_nothing_else_is_forgiven() {
        let seals = |page: &str| parts(page).into_iter().map(|(_, seal)| seal.to_owned()).collect::<Vec<_>>();
        let named = page().replace("abc", "def");
        let origin = Origin { commit: "def".into(), results: digest(b"{}") };
        let with_link = sealed("# Page\n\n[a](../a.md)\n", &origin) + "\n" + &named;
        let after = renamed(&with_link, "../a.md", "../../b.md");
        assert_eq!(broken(&after), [""; 0]);
        assert!(after.contains("[a](../../b.md)"));
        assert_eq!(seals(&after)[1..], seals(&with_link)[1..]);
        assert_ne!(seals(&after)[0], seals(&with_link)[0]);
        assert!(moved(Path::new("."), "1.25", "1.26").is_err());
    }

    #[test]
    fn words_may_be_others_and_figures_and_verdicts_not() {
        let origin = Origin { commit: "abc".into(), results: digest(b"{}") };
        let text = "# Page\n\nIt has 1.25, which is more; so it is.\n\n| a | holds | it is as late as 3 ms and more |\n";
        let page = sealed(text, &origin);
        let reworded = page
            .replace("1.25, which is more; so", "1.25. This is more, so")
            .replace("as late as 3", "late by 3");
        assert_eq!(broken(&reworded).len(), 1);
        assert_eq!(more_than_words(&page, &reworded), None);
        assert_eq!(broken(&resealed(&reworded)), [""; 0]);
        let seal = |page: &str| parts(page)[0].1.split_once("; text").unwrap().0.to_owned();
        assert_eq!(seal(&resealed(&reworded)), seal(&page));
        for (old, new) in [
            ("1.25", "1.26"),
            ("3 ms", "4 ms"),
            ("holds", "**missed**"),
            ("# Page", "# Other"),
            ("abc", "abd"),
        ] {
            assert!(more_than_words(&page, &page.replace(old, new)).is_some(), "{old}");
        }
        assert!(more_than_words(&reworded, &page).unwrap().contains("did not hold"));
    }

    #[test]
    fn a_reason_may_come_later() {
        let origin = Origin { commit: "abc".into(), results: digest(b"{}") };
        let text =
            "# Page\n\n| a | <= 1 | 2.5 | **missed** |  |\n\n| b | <= 1 | 1.5 | **missed** | least: 0.98 |\n";
        let page = sealed(text, &origin);
        let reasoned =
            page.replace("|  |", "| with 84 packets it is 1 |").replace("0.98", "0.98. Of 40 runs 1");
        assert_eq!(more_than_words(&page, &reasoned), None);
        assert_eq!(broken(&resealed(&reasoned)), [""; 0]);
        for (old, new) in
            [("2.5", "2.4"), ("| **missed** |  |", "| holds |  |"), ("**missed** |  |", "missed | as 1 |")]
        {
            assert!(more_than_words(&page, &page.replace(old, new)).is_some(), "{old}");
        }
    }

    /// `make test` runs this, so that it fails at once if a page was changed by hand.
    #[test]
    fn the_pages_agree_with_their_seals() {
        let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("..");
        assert_eq!(check(&root).unwrap(), [""; 0]);
    }
}
