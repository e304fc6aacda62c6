//! Properties that must hold for any answer of another process. The fuzz target uses them, and the replay of its
//! corpus.

/// `data`: a gateway's answer, as `paceline top` displays it.
pub fn report(data: &[u8]) {
    let Ok(report) = serde_json::from_slice::<paceline_service::rows::Report>(data) else { return };
    crate::top::exercise(report.clone(), report);
}

#[cfg(test)]
#[path = "../../../fuzz/replay.rs"]
mod replayed;

#[cfg(test)]
mod tests {
    use super::replayed::replay;

    #[test]
    fn reports_shown_replayed() {
        replay("report", 5_000, super::report);
    }
}
