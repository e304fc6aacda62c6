//! Properties that must hold for every scenario file. The fuzz target and the replay of its corpus share them.

/// `data`: the text of a scenario file.
pub fn scenario(data: &[u8]) {
    let Ok(text) = str::from_utf8(data) else { return };
    // Reading trace files and generating traces would only take time.
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

#[cfg(test)]
#[path = "../../../fuzz/replay.rs"]
mod replayed;

#[cfg(test)]
mod tests {
    use super::replayed::replay;

    #[test]
    fn scenarios_replayed() {
        replay("scenario", 2_000, super::scenario);
    }
}
