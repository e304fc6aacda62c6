//! What the cells of opportunistic retransmission must satisfy.

use serde::Serialize;

use super::CellResult;

/// One bound, and whether it holds.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub(super) struct BoundResult {
    pub(super) name: &'static str,
    /// What is wanted of `measured`.
    pub(super) bound: String,
    pub(super) measured: f64,
    pub(super) holds: bool,
}

/// All bounds that the cells have something to say about.
pub(super) fn judge(cells: &[CellResult], no_loss_mbps: Option<f64>) -> Vec<BoundResult> {
    let all = [
        at_most("largest deviation of a computed cell, Tables 1, 2, 4, 5", 0.0065, worst_computed(cells)),
        between("goodput without loss, 20 Mbit/s, 100 ms", 19.1, 19.3, no_loss_mbps),
        at_most(
            "Tables 4, 5, optimised: below the interval of both published values",
            0.03,
            below_interval(cells, &[4, 5], "optimized"),
        ),
        at_most(
            "Tables 1, 2, original: below the interval of both published values",
            0.03,
            below_interval(cells, &[1, 2], "original"),
        ),
        between(
            "recoveries that stall, factor 2, CUBIC + PRR, %",
            55.0,
            65.0,
            stalled(cells, &["PRR"], "opportunistic"),
        ),
        at_least(
            "recoveries that stall, factor 2, QARR and BARR, %",
            95.0,
            stalled(cells, &["QARR", "BARR"], "opportunistic"),
        ),
        at_most(
            "recoveries that stall, factor 3, %",
            0.0,
            stalled(cells, &["RH", "PRR", "QARR", "BARR"], "optimized"),
        ),
        at_least(
            "Tables 8, 9, 12, 13, QARR and BARR: least less published, points",
            -1.0,
            least_points(cells, |c| matches!(c.table, 8 | 9 | 12 | 13) && is_adaptive(c)),
        ),
        at_most(
            "as found, CUBIC and Vegas with RH and PRR: mean deviation, points",
            5.0,
            mean_points(cells, |c| is_as_found(c) && !is_adaptive(c) && is_judged_by_paper(c)),
        ),
        at_most(
            "as found, QARR and BARR: mean deviation, points",
            8.0,
            mean_points(cells, |c| matches!(c.table, 6 | 7 | 10 | 11) && is_adaptive(c)),
        ),
        at_most("Tables 6 to 13: pairs in the wrong order that are 10 points apart", 0.0, wrong_order(cells)),
        at_least(
            "Table 14 without drops of retransmissions: least, %",
            93.0,
            least(cells, |c| spared(c, 14), |c| c.utilization_percent),
        ),
        at_least(
            "Table 15 without drops of retransmissions: least less published, points",
            0.0,
            least_points(cells, |c| spared(c, 15)),
        ),
        at_least("Tables 14, 15: Hack 1 less without, points", 0.0, hack1_gain(cells)),
        at_least(
            "Tables 14, 15: Hack 1 less published, points",
            -3.0,
            least_points(cells, |c| c.variant == "optimized_hack1"),
        ),
    ];
    all.into_iter().flatten().collect()
}

fn at_most(name: &'static str, bound: f64, measured: Option<f64>) -> Option<BoundResult> {
    measured.map(|measured| BoundResult {
        name,
        bound: format!("<= {bound}"),
        measured,
        holds: measured <= bound,
    })
}

fn at_least(name: &'static str, bound: f64, measured: Option<f64>) -> Option<BoundResult> {
    measured.map(|measured| BoundResult {
        name,
        bound: format!(">= {bound}"),
        measured,
        holds: measured >= bound,
    })
}

fn between(name: &'static str, low: f64, high: f64, measured: Option<f64>) -> Option<BoundResult> {
    let holds = |measured: f64| (low..=high).contains(&measured);
    measured.map(|measured| BoundResult {
        name,
        bound: format!("{low} to {high}"),
        measured,
        holds: holds(measured),
    })
}

fn worst_computed(cells: &[CellResult]) -> Option<f64> {
    let computed = cells.iter().filter(|cell| cell.kind == "numerical");
    computed.map(|cell| (cell.value - cell.published).abs()).reduce(f64::max)
}

/// By how much the worst measured cell lies below both published values, the computed and the measured one; above is no
/// miss.
fn below_interval(cells: &[CellResult], tables: &[u8], variant: &str) -> Option<f64> {
    let measured = cells.iter().filter(|cell| {
        cell.kind == "experimental" && cell.variant == variant && tables.contains(&cell.table)
    });
    let below = measured.map(|cell| {
        let twin = cells.iter().find(|other| {
            other.kind == "numerical" && other.variant == cell.variant && same_place(cell, other)
        });
        let low = twin.map_or(cell.published, |twin| twin.published.min(cell.published));
        (low - cell.value).max(0.0)
    });
    below.reduce(f64::max)
}

/// Of Tables 1, 2, 4 and 5, whose sender is CUBIC's; in percent.
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

fn is_as_found(cell: &CellResult) -> bool {
    matches!(cell.table, 6..=11) && (cell.variant == "original" || matches!(cell.table, 8 | 9))
}

/// Veno and Westwood have changed since the paper's kernel.
fn is_judged_by_paper(cell: &CellResult) -> bool {
    ["cubic", "vegas"].iter().any(|name| cell.congestion_control.eq_ignore_ascii_case(name))
}

fn spared(cell: &CellResult, table: u8) -> bool {
    cell.table == table && cell.variant == "optimized_no_retransmission_loss"
}

fn points(cell: &CellResult) -> Option<f64> {
    Some(cell.utilization_percent? - cell.published_percent?)
}

fn least(
    cells: &[CellResult],
    which: impl Fn(&CellResult) -> bool,
    of: impl Fn(&CellResult) -> Option<f64>,
) -> Option<f64> {
    cells.iter().filter(|cell| which(cell)).filter_map(of).reduce(f64::min)
}

fn least_points(cells: &[CellResult], which: impl Fn(&CellResult) -> bool) -> Option<f64> {
    least(cells, which, points)
}

fn mean_points(cells: &[CellResult], which: impl Fn(&CellResult) -> bool) -> Option<f64> {
    mean(cells.iter().filter(|cell| which(cell)).filter_map(points).map(f64::abs))
}

fn mean(values: impl Iterator<Item = f64>) -> Option<f64> {
    let (sum, count) = values.fold((0.0, 0u32), |(sum, count), value| (sum + value, count + 1));
    (count > 0).then(|| sum / f64::from(count))
}

/// Pairs of one column that the paper has more than 10 points apart, and we the other way round.
fn wrong_order(cells: &[CellResult]) -> Option<f64> {
    let of_flows: Vec<&CellResult> = cells.iter().filter(|cell| matches!(cell.table, 6..=13)).collect();
    if of_flows.is_empty() {
        return None;
    }
    let wrong = |one: &CellResult, other: &CellResult| {
        let same_column = one.table == other.table && one.axis_value == other.axis_value;
        let published = one.published_percent.zip(other.published_percent).map(|(a, b)| a - b);
        let ours = one.utilization_percent.zip(other.utilization_percent).map(|(a, b)| a - b);
        same_column && published > Some(10.0) && ours < Some(0.0)
    };
    let count = of_flows.iter().flat_map(|one| of_flows.iter().filter(|other| wrong(one, other))).count();
    Some(count as f64)
}

/// The least gain by Hack 1 over the same cell without.
fn hack1_gain(cells: &[CellResult]) -> Option<f64> {
    let hacked = cells.iter().filter(|cell| cell.variant == "optimized_hack1");
    let gain = |cell: &CellResult| {
        let twin = cells.iter().find(|other| {
            other.table == cell.table && other.variant == "optimized" && same_place(cell, other)
        })?;
        Some(cell.utilization_percent? - twin.utilization_percent?)
    };
    hacked.filter_map(gain).reduce(f64::min)
}

/// The same row and column of a table, whatever the variant.
fn same_place(one: &CellResult, other: &CellResult) -> bool {
    one.table == other.table
        && one.congestion_control == other.congestion_control
        && one.loss_recovery == other.loss_recovery
        && one.axis_value == other.axis_value
}

#[cfg(test)]
mod tests {
    use super::*;

    fn cell(table: u8, variant: &'static str, kind: &'static str, published: f64, value: f64) -> CellResult {
        CellResult {
            table,
            congestion_control: "CUBIC".into(),
            loss_recovery: "QARR".into(),
            variant,
            kind,
            axis: "loss_percent".into(),
            axis_value: 0.1,
            value,
            utilization_percent: Some(value),
            published,
            published_percent: Some(published),
            ci95: None,
            stalled_share: None,
            timeouts: None,
        }
    }

    fn named<'a>(bounds: &'a [BoundResult], part: &str) -> &'a BoundResult {
        bounds.iter().find(|bound| bound.name.contains(part)).unwrap()
    }

    #[test]
    fn above_the_interval_is_no_miss() {
        let twin = cell(4, "optimized", "numerical", 1.0, 1.0);
        let below = [twin.clone(), cell(4, "optimized", "experimental", 0.95, 0.90)];
        assert!(!named(&judge(&below, None), "Tables 4, 5").holds);
        let above = [twin, cell(4, "optimized", "experimental", 0.80, 0.99)];
        assert_eq!(named(&judge(&above, None), "Tables 4, 5").measured, 0.0);
    }

    #[test]
    fn order_counts_where_the_paper_is_clear() {
        let mut prr = cell(6, "original", "experimental", 40.0, 60.0);
        prr.loss_recovery = "PRR".into();
        let qarr = cell(6, "original", "experimental", 60.0, 50.0);
        assert_eq!(named(&judge(&[prr, qarr], None), "wrong order").measured, 1.0);
    }

    #[test]
    fn hack1_is_set_beside_the_same_cell() {
        let cells = [
            cell(14, "optimized", "experimental", 50.0, 50.0),
            cell(14, "optimized_hack1", "experimental", 60.0, 56.0),
        ];
        let bounds = judge(&cells, None);
        assert!(named(&bounds, "Hack 1 less without").holds);
        assert!(!named(&bounds, "Hack 1 less published").holds);
    }
}
