//! The figures as plots.

use std::path::Path;
use std::sync::LazyLock;

use paceline_judge::distinct;
use serde::Deserialize;
use serde_json::Value;

use super::cells::{CellResult, Figure};
use crate::error::Result;
use crate::plot::{self, Across, Line, Panel};
use crate::reproduce::report::{Section, number};

/// The contents of figures.toml.
#[derive(Deserialize)]
struct Drawings {
    drawing: Vec<Drawing>,
}

/// How a figure is drawn.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Drawing {
    figure: Figure,
    name: String,
    title: String,
    across: String,
    text: String,
}

#[expect(clippy::expect_used, reason = "the file is part of the program, and a test reads it")]
static DRAWINGS: LazyLock<Drawings> = LazyLock::new(|| {
    toml::from_str(include_str!("figures.toml")).expect("figures.toml is as described here")
});

pub(super) fn draw(cells: &[CellResult], folder: &Path) -> Result<Vec<Section>> {
    let mut sections = Vec::new();
    for drawing in &DRAWINGS.drawing {
        let of: Vec<&CellResult> = cells.iter().filter(|cell| cell.figure == drawing.figure).collect();
        if !of.is_empty() {
            sections.push(drawing.section(&of, folder)?);
        }
    }
    Ok(sections)
}

impl Drawing {
    fn section(&'static self, cells: &[&CellResult], folder: &Path) -> Result<Section> {
        let file = format!("{}.svg", self.name);
        plot::write_across(
            &folder.join(&file),
            &self.title,
            Across::Linear(&self.across),
            &self.panels(cells),
        )?;
        let (columns, rows) = match self.figure {
            Figure::Fig3 | Figure::Fig4 | Figure::Fig5 => by_setting(cells),
            _ => by_scheme(&self.across, cells),
        };
        Ok(Section {
            name: &self.name,
            title: self.title.clone(),
            text: format!("{} Goodput in Mbit/s.", self.text),
            columns,
            rows,
            files: vec![file],
        })
    }

    fn panels(&self, cells: &[&CellResult]) -> Vec<Panel> {
        match self.figure {
            Figure::Fig3 | Figure::Fig4 | Figure::Fig5 => {
                let mut mrrls: Vec<u32> = cells.iter().filter_map(|cell| cell.mrrl).collect();
                mrrls.sort_unstable();
                mrrls.dedup();
                let panel = |mrrl: u32| {
                    let of: Vec<&CellResult> =
                        cells.iter().copied().filter(|cell| cell.mrrl == Some(mrrl)).collect();
                    let beta = |cell: &CellResult| format!("beta {}", cell.beta_percent.unwrap_or(0));
                    panel(&format!("MRRL {mrrl}: goodput (Mbit/s)"), &of, &beta, &|cell| cell.goodput_mbps)
                };
                mrrls.into_iter().map(panel).collect()
            }
            Figure::Fig7 => {
                let mut panels = [("normalised goodput", Vec::new()), ("total goodput (Mbit/s)", Vec::new())];
                for (colour, scheme) in ["ncl", "ncl-second-rd"].into_iter().enumerate() {
                    let line = |label: &str, value: &dyn Fn(&CellResult) -> Option<f64>| {
                        let of = cells.iter().filter(|cell| cell.scheme == scheme);
                        let points = of.filter_map(|cell| Some((cell.x, value(cell)?))).collect();
                        Line { label: label.into(), colour, points }
                    };
                    panels[0]
                        .1
                        .push(line(&format!("{scheme}, least"), &|cell| cell.normalised.map(|n| n[0])));
                    panels[0]
                        .1
                        .push(line(&format!("{scheme}, largest"), &|cell| cell.normalised.map(|n| n[1])));
                    panels[1].1.push(line(scheme, &|cell| Some(cell.goodput_mbps)));
                }
                panels.map(|(title, lines)| Panel { title: title.into(), lines }).into()
            }
            _ => {
                let scheme = |cell: &CellResult| cell.scheme.to_string();
                vec![panel("goodput (Mbit/s)", cells, &scheme, &|cell| cell.goodput_mbps)]
            }
        }
    }
}

type Table = (Vec<&'static str>, Vec<Vec<Value>>);

/// A row for each place on the axis, and a column for each sender.
fn by_scheme(across: &'static str, cells: &[&CellResult]) -> Table {
    let axis = in_order(cells.iter().map(|cell| cell.x));
    let schemes = distinct(cells.iter().map(|cell| cell.scheme));
    let goodput = |x: f64, scheme: &str| {
        let found = cells.iter().find(|cell| cell.x == x && cell.scheme == scheme);
        number(found.map_or(f64::NAN, |cell| cell.goodput_mbps), 3)
    };
    let row =
        |x: &f64| std::iter::once(number(*x, 1)).chain(schemes.iter().map(|s| goodput(*x, s))).collect();
    (std::iter::once(across).chain(schemes.iter().copied()).collect(), axis.iter().map(row).collect())
}

/// A row for each MRRL and beta. One cell lists the goodput along the axis.
fn by_setting(cells: &[&CellResult]) -> Table {
    let mut settings: Vec<(u32, u32)> =
        cells.iter().filter_map(|c| Some((c.mrrl?, c.beta_percent?))).collect();
    settings.sort_unstable();
    settings.dedup();
    let row = |&(mrrl, beta): &(u32, u32)| -> Vec<Value> {
        let of = cells.iter().filter(|cell| (cell.mrrl, cell.beta_percent) == (Some(mrrl), Some(beta)));
        let along: Vec<String> = of.map(|cell| format!("{}: {:.3}", cell.x, cell.goodput_mbps)).collect();
        vec![mrrl.into(), number(f64::from(beta) / 100.0, 2), along.join("  ").into()]
    };
    (vec!["MRRL", "beta", "goodput along the axis"], settings.iter().map(row).collect())
}

fn in_order(values: impl Iterator<Item = f64>) -> Vec<f64> {
    let mut values: Vec<f64> = values.collect();
    values.sort_by(f64::total_cmp);
    values.dedup();
    values
}

fn panel(
    title: &str,
    cells: &[&CellResult],
    series: &dyn Fn(&CellResult) -> String,
    value: &dyn Fn(&CellResult) -> f64,
) -> Panel {
    let mut lines: Vec<Line> = Vec::new();
    for cell in cells {
        let (label, point) = (series(cell), (cell.x, value(cell)));
        match lines.iter_mut().find(|line| line.label == label) {
            Some(line) => line.points.push(point),
            None => {
                let colour = lines.len();
                lines.push(Line { label, colour, points: vec![point] });
            }
        }
    }
    Panel { title: title.into(), lines }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_figure_of_the_paper_is_drawn_once() {
        let mut figures: Vec<Figure> = DRAWINGS.drawing.iter().map(|drawing| drawing.figure).collect();
        figures.dedup();
        assert!(
            figures.is_sorted() && figures.len() == 8 && figures.iter().all(|figure| figure.number() > 0)
        );
    }
}
