//! Converts OpenMetrics text to Prometheus' older text format (0.0.4), for clients that do not ask for OpenMetrics.

use std::collections::HashMap;

/// Converts the text. In the older format counter names include `_total`, there are no `info` metrics and no units,
/// and no last line.
pub(super) fn of(openmetrics: &str) -> String {
    let kinds: HashMap<&str, &str> =
        openmetrics.lines().filter_map(|line| line.strip_prefix("# TYPE ")?.split_once(' ')).collect();
    let full = |name: &str| match kinds.get(name) {
        Some(&"counter") => format!("{name}_total"),
        Some(&"info") => format!("{name}_info"),
        _ => name.to_owned(),
    };
    let mut out = String::with_capacity(openmetrics.len() + (4 << 10));
    for line in openmetrics.lines() {
        let told = line.strip_prefix("# ").map(|rest| {
            let (keyword, rest) = rest.split_once(' ').unwrap_or((rest, ""));
            let (name, text) = rest.split_once(' ').unwrap_or((rest, ""));
            (keyword, name, text)
        });
        match told {
            None => out.push_str(line),
            Some(("HELP", name, text)) => out.push_str(&format!("# HELP {} {text}", full(name))),
            Some(("TYPE", name, "info")) => out.push_str(&format!("# TYPE {} gauge", full(name))),
            Some(("TYPE", name, kind)) => out.push_str(&format!("# TYPE {} {kind}", full(name))),
            // UNIT and EOF.
            Some(_) => continue,
        }
        out.push('\n');
    }
    out
}

#[cfg(test)]
mod tests {
    use super::super::metrics::tests::metrics;
    use super::*;

    #[test]
    fn every_series_has_its_type_under_its_full_name() {
        let text = of(&metrics().text().unwrap());
        for line in [
            "# TYPE paceline_build_info gauge",
            "# TYPE paceline_flows gauge",
            "# TYPE paceline_retransmissions_total counter",
            "paceline_retransmissions_total{by=\"gateway\"} 3",
            "# TYPE paceline_radio_rtt_seconds histogram",
            "# TYPE process_cpu_seconds_total counter",
        ] {
            assert!(text.lines().any(|other| other == line), "{line} is missing in\n{text}");
        }
        assert!(!text.contains("# UNIT") && !text.contains("# EOF"));
        let types: HashMap<&str, &str> =
            text.lines().filter_map(|line| line.strip_prefix("# TYPE ")?.split_once(' ')).collect();
        for line in text.lines().filter(|line| !line.starts_with('#')) {
            let name = line.split(['{', ' ']).next().unwrap();
            let is_typed = types.contains_key(name)
                || ["_bucket", "_sum", "_count"].iter().any(|part| {
                    name.strip_suffix(part).is_some_and(|base| types.get(base) == Some(&"histogram"))
                });
            assert!(is_typed, "{line} has no type");
        }
    }
}
