//! Curves as SVG: panels below each other with one common axis, mostly time. Text stays text, so no font is needed
//! here.

use std::path::Path;

use plotters::coord::Shift;
use plotters::coord::ranged1d::{Ranged, ValueFormatter};
use plotters::coord::types::RangedCoordf64;
use plotters::prelude::*;

use crate::error::{Error, Result};

/// One set of axes.
#[derive(Clone, Debug)]
pub(crate) struct Panel {
    /// The quantity with its unit, such as "RTT (ms)".
    pub(crate) title: String,
    pub(crate) lines: Vec<Line>,
}

/// One curve.
#[derive(Clone, Debug)]
pub(crate) struct Line {
    pub(crate) label: String,
    /// Index into the palette. The same thing has the same colour in every panel.
    pub(crate) colour: usize,
    /// Horizontal and vertical values; the horizontal ones are seconds unless [`Across`] says otherwise.
    pub(crate) points: Vec<(f64, f64)>,
}

/// The horizontal axis.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) enum Across {
    /// Time since the start.
    Seconds,
    /// A quantity of this name, above zero, on a logarithmic scale. Every point has a mark.
    Logarithm(&'static str),
    /// A quantity of this name. Every point has a mark.
    Linear(&'static str),
}

/// Writes `panels` over time to `path`.
pub(crate) fn write(path: &Path, title: &str, panels: &[Panel]) -> Result<()> {
    write_across(path, title, Across::Seconds, panels)
}

/// Writes `panels` to `path`.
pub(crate) fn write_across(path: &Path, title: &str, across: Across, panels: &[Panel]) -> Result<()> {
    let keys: u32 = panels.iter().map(|panel| KEY_PX * keys(panel).1).sum();
    let height = TITLE_PX + PANEL_PX * panels.len() as u32 + keys;
    let root = SVGBackend::new(path, (WIDTH_PX, height)).into_drawing_area();
    draw(&root, title, across, panels)
        .and_then(|()| root.present().map_err(|error| error.to_string()))
        .map_err(|why| Error::failed(format!("cannot write plot {}: {why}", path.display())))
}

type Area<'a> = DrawingArea<SVGBackend<'a>, Shift>;
type Drawn = std::result::Result<(), String>;

fn draw(root: &Area<'_>, title: &str, across: Across, panels: &[Panel]) -> Drawn {
    root.fill(&WHITE).map_err(text)?;
    let (head, body) = root.split_vertically(TITLE_PX);
    head.draw_text(title, &("sans-serif", 20).into_text_style(&head), (20, 12)).map_err(text)?;
    let across_all =
        || panels.iter().flat_map(|panel| &panel.lines).flat_map(|line| &line.points).map(|point| point.0);
    let (start, end) = match across {
        Across::Seconds | Across::Linear(_) => (0.0, across_all().fold(1.0, f64::max)),
        // The axis begins a little to the left of the first mark, so that this mark gets a number.
        Across::Logarithm(_) => (across_all().fold(1.0, f64::min) * 0.9, across_all().fold(1e-9, f64::max)),
    };
    let mut below = body;
    for panel in panels {
        let head_px = HEAD_PX + KEY_PX * keys(panel).1;
        let (area, rest) = below.split_vertically(head_px + PANEL_PX - HEAD_PX);
        below = rest;
        let (head, body) = area.split_vertically(head_px);
        let top = panel.lines.iter().flat_map(|line| &line.points).map(|point| point.1);
        let top = top.fold(0.0, f64::max).max(1e-9) * 1.08;
        let mut builder = ChartBuilder::on(&body);
        builder.margin(8).x_label_area_size(28).y_label_area_size(64);
        match across {
            Across::Seconds => {
                let mut chart = builder.build_cartesian_2d(start..end, 0.0..top).map_err(text)?;
                draw_panel(&head, &mut chart, panel, "s", false)?;
            }
            Across::Linear(what) => {
                let mut chart = builder.build_cartesian_2d(start..end, 0.0..top).map_err(text)?;
                draw_panel(&head, &mut chart, panel, what, true)?;
            }
            Across::Logarithm(what) => {
                let axis = (start..end).log_scale();
                let mut chart = builder.build_cartesian_2d(axis, 0.0..top).map_err(text)?;
                draw_panel(&head, &mut chart, panel, what, true)?;
            }
        }
    }
    Ok(())
}

type Chart<'a, 'b, X> = ChartContext<'a, SVGBackend<'b>, Cartesian2d<X, RangedCoordf64>>;

fn draw_panel<'b, X>(
    head: &Area<'b>,
    chart: &mut Chart<'_, 'b, X>,
    panel: &Panel,
    across: &str,
    marks: bool,
) -> Drawn
where
    X: Ranged<ValueType = f64> + ValueFormatter<f64>,
{
    head.draw_text(&panel.title, &("sans-serif", 15).into_text_style(head), (20, 6)).map_err(text)?;
    let mut mesh = chart.configure_mesh();
    mesh.x_desc(across).y_labels(6).x_label_formatter(&label).y_label_formatter(&label);
    mesh.light_line_style(WHITE);
    mesh.draw().map_err(text)?;
    for (line, (x, y)) in panel.lines.iter().zip(keys(panel).0) {
        let colour = Palette99::pick(line.colour).to_rgba();
        let points = line.points.iter().copied();
        chart.draw_series(LineSeries::new(points, colour.stroke_width(2))).map_err(text)?;
        if marks {
            let circles = line.points.iter().map(|point| Circle::new(*point, 4, colour.filled()));
            chart.draw_series(circles).map_err(text)?;
        }
        // The key stands above the axes, where no curve can be.
        let stroke = PathElement::new(vec![(x, y + 14), (x + 18, y + 14)], colour.stroke_width(3));
        head.draw(&stroke).map_err(text)?;
        head.draw_text(&line.label, &("sans-serif", 13).into_text_style(head), (x + 24, y + 7))
            .map_err(text)?;
    }
    Ok(())
}

/// Returns the places of the lines' keys in the head of the panel, and the number of rows beyond the first.
fn keys(panel: &Panel) -> (Vec<(i32, i32)>, u32) {
    let (mut x, mut row) = (KEYS_PX, 0);
    let mut place = |line: &Line| {
        let width = 36 + CHARACTER_PX * line.label.len() as i32;
        if x > KEYS_PX && x + width > WIDTH_PX as i32 {
            (x, row) = (KEYS_PX, row + 1);
        }
        x += width;
        (x - width, row * KEY_PX as i32)
    };
    let places = panel.lines.iter().map(&mut place).collect();
    (places, row as u32)
}

fn text<E: std::error::Error + Send + Sync>(error: DrawingAreaErrorKind<E>) -> String {
    format!("{error:?}")
}

fn label(value: &f64) -> String {
    crate::units::format_number((value * 1e3).round() / 1e3)
}

const WIDTH_PX: u32 = 960;
const PANEL_PX: u32 = 230;
const TITLE_PX: u32 = 40;
const HEAD_PX: u32 = 26;
/// Height of a row of keys.
const KEY_PX: u32 = 18;
/// Horizontal start of the keys.
const KEYS_PX: i32 = 250;
/// Average width of a character of a key.
const CHARACTER_PX: i32 = 6;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn titles_labels_and_lines_are_in_the_file() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("x.svg");
        let line = |label: &str, colour| Line {
            label: label.into(),
            colour,
            points: (0..100).map(|i| (f64::from(i) / 10.0, f64::from(i % 7) + 1.0)).collect(),
        };
        let panel = Panel { title: "RTT (ms)".into(), lines: vec![line("without", 0), line("with", 1)] };
        write(&path, "Both", &[panel.clone(), panel]).unwrap();
        let text = std::fs::read_to_string(path).unwrap();
        for part in ["<svg", "Both", "RTT (ms)", "without", "<polyline", "</svg>"] {
            assert!(text.contains(part), "{part}");
        }
    }

    #[test]
    fn a_logarithmic_axis_has_marks() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("x.svg");
        let points = vec![(0.001, 19.0), (0.1, 5.0), (10.0, 0.3)];
        let line = Line { label: "PRR".into(), colour: 0, points };
        let panel = Panel { title: "goodput (Mbit/s)".into(), lines: vec![line] };
        write_across(&path, "Loss", Across::Logarithm("loss (%)"), &[panel]).unwrap();
        let text = std::fs::read_to_string(path).unwrap();
        assert!(text.matches("<circle").count() == 3 && text.contains("loss (%)"));
    }

    #[test]
    fn keys_that_find_no_room_go_below() {
        let lines = (0..12).map(|n| Line { label: "ncl-second-rd".into(), colour: n, points: Vec::new() });
        let (places, rows) = keys(&Panel { title: "goodput".into(), lines: lines.collect() });
        // A key takes 114 px, so six fit into the 710 px of a row.
        assert_eq!((places.len(), rows), (12, 1));
        assert!(places.iter().all(|&(x, _)| x + 36 + 13 * CHARACTER_PX <= WIDTH_PX as i32));
        assert!(places.is_sorted_by_key(|&(x, y)| (y, x)));
    }

    #[test]
    fn nothing_to_show_is_no_error() {
        let folder = tempfile::tempdir().unwrap();
        let panel = Panel { title: "empty".into(), lines: Vec::new() };
        write(&folder.path().join("x.svg"), "Nothing", &[panel]).unwrap();
    }
}
