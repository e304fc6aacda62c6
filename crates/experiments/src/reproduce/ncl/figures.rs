//! The figures as plots.

use std::path::Path;

use serde_json::Value;

use super::cells::{CellResult, Figure};
use crate::error::Result;
use crate::plot::{self, Across, Line, Panel};
use crate::reproduce::report::{Section, number};

/// How a figure is drawn.
struct Drawing {
    figure: Figure,
    name: &'static str,
    title: &'static str,
    across: &'static str,
    text: &'static str,
}

const DRAWINGS: [Drawing; 8] = [
    Drawing {
        figure: Figure::Fig3,
        name: "ncl-fig-3",
        title: "Fig. 3: TCP-NCL over a wireless last hop, by MRRL and beta",
        across: "errors (%)",
        text: "Published: serious loss with beta = 1; the same high goodput for every beta from 0.3 to 0.95, MRRL and error rate.",
    },
    Drawing {
        figure: Figure::Fig4,
        name: "ncl-fig-4",
        title: "Fig. 4: TCP-NCL over four wireless hops, by MRRL and beta",
        across: "errors of each attempt (%)",
        text: "Published: essentially the same goodput for every MRRL and beta.",
    },
    Drawing {
        figure: Figure::Fig5,
        name: "ncl-fig-5",
        title: "Fig. 5: TCP-NCL over a wired bottleneck of varying delay, by MRRL and beta",
        across: "longest delay (ms)",
        text: "Published: slightly worse with beta = 1; about the same for MRRL from 300 on; best with MRRL 250 and beta from 0.5 to \
               0.95, lower again with MRRL 250 and beta 0.3.",
    },
    Drawing {
        figure: Figure::Fig7,
        name: "ncl-fig-7",
        title: "Fig. 7: flows of TCP-NCL over one bottleneck",
        across: "flows",
        text: "10 Mbit/s, 100 ms, a queue of one round trip (83 packets), no bound on the window, so that one flow fills the link. \
               Published: every normalised goodput is about one, and the total stays high.",
    },
    Drawing {
        figure: Figure::Fig9a,
        name: "ncl-fig-9a",
        title: "Fig. 9a: wireless last hop",
        across: "errors (%)",
        text: "1 Mbit/s, 50 ms, windows to 20 packets (ns-2's default), no link-layer retransmission. Published: TCP-NCL keeps its \
               goodput from 0 to 15 %, Westwood falls gently, all others drastically.",
    },
    Drawing {
        figure: Figure::Fig9b,
        name: "ncl-fig-9b",
        title: "Fig. 9b: four wireless hops",
        across: "errors of each attempt (%)",
        text: "2 Mbit/s and 12.5 ms each, windows to 20 packets, up to three link-layer retransmissions, which reorder. Published: \
               TCP-DCR, TCP-NCL and TCP-PR are best below 9 %; then TCP-NCL slightly above TCP-PR, and TCP-DCR far below; TCP-DOOR is frozen nearly all the time.",
    },
    Drawing {
        figure: Figure::Fig9c,
        name: "ncl-fig-9c",
        title: "Fig. 9c: wired bottleneck of varying delay",
        across: "longest delay (ms)",
        text: "2 Mbit/s, windows to 20 packets; the delay towards the receiver is drawn anew from 50 ms to the longest every 20 s (ns-2's `delay` changes \
               one direction), the rest of the path takes 550 ms there and back. Published: RR-TCP, TCP-NCL and TCP-PR are best.",
    },
    Drawing {
        figure: Figure::Fig9d,
        name: "ncl-fig-9d",
        title: "Fig. 9d: mobile ad-hoc network",
        across: "highest speed (m/s)",
        text: "16 stations, 2 Mbit/s, as docs/evidence/ad-hoc.md has it. Published: all below 15 % of the rate, TCP-NCL generally best.",
    },
];

pub(super) fn draw(cells: &[CellResult], folder: &Path) -> Result<Vec<Section>> {
    let mut sections = Vec::new();
    for drawing in &DRAWINGS {
        let of: Vec<&CellResult> = cells.iter().filter(|cell| cell.figure == drawing.figure).collect();
        if !of.is_empty() {
            sections.push(drawing.section(&of, folder)?);
        }
    }
    Ok(sections)
}

impl Drawing {
    fn section(&self, cells: &[&CellResult], folder: &Path) -> Result<Section> {
        let file = format!("{}.svg", self.name);
        plot::write_across(
            &folder.join(&file),
            self.title,
            Across::Linear(self.across),
            &self.panels(cells),
        )?;
        let (columns, rows) = match self.figure {
            Figure::Fig3 | Figure::Fig4 | Figure::Fig5 => by_setting(cells),
            _ => by_scheme(self.across, cells),
        };
        Ok(Section {
            name: self.name,
            title: self.title.into(),
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

/// A row for each place on the axis, a column for each sender.
fn by_scheme(across: &'static str, cells: &[&CellResult]) -> Table {
    let axis = in_order(cells.iter().map(|cell| cell.x));
    let mut schemes: Vec<&'static str> = Vec::new();
    for cell in cells {
        if !schemes.contains(&cell.scheme) {
            schemes.push(cell.scheme);
        }
    }
    let goodput = |x: f64, scheme: &str| {
        let found = cells.iter().find(|cell| cell.x == x && cell.scheme == scheme);
        number(found.map_or(f64::NAN, |cell| cell.goodput_mbps), 3)
    };
    let row =
        |x: &f64| std::iter::once(number(*x, 1)).chain(schemes.iter().map(|s| goodput(*x, s))).collect();
    (std::iter::once(across).chain(schemes.iter().copied()).collect(), axis.iter().map(row).collect())
}

/// A row for each MRRL and beta, and the goodput along the axis in one cell.
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
