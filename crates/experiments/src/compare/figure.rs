//! The usual throughput-delay plot, with one point for each scheme. The delay axis is logarithmic and falls to the
//! right, so that better is up and right.

use std::path::Path;

use paceline_judge::distinct;
use plotters::coord::Shift;
use plotters::prelude::*;

use super::rows::{Row, undominated};
use crate::error::{Error, Result};

type Area<'a> = DrawingArea<SVGBackend<'a>, Shift>;
type Drawn = std::result::Result<(), String>;

pub(super) fn write(path: &Path, title: &str, rows: &[&Row]) -> Result<()> {
    let gateways = distinct(rows.iter().map(|row| row.gateway.clone()));
    let width_px = EDGE_PX + PANEL_PX * gateways.len().max(1) as u32 + KEY_PX;
    let root = SVGBackend::new(path, (width_px, HEIGHT_PX)).into_drawing_area();
    draw(&root, title, rows, &gateways)
        .and_then(|()| root.present().map_err(|error| error.to_string()))
        .map_err(|why| Error::failed(format!("cannot write plot {}: {why}", path.display())))
}

/// A scheme's place: the negative binary logarithm of its delay in milliseconds, and its throughput.
fn place(row: &Row) -> (f64, f64) {
    let ms = row.delay_ms.p95.unwrap_or(0.0).max(SHORTEST_MS);
    (-ms.log2(), row.throughput_mbps)
}

/// Axes, frontier and names that all panels share.
struct Shared {
    across: std::ops::Range<f64>,
    up: std::ops::Range<f64>,
    frontier: Vec<(f64, f64)>,
    senders: Vec<String>,
    receivers: Vec<String>,
}

/// Draws a panel for each gateway, side by side, with the same axes.
fn draw(root: &Area<'_>, title: &str, rows: &[&Row], gateways: &[String]) -> Drawn {
    root.fill(&WHITE).map_err(text)?;
    let (body, key) = root.split_horizontally(EDGE_PX + PANEL_PX * gateways.len().max(1) as u32);
    let (head, body) = body.split_vertically(TITLE_PX);
    head.draw_text(title, &("sans-serif", 20).into_text_style(&head), (20, 12)).map_err(text)?;
    let places = || rows.iter().map(|row| place(row));
    let least = places().map(|place| place.0).fold(f64::INFINITY, f64::min);
    let most = places().map(|place| place.0).fold(f64::NEG_INFINITY, f64::max);
    let across = if rows.is_empty() { -10.0..0.0 } else { least.floor() - 0.2..most.ceil() + 0.2 };
    let shared = Shared {
        across,
        up: 0.0..places().map(|place| place.1).fold(0.0, f64::max).max(1e-9) * 1.08,
        frontier: frontier(rows),
        senders: distinct(rows.iter().map(|row| row.sender.clone())),
        receivers: distinct(rows.iter().map(|row| row.receiver.clone())),
    };
    let best = undominated(rows);
    let mut rest = body;
    for (number, gateway) in gateways.iter().enumerate() {
        let edge_px = if number == 0 { EDGE_PX } else { 0 };
        let (panel, others) = rest.split_horizontally(edge_px + PANEL_PX);
        rest = others;
        let of_panel: Vec<(&Row, bool)> = rows
            .iter()
            .zip(&best)
            .filter(|(row, _)| row.gateway == *gateway)
            .map(|(row, best)| (*row, *best))
            .collect();
        draw_panel(&panel, edge_px, gateway, &of_panel, &shared)?;
    }
    draw_key(&key, &shared.senders, &shared.receivers)
}

fn draw_panel(
    panel: &Area<'_>,
    edge_px: u32,
    gateway: &str,
    rows: &[(&Row, bool)],
    shared: &Shared,
) -> Drawn {
    let caption = if gateway == "none" { "no gateway" } else { gateway };
    let mut chart = ChartBuilder::on(panel)
        .margin(8)
        .caption(caption, ("sans-serif", 14))
        .x_label_area_size(40)
        .y_label_area_size(edge_px)
        .build_cartesian_2d(shared.across.clone(), shared.up.clone())
        .map_err(text)?;
    let mut mesh = chart.configure_mesh();
    mesh.x_desc("p95 of queueing delay (ms); less is to the right")
        .x_labels((shared.across.end - shared.across.start) as usize + 2)
        .x_label_formatter(&|doublings| milliseconds(*doublings))
        .light_line_style(WHITE);
    if edge_px > 0 {
        mesh.y_desc("throughput (Mbit/s)");
    }
    mesh.draw().map_err(text)?;
    let frontier = shared.frontier.clone();
    chart.draw_series(LineSeries::new(frontier, BLACK.mix(0.3).stroke_width(1))).map_err(text)?;
    let index = |all: &[String], name: &str| all.iter().position(|other| other == name).unwrap_or(0);
    let plane = chart.plotting_area();
    let root = panel.strip_coord_spec();
    let (left_px, _) = root.get_base_pixel();
    let mut named = Vec::new();
    for (row, best) in rows {
        let (colour, shape) = (index(&shared.senders, &row.sender), index(&shared.receivers, &row.receiver));
        let (x, y) = plane.map_coordinate(&place(row));
        let at = (x - left_px, y - root.get_base_pixel().1);
        mark(&root, at, colour_of(colour), shape)?;
        if *best {
            named.push((row.sender.as_str(), at));
        }
    }
    draw_names(&root, edge_px as i32, &named)
}

/// The best schemes, from the highest throughput to the least delay.
fn frontier(rows: &[&Row]) -> Vec<(f64, f64)> {
    let best = rows.iter().zip(undominated(rows)).filter(|(_, best)| *best);
    let mut places: Vec<(f64, f64)> = best.map(|(row, _)| place(row)).collect();
    places.sort_by(|a, b| a.0.total_cmp(&b.0));
    places
}

/// Draws a scheme's mark. The colour is the sender. The shape is the receiver; every second shape is filled.
fn mark(area: &Area<'_>, (x, y): (i32, i32), colour: RGBColor, shape: usize) -> Drawn {
    let corners: &[(i32, i32)] = match shape / 2 {
        0 => &OCTAGON,
        1 => &TRIANGLE,
        2 => &SQUARE,
        _ => &DIAMOND,
    };
    let mut points: Vec<(i32, i32)> = corners.iter().map(|(dx, dy)| (x + dx, y + dy)).collect();
    if shape % 2 == 1 {
        area.draw(&Polygon::new(points.clone(), colour.filled())).map_err(text)?;
    }
    points.extend(points.first().copied());
    area.draw(&PathElement::new(points, colour.stroke_width(2))).map_err(text)
}

/// A darker colour than the palette's, because its yellow is hard to see on white.
fn colour_of(sender: usize) -> RGBColor {
    let (red, green, blue) = Palette99::pick(sender).to_rgba().rgb();
    let darker = |part: u8| (u16::from(part) * 3 / 4) as u8;
    RGBColor(darker(red), darker(green), darker(blue))
}

/// Draws names beside the best marks. A name is left out if it would cover another one, or if the same name is nearby.
/// The key has all names.
fn draw_names(area: &Area<'_>, edge_px: i32, named: &[(&str, (i32, i32))]) -> Drawn {
    let right_px = area.dim_in_pixel().0 as i32;
    let mut taken: Vec<(&str, i32, i32, i32)> = Vec::new();
    for &(name, (x, y)) in named {
        let width = CHARACTER_PX * name.len() as i32;
        let spots = [(x - width - 8, y - 16), (x + 8, y - 16), (x + 8, y + 4), (x - width - 8, y + 4)];
        let is_free = |&(left, top): &(i32, i32)| {
            let apart = |&(_, l, t, w): &(&str, i32, i32, i32)| {
                left + width < l || l + w < left || (top - t).abs() > 13
            };
            left > edge_px && left + width < right_px && taken.iter().all(apart)
        };
        let again = taken
            .iter()
            .any(|&(other, l, t, _)| other == name && (l - x).abs() < 2 * width && (t - y).abs() < 40);
        if let Some((left, top)) = spots.into_iter().find(is_free).filter(|_| !again) {
            area.draw_text(name, &("sans-serif", 12).into_text_style(area), (left, top)).map_err(text)?;
            taken.push((name, left, top, width));
        }
    }
    Ok(())
}

fn draw_key(key: &Area<'_>, senders: &[String], receivers: &[String]) -> Drawn {
    let mut y = TITLE_PX as i32;
    let style = ("sans-serif", 13).into_text_style(key);
    for (colour, name) in senders.iter().enumerate() {
        // A filled mark shows the colour best.
        mark(key, (12, y), colour_of(colour), 1)?;
        key.draw_text(name, &style, (24, y - 7)).map_err(text)?;
        y += LINE_PX;
    }
    y += LINE_PX;
    for (shape, name) in receivers.iter().enumerate() {
        mark(key, (12, y), BLACK, shape)?;
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

/// Width of one gateway's panel.
const PANEL_PX: u32 = 380;
const HEIGHT_PX: u32 = 620;
const TITLE_PX: u32 = 44;
const KEY_PX: u32 = 200;
const LINE_PX: i32 = 19;
/// Width of the first panel's labels.
const EDGE_PX: u32 = 64;
/// Average width of a character of a name.
const CHARACTER_PX: i32 = 7;
const OCTAGON: [(i32, i32); 8] = [(-2, -5), (2, -5), (5, -2), (5, 2), (2, 5), (-2, 5), (-5, 2), (-5, -2)];
const TRIANGLE: [(i32, i32); 3] = [(0, -6), (6, 5), (-6, 5)];
const SQUARE: [(i32, i32); 4] = [(-4, -4), (4, -4), (4, 4), (-4, 4)];
const DIAMOND: [(i32, i32); 4] = [(0, -6), (6, 0), (0, 6), (-6, 0)];
/// Shorter delays cannot be told apart, and zero has no logarithm.
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
        // The three senders in the key have filled marks. The marks of the first receiver are hollow.
        assert_eq!(text.matches("<polygon").count(), 3);
        assert_eq!(text.matches(">\nno gateway\n<").count(), 1);
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
