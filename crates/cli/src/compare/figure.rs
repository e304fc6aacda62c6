//! The throughput-delay plot that researchers expect: one point for each scheme, delay on a logarithmic axis that falls to the
//! right, so that better is up and right.

use std::path::Path;

use plotters::coord::Shift;
use plotters::prelude::*;
use plotters::style::text_anchor::{HPos, Pos, VPos};

use super::rows::{Row, undominated};
use crate::error::{Error, Result};

type Area<'a> = DrawingArea<SVGBackend<'a>, Shift>;
type Drawn = std::result::Result<(), String>;

pub(super) fn write(path: &Path, title: &str, rows: &[&Row]) -> Result<()> {
    let root = SVGBackend::new(path, (WIDTH_PX, HEIGHT_PX)).into_drawing_area();
    draw(&root, title, rows)
        .and_then(|()| root.present().map_err(|error| error.to_string()))
        .map_err(|why| Error::failed(format!("cannot write plot {}: {why}", path.display())))
}

/// A scheme's place: how many doublings of a millisecond its delay lies below zero, and its throughput.
fn place(row: &Row) -> (f64, f64) {
    let ms = row.delay_ms.p95.unwrap_or(0.0).max(SHORTEST_MS);
    (-ms.log2(), row.throughput_mbps)
}

fn draw(root: &Area<'_>, title: &str, rows: &[&Row]) -> Drawn {
    root.fill(&WHITE).map_err(text)?;
    let (body, key) = root.split_horizontally(WIDTH_PX - KEY_PX);
    let (head, body) = body.split_vertically(TITLE_PX);
    head.draw_text(title, &("sans-serif", 20).into_text_style(&head), (20, 12)).map_err(text)?;
    let places: Vec<(f64, f64)> = rows.iter().map(|row| place(row)).collect();
    let least = places.iter().map(|place| place.0).fold(f64::INFINITY, f64::min);
    let most = places.iter().map(|place| place.0).fold(f64::NEG_INFINITY, f64::max);
    let (left, right) =
        if places.is_empty() { (-10.0, 0.0) } else { (least.floor() - 0.2, most.ceil() + 0.2) };
    let top = places.iter().map(|place| place.1).fold(0.0, f64::max).max(1e-9) * 1.08;
    let mut chart = ChartBuilder::on(&body)
        .margin(8)
        .x_label_area_size(40)
        .y_label_area_size(64)
        .build_cartesian_2d(left..right, 0.0..top)
        .map_err(text)?;
    chart
        .configure_mesh()
        .x_desc("queueing delay, 95th percentile (ms); less is to the right")
        .y_desc("throughput (Mbit/s)")
        .x_labels((right - left) as usize + 2)
        .x_label_formatter(&|doublings| milliseconds(*doublings))
        .light_line_style(WHITE)
        .draw()
        .map_err(text)?;
    let frontier = frontier(rows);
    chart.draw_series(LineSeries::new(frontier, BLACK.mix(0.3).stroke_width(1))).map_err(text)?;
    let (senders, kinds) = (distinct(rows, |row| row.sender.clone()), distinct(rows, kind));
    let index = |all: &[String], name: &str| all.iter().position(|other| other == name).unwrap_or(0);
    let plane = chart.plotting_area();
    let best = undominated(rows);
    for ((row, place), best) in rows.iter().zip(&places).zip(best) {
        let (colour, shape) = (index(&senders, &row.sender), index(&kinds, &kind(row)));
        let at = plane.map_coordinate(place);
        mark(root, at, colour, shape)?;
        if best {
            let style = ("sans-serif", 12).into_text_style(root).pos(Pos::new(HPos::Right, VPos::Bottom));
            root.draw_text(&row.sender, &style, (at.0 - 7, at.1 - 5)).map_err(text)?;
        }
    }
    draw_key(&key, &senders, &kinds)
}

fn kind(row: &Row) -> String {
    let middle = if row.gateway == "none" { "no gateway" } else { "gateway" };
    format!("{}, {middle}", row.receiver)
}

fn distinct(rows: &[&Row], of: impl Fn(&Row) -> String) -> Vec<String> {
    let mut names: Vec<String> = Vec::new();
    for row in rows {
        let name = of(row);
        if !names.contains(&name) {
            names.push(name);
        }
    }
    names
}

/// From the highest throughput to the least delay.
fn frontier(rows: &[&Row]) -> Vec<(f64, f64)> {
    let best = rows.iter().zip(undominated(rows)).filter(|(_, best)| *best);
    let mut places: Vec<(f64, f64)> = best.map(|(row, _)| place(row)).collect();
    places.sort_by(|a, b| a.0.total_cmp(&b.0));
    places
}

/// The colour is the sender; the shape is the receiver and whether there is a gateway.
fn mark(area: &Area<'_>, at: (i32, i32), colour: usize, shape: usize) -> Drawn {
    let colour = Palette99::pick(colour).to_rgba();
    let style = if shape % 2 == 0 { colour.stroke_width(2) } else { colour.filled() };
    let (x, y) = at;
    let drawn = match shape / 2 {
        0 => area.draw(&Circle::new(at, 5, style)),
        1 => area.draw(&TriangleMarker::new(at, 6, style)),
        2 => area.draw(&Rectangle::new([(x - 4, y - 4), (x + 4, y + 4)], style)),
        _ => area.draw(&Cross::new(at, 5, colour.stroke_width(2))),
    };
    drawn.map_err(text)
}

fn draw_key(key: &Area<'_>, senders: &[String], kinds: &[String]) -> Drawn {
    let mut y = TITLE_PX as i32;
    let style = ("sans-serif", 13).into_text_style(key);
    for (colour, name) in senders.iter().enumerate() {
        // A full mark, which shows the colour best.
        mark(key, (12, y), colour, 1)?;
        key.draw_text(name, &style, (24, y - 7)).map_err(text)?;
        y += LINE_PX;
    }
    y += LINE_PX;
    for (shape, name) in kinds.iter().enumerate() {
        mark(key, (12, y), GREY, shape)?;
        key.draw_text(name, &style, (24, y - 7)).map_err(text)?;
        y += LINE_PX;
    }
    Ok(())
}

fn milliseconds(doublings: f64) -> String {
    let ms = (-doublings).exp2();
    if ms < 1.0 { format!("{ms:.2}") } else { format!("{ms:.0}") }
}

fn text<E: std::error::Error + Send + Sync>(error: DrawingAreaErrorKind<E>) -> String {
    format!("{error:?}")
}

const WIDTH_PX: u32 = 1_000;
const HEIGHT_PX: u32 = 620;
const TITLE_PX: u32 = 44;
const KEY_PX: u32 = 230;
const LINE_PX: i32 = 19;
/// Of the palette: dark, and of no sender in particular.
const GREY: usize = 98;
/// Less cannot be told apart, and zero has no logarithm.
const SHORTEST_MS: f64 = 0.25;

#[cfg(test)]
mod tests {
    use super::super::rows::example;
    use super::*;

    #[test]
    fn each_scheme_has_a_mark_and_the_best_have_names() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("x.svg");
        let rows =
            [("cubic", "none", 10.0, 900.0), ("bbr", "gateway", 9.8, 80.0), ("reno", "none", 9.7, 950.0)]
                .map(|(name, gateway, mbps, p95)| example(name, gateway, mbps, p95));
        write(&path, "Both", &rows.iter().collect::<Vec<&Row>>()).unwrap();
        let text = std::fs::read_to_string(path).unwrap();
        // Three schemes, three senders and two kinds in the key.
        assert_eq!(text.matches("<circle").count(), 3 + 3 + 2);
        assert_eq!(text.matches(">\nreno\n<").count(), 1, "only in the key");
        assert_eq!(text.matches(">\nbbr\n<").count(), 2);
        assert!(text.contains("less is to the right"));
    }

    #[test]
    fn delay_falls_to_the_right() {
        let [slow, fast] = [900.0, 80.0].map(|p95| place(&example("cubic", "none", 1.0, p95)));
        assert!(slow.0 < fast.0);
        assert_eq!([milliseconds(-10.0), milliseconds(1.0)], ["1024", "0.50"]);
    }

    #[test]
    fn nothing_to_show_is_no_error() {
        let folder = tempfile::tempdir().unwrap();
        write(&folder.path().join("x.svg"), "Nothing", &[]).unwrap();
    }
}
