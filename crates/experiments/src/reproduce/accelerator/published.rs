//! The published numbers: those of the files in published/, and the run that answers each.

use serde::Deserialize;
use serde_json::json;

use super::cells::{Measure, Published};
use super::in_text;

/// Every number of the published files, and those of the text that belong to a figure.
pub(super) fn published() -> Vec<Published> {
    let mut all = losses();
    all.extend(tables());
    all.extend(in_text::published());
    all
}

#[derive(Deserialize)]
struct Loss {
    sending_rate_mbps: f64,
    loss_fraction: f64,
}

fn losses() -> Vec<Published> {
    let text =
        include_str!(concat!(env!("CARGO_MANIFEST_DIR"), "/../../published/mobile-accelerator-loss.csv"));
    let rows =
        csv::Reader::from_reader(text.as_bytes()).into_deserialize::<Loss>().filter_map(|row| row.ok());
    rows.zip(VARIANTS_OF_TABLE_1)
        .map(|(row, variant)| Published {
            table: json!(1),
            figure: None,
            case: format!("{} Mbit/s", row.sending_rate_mbps),
            metric: "loss_fraction",
            accelerator: "without",
            sending_rate_mbps: Some(row.sending_rate_mbps),
            published: Some(row.loss_fraction),
            scenario: "datagrams",
            variant,
            measure: Measure::Missing(row.sending_rate_mbps),
            note: "the losses of the link are this table: what is checked is the model of a link whose losses grow with the rate",
        })
        .collect()
}

const VARIANTS_OF_TABLE_1: [&str; 7] = [
    "table-1,rate=1mbit",
    "table-1,rate=2mbit",
    "table-1,rate=3mbit",
    "table-1,rate=4mbit",
    "table-1,rate=5mbit",
    "table-1,rate=6mbit",
    "table-1,rate=7mbit",
];

#[derive(Deserialize)]
struct Row {
    table: f64,
    case: String,
    metric: String,
    without_accelerator: f64,
    with_accelerator: f64,
}

fn tables() -> Vec<Published> {
    let text = include_str!(concat!(env!("CARGO_MANIFEST_DIR"), "/../../published/mobile-accelerator.csv"));
    let rows = csv::Reader::from_reader(text.as_bytes()).into_deserialize::<Row>().filter_map(|row| row.ok());
    let mut all = Vec::new();
    for row in rows {
        let Some(answer) =
            ANSWERS.iter().find(|answer| answer.case == row.case && answer.metric == row.metric)
        else {
            continue;
        };
        let table = if row.table.fract() == 0.0 { json!(row.table as u64) } else { json!(row.table) };
        let columns = [("without", row.without_accelerator), ("with", row.with_accelerator)];
        for ((accelerator, published), variant) in columns.into_iter().zip(answer.variants) {
            all.push(Published {
                table: table.clone(),
                figure: None,
                case: row.case.clone(),
                metric: answer.metric,
                accelerator,
                sending_rate_mbps: None,
                published: Some(published),
                scenario: answer.scenario,
                variant,
                measure: answer.measure,
                note: answer.note,
            });
        }
    }
    all
}

/// How a row of the published file is answered.
struct Answer {
    case: &'static str,
    metric: &'static str,
    scenario: &'static str,
    /// Without and with the accelerator.
    variants: [&'static str; 2],
    measure: Measure,
    note: &'static str,
}

const EQUAL: [&str; 2] = ["unaccelerated,equal", "accelerated,equal"];
const FAIRNESS_NOTE: &str = "no random loss, queue of 1,000 packets, which the text leaves open; over the time in which both flows ran, \
                             from two seconds after the second began";
const HANDSET_NOTE: &str = "128 KB of buffer and the rate at which the application reads are chosen so that the accelerated handset \
                            reaches what was published: the text says that it processes slowly, not how slowly";

const ANSWERS: [Answer; 9] = [
    Answer {
        case: "fairness 1000 ms",
        metric: "jain_index",
        scenario: "fairness",
        variants: EQUAL,
        measure: Measure::Metric("fairness.jain_1s", 1.0),
        note: FAIRNESS_NOTE,
    },
    Answer {
        case: "fairness 100 ms",
        metric: "jain_index",
        scenario: "fairness",
        variants: EQUAL,
        measure: Measure::Metric("fairness.jain_100ms", 1.0),
        note: FAIRNESS_NOTE,
    },
    Answer {
        case: "fairness 10 ms",
        metric: "jain_index",
        scenario: "fairness",
        variants: EQUAL,
        measure: Measure::Metric("fairness.jain_10ms", 1.0),
        note: FAIRNESS_NOTE,
    },
    Answer {
        case: "overall",
        metric: "throughput_bps",
        scenario: "transfer",
        variants: ["unaccelerated", "accelerated"],
        measure: Measure::Metric("goodput_mbps", 1e6),
        note: "5.4 Mbit/s and 0.6 % loss as measured in Section 8.2; round trip of 85 ms, which the 17 KB client's throughput implies",
    },
    Answer {
        case: "steady state",
        metric: "throughput_bps",
        scenario: "transfer",
        variants: ["unaccelerated", "accelerated"],
        measure: Measure::Since(5.0),
        note: "from 5 s on: when the ramp-up ends is not said; one run",
    },
    Answer {
        case: "iPhone 3G",
        metric: "throughput_mbps",
        scenario: "receiver-buffers",
        variants: ["unaccelerated,client=iphone-3g", "accelerated,client=iphone-3g"],
        measure: Measure::Metric("goodput_mbps", 1.0),
        note: HANDSET_NOTE,
    },
    Answer {
        case: "iPhone 3GS",
        metric: "throughput_mbps",
        scenario: "receiver-buffers",
        variants: ["unaccelerated,client=iphone-3gs", "accelerated,client=iphone-3gs"],
        measure: Measure::Metric("goodput_mbps", 1.0),
        note: HANDSET_NOTE,
    },
    Answer {
        case: "Nexus One",
        metric: "throughput_mbps",
        scenario: "receiver-buffers",
        variants: ["unaccelerated,client=nexus-one", "accelerated,client=nexus-one"],
        measure: Measure::Metric("goodput_mbps", 1.0),
        note: "81 KB from the start: how the handset adapts is not said; 0.6 % of independent losses leave an unaccelerated sender less",
    },
    Answer {
        case: "fairness measured network 100 ms",
        metric: "jain_index",
        scenario: "fairness",
        variants: ["unaccelerated,measured", "accelerated,measured"],
        measure: Measure::Metric("fairness.jain_100ms", 1.0),
        note: "128 KB of window without, 17 KB with the accelerator, as published; without, independent losses keep both flows small \
               and even",
    },
];

#[cfg(test)]
mod tests {
    use super::super::scenarios::SOURCES;
    use super::*;

    #[test]
    fn every_published_number_has_a_variant_that_answers_it() {
        let all = published();
        let of_tables = all.iter().filter(|cell| cell.figure.is_none()).count();
        assert_eq!(of_tables, 7 + 2 * 9);
        for cell in &all {
            let source = SOURCES.iter().find(|source| source.name == cell.scenario).unwrap();
            let file = source.load(&[cell.variant]).unwrap();
            let exact = file.variants.iter().filter(|variant| variant.name == cell.variant).count();
            assert_eq!(exact, 1, "{} {}", cell.scenario, cell.variant);
        }
    }
}
