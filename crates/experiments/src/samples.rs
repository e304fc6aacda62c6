//! Cells of the generated pages, repeated by `make test`. The test fails if a page is older than the code that made it.
//!
//! docs/samples holds some cheap runs of each page with their results, to the bit. Every commit draws other samples by
//! its hash, so that some commits together cover all of them. After a change that is meant to change results, run this:
//!
//!     PACELINE_RENEW_SAMPLES=1 cargo test -p paceline-experiments samples
//!
//! Then generate the pages again, too. Two pages have no samples. The traces of docs/evidence/compare.md are not in the
//! repository, and docs/evidence/results.md uses another kernel than the simulator.

use std::collections::BTreeMap;
use std::hash::{DefaultHasher, Hash, Hasher};
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::Mutex;
use std::sync::atomic::{AtomicUsize, Ordering};

use crate::cpu_time::CpuTime;
use crate::profile::{Named, Profile};
use crate::result::Run;
use crate::run::lab::Watch;
use crate::run::sim;
use crate::run_cache::Values;
use crate::scenario::{ScenarioFile, Variant, load_file, parse};

/// A named run of a page.
pub(crate) struct Cell {
    pub(crate) key: String,
    pub(crate) run: Box<dyn Fn() -> Values + Send + Sync>,
}

/// The number of samples drawn of each page in one run of the tests.
const DRAWN: usize = 2;
/// The number of samples stored of each page.
const KEPT: usize = 6;
/// The number of cells tried for them.
const TRIED: usize = 10;
/// Cells that take longer are not sampled.
const SECONDS_MAX: f64 = 1.2;

pub(crate) struct Nobody;

impl Watch for Nobody {
    fn progress(&self, _seconds: f64, _received_bytes: u64) {}
}

pub(crate) fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..")
}

/// Every page that the simulator makes, with all its cells of seed 1.
fn pages() -> Vec<(&'static str, Vec<Cell>)> {
    let mut pages = crate::reproduce::sampled();
    pages.push(("accelerator", of_scenarios("scenarios/accelerator", None)));
    pages.push(("split", of_scenarios("scenarios/split", None)));
    pages.push(("rivals", of_scenarios("scenarios/rivals", None)));
    pages.push(("auto", of_scenarios("scenarios/auto", Some(Profile::Gateway(Named::Auto)))));
    pages.push(("map", (0..40).map(of_map).collect()));
    pages
}

/// All variants of a folder's scenarios that the simulator can run without recorded traces.
fn of_scenarios(folder: &'static str, profile: Option<Profile>) -> Vec<Cell> {
    let mut files: Vec<PathBuf> =
        std::fs::read_dir(root().join(folder)).unwrap().map(|entry| entry.unwrap().path()).collect();
    files.sort();
    let mut cells = Vec::new();
    for path in files.iter().filter(|path| path.extension().is_some_and(|extension| extension == "toml")) {
        let Ok(ScenarioFile { folder: traces, variants, .. }) = load_file(path, None) else { continue };
        let name = format!("{folder}/{}", path.file_name().unwrap().to_string_lossy());
        for mut variant in variants {
            if let Some(profile) = profile {
                variant.scenario.gateway.profile = profile;
            }
            // Recorded traces, if present, lie beside the repository.
            if !variant.settings.contains("../shared") && sim::check(&variant, &traces).is_ok() {
                cells.push(of_variant(format!("{name} {}", variant.name), variant, traces.clone()));
            }
        }
    }
    cells
}

fn of_variant(key: String, variant: Variant, folder: PathBuf) -> Cell {
    let run = move || values(&sim::execute(&variant, 1, &folder, None, &Nobody).unwrap());
    Cell { key, run: Box::new(run) }
}

/// A point of the map with the default gateway.
fn of_map(index: u32) -> Cell {
    let run = move || {
        let file = parse(Path::new("point.toml"), &crate::map::point_text(index), None).unwrap();
        let mut variant = file.variants.into_iter().next().unwrap();
        variant.scenario.gateway.profile = Profile::Gateway(Named::Full);
        values(&sim::execute(&variant, 1, &file.folder, None, &Nobody).unwrap())
    };
    Cell { key: format!("path {index}"), run: Box::new(run) }
}

/// The numbers that pages show of a run, and some others.
fn values(run: &Run) -> Values {
    let mut values = Values::new();
    for (n, flow) in run.flows.iter().enumerate() {
        values.insert(format!("{} {n} goodput_mbps", flow.name), flow.goodput_mbps);
    }
    let sum = |of: fn(&crate::result::FlowResult) -> u64| run.flows.iter().map(of).sum::<u64>() as f64;
    values.insert("retransmitted_segments".into(), sum(|flow| flow.retransmitted_segments));
    values.insert("timeouts".into(), sum(|flow| flow.timeouts));
    values.insert("path_delay_p95_ms".into(), run.path_delay_ms.p95.unwrap_or(-1.0));
    values
}

fn file(page: &str) -> PathBuf {
    root().join("docs/samples").join(format!("{page}.jsonl"))
}

fn line(key: &str, values: &Values) -> String {
    serde_json::to_string(&serde_json::json!({ "key": key, "values": values })).unwrap()
}

fn hash(of: impl Hash) -> u64 {
    let mut hasher = DefaultHasher::new();
    of.hash(&mut hasher);
    hasher.finish()
}

/// The seed that draws the cells: the commit's hash. Without a commit, as in a source archive, the hash of all source
/// files.
fn seed() -> u64 {
    let head = Command::new("git").args(["rev-parse", "HEAD"]).current_dir(root()).output();
    match head {
        Ok(output) if output.status.success() => hash(output.stdout),
        _ => hash(tree(&root().join("crates"))),
    }
}

fn tree(folder: &Path) -> Vec<(PathBuf, Vec<u8>)> {
    let mut all = Vec::new();
    for entry in std::fs::read_dir(folder).unwrap().map(Result::unwrap) {
        let path = entry.path();
        match path.is_dir() {
            true => all.extend(tree(&path)),
            false if path.extension().is_some_and(|extension| extension == "rs") => {
                all.push((path.clone(), std::fs::read(&path).unwrap()));
            }
            false => {}
        }
    }
    all.sort();
    all
}

/// Describes the difference to the stored line; `None` if they are equal to the bit.
fn difference(page: &str, kept: &str, cell: Option<&Cell>) -> Option<String> {
    let Some(cell) = cell else { return Some(format!("{page}: no such cell any more: {kept}")) };
    let now = line(&cell.key, &(cell.run)());
    (now != kept).then(|| format!("{page}: kept {kept}\n    now {now}"))
}

/// Runs `work` on every item, on all cores.
pub(crate) fn each<T: Sync, R: Send>(items: &[T], work: impl Fn(&T) -> R + Sync) -> Vec<R> {
    let (next, done) = (AtomicUsize::new(0), Mutex::new(BTreeMap::new()));
    std::thread::scope(|scope| {
        for _ in 0..crate::pool::cores() {
            scope.spawn(|| {
                loop {
                    let index = next.fetch_add(1, Ordering::Relaxed);
                    let Some(item) = items.get(index) else { break };
                    let result = work(item);
                    done.lock().unwrap().insert(index, result);
                }
            });
        }
    });
    done.into_inner().unwrap().into_values().collect()
}

fn renew(page: &str, mut cells: Vec<Cell>) {
    cells.sort_by_key(|cell| hash(&cell.key));
    cells.dedup_by(|later, earlier| later.key == earlier.key);
    cells.truncate(TRIED);
    let lines: Vec<Option<String>> = each(&cells, |cell| {
        let started = CpuTime::now();
        let line = line(&cell.key, &(cell.run)());
        (started.elapsed_s() <= SECONDS_MAX).then_some(line)
    });
    let mut lines: Vec<String> = lines.into_iter().flatten().take(KEPT).collect();
    lines.sort();
    std::fs::create_dir_all(file(page).parent().unwrap()).unwrap();
    std::fs::write(file(page), lines.join("\n") + "\n").unwrap();
}

/// Checks some cells of every page, different ones for each commit.
#[test]
fn cells_of_every_page_are_what_the_code_makes_of_them() {
    if std::env::var_os("PACELINE_RENEW_SAMPLES").is_some() {
        pages().into_iter().for_each(|(page, cells)| renew(page, cells));
        return;
    }
    let seed = seed();
    let mut drawn = Vec::new();
    for (page, cells) in pages() {
        let text = std::fs::read_to_string(file(page)).unwrap_or_else(|error| panic!("{page}: {error}"));
        let mut kept: Vec<String> = text.lines().map(Into::into).collect();
        assert!(!kept.is_empty(), "{page}: no samples");
        kept.sort_by_key(|line| hash((seed, line)));
        // A cell may occur in two tables of a page.
        kept.dedup();
        let mut by_key: BTreeMap<String, Cell> =
            cells.into_iter().map(|cell| (cell.key.clone(), cell)).collect();
        for line in kept.into_iter().take(DRAWN) {
            let key = serde_json::from_str::<serde_json::Value>(&line).unwrap()["key"].clone();
            let cell = by_key.remove(key.as_str().unwrap_or_default());
            drawn.push((page, line, cell));
        }
    }
    let found: Vec<String> = each(&drawn, |(page, kept, cell)| difference(page, kept, cell.as_ref()))
        .into_iter()
        .flatten()
        .collect();
    assert!(found.is_empty(), "older than the code (see the head of {}):\n{}", file!(), found.join("\n"));
}

/// A changed constant (here lambda, 3 to 3.01) changes a cell. A changed last bit and a missing cell show, too.
#[test]
fn what_is_not_equal_to_the_bit_is_red() {
    use paceline_sim::reproduce::drwa::{Experiment, Network, Window};
    let cell = |window: Window| Cell {
        key: "near".into(),
        run: Box::new(move || {
            let experiment = Experiment::near(Network::VerizonLte, window);
            let run = paceline_sim::run(&paceline_sim::Scenario {
                duration: paceline_wire::Duration::from_secs(10),
                ..experiment.scenario(1)
            });
            [("goodput_mbps".to_string(), run.unwrap().flows[0].goodput_mbps)].into()
        }),
    };
    let kept = line("near", &(cell(Window::drwa()).run)());
    assert_eq!(difference("p", &kept, Some(&cell(Window::drwa()))), None);
    assert!(difference("p", &kept, Some(&cell(Window::lambda(301)))).is_some());
    assert!(difference("p", &kept, None).is_some());
    let (one, next) = (0.1f64, f64::from_bits(0.1f64.to_bits() + 1));
    let of = |value: f64| line("x", &[("y".to_string(), value)].into());
    assert_ne!(of(one), of(next));
}

/// Without a repository the source files determine the seed, and a changed file changes it.
#[test]
fn a_tree_without_commits_has_a_seed_of_its_own() {
    let folder = tempfile::tempdir().unwrap();
    std::fs::write(folder.path().join("a.rs"), "a").unwrap();
    let before = hash(tree(folder.path()));
    assert_eq!(before, hash(tree(folder.path())));
    std::fs::write(folder.path().join("a.rs"), "b").unwrap();
    assert_ne!(before, hash(tree(folder.path())));
}
