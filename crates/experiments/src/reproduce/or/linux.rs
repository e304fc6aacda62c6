//! Compares congestion controls with PRR with Linux 6.1.

use paceline_judge::Sample;
use paceline_sim::reproduce::linux::LinuxRow;
use paceline_sim::run_watched;

use super::{Job, Records, cost, values};
use crate::reproduce::report::{Bound, Section, number};

/// The least number of runs, whatever is asked for. Linux has ten, and a difference of means needs ten (Welch).
const RUNS_MIN: u64 = 10;

pub(super) fn jobs(runs: u64) -> Vec<Job<'static>> {
    let runs = runs.max(RUNS_MIN);
    let of_row = |row: LinuxRow| {
        (1..=runs).map(move |seed| {
            let row = row.clone();
            Job {
                name: name(&row),
                seed,
                cost: cost(20.0, 200.0),
                work: Box::new(move |watch| {
                    let result = run_watched(&row.scenario(seed), Vec::new(), watch)?;
                    Ok(values(&[("goodput_mbps", result.flows[0].goodput_mbps)]))
                }),
            }
        })
    };
    LinuxRow::all().into_iter().flat_map(of_row).collect()
}

fn name(row: &LinuxRow) -> String {
    format!("Linux {} loss {} %", row.congestion, row.loss_percent)
}

/// The comparison of one row.
struct Comparison {
    /// Our mean divided by Linux's, minus one.
    relative: f64,
    difference: f64,
    half_width: f64,
    holds: bool,
}

impl Comparison {
    /// Holds if the means are within 10 %. Also holds if the interval of the difference (Welch) contains 0 and is at
    /// most 10 % wide on each side.
    fn of(ours: &Sample, linux: &Sample) -> Comparison {
        let (difference, linux_mean) = (ours.minus(linux), linux.mean());
        let relative = ours.mean() / linux_mean - 1.0;
        let narrow = difference.half_width <= SHARE * linux_mean;
        Comparison {
            relative,
            difference: difference.mean,
            half_width: difference.half_width,
            holds: relative.abs() <= SHARE || (difference.holds(0.0) && narrow),
        }
    }
}

pub(super) fn report(records: &Records, runs: u64) -> (Section, Vec<Bound>) {
    let runs = runs.max(RUNS_MIN);
    let (mut rows, mut missed, mut least_runs) = (Vec::new(), Vec::new(), usize::MAX);
    let mut worst: f64 = 0.0;
    for row in LinuxRow::all() {
        let ours: Sample = records.values(&name(&row), runs, "goodput_mbps").into_iter().collect();
        let linux = &row.goodput_mbps;
        let comparison = Comparison::of(&ours, linux);
        least_runs = least_runs.min(ours.len()).min(linux.len());
        worst = worst.max(comparison.relative.abs());
        if !comparison.holds {
            missed.push(format!("{} at {} %", row.congestion, row.loss_percent));
        }
        rows.push(vec![
            row.congestion.to_string().into(),
            number(row.loss_percent, 3),
            number(linux.mean(), 2),
            linux.len().into(),
            number(ours.mean(), 2),
            ours.len().into(),
            number(comparison.relative * 100.0, 1),
            number(comparison.difference, 2),
            number(comparison.half_width, 2),
            if comparison.holds { "ok" } else { "MISSED" }.into(),
        ]);
    }
    let rows_missed = Bound::at_most(
        "rows beside Linux 6.1 neither within 10 % nor with an interval of 10 % that holds 0",
        0.0,
        missed.len() as f64,
    );
    let rows_missed = if missed.is_empty() { rows_missed } else { rows_missed.with_note(missed.join("; ")) };
    let bounds = vec![
        rows_missed,
        Bound::at_least(
            "runs a row on either side of the comparison with Linux 6.1",
            10.0,
            least_runs as f64,
        )
        .with_note(format!("the largest difference of means is {:.1} %", worst * 100.0)),
    ];
    let section = Section { rows, ..Section::of("or", "linux") };
    (section, bounds)
}

/// The allowed difference as a share of Linux's mean.
const SHARE: f64 = 0.1;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_row_holds_by_its_means_or_by_a_narrow_interval() {
        let sample = |values: &[f64]| values.iter().copied().collect::<Sample>();
        assert!(Comparison::of(&sample(&[10.9, 11.0]), &sample(&[10.0, 10.1])).holds);
        assert!(!Comparison::of(&sample(&[11.9, 12.0]), &sample(&[10.0, 10.1])).holds);
        // The interval contains 0 but is far too wide.
        assert!(!Comparison::of(&sample(&[5.0, 19.0]), &sample(&[10.0, 10.1])).holds);
    }
}
