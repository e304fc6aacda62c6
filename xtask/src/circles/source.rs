//! A source file as text: its words without comments, strings and tests, its definitions and its imports.

use std::collections::{BTreeMap, BTreeSet};

/// Keywords before a defined name at the top level of a file.
const KINDS: [&str; 9] = ["struct", "enum", "union", "trait", "fn", "const", "static", "type", "macro_rules"];

/// One file of a crate.
#[derive(Debug, Default)]
pub(super) struct Source {
    /// Items at the top level of the file.
    pub(super) defines: BTreeSet<String>,
    /// Imported names and their paths.
    pub(super) imports: BTreeMap<String, Vec<String>>,
    /// Modules from which everything is imported.
    pub(super) globs: Vec<Vec<String>>,
    /// Paths and names in use, except imports.
    pub(super) paths: BTreeSet<Vec<String>>,
    /// Child modules for tests only.
    pub(super) tests: BTreeSet<String>,
}

impl Source {
    pub(super) fn read(text: &str) -> Source {
        let words = words(text);
        let mut source = Source::default();
        let (mut at, mut depth) = (0, 0_u32);
        while at < words.len() {
            let rest = &words[at..];
            if let Some(len) = test_item(rest) {
                let name = rest.iter().position(|word| word == "mod").and_then(|place| rest.get(place + 1));
                source.tests.extend(name.filter(|_| rest[len - 1] == ";").cloned());
                at += len;
                continue;
            }
            match rest[0].as_str() {
                "use" if rest.get(1).is_some_and(|word| word != "<") => {
                    let end = rest.iter().position(|word| word == ";").unwrap_or(rest.len());
                    source.import(&rest[1..end], &[]);
                    at += end;
                    continue;
                }
                "{" => depth += 1,
                "}" => depth = depth.saturating_sub(1),
                word if depth == 0
                    && is_name(word)
                    && word != "macro_rules"
                    && rest.get(1).is_some_and(|mark| mark == "!") =>
                {
                    source.defines.extend(made(&rest[2..]));
                }
                word if depth == 0 && KINDS.contains(&word) => {
                    let name = rest[1..].iter().find(|word| is_name(word) && *word != "fn" && *word != "mut");
                    source.defines.extend(name.cloned());
                }
                _ => {}
            }
            at += source.path(rest);
        }
        source
    }

    /// Adds the path that begins here, if there is one. Returns the number of words read.
    fn path(&mut self, rest: &[String]) -> usize {
        if !is_name(&rest[0]) {
            return 1;
        }
        let mut path = vec![rest[0].clone()];
        while rest.get(2 * path.len() - 1).is_some_and(|word| word == "::")
            && let Some(next) = rest.get(2 * path.len()).filter(|word| is_name(word))
        {
            path.push(next.clone());
        }
        let len = 2 * path.len() - 1;
        self.paths.insert(path);
        len
    }

    /// Adds a tree of imports: `a::{b, c as d, e::*}`.
    fn import(&mut self, tree: &[String], prefix: &[String]) {
        let mut path = prefix.to_vec();
        let mut words = tree.iter().enumerate();
        while let Some((at, word)) = words.next() {
            match word.as_str() {
                "::" => {}
                "{" => {
                    let end = tree.iter().rposition(|word| word == "}").unwrap_or(tree.len());
                    branches(&tree[at + 1..end]).iter().for_each(|branch| self.import(branch, &path));
                    return;
                }
                "*" => return self.globs.push(path),
                "as" => {
                    if let Some((_, name)) = words.next() {
                        self.imports.insert(name.clone(), path);
                    }
                    return;
                }
                "self" if !path.is_empty() => {}
                _ => path.push(word.clone()),
            }
        }
        if let Some(name) = path.last() {
            self.imports.insert(name.clone(), path.clone());
        }
    }
}

/// Returns the types that a macro defines. Our macros name them first in their braces, after attributes.
fn made(mut words: &[String]) -> Vec<String> {
    words = words.get(1..).unwrap_or_default();
    while words.first().is_some_and(|word| word == "#") {
        let end = words.iter().position(|word| word == "]").map_or(words.len(), |end| end + 1);
        words = &words[end..];
    }
    let named = words.iter().take_while(|word| is_name(word));
    named.filter(|word| word.starts_with(char::is_uppercase)).cloned().collect()
}

/// Splits at the outermost commas.
fn branches(words: &[String]) -> Vec<&[String]> {
    let mut depth = 0_i32;
    let outermost = |word: &String| {
        depth += i32::from(word == "{") - i32::from(word == "}");
        depth == 0 && word == ","
    };
    words.split(outermost).filter(|branch| !branch.is_empty()).collect()
}

/// Returns the number of words of the test-only item that begins here, if there is one.
fn test_item(words: &[String]) -> Option<usize> {
    let starts = ["#", "[", "cfg", "(", "test", ")", "]"];
    if words.len() < starts.len() || !words.iter().zip(starts).all(|(word, start)| word == start) {
        return None;
    }
    let mut depth = 0_i32;
    let ends = |word: &String| {
        depth += i32::from(word == "{") - i32::from(word == "}");
        depth == 0 && (word == "}" || word == ";")
    };
    words.iter().position(ends).map(|end| end + 1)
}

fn is_name(word: &str) -> bool {
    word.starts_with(|first: char| first.is_alphabetic() || first == '_')
}

/// Returns the words of a text: names, `::`, and single marks. Leaves out comments, strings and numbers.
pub(super) fn words(text: &str) -> Vec<String> {
    let mut words = Vec::new();
    let mut rest = text;
    while let Some(first) = rest.chars().next() {
        let len = match first {
            '/' if rest.starts_with("//") => rest.find('\n').unwrap_or(rest.len()),
            '/' if rest.starts_with("/*") => rest.find("*/").map_or(rest.len(), |end| end + 2),
            '"' => string(rest),
            'r' if rest.starts_with("r\"") || rest.starts_with("r#\"") => raw_string(rest),
            '\'' => character(rest),
            _ if first.is_alphanumeric() || first == '_' => {
                let end = rest.find(|next: char| !next.is_alphanumeric() && next != '_');
                end.unwrap_or(rest.len())
            }
            ':' if rest.starts_with("::") => 2,
            _ => first.len_utf8(),
        };
        let word = &rest[..len];
        if is_name(word) && !word.starts_with("r\"") && !word.starts_with("r#")
            || word == "::"
            || "{}[]();,*#=<>!&".contains(word)
        {
            words.push(word.to_string());
        }
        rest = &rest[len..];
    }
    words
}

fn string(text: &str) -> usize {
    let mut escaped = false;
    for (at, next) in text.char_indices().skip(1) {
        match next {
            _ if escaped => escaped = false,
            '\\' => escaped = true,
            '"' => return at + 1,
            _ => {}
        }
    }
    text.len()
}

fn raw_string(text: &str) -> usize {
    let (start, end) = if text.starts_with("r#") { (3, "\"#") } else { (2, "\"") };
    text[start..].find(end).map_or(text.len(), |at| start + at + end.len())
}

/// Returns the length of a character. For a lifetime, only the mark is skipped.
fn character(text: &str) -> usize {
    let mut inside = text.chars().skip(1);
    match (inside.next(), inside.next()) {
        (Some('\\'), Some(_)) => text[3..].find('\'').map_or(text.len(), |end| 3 + end + 1),
        (Some(one), Some('\'')) => 2 + one.len_utf8(),
        _ => 1,
    }
}
