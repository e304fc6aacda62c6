//! Finished runs in a file, so that an interrupted command continues where it stopped.

use std::collections::{BTreeMap, HashMap};
use std::fs::{File, OpenOptions};
use std::hash::{DefaultHasher, Hash, Hasher};
use std::io::Write;
use std::path::{Path, PathBuf};
use std::sync::{Mutex, PoisonError};

use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};

use crate::error::{Error, Result};

/// The results of a run, by name. Values that are not finite are left out.
pub(crate) type Values = BTreeMap<String, f64>;

/// A finished run.
#[derive(Clone, Debug, Deserialize, PartialEq, Serialize)]
pub(crate) struct Record<V = Values> {
    /// Everything that determines the run, its seed included.
    pub(crate) key: String,
    /// Processor time of the run.
    pub(crate) seconds: f64,
    pub(crate) values: V,
}

/// A file of finished runs: a line that names the program, then one line for each run.
#[derive(Debug)]
pub(crate) struct RunCache<V = Values> {
    path: PathBuf,
    file: Mutex<File>,
    /// The runs that the file held when it was opened.
    pub(crate) records: HashMap<String, Record<V>>,
}

impl<V: DeserializeOwned + Serialize> RunCache<V> {
    /// Opens the file or creates it. Discards the runs of another build of the program, because its results may differ.
    pub(crate) fn open(path: &Path, program: &str, fresh: bool) -> Result<RunCache<V>> {
        let text = std::fs::read_to_string(path).unwrap_or_default();
        let header = serde_json::json!({ "program": program }).to_string();
        let usable = !fresh && text.lines().next() == Some(header.as_str());
        let mut records = HashMap::new();
        if usable {
            // The last line may be incomplete.
            let found = text.lines().skip(1).filter_map(|line| serde_json::from_str::<Record<V>>(line).ok());
            records.extend(found.map(|record| (record.key.clone(), record)));
        }
        let failed = |error| Error::io(format_args!("write {}", path.display()), &error);
        let mut file = OpenOptions::new()
            .create(true)
            .write(true)
            .append(usable)
            .truncate(!usable)
            .open(path)
            .map_err(failed)?;
        let start = if usable && !text.ends_with('\n') { "\n".to_string() } else { String::new() };
        let start = if usable { start } else { header + "\n" };
        file.write_all(start.as_bytes()).map_err(failed)?;
        Ok(RunCache { path: path.to_path_buf(), file: Mutex::new(file), records })
    }

    /// Stores a finished run.
    pub(crate) fn add(&self, record: &Record<V>) -> Result<()> {
        let line = serde_json::to_string(record).map_err(|error| Error::failed(error.to_string()))? + "\n";
        let mut file = self.file.lock().unwrap_or_else(PoisonError::into_inner);
        file.write_all(line.as_bytes())
            .map_err(|error| Error::io(format_args!("write {}", self.path.display()), &error))
    }

    pub(crate) fn path(&self) -> &Path {
        &self.path
    }
}

/// Identifies this build of the program.
pub(crate) fn program() -> String {
    let version = env!("CARGO_PKG_VERSION");
    let executable = std::env::current_exe().and_then(std::fs::read).unwrap_or_default();
    let mut hasher = DefaultHasher::new();
    executable.hash(&mut hasher);
    format!("paceline {version} {:016x}", hasher.finish())
}

#[cfg(test)]
mod tests {
    use super::*;

    type RunCache = super::RunCache<Values>;

    fn record(key: &str, value: f64) -> Record {
        Record { key: key.into(), seconds: 0.5, values: [("goodput_mbps".to_string(), value)].into() }
    }

    #[test]
    fn runs_are_found_again_by_the_same_program_only() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("runs.jsonl");
        let first = RunCache::open(&path, "a", false).unwrap();
        first.add(&record("x seed 1", 0.1 + 0.2)).unwrap();
        assert_eq!(
            RunCache::open(&path, "a", false).unwrap().records["x seed 1"],
            record("x seed 1", 0.1 + 0.2)
        );
        assert!(RunCache::open(&path, "b", false).unwrap().records.is_empty());
        assert!(RunCache::open(&path, "a", false).unwrap().records.is_empty());
    }

    #[test]
    fn half_a_line_is_no_run_and_spoils_none() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("runs.jsonl");
        RunCache::open(&path, "a", false).unwrap().add(&record("x", 1.0)).unwrap();
        let text = std::fs::read_to_string(&path).unwrap();
        std::fs::write(&path, format!("{text}{{\"key\": \"y\", \"sec")).unwrap();
        let second = RunCache::open(&path, "a", false).unwrap();
        assert_eq!(second.records.len(), 1);
        second.add(&record("z", 2.0)).unwrap();
        assert_eq!(RunCache::open(&path, "a", false).unwrap().records.len(), 2);
        assert!(RunCache::open(&path, "a", true).unwrap().records.is_empty());
    }
}
