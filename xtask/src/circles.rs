//! A reader has to read files that use each other in a circle all at once. A circle of up to three files is allowed,
//! a longer one is not.
//!
//! An arrow goes from a file that names an item to the file that defines it, through any re-exports. Methods make no
//! arrows, because their names alone do not tell where they are defined. Tests are left out.

mod source;

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;

use source::Source;

/// The largest allowed number of files in a circle.
const MOST: usize = 3;

type Arrows = BTreeMap<String, BTreeSet<String>>;

/// Returns one finding for each circle that is too long.
pub(crate) fn check(root: &Path) -> Result<Vec<String>, String> {
    let circles = all(root)?.into_values().flat_map(|arrows| circles(&arrows));
    Ok(circles.filter_map(|circle| refused(&circle)).collect())
}

/// Lists every circle with its arrows, for whoever has to open one.
pub(crate) fn list(root: &Path) -> Result<Vec<String>, String> {
    let mut lines = Vec::new();
    for arrows in all(root)?.values() {
        for circle in circles(arrows) {
            lines.push(format!("{} files", circle.len()));
            for file in &circle {
                let used = arrows[file].iter().filter(|other| circle.contains(other));
                let used: Vec<&str> = used.map(String::as_str).collect();
                lines.push(format!("  {file} -> {}", used.join(", ")));
            }
        }
    }
    Ok(lines)
}

fn refused(circle: &[String]) -> Option<String> {
    let files = circle.join(", ");
    (circle.len() > MOST).then(|| format!("{} files use each other in a circle: {files}", circle.len()))
}

/// Returns the arrows of every crate.
fn all(root: &Path) -> Result<BTreeMap<String, Arrows>, String> {
    let mut crates: BTreeMap<String, BTreeMap<Vec<String>, (String, Source)>> = BTreeMap::new();
    for file in crate::tidy::tracked(root, "*.rs")? {
        let Some((home, inside)) = file.split_once("/src/") else { continue };
        if crate::tidy::is_test(&file) || inside.starts_with("bin/") || home.starts_with("fuzz") {
            continue;
        }
        let source = Source::read(&crate::read(root, &file)?);
        crates.entry(home.to_string()).or_default().insert(module(inside), (file.clone(), source));
    }
    Ok(crates.into_iter().map(|(name, files)| (name, Modules::new(files).arrows())).collect())
}

/// Returns the module of a file below `src`.
fn module(inside: &str) -> Vec<String> {
    let path = inside.trim_end_matches(".rs");
    let path = path.strip_suffix("/mod").unwrap_or(path);
    if path == "lib" || path == "main" {
        return Vec::new();
    }
    path.split('/').map(str::to_owned).collect()
}

/// The files of one crate by module.
struct Modules(BTreeMap<Vec<String>, (String, Source)>);

/// The longest chain of re-exports that is followed.
const HOPS: u32 = 8;

impl Modules {
    fn new(mut files: BTreeMap<Vec<String>, (String, Source)>) -> Self {
        let only_tests: Vec<Vec<String>> = files
            .iter()
            .flat_map(|(at, (_, source))| {
                source.tests.iter().map(|name| [&at[..], std::slice::from_ref(name)].concat())
            })
            .collect();
        files.retain(|at, _| !only_tests.iter().any(|test| at.starts_with(test)));
        Modules(files)
    }

    fn arrows(&self) -> Arrows {
        let of = |(at, (file, source)): (&Vec<String>, &(String, Source))| {
            let mut used: BTreeSet<Vec<String>> =
                source.paths.iter().filter_map(|path| self.home(at, path, 0)).collect();
            let by_glob = |glob: &Vec<String>| self.home_of_glob(at, glob, &source.paths);
            used.extend(source.globs.iter().flat_map(by_glob));
            used.remove(at);
            let used = used.iter().filter_map(|home| self.0.get(home)).map(|(file, _)| file.clone());
            (file.clone(), used.collect())
        };
        self.0.iter().map(of).collect()
    }

    /// Returns the module that defines the item that a path means in the module `at`.
    fn home(&self, at: &[String], path: &[String], hops: u32) -> Option<Vec<String>> {
        let (_, source) = self.0.get(at)?;
        let (first, rest) = path.split_first()?;
        if hops > HOPS {
            return None;
        }
        match first.as_str() {
            "crate" => return self.home(&[], rest, hops + 1),
            "self" => return self.home(at, rest, hops + 1),
            "super" => return self.home(&at[..at.len().checked_sub(1)?], rest, hops + 1),
            _ => {}
        }
        let child = [at, std::slice::from_ref(first)].concat();
        if self.0.contains_key(&child) {
            return if rest.is_empty() { None } else { self.home(&child, rest, hops + 1) };
        }
        if source.defines.contains(first) {
            return Some(at.to_vec());
        }
        if let Some(import) = source.imports.get(first).filter(|import| import.as_slice() != path) {
            return self.home(at, &[import.as_slice(), rest].concat(), hops + 1);
        }
        let through = |glob: &Vec<String>| {
            let module = self.module_of(at, glob)?;
            self.home(&module, path, hops + 1)
        };
        source.globs.iter().find_map(through)
    }

    /// Returns the modules that define those names of a file that come from one glob import.
    fn home_of_glob(
        &self,
        at: &[String],
        glob: &[String],
        paths: &BTreeSet<Vec<String>>,
    ) -> Vec<Vec<String>> {
        let Some(module) = self.module_of(at, glob) else { return Vec::new() };
        paths.iter().filter_map(|path| self.home(&module, path, HOPS - 1)).collect()
    }

    fn module_of(&self, at: &[String], path: &[String]) -> Option<Vec<String>> {
        let mut module = at.to_vec();
        for name in path {
            match name.as_str() {
                "crate" => module.clear(),
                "self" => {}
                "super" => drop(module.pop()?),
                _ => module.push(name.clone()),
            }
        }
        self.0.contains_key(&module).then_some(module)
    }
}

/// Returns the groups of files that all reach each other, the longest first. (Tarjan, 1972, is faster, but nothing
/// here is large.)
fn circles(arrows: &Arrows) -> Vec<Vec<String>> {
    let reached: BTreeMap<&String, BTreeSet<&String>> =
        arrows.keys().map(|file| (file, reach(arrows, file))).collect();
    let mut circles: Vec<Vec<String>> = Vec::new();
    for (file, others) in &reached {
        if circles.iter().any(|circle| circle.contains(file)) {
            continue;
        }
        let circle: Vec<String> = others
            .iter()
            .filter(|other| reached.get(**other).is_some_and(|back| back.contains(*file)))
            .map(|other| other.to_string())
            .collect();
        if circle.len() > 1 {
            circles.push(circle);
        }
    }
    circles.sort_by_key(|circle| std::cmp::Reverse(circle.len()));
    circles
}

fn reach<'a>(arrows: &'a Arrows, from: &'a String) -> BTreeSet<&'a String> {
    let mut reached = BTreeSet::new();
    let mut next = vec![from];
    while let Some(file) = next.pop() {
        let further = arrows.get(file).into_iter().flatten();
        next.extend(further.filter(|other| reached.insert(*other)));
    }
    reached
}

#[cfg(test)]
mod tests {
    use super::*;

    fn arrows(files: &[(&str, &str)]) -> Arrows {
        let read = |(inside, text): &(&str, &str)| (module(inside), (inside.to_string(), Source::read(text)));
        Modules::new(files.iter().map(read).collect()).arrows()
    }

    fn used<'a>(arrows: &'a Arrows, file: &str) -> Vec<&'a str> {
        arrows[file].iter().map(String::as_str).collect()
    }

    #[test]
    fn an_arrow_goes_to_who_defines_a_name_through_re_exports_and_globs() {
        let arrows = arrows(&[
            ("lib.rs", "mod a;\nmod b;\npub use a::A;\npub const ONE: u32 = 1;"),
            (
                "a.rs",
                "pub struct A(pub u32);\n/// Beside [`B`](crate::b::B).\nimpl A { fn b() -> &'static str { \"crate::b::B\" } }",
            ),
            ("b.rs", "use crate::{A, ONE};\nmod c;\npub enum B { One(A) }\nconst TWO: u32 = ONE + 1;"),
            ("b/c.rs", "use super::*;\nfn two(_: B) -> u32 { TWO }"),
        ]);
        assert!(used(&arrows, "lib.rs").is_empty(), "a re-export is not a use");
        assert!(used(&arrows, "a.rs").is_empty(), "comments and strings are not");
        assert_eq!(used(&arrows, "b.rs"), ["a.rs", "lib.rs"]);
        assert_eq!(used(&arrows, "b/c.rs"), ["b.rs"]);
    }

    #[test]
    fn what_a_macro_names_first_is_defined_there() {
        let arrows = arrows(&[
            ("lib.rs", "mod a;\nmod b;"),
            (
                "a.rs",
                "named! {\n/// One.\n#[derive(Clone)]\nOne { A = \"a\", } }\nlist!(Two of Three, B: C,);\nmacro_rules! x { () => { Four } }",
            ),
            ("b.rs", "use crate::a::{One, Three};\nfn f(_: One) {}\npub struct B;"),
        ]);
        assert_eq!(used(&arrows, "b.rs"), ["a.rs"]);
    }

    #[test]
    fn tests_have_no_arrows() {
        let arrows = arrows(&[
            ("lib.rs", "mod a;\n#[cfg(test)]\nmod kit;\npub fn f() {}"),
            ("a.rs", "pub fn g() {}\n#[cfg(test)]\nmod tests { fn t() { crate::f() } }"),
            ("kit.rs", "use crate::a::g;\nfn h() { g() }"),
        ]);
        assert_eq!(arrows.len(), 2);
        assert!(used(&arrows, "a.rs").is_empty());
    }

    #[test]
    fn a_circle_is_whoever_reaches_each_other_and_has_three_files_at_most() {
        let one = |from: &str, to: &[&str]| (from.into(), to.iter().map(|file| file.to_string()).collect());
        let of_four =
            Arrows::from([one("a", &["b"]), one("b", &["c"]), one("c", &["d"]), one("d", &["a", "e"])]);
        let found = circles(&of_four);
        assert_eq!(found, [["a", "b", "c", "d"]]);
        assert_eq!(refused(&found[0]).unwrap(), "4 files use each other in a circle: a, b, c, d");
        assert!(refused(&found[0][1..]).is_none());
        assert!(circles(&Arrows::from([one("a", &["b"]), one("b", &[])])).is_empty());
    }
}
