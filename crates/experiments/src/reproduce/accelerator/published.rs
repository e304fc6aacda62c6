//! The published numbers: those of the files in published/, and those of the paper's text in paper.toml. paper.toml
//! also names the run that corresponds to each number.

use std::sync::LazyLock;

use serde::Deserialize;
use serde_json::json;

use super::cells::{Measure, Published};
use super::figures::Figure;

/// The contents of paper.toml.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Paper {
    #[serde(rename = "figure")]
    pub(super) figures: Vec<Figure>,
    text: Vec<InText>,
    #[serde(rename = "row")]
    rows: Vec<Answer>,
}

#[expect(clippy::expect_used, reason = "the file is part of the program, and a test reads it")]
pub(super) static PAPER: LazyLock<Paper> =
    LazyLock::new(|| toml::from_str(include_str!("paper.toml")).expect("paper.toml is as described here"));

/// Every number of the published files, and the numbers of the text that belong to a figure.
pub(super) fn published() -> Vec<Published> {
    let mut all = losses();
    all.extend(tables());
    all.extend(PAPER.text.iter().map(InText::published));
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
    "table-1,rate=1mbit", "table-1,rate=2mbit", "table-1,rate=3mbit", "table-1,rate=4mbit",
    "table-1,rate=5mbit", "table-1,rate=6mbit", "table-1,rate=7mbit",
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
            PAPER.rows.iter().find(|answer| answer.case == row.case && answer.metric == row.metric)
        else {
            continue;
        };
        let table = if row.table.fract() == 0.0 { json!(row.table as u64) } else { json!(row.table) };
        let columns = [("without", row.without_accelerator), ("with", row.with_accelerator)];
        for ((accelerator, published), variant) in columns.into_iter().zip(&answer.variants) {
            all.push(Published {
                table: table.clone(),
                figure: None,
                case: row.case.clone(),
                metric: &answer.metric,
                accelerator,
                sending_rate_mbps: None,
                published: Some(published),
                scenario: &answer.scenario,
                variant,
                measure: answer.measure.clone(),
                note: &answer.note,
            });
        }
    }
    all
}

/// Maps a row of the published file to our runs.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct Answer {
    case: String,
    metric: String,
    scenario: String,
    /// Without and with the accelerator.
    variants: [String; 2],
    measure: Measure,
    note: String,
}

/// A number of the text, and its measurement.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct InText {
    figure: u8,
    case: String,
    #[serde(default = "throughput")]
    metric: String,
    published: Option<f64>,
    #[serde(default = "steps")]
    scenario: String,
    variant: String,
    #[serde(default = "goodput")]
    measure: Measure,
    #[serde(default)]
    note: String,
}

fn throughput() -> String {
    "throughput_mbps".into()
}

fn steps() -> String {
    "steps".into()
}

fn goodput() -> Measure {
    Measure::Metric("goodput_mbps".into(), 1.0)
}

impl InText {
    fn published(&'static self) -> Published {
        let is_without = self.scenario == "datagrams" || self.variant.starts_with("unaccelerated");
        Published {
            table: json!(format!("Fig. {}", self.figure)),
            figure: Some(self.figure),
            case: self.case.clone(),
            metric: &self.metric,
            accelerator: if is_without { "without" } else { "with" },
            sending_rate_mbps: None,
            published: self.published,
            scenario: &self.scenario,
            variant: &self.variant,
            measure: self.measure.clone(),
            note: &self.note,
        }
    }
}

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
