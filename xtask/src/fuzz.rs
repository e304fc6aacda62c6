//! Each fuzz target must have a small corpus under version control, and a test that replays it.

use std::path::Path;

use crate::tidy::tracked;

/// More files would slow down every clone and every test.
const FILES_MAX: usize = 600;
/// Largest size of one input.
const BYTES_MAX: u64 = 4_096;
/// A corpus with fewer inputs shows nothing.
const FILES_MIN: usize = 5;

/// Returns a finding for each target without a replay or without a corpus, and for a corpus that is too large.
pub(crate) fn check(root: &Path) -> Result<Vec<String>, String> {
    let manifest = crate::read(root, "fuzz/Cargo.toml")?;
    let mut sources = String::new();
    for file in tracked(root, "crates/*.rs")? {
        sources += &crate::read(root, &file)?;
    }
    let corpus = tracked(root, "fuzz/corpus")?;
    let mut findings = gaps(&targets(&manifest), &sources, &corpus);
    if corpus.len() > FILES_MAX {
        findings.push(format!("fuzz/corpus: {} files, more than {FILES_MAX}", corpus.len()));
    }
    for file in &corpus {
        let bytes = std::fs::metadata(root.join(file)).map_err(|error| format!("{file}: {error}"))?.len();
        if bytes > BYTES_MAX {
            findings.push(format!("{file}: {bytes} bytes, more than {BYTES_MAX}"));
        }
    }
    Ok(findings)
}

/// Returns the names under `[[bin]]`.
fn targets(manifest: &str) -> Vec<&str> {
    let bins = manifest.split("[[bin]]").skip(1);
    bins.filter_map(|bin| bin.split("name = \"").nth(1)?.split('"').next()).collect()
}

fn gaps(targets: &[&str], sources: &str, corpus: &[String]) -> Vec<String> {
    let mut findings = Vec::new();
    for target in targets {
        if !sources.contains(&format!("replay(\"{target}\"")) {
            findings.push(format!("fuzz target {target}: no test replays its corpus"));
        }
        let folder = format!("fuzz/corpus/{target}/");
        let files = corpus.iter().filter(|file| file.starts_with(&folder)).count();
        if files < FILES_MIN {
            findings
                .push(format!("fuzz target {target}: {files} files in its corpus, fewer than {FILES_MIN}"));
        }
    }
    findings
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_target_without_replay_or_corpus_is_found() {
        let manifest = "[[bin]]\nname = \"a\"\n[[bin]]\nname = \"b\"\n";
        assert_eq!(targets(manifest), ["a", "b"]);
        let corpus: Vec<String> = (0..5).map(|n| format!("fuzz/corpus/a/{n}")).collect();
        let findings = gaps(&targets(manifest), "replay(\"a\", 1, f);", &corpus);
        assert_eq!(findings.len(), 2);
        assert!(findings.iter().all(|finding| finding.contains("target b")));
    }
}
