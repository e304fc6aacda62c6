//! Compares the model's probabilities with counted ones: Eqs. (3), (12), (13) and (15).

use paceline_sim::reproduce::ncl::{ModelComparison, StsCounts, StsPath, StsRun, TIMES_BEFORE_TAU_U};
use serde_json::Value;

use super::{Job, Records, Values};
use crate::reproduce::report::{Bound, Section, number};

/// These runs are this many times as long as others, because the counted events are rare.
const TIMES_AS_LONG: u64 = 10;

/// Paths with steady congestion have this many times as many runs. There, one packet in 6,000 has a timeout after a
/// loss to congestion. An error of 5 % shows only with about 3,000 of them.
const TIMES_AS_MANY: u64 = 8;

/// The largest relative error of the model where its assumptions hold.
const WITHIN: f64 = 0.05;

pub(super) fn jobs(runs: u64, seconds: u64) -> Vec<Job<'static>> {
    let seconds = seconds * TIMES_AS_LONG;
    let of_path = move |path: StsPath| {
        (1..=seeds(path, runs)).map(move |seed| Job {
            name: name(path, seconds),
            seed,
            cost: seconds as f64 / 20.0,
            work: Box::new(move |watch| path.run(seed, seconds, watch).map(|run| values(&run))),
        })
    };
    StsPath::ALL.into_iter().flat_map(of_path).collect()
}

fn seeds(path: StsPath, runs: u64) -> u64 {
    if matches!(path, StsPath::Chance | StsPath::Steady) { runs * TIMES_AS_MANY } else { runs }
}

fn name(path: StsPath, seconds: u64) -> String {
    format!("sts: {}, {seconds} s", path.name())
}

fn values(run: &StsRun) -> Values {
    let mut values = Values::new();
    let whole = [run.packets, run.transmissions, run.congestive, run.other, run.needless];
    WHOLE.into_iter().zip(whole).for_each(|(name, value)| {
        values.insert(name.into(), value);
    });
    for (n, at) in run.at.iter().enumerate() {
        for (name, value) in AT.into_iter().zip(fields(at)) {
            values.insert(format!("{name} {n}"), value);
        }
    }
    values
}

const WHOLE: [&str; 5] = ["packets", "transmissions", "congestive", "other", "needless"];
const AT: [&str; 5] = ["within", "unacknowledged", "not_congestive", "timed_out", "congestive_acknowledged"];

fn fields(at: &StsCounts) -> [f64; 5] {
    [at.rtts_within, at.unacknowledged, at.not_congestive, at.timed_out, at.congestive_acknowledged]
}

/// The sum over all runs of a path.
fn sum(path: StsPath, records: &Records, runs: u64, seconds: u64) -> StsRun {
    let of = |value: &str| records.sum(&name(path, seconds * TIMES_AS_LONG), seeds(path, runs), value);
    let [packets, transmissions, congestive, other, needless] = WHOLE.map(of);
    let at = (0..path.times_ms().len()).map(|n| {
        let [rtts_within, unacknowledged, not_congestive, timed_out, congestive_acknowledged] =
            AT.map(|name| of(&format!("{name} {n}")));
        StsCounts { rtts_within, unacknowledged, not_congestive, timed_out, congestive_acknowledged }
    });
    StsRun { packets, transmissions, congestive, other, needless, at: at.collect() }
}

pub(super) fn report(records: &Records, runs: u64, seconds: u64) -> (Section, Vec<Bound>) {
    let all: Vec<(StsPath, StsRun)> =
        StsPath::ALL.into_iter().map(|path| (path, sum(path, records, runs, seconds))).collect();
    let section = Section {
        rows: all.iter().flat_map(|(path, run)| rows(*path, run)).collect(),
        ..Section::of("ncl", "sts")
    };
    (section, bounds(&all))
}

fn rows(path: StsPath, run: &StsRun) -> Vec<Vec<Value>> {
    let (p_c, p_w) = run.losses();
    let efficiency = run.efficiency();
    let row = |(ms, at): (u64, &StsCounts)| {
        let mut row: Vec<Value> = vec![
            path.name().into(),
            number(p_c * 100.0, 3),
            number(p_w * 100.0, 3),
            number(run.zeta() * 100.0, 3),
            number(efficiency.measured, 4),
            number(efficiency.model, 4),
            ms.into(),
            number(run.f(at), 3),
            number(run.congestive_acknowledged(at) * 100.0, 1),
        ];
        for beside in [run.unacknowledged(at), run.not_congestive(at), run.timeout(at)] {
            row.push(number(beside.measured * 100.0, 3));
            row.push(number(beside.model * 100.0, 3));
        }
        row.push(number(run.timeout(at).half_width() * 100.0, 3));
        row
    };
    path.times_ms().into_iter().zip(&run.at).map(row).collect()
}

fn bounds(all: &[(StsPath, StsRun)]) -> Vec<Bound> {
    let mut worst = [0.0f64; 5];
    for (path, run) in all.iter().filter(|(path, _)| path.assumptions_hold()) {
        worst[0] = worst[0].max(run.efficiency().error());
        for at in run.at.iter().take(TIMES_BEFORE_TAU_U) {
            let eq_15 = if path.losses_are_apart() { 3 } else { 4 };
            let errors = [(1, run.unacknowledged(at)), (2, run.not_congestive(at)), (eq_15, run.timeout(at))];
            for (place, beside) in errors {
                worst[place] = worst[place].max(error(beside));
            }
        }
    }
    let bound = |(what, worst): (&str, f64)| {
        Bound::at_most(format!("model of the sender, {what}: largest error"), WITHIN, worst)
    };
    let mut bounds: Vec<Bound> = EQUATIONS.into_iter().zip(worst).map(bound).collect();
    if let Some(last) = bounds.pop() {
        bounds.push(last.with_note(NOT_APART));
    }
    bounds
}

const EQUATIONS: [&str; 5] = [
    "Eq. (3), where its assumptions hold",
    "Eq. (12), where its assumptions hold",
    "Eq. (13), where its assumptions hold",
    "Eq. (15), where its assumptions hold",
    "Eq. (15), before RED",
];
const NOT_APART: &str = "by experiment: with as many drops by chance the error is that of the row above. RED drops while its average queue \
                        is long, and it is still long when the retransmission comes. So more retransmissions are lost than Eq. (2) says";

/// If the model gives zero, the error is the measured value itself.
fn error(beside: ModelComparison) -> f64 {
    if beside.model > 0.0 { beside.error() } else { beside.measured.abs() }
}
