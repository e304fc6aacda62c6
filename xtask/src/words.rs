//! Plain English: no long sentences in comments and pages, generated pages included.

use std::path::Path;

/// Patterns as git matches them: a star matches any characters, slashes included.
const PAGES: [&str; 8] = [
    "README.md", "ARCHITECTURE.md", "CONTRIBUTING.md", "docs/guide/*.md", "docs/reference/*.md",
    "docs/design/*.md", "docs/evidence/*.md", "tests/kernel-lab/README.md",
];

/// Their comments are read, too.
const SOURCES: [&str; 3] = ["crates/*.rs", "xtask/*.rs", "fuzz/*.rs"];

/// Our choice: a reader for whom English is a foreign language can hold this many words at once.
const WORDS_MAX: usize = 25;

/// Returns one finding for each longer sentence.
pub(crate) fn check(root: &Path) -> Result<Vec<String>, String> {
    let mut findings = Vec::new();
    for pattern in PAGES {
        for page in crate::tidy::tracked(root, pattern)? {
            findings.extend(long_sentences(&page, &crate::read(root, &page)?));
        }
    }
    for pattern in SOURCES {
        for file in crate::tidy::tracked(root, pattern)? {
            findings.extend(long_sentences(&file, &comments(&crate::read(root, &file)?)));
        }
    }
    Ok(findings)
}

fn long_sentences(file: &str, text: &str) -> Vec<String> {
    let long = sentences(text).into_iter().filter(|(_, sentence)| words(sentence) > WORDS_MAX);
    let told = |(line, sentence): (usize, String)| {
        format!("{file}:{line}: a sentence of {} words, more than {WORDS_MAX}: {sentence}", words(&sentence))
    };
    long.map(told).collect()
}

/// Returns the comments that have lines of their own, each line where it was.
fn comments(source: &str) -> String {
    let comment = |line: &str| {
        let text = line.trim_start().strip_prefix("//")?.trim_start_matches(['/', '!']);
        Some(text.strip_prefix(' ').unwrap_or(text).to_owned())
    };
    source
        .lines()
        .map(|line| comment(line).unwrap_or_default())
        .fold(String::new(), |text, line| text + &line + "\n")
}

/// Returns the sentences of paragraphs and list items, with the line where their paragraph begins. Code, tables and
/// headings have none.
fn sentences(page: &str) -> Vec<(usize, String)> {
    let mut found = Vec::new();
    let (mut paragraph, mut start, mut fenced) = (String::new(), 0, false);
    for (index, line) in page.lines().chain([""]).enumerate() {
        let is_fence = line.starts_with("```");
        fenced ^= is_fence;
        let is_text = !fenced && !is_fence && !line.is_empty() && !line.starts_with(['|', '#', '<']);
        let item = line.trim_start().split_once(' ').filter(|(mark, _)| is_mark(mark));
        let is_code = line.starts_with("    ") && item.is_none();
        if !is_text || is_code || item.is_some() {
            found.extend(split(&paragraph).into_iter().map(|sentence| (start, sentence)));
            paragraph.clear();
        }
        if is_text && !is_code {
            if paragraph.is_empty() {
                start = index + 1;
            }
            paragraph.push_str(item.map_or(line, |(_, rest)| rest).trim());
            paragraph.push(' ');
        }
    }
    found
}

/// True for the mark of a list item.
fn is_mark(word: &str) -> bool {
    word == "-" || word.strip_suffix('.').is_some_and(|number| number.parse::<u8>().is_ok())
}

fn split(paragraph: &str) -> Vec<String> {
    let mut sentences = vec![String::new()];
    for word in shown(paragraph).split_whitespace() {
        if let Some(last) = sentences.last_mut() {
            last.push_str(if last.is_empty() { "" } else { " " });
            last.push_str(word);
        }
        if word.trim_end_matches([')', '*', '"']).ends_with(['.', '!', '?']) {
            sentences.push(String::new());
        }
    }
    sentences.retain(|sentence| !sentence.is_empty());
    sentences
}

/// Returns the text that a reader sees: code is one word, and a link is its text.
fn shown(text: &str) -> String {
    let without_code: String =
        text.split('`').enumerate().map(|(n, part)| if n % 2 == 1 { "CODE" } else { part }).collect();
    let mut parts = without_code.split("](");
    let mut shown = parts.next().unwrap_or_default().to_owned();
    for part in parts {
        shown.push_str(part.split_once(')').map_or(part, |(_, rest)| rest));
    }
    shown
}

fn words(sentence: &str) -> usize {
    sentence.split_whitespace().filter(|word| word.chars().any(char::is_alphanumeric)).count()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sentences_are_those_of_paragraphs_and_items() {
        let page = "# A heading. Not counted\n\nOne `two three` [four](a.b.c).\nFive\nsix!\n\n    code. code\n\n\
                    - an item\n  goes on.\n1. another\n\n| a cell. |\n```\ncode.\n```\nThe end\n";
        let found: Vec<(usize, String)> = sentences(page);
        let expected = [
            (3, "One CODE [four."),
            (3, "Five six!"),
            (9, "an item goes on."),
            (11, "another"),
            (17, "The end"),
        ];
        assert_eq!(found, expected.map(|(line, text)| (line, text.to_owned())));
        assert_eq!(words("One CODE [four - ."), 3);
    }

    #[test]
    fn comments_are_lines_of_their_own() {
        let source = "/// One\n    /// two.\n    field: u8, // no\n//! three\n\n    // four\n    #[arg]\n";
        let found: Vec<(usize, String)> = sentences(&comments(source));
        assert_eq!(found, [(1, "One two.".to_owned()), (4, "three".to_owned()), (6, "four".to_owned())]);
    }

    #[test]
    fn a_long_sentence_is_found() {
        let long = "word ".repeat(WORDS_MAX + 1);
        assert_eq!(
            sentences(&format!("{long}.\n")).iter().filter(|(_, one)| words(one) > WORDS_MAX).count(),
            1
        );
        let halves = format!("{}. {}.\n", "word ".repeat(20).trim(), "word ".repeat(20).trim());
        assert!(sentences(&halves).iter().all(|(_, one)| words(one) <= WORDS_MAX));
    }
}
