//! What must hold whatever a file, a request or another process says. Shared by fuzz targets and by the replay of their corpora.

/// `data`: the text of a scenario file.
#[cfg(feature = "lab")]
pub fn scenario(data: &[u8]) {
    let Ok(text) = str::from_utf8(data) else { return };
    // Files that are named are read, and traces are made: both only take time.
    if ["trace", "generate"].iter().any(|word| text.contains(word)) {
        return;
    }
    let path = std::path::Path::new("/nonexistent/s.toml");
    match crate::scenario::parse(path, text, None) {
        Ok(file) => {
            assert!(!file.variants.is_empty() && !file.base.name.is_empty());
            for (index, variant) in file.variants.iter().enumerate() {
                assert!(variant.matches(""));
                let is_other = |other: &crate::scenario::Variant| other.name != variant.name;
                assert!(file.variants[..index].iter().all(is_other), "names differ");
                assert!(!variant.file_stem().contains('/'));
            }
        }
        Err(error) => assert!(error.to_string().starts_with("/nonexistent/s.toml:"), "{error}"),
    }
}

/// `data`: a gateway's answer, as `paceline top` shows it.
#[cfg(feature = "top")]
pub fn report(data: &[u8]) {
    let Ok(report) = serde_json::from_slice::<paceline_service::rows::Report>(data) else { return };
    crate::top::exercise(report.clone(), report);
}

#[cfg(test)]
#[cfg(all(feature = "lab", feature = "top"))]
#[path = "../../../fuzz/replay.rs"]
mod replayed;

#[cfg(test)]
#[cfg(all(feature = "lab", feature = "top"))]
mod tests {
    use super::replayed::replay;

    #[test]
    fn scenarios_replayed() {
        replay("scenario", 2_000, super::scenario);
    }

    #[test]
    fn reports_shown_replayed() {
        replay("report", 5_000, super::report);
    }
}
