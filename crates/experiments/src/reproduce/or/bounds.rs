//! The bounds on the cells of opportunistic retransmission.

use super::cells::CellResult;
use super::notes;
use crate::reproduce::report::Bound;

/// All bounds that apply to the given cells.
pub(super) fn judge(cells: &[CellResult], no_loss_mbps: Option<f64>) -> Vec<Bound> {
    let mut bounds = of_recoveries(cells, no_loss_mbps);
    bounds.extend(of_flows(cells));
    bounds.extend(of_limits(cells));
    bounds.extend(at_most(
        "cells off by more than 10 points without an explanation",
        0.0,
        unexplained(cells),
    ));
    bounds
}

/// Tables 1 to 5, and the flow without loss.
fn of_recoveries(cells: &[CellResult], no_loss_mbps: Option<f64>) -> Vec<Bound> {
    let [prr, adaptive] = [&["PRR"][..], &["QARR", "BARR"]].map(|of| stalled(cells, of, "opportunistic"));
    let all = [
        at_most("largest deviation of a computed cell, Tables 1, 2, 4, 5", 0.0065, worst_computed(cells)),
        no_loss_mbps.map(no_loss),
        at_most(
            "Tables 4, 5, optimised: outside the interval of both published values",
            0.03,
            outside_interval(cells, &[4, 5], "optimized"),
        ),
        at_most(
            "Tables 1, 2, original: outside the interval of both published values",
            0.03,
            outside_interval(cells, &[1, 2], "original"),
        )
        .map(|bound| {
            bound.with_note(
                "without Table 1, burst of 100 with RH and QARR, 50 and 100 with BARR, \
             which lie beyond the paper's own model: reported, not matched",
            )
        }),
        between("recoveries that stall, factor 2, CUBIC + PRR, %", 55.0, 65.0, prr)
            .map(|bound| bound.with_note(STALLS)),
        at_least("recoveries that stall, factor 2, QARR and BARR, %", 95.0, adaptive)
            .map(|bound| bound.with_note(STALLS)),
        at_most(
            "opportunistic, factor 2: cells below their numerical value in the paper and not here",
            0.0,
            not_below_numerical(cells),
        ),
        at_most(
            "recoveries that stall, factor 3, %",
            0.0,
            stalled(cells, &["RH", "PRR", "QARR", "BARR"], "optimized"),
        ),
    ];
    all.into_iter().flatten().collect()
}

/// Measured with 120 recoveries each, at 100 ms (`crates/sim/src/reproduce/or/stalls.rs`).
const STALLS: &str = "\
by experiment: Theorem 10 lets a recovery send beta x cwnd of new data, but what it repairs is part of that. Bursts of 1, 10, 50, 100 \
packets stall 54, 47, 45, 0 % of recoveries with PRR (theorem 55). With QARR they stall 91, 79, 37, 19 % (theorem 100). These cells are bursts of 10 to 100";

/// The ceiling is 20 x 1,448 / 1,515 = 19.11, minus half a second of slow start in 200 s.
fn no_loss(mbps: f64) -> Bound {
    let name = "goodput without loss, 20 Mbit/s, 100 ms, Mbit/s";
    Bound::between(name, 19.1, 19.3, mbps)
        .with_note("19.11 from 1.2 s on; the handshake and slow start from ten segments cost half a second of 200 (docs/evidence/speed.md)")
}

/// Tables 6 to 13.
fn of_flows(cells: &[CellResult]) -> Vec<Bound> {
    let all = [
        exceeds(
            "Tables 8, 9, 12, 13, QARR and BARR: least less published, points",
            -1.0,
            least_points(cells, |c| matches!(c.table, 8 | 9 | 12 | 13) && is_adaptive(c)),
        )
        .map(|bound| bound.with_note(LOST_REPAIRS)),
        at_most(
            "Tables 6 to 9, CUBIC and Vegas with RH and PRR: mean deviation, points",
            5.0,
            mean_points(cells, |c| matches!(c.table, 6..=9) && !is_adaptive(c) && is_judged_by_paper(c)),
        ),
        at_most(
            "Tables 6, 7, 10, 11, QARR and BARR as found: mean deviation, points",
            8.0,
            mean_points(cells, |c| matches!(c.table, 6 | 7 | 10 | 11) && is_adaptive(c)),
        ),
        wrong_order(cells),
    ];
    all.into_iter().flatten().collect()
}

const LOST_REPAIRS: &str = "\
by experiment: a lost retransmission is found by the timeout alone. The least cell is Table 13, Veno, BARR, 200 ms: 89.9 ± 2.8 (published \
92.2). Two more lie below, and the intervals of all three hold the bound. Its two runs without a timeout have 94.3, and each timeout costs \
2 points. With Hack 1 it has 93.5, on a link that drops no retransmission 94.6";

/// Tables 14 and 15.
fn of_limits(cells: &[CellResult]) -> Vec<Bound> {
    let all = [
        exceeds(
            "Table 14 without drops of retransmissions: least, %",
            93.0,
            least(cells, |c| spared(c, 14), |c| c.utilization_percent),
        )
        .map(|bound| bound.with_note(START)),
        exceeds(
            "Table 15 without drops of retransmissions: least less published, points",
            0.0,
            least_points(cells, |c| spared(c, 15)),
        )
        .map(|bound| bound.with_note(CARD)),
        at_least("Tables 14, 15: Hack 1 less the original, least, points", 0.0, hack1_gain(cells)),
        exceeds(
            "Tables 14, 15: Hack 1 less published, least, points",
            -3.0,
            least_points(cells, |c| c.variant == HACK1),
        ),
        at_most("Table 14: timeouts with Hack 1 per timeout without", 0.5, timeouts_left(cells))
            .map(|bound| bound.with_note("our choice of a bound; the trace is hack1.svg")),
        at_most(
            "Tables 14, 15, original and Hack 1: largest rise of efficiency as BDP grows, points",
            1.0,
            largest_rise(cells),
        )
        .map(|bound| {
            bound.with_note("our choice of a margin: the published cells themselves rise by up to 4")
        }),
    ];
    all.into_iter().flatten().collect()
}

const START: &str = "\
the cell is QARR at 200 ms: 92.98 ± 0.39, so its interval holds the bound. By experiment the start takes what is missing: from 20 s on it has \
95.1. Without HyStart it has 93.1, with an initial window of 100 segments 93.3";

const CARD: &str = "\
the cell is QARR at 1 Gbit/s: 92.3 ± 0.4 (published 93.0). There the sender's Gigabit card is the bottleneck: it charges 38 bytes a packet, \
which leaves 94.1. The text has a peak of 950 Mbit/s. By experiment a card of 1.03 Gbit/s gives 95.2 instead of 94.0 from 20 s on (two runs). \
With the first 20 s of ten runs this makes 93.3";

fn at_most(name: &str, bound: f64, measured: Option<f64>) -> Option<Bound> {
    measured.map(|measured| Bound::at_most(name, bound, measured))
}

fn at_least(name: &str, bound: f64, measured: Option<f64>) -> Option<Bound> {
    measured.map(|measured| Bound::at_least(name, bound, measured))
}

fn exceeds(name: &str, bound: f64, measured: Option<f64>) -> Option<Bound> {
    measured.map(|measured| Bound::exceeds(name, bound, measured))
}

fn between(name: &str, low: f64, high: f64, measured: Option<f64>) -> Option<Bound> {
    measured.map(|measured| Bound::between(name, low, high, measured))
}

fn worst_computed(cells: &[CellResult]) -> Option<f64> {
    let computed = cells.iter().filter(|cell| cell.kind == "numerical");
    computed.map(|cell| (cell.value - cell.published).abs()).reduce(f64::max)
}

/// Returns the largest distance of a measured cell from the interval between the two published values, the computed and
/// the measured one.
fn outside_interval(cells: &[CellResult], tables: &[u8], variant: &str) -> Option<f64> {
    let measured = cells.iter().filter(|cell| {
        cell.kind == "experimental"
            && cell.variant == variant
            && tables.contains(&cell.table)
            && !notes::is_beyond_model(cell)
    });
    let outside = measured.map(|cell| {
        let twin = cells.iter().find(|other| {
            other.kind == "numerical" && other.variant == cell.variant && same_place(cell, other)
        });
        let other = twin.map_or(cell.published, |twin| twin.published);
        let (low, high) = (other.min(cell.published), other.max(cell.published));
        (low - cell.value).max(cell.value - high).max(0.0)
    });
    outside.reduce(f64::max)
}

/// Mean share of stalled recoveries in Tables 1, 2, 4 and 5, in percent. Their sender uses CUBIC.
fn stalled(cells: &[CellResult], recoveries: &[&str], variant: &str) -> Option<f64> {
    let shares = cells.iter().filter(|cell| {
        matches!(cell.table, 1 | 2 | 4 | 5)
            && cell.variant == variant
            && recoveries.contains(&cell.loss_recovery.as_str())
    });
    mean(shares.filter_map(|cell| cell.stalled_share).map(|share| share * 100.0))
}

fn is_adaptive(cell: &CellResult) -> bool {
    matches!(cell.loss_recovery.as_str(), "QARR" | "BARR")
}

/// Veno and Westwood have changed since the paper's kernel.
fn is_judged_by_paper(cell: &CellResult) -> bool {
    ["cubic", "vegas"].iter().any(|name| cell.congestion_control.eq_ignore_ascii_case(name))
}

fn spared(cell: &CellResult, table: u8) -> bool {
    cell.table == table && cell.variant == "optimized_no_retransmission_loss"
}

fn least(
    cells: &[CellResult],
    which: impl Fn(&CellResult) -> bool,
    of: impl Fn(&CellResult) -> Option<f64>,
) -> Option<f64> {
    cells.iter().filter(|cell| which(cell)).filter_map(of).reduce(f64::min)
}

fn least_points(cells: &[CellResult], which: impl Fn(&CellResult) -> bool) -> Option<f64> {
    least(cells, which, |cell| Some(cell.points()))
}

fn mean_points(cells: &[CellResult], which: impl Fn(&CellResult) -> bool) -> Option<f64> {
    mean(cells.iter().filter(|cell| which(cell)).map(|cell| cell.points().abs()))
}

fn mean(values: impl Iterator<Item = f64>) -> Option<f64> {
    let (sum, count) = values.fold((0.0, 0u32), |(sum, count), value| (sum + value, count + 1));
    (count > 0).then(|| sum / f64::from(count))
}

/// Counts pairs in a column that differ by more than 10 points in the paper, but have the opposite order here. Veno and
/// Westwood with RH and PRR are compared with Linux 6.1 instead.
fn wrong_order(cells: &[CellResult]) -> Option<Bound> {
    let judged =
        |cell: &&CellResult| matches!(cell.table, 6..=13) && (is_adaptive(cell) || is_judged_by_paper(cell));
    let of_flows: Vec<&CellResult> = cells.iter().filter(judged).collect();
    if of_flows.is_empty() {
        return None;
    }
    let wrong = |one: &CellResult, other: &CellResult| {
        let same_column = one.table == other.table && one.axis_value == other.axis_value;
        let published = one.published_percent.zip(other.published_percent).map(|(a, b)| a - b);
        let ours = one.utilization_percent.zip(other.utilization_percent).map(|(a, b)| a - b);
        same_column && published > Some(10.0) && ours < Some(0.0)
    };
    // Each pair is counted at the cell with the lower published value.
    let mut lower = Vec::new();
    for cell in &of_flows {
        let above = of_flows.iter().filter(|other| wrong(other, cell)).count();
        if above > 0 {
            lower.push((above, format!("Table {} {}: {above}", cell.table, cell.place())));
        }
    }
    let count: usize = lower.iter().map(|(above, _)| above).sum();
    let places: Vec<String> = lower.into_iter().map(|(_, place)| place).collect();
    let name = "Tables 6 to 13: pairs of a column in the wrong order that are 10 points apart";
    let bound = Bound::at_most(name, 0.0, count as f64);
    Some(if count > 0 { bound.with_note(places.join("; ")) } else { bound })
}

/// The least gain of Hack 1 over the same cell of the original.
fn hack1_gain(cells: &[CellResult]) -> Option<f64> {
    let hacked = cells.iter().filter(|cell| cell.variant == HACK1);
    let gain = |cell: &CellResult| {
        let twin = cells.iter().find(|other| other.variant == "original" && same_place(cell, other))?;
        Some(cell.utilization_percent? - twin.utilization_percent?)
    };
    hacked.filter_map(gain).reduce(f64::min)
}

/// Timeouts of Table 14 with Hack 1 as a share of those without.
fn timeouts_left(cells: &[CellResult]) -> Option<f64> {
    let sum = |variant: &str| -> Option<u64> {
        let of = cells.iter().filter(|cell| cell.table == 14 && cell.variant == variant);
        of.map(|cell| cell.timeouts).sum()
    };
    let (with, without) = (sum(HACK1)?, sum("optimized")?);
    (without > 0).then(|| with as f64 / without as f64)
}

/// Returns the largest rise from one cell of Tables 14 and 15 to the next in its row. The cell before has a shorter or
/// slower path.
fn largest_rise(cells: &[CellResult]) -> Option<f64> {
    let of = |cell: &&CellResult| matches!(cell.table, 14 | 15) && matches!(cell.variant, "original" | HACK1);
    let rows = cells.iter().filter(of).collect::<Vec<_>>();
    let rise = |pair: &[&CellResult]| {
        let same_row = pair[0].table == pair[1].table
            && pair[0].variant == pair[1].variant
            && pair[0].loss_recovery == pair[1].loss_recovery
            && pair[0].axis_value < pair[1].axis_value;
        same_row.then(|| Some(pair[1].utilization_percent? - pair[0].utilization_percent?)).flatten()
    };
    rows.windows(2).filter_map(rise).reduce(f64::max)
}

/// Counts the cells where the published measurement is more than 0.05 below the computed value, and ours is not below
/// it. The stall keeps opportunistic retransmission below the model.
fn not_below_numerical(cells: &[CellResult]) -> Option<f64> {
    let measured = cells.iter().filter(|cell| cell.kind == "experimental" && cell.variant == "opportunistic");
    let not_below = measured.filter_map(|cell| {
        let twin = cells.iter().find(|other| {
            other.kind == "numerical" && other.variant == cell.variant && same_place(cell, other)
        })?;
        let published_below = cell.published < twin.published - 0.05;
        Some(f64::from(u8::from(published_below && cell.value >= twin.value)))
    });
    not_below.reduce(|sum, one| sum + one)
}

/// The number of cells more than 10 points from the published ones, without a known reason.
fn unexplained(cells: &[CellResult]) -> Option<f64> {
    let measured: Vec<&CellResult> = cells.iter().filter(|cell| cell.kind == "experimental").collect();
    let off = measured.iter().filter(|cell| notes::is_off(cell) && !notes::is_explained(cell));
    (!measured.is_empty()).then(|| off.count() as f64)
}

/// True for the same row and column of a table, whatever the variant.
fn same_place(one: &CellResult, other: &CellResult) -> bool {
    one.table == other.table
        && one.congestion_control == other.congestion_control
        && one.loss_recovery == other.loss_recovery
        && one.axis_value == other.axis_value
}

const HACK1: &str = "optimized_hack1";

#[cfg(test)]
mod tests {
    use super::super::cells::sample as cell;
    use super::*;

    fn named<'a>(bounds: &'a [Bound], part: &str) -> &'a Bound {
        bounds.iter().find(|bound| bound.name.contains(part)).unwrap()
    }

    #[test]
    fn both_sides_of_the_interval_count() {
        let twin = cell(4, "optimized", "numerical", 1.0, 1.0);
        let below = [twin.clone(), cell(4, "optimized", "experimental", 0.95, 0.90)];
        assert!(!named(&judge(&below, None), "Tables 4, 5").holds);
        let inside = [twin.clone(), cell(4, "optimized", "experimental", 0.80, 0.99)];
        assert_eq!(named(&judge(&inside, None), "Tables 4, 5").measured, 0.0);
        let above = [twin, cell(4, "optimized", "experimental", 0.80, 1.10)];
        assert!(!named(&judge(&above, None), "Tables 4, 5").holds);
    }

    #[test]
    fn order_counts_where_the_paper_is_clear() {
        let mut prr = cell(6, "original", "experimental", 40.0, 60.0);
        prr.loss_recovery = "PRR".into();
        let qarr = cell(6, "original", "experimental", 60.0, 50.0);
        assert_eq!(named(&judge(&[prr, qarr], None), "wrong order").measured, 1.0);
    }

    #[test]
    fn efficiency_is_compared_along_a_row() {
        let at = |axis_value, value| CellResult {
            axis_value,
            ..cell(15, "optimized_hack1", "experimental", 80.0, value)
        };
        let bounds = judge(&[at(200.0, 90.0), at(400.0, 80.0), at(800.0, 83.0)], None);
        assert_eq!(named(&bounds, "as BDP grows").measured, 3.0);
    }

    #[test]
    fn a_cell_beyond_the_model_is_no_miss() {
        let beyond = CellResult {
            axis_value: 50.0,
            loss_recovery: "BARR".into(),
            axis: "burst_packets".into(),
            ..cell(1, "original", "experimental", 0.481, 0.2)
        };
        let inside = CellResult { loss_recovery: "PRR".into(), ..beyond.clone() };
        assert_eq!(judge(&[beyond], None).len(), 1);
        assert!(!named(&judge(&[inside], None), "Tables 1, 2, original").holds);
    }

    #[test]
    fn hack1_is_set_beside_the_same_cell() {
        let cells = [
            cell(14, "original", "experimental", 50.0, 50.0),
            cell(14, "optimized_hack1", "experimental", 60.0, 56.0),
        ];
        let bounds = judge(&cells, None);
        assert!(named(&bounds, "Hack 1 less the original").holds);
        assert!(!named(&bounds, "Hack 1 less published").holds);
    }
}
