//! A folder of finished runs: one JSON file each, with time series as CSV beside it. A stored run is not repeated.

use std::fs;
use std::path::{Path, PathBuf};

use super::Run;
use crate::common;
use crate::error::Result;
use crate::files::write_whole;
use crate::scenario::Variant;

/// The folder of one scenario.
#[derive(Clone, Debug)]
pub(crate) struct Store {
    folder: PathBuf,
}

/// The paths of one run's files.
#[derive(Clone, Debug)]
pub(crate) struct RunFiles {
    stem: PathBuf,
}

impl Store {
    /// Opens the folder, and creates it if it is missing.
    pub(crate) fn open(folder: &Path) -> Result<Store> {
        common::make_folder(folder)?;
        Ok(Store { folder: folder.to_path_buf() })
    }

    pub(crate) fn files(&self, variant: &Variant, seed: u64) -> RunFiles {
        RunFiles { stem: self.folder.join(format!("{}-seed{seed}", variant.file_stem())) }
    }

    pub(crate) fn folder(&self) -> &Path {
        &self.folder
    }

    /// Returns the finished run of exactly this scenario and seed, if there is one.
    pub(crate) fn finished(&self, variant: &Variant, seed: u64) -> Option<Run> {
        let files = self.files(variant, seed);
        // Other settings under the same name mean another experiment.
        if fs::read_to_string(files.scenario()).ok()? != variant.settings {
            return None;
        }
        serde_json::from_str(&fs::read_to_string(files.result()).ok()?).ok()
    }

    pub(crate) fn save(&self, variant: &Variant, run: &Run) -> Result<()> {
        let files = self.files(variant, run.seed);
        let text = common::json(run)?;
        write_whole(&files.scenario(), &variant.settings)?;
        write_whole(&files.result(), &(text + "\n"))
    }
}

impl RunFiles {
    pub(crate) fn result(&self) -> PathBuf {
        self.with("json")
    }

    pub(crate) fn scenario(&self) -> PathBuf {
        self.with("toml")
    }

    /// Returns the path of a file beside the result, such as `flows.csv`.
    pub(crate) fn with(&self, name: &str) -> PathBuf {
        let mut path = self.stem.clone().into_os_string();
        path.push(".");
        path.push(name);
        path.into()
    }
}

#[cfg(test)]
mod tests {
    use super::super::tests::sample;
    use super::*;
    use crate::scenario::parse_text;

    #[test]
    fn a_finished_run_is_found_again_unless_the_scenario_changed() {
        let text =
            "name=\"x\"\nduration=\"10s\"\n[radio.down]\nrate=\"7mbit\"\n[[flows]]\nname=\"download\"\n";
        let variant = parse_text(text).unwrap().variants.remove(0);
        let folder = tempfile::tempdir().unwrap();
        let store = Store::open(folder.path()).unwrap();
        assert!(store.finished(&variant, 3).is_none());
        store.save(&variant, &sample("base", 3, 6.8)).unwrap();
        assert_eq!(store.finished(&variant, 3).unwrap().flows[0].goodput_mbps, 6.8);
        assert!(store.finished(&variant, 4).is_none());
        let other = parse_text(&text.replace("7mbit", "8mbit")).unwrap().variants.remove(0);
        assert!(store.finished(&other, 3).is_none());
        let more = parse_text(&format!("runs=7\n{text}")).unwrap().variants.remove(0);
        assert!(store.finished(&more, 3).is_some());
    }
}
