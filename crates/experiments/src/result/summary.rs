//! Results as tables for the terminal.

use paceline_judge::{Interval, Outcome, distinct};

use super::metric::{statistic, values};
use super::{LinkResult, Run};
use crate::scenario::Statistic;
use crate::table::{fitted, new_table};
use crate::units::format_number;

/// A row for each variant and flow name, with medians over runs.
pub(crate) fn summary_table(runs: &[Run]) -> String {
    let mut table = new_table(
        2,
        &[
            "variant", "flow", "runs", "goodput\nMbit/s", "completion\ns", "RTT p50\nms",
            "path delay\np95, ms", "link\nused", "resent", "RTO", "TLP", "done",
        ],
    );
    for (variant, flow) in flow_rows(runs) {
        let of = |metric: &str| {
            let of_variant = runs.iter().filter(|run| run.variant == variant);
            of_variant.flat_map(|run| values(run, metric, Some(&flow))).collect::<Vec<f64>>()
        };
        let median = |metric: &str, digits: usize| match statistic(Statistic::Median, &of(metric)) {
            Some(number) => format!("{number:.digits$}"),
            None => "-".into(),
        };
        let done =
            of("completed").iter().zip(of("sha256_ok")).filter(|(c, h)| **c == 1.0 && *h == 1.0).count();
        let used = statistic(Statistic::Median, &of("links.radio_down.utilization"));
        table.add_row([
            variant.clone(),
            flow.clone(),
            runs.iter().filter(|run| run.variant == variant).count().to_string(),
            median("goodput_mbps", 2),
            median("completion_s", 2),
            median("rtt_ms.p50", 1),
            median("path_delay_ms.p95", 1),
            used.map_or("-".into(), |share| format!("{:.1} %", share * 100.0)),
            median("retransmitted_segments", 0),
            median("timeouts", 0),
            median("tail_loss_probes", 0),
            format!("{done}/{}", of("completed").len()),
        ]);
    }
    fitted(table, &["TLP", "RTO", "runs", "link\nused", "path delay\np95, ms", "resent"])
}

/// One row for each bound and variant; `None` without bounds.
pub(crate) fn bounds_table(outcomes: &[Outcome]) -> Option<String> {
    if outcomes.is_empty() {
        return None;
    }
    let mut table = new_table(2, &["bound on", "variant", "value", "wanted", "samples", ""]);
    for outcome in outcomes {
        let bound = &outcome.bound;
        let metric = match &bound.relative_to {
            Some(other) => format!("{} / {other}", bound.metric),
            None => bound.metric.clone(),
        };
        let wanted = [
            bound.min.map(|min| format!(">= {}", format_number(min))),
            bound.max.map(|max| format!("<= {}", format_number(max))),
        ];
        table.add_row([
            metric,
            outcome.variant.clone(),
            outcome.measured.map_or("-".into(), shown),
            wanted.into_iter().flatten().collect::<Vec<_>>().join(", "),
            outcome.samples.to_string(),
            if outcome.holds { "ok".into() } else { "MISSED".into() },
        ]);
    }
    Some(table.to_string())
}

/// Formats a value, with half of its interval if there is one.
fn shown(measured: Interval) -> String {
    match (measured.high - measured.low) / 2.0 {
        half if half > 0.0 => format!("{:.3} ± {half:.3}", measured.mean),
        _ => format!("{:.3}", measured.mean),
    }
}

/// One row for each link direction.
pub(crate) fn links_table(links: &[(&str, LinkResult)]) -> String {
    let mut table =
        new_table(1, &["link", "packets", "bytes", "used", "capacity", "queue p50", "queue p95", "drops"]);
    let ms = |value: Option<f64>| value.map_or("-".into(), |value| format!("{value:.1} ms"));
    for (name, link) in links {
        table.add_row([
            name.to_string(),
            link.delivered_packets.to_string(),
            link.delivered_bytes.to_string(),
            link.utilization.map_or("-".into(), |share| format!("{:.1} %", share * 100.0)),
            link.capacity_mbps.map_or("unlimited".into(), |mbps| format!("{mbps:.2} Mbit/s")),
            ms(link.queue_delay_ms.p50),
            ms(link.queue_delay_ms.p95),
            link.drops.to_string(),
        ]);
    }
    fitted(table, &["bytes", "capacity"])
}

/// Variants and flow names in the order in which they first appear.
pub(crate) fn flow_rows(runs: &[Run]) -> Vec<(String, String)> {
    distinct(
        runs.iter().flat_map(|run| run.flows.iter().map(|flow| (run.variant.clone(), flow.name.clone()))),
    )
}

#[cfg(test)]
mod tests {
    use super::super::tests::sample;
    use super::*;

    #[test]
    fn a_row_shows_the_median_with_units() {
        let runs: Vec<Run> = [6.6, 6.8, 6.9].into_iter().map(|mbps| sample("accelerated", 1, mbps)).collect();
        let text = summary_table(&runs);
        let row = text.lines().find(|line| line.contains("accelerated")).unwrap();
        for part in ["6.80", "60.00", "101.5", "97.0 %", "3/3"] {
            assert!(row.contains(part), "{part} in {row}");
        }
        assert!(text.contains("Mbit/s") && text.contains("p95, ms"), "{text}");
    }
}
