//! Output for other programs: a row for each point and profile, and one JSON object.

use serde_json::{Value, json};

use super::bounds::Verdict;
use super::judge::Cell;
use super::outcome::Outcome;
use super::point::{Kind, PROFILES};
use super::report::{BINS, Counts, worst};
use crate::error::{Error, Result};

/// Returns a CSV table with one row for each point and profile: the draws, means over the first runs, and the
/// judgement.
pub(super) fn csv(cells: &[Cell<'_>]) -> Result<String> {
    let failed = |error: csv::Error| Error::failed(format!("cannot write a table: {error}"));
    let mut writer = csv::Writer::from_writer(Vec::new());
    let Some(first) = cells.first() else { return Ok(String::new()) };
    let drawn = |cell: &Cell<'_>| cell.point.columns.clone();
    let mut header: Vec<String> = ["point", "profile"].map(String::from).into();
    header.extend(drawn(first).into_iter().map(|(name, _)| name));
    header.extend(numbers(&[&Outcome::default()]).into_iter().map(|(name, _)| name));
    header.extend(
        ["ratio", "runs", "judged_ratio", "judged_half_width", "judged_runs", "reasons"].map(String::from),
    );
    writer.write_record(&header).map_err(failed)?;
    let mut last = None;
    for cell in cells {
        let mut row = |profile: &str, runs: &[&Outcome], judged: [String; 6]| {
            let mut row = vec![cell.point.index.to_string(), profile.to_string()];
            row.extend(drawn(cell).into_iter().map(|(_, value)| value));
            row.extend(numbers(runs).into_iter().map(|(_, value)| value));
            row.extend(judged);
            writer.write_record(&row).map_err(failed)
        };
        if last != Some(cell.point.index) {
            let runs = cell.first.off.len().to_string();
            row(
                PROFILES[0],
                &cell.first.off,
                ["1".into(), runs, String::new(), String::new(), String::new(), String::new()],
            )?;
            last = Some(cell.point.index);
        }
        let (early, late) = (cell.ratio(&cell.first), cell.ratio(&cell.judged));
        let reasons = cell.first.on.iter().flat_map(|run| &run.reasons);
        let reasons: Vec<String> = reasons.map(|(name, count)| format!("{name} {count}")).collect();
        let judged = [
            format!("{:.4}", early.value),
            cell.first.on.len().to_string(),
            format!("{:.4}", late.value),
            format!("{:.4}", late.half_width),
            cell.judged.on.len().to_string(),
            reasons.join("; "),
        ];
        row(cell.mode, &cell.first.on, judged)?;
    }
    let bytes = writer.into_inner().map_err(|error| Error::failed(error.to_string()))?;
    String::from_utf8(bytes).map_err(|error| Error::failed(error.to_string()))
}

/// Means of all numbers, by name.
fn numbers(runs: &[&Outcome]) -> Vec<(String, String)> {
    let objects: Vec<Value> = runs.iter().filter_map(|run| serde_json::to_value(run).ok()).collect();
    let Some(Value::Object(first)) = objects.first() else { return Vec::new() };
    let mean = |name: &str| {
        let values: Vec<f64> = objects.iter().filter_map(|object| object[name].as_f64()).collect();
        let mean = values.iter().sum::<f64>() / values.len() as f64;
        if values.is_empty() {
            String::new()
        } else {
            crate::units::format_number((mean * 1e4).round() / 1e4)
        }
    };
    first.keys().filter(|name| *name != "reasons").map(|name| (name.clone(), mean(name))).collect()
}

/// Returns the results of one kind.
pub(super) fn json(kind: Kind, cells: &[Cell<'_>], verdicts: &[Verdict], seconds: f64) -> Value {
    let mode = |mode: &&str| {
        let of_mode: Vec<&Cell<'_>> = cells.iter().filter(|cell| cell.mode == *mode).collect();
        let counts = Counts::of(&of_mode);
        let histogram: Vec<Value> = BINS
            .iter()
            .zip(&counts.bins)
            .map(|((to, name), count)| json!({ "below": to.is_finite().then_some(to), "name": name, "points": count }))
            .collect();
        let cell = |cell: &&Cell<'_>| {
            let figure = cell.ratio(&cell.judged);
            json!({
                "point": cell.point.index,
                "label": cell.point.label,
                "ratio": figure.value,
                "half_width": figure.half_width,
                "runs": cell.judged.on.len(),
                "off": cell.judged.off.first(),
                "on": cell.judged.on.first(),
            })
        };
        json!({
            "mode": mode,
            "counts": counts,
            "histogram": histogram,
            "worst": worst(&of_mode).iter().map(cell).collect::<Vec<Value>>(),
        })
    };
    let verdict = |verdict: &Verdict| {
        json!({
            "mode": verdict.mode,
            "bound": verdict.measure.to_string(),
            "wanted": verdict.wanted,
            "points": verdict.points,
            "first": verdict.first,
            "raw": verdict.raw,
            "held": verdict.held,
            "holds": verdict.holds(),
        })
    };
    let present = |mode: &&&str| cells.iter().any(|cell| cell.mode == **mode);
    json!({
        "kind": kind.name(),
        "processor_s": seconds,
        "modes": PROFILES[1..].iter().filter(present).map(mode).collect::<Vec<Value>>(),
        "bounds": verdicts.iter().map(verdict).collect::<Vec<Value>>(),
    })
}
