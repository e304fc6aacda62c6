//! Numbers over time as SVG: panels below each other with one time axis. Text stays text, so no font is needed here.

use std::path::Path;

use plotters::coord::Shift;
use plotters::prelude::*;

use crate::error::{Error, Result};

/// One set of axes.
#[derive(Clone, Debug)]
pub(crate) struct Panel {
    /// What is shown, with its unit: "RTT (ms)".
    pub(crate) title: String,
    pub(crate) lines: Vec<Line>,
}

/// One curve.
#[derive(Clone, Debug)]
pub(crate) struct Line {
    pub(crate) label: String,
    /// Place in the palette: the same thing has the same colour in every panel.
    pub(crate) colour: usize,
    /// Seconds and values.
    pub(crate) points: Vec<(f64, f64)>,
}

/// Writes `panels` to `path`.
pub(crate) fn write(path: &Path, title: &str, panels: &[Panel]) -> Result<()> {
    let height = TITLE_PX + PANEL_PX * panels.len() as u32;
    let root = SVGBackend::new(path, (WIDTH_PX, height)).into_drawing_area();
    draw(&root, title, panels)
        .and_then(|()| root.present().map_err(|error| error.to_string()))
        .map_err(|why| Error::failed(format!("cannot write plot {}: {why}", path.display())))
}

type Area<'a> = DrawingArea<SVGBackend<'a>, Shift>;
type Drawn = std::result::Result<(), String>;

fn draw(root: &Area<'_>, title: &str, panels: &[Panel]) -> Drawn {
    let text = |error: DrawingAreaErrorKind<_>| format!("{error:?}");
    root.fill(&WHITE).map_err(text)?;
    let (head, body) = root.split_vertically(TITLE_PX);
    head.draw_text(title, &("sans-serif", 20).into_text_style(&head), (20, 12)).map_err(text)?;
    let end_s =
        panels.iter().flat_map(|panel| &panel.lines).flat_map(|line| &line.points).map(|point| point.0);
    let end_s = end_s.fold(1.0, f64::max);
    for (area, panel) in body.split_evenly((panels.len(), 1)).iter().zip(panels) {
        draw_panel(area, panel, end_s)?;
    }
    Ok(())
}

fn draw_panel(area: &Area<'_>, panel: &Panel, end_s: f64) -> Drawn {
    let text = |error: DrawingAreaErrorKind<_>| format!("{error:?}");
    let (head, body) = area.split_vertically(HEAD_PX);
    head.draw_text(&panel.title, &("sans-serif", 15).into_text_style(&head), (20, 6)).map_err(text)?;
    let top =
        panel.lines.iter().flat_map(|line| &line.points).map(|point| point.1).fold(0.0, f64::max).max(1e-9);
    let mut builder = ChartBuilder::on(&body);
    builder.margin(8).x_label_area_size(28).y_label_area_size(64);
    let mut chart = builder.build_cartesian_2d(0.0..end_s, 0.0..top * 1.08).map_err(text)?;
    let mut mesh = chart.configure_mesh();
    mesh.x_desc("s").y_labels(6).x_label_formatter(&label).y_label_formatter(&label).light_line_style(WHITE);
    mesh.draw().map_err(text)?;
    let mut x = KEYS_PX;
    for line in &panel.lines {
        let colour = Palette99::pick(line.colour).to_rgba();
        let points = line.points.iter().copied();
        chart.draw_series(LineSeries::new(points, colour.stroke_width(2))).map_err(text)?;
        // The key stands above the axes, where no curve can be.
        let stroke = PathElement::new(vec![(x, 14), (x + 18, 14)], colour.stroke_width(3));
        head.draw(&stroke).map_err(text)?;
        head.draw_text(&line.label, &("sans-serif", 13).into_text_style(&head), (x + 24, 7)).map_err(text)?;
        x += 36 + CHARACTER_PX * line.label.len() as i32;
    }
    Ok(())
}

fn label(value: &f64) -> String {
    crate::units::tidy((value * 1e3).round() / 1e3)
}

const WIDTH_PX: u32 = 960;
const PANEL_PX: u32 = 230;
const TITLE_PX: u32 = 40;
const HEAD_PX: u32 = 26;
/// Where the keys begin.
const KEYS_PX: i32 = 250;
/// Of a character of a key, on average.
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
    fn nothing_to_show_is_no_error() {
        let folder = tempfile::tempdir().unwrap();
        let panel = Panel { title: "empty".into(), lines: Vec::new() };
        write(&folder.path().join("x.svg"), "Nothing", &[panel]).unwrap();
    }
}
