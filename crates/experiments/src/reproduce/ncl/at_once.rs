//! The value 0 that Eq. (23) can give. It shows why 0 fails with the paper's timers, and how `ncl-adaptive` uses it.

use paceline_judge::Sample;
use paceline_sim::reproduce::ncl::{NclExperiment, Scheme};
use paceline_sim::wireless::{Dumbbell, LastHop, WirelessPath};
use paceline_tcp::{NclConfig, TauCd};
use serde_json::Value;

use super::cells::{self, CellResult, LAST_HOP, MODEL_ERRORS_PERCENT, MODEL_FLOWS, NO_BOUND, RTO_MIN};
use super::model::Compared;
use super::{Job, Records};
use crate::reproduce::report::{Bound, Section, number};

/// A sender of the comparison: its name, its timers, and its tau_CD.
type Form = (&'static str, Scheme, TauCd);

const TEXT_AT_ONCE: &str = "ncl, 0";
const TEXT_LEARNS: &str = "ncl, 0, learns";
const ADAPTIVE: &str = "ncl-adaptive";
const NEVER_AT_ONCE: &str = "ncl-adaptive, at least the shortest RTT";

const FORMS: [Form; 9] = [
    (TEXT_AT_ONCE, Scheme::Ncl, TauCd::AtOnce { learns: false }),
    (TEXT_LEARNS, Scheme::Ncl, TauCd::AtOnce { learns: true }),
    ("ncl-second-rd, 0", Scheme::NclSecondRd, TauCd::AtOnce { learns: false }),
    ("ncl-second-rd, 0, learns", Scheme::NclSecondRd, TauCd::AtOnce { learns: true }),
    ("ncl-second-rd, the shortest RTT", Scheme::NclSecondRd, TauCd::Shortest),
    ("ncl-adaptive, 0", Scheme::NclAdaptive, TauCd::AtOnce { learns: false }),
    ("ncl-adaptive, 0, learns", Scheme::NclAdaptive, TauCd::AtOnce { learns: true }),
    (NEVER_AT_ONCE, Scheme::NclAdaptive, TauCd::AtLeastShortest),
    (ADAPTIVE, Scheme::NclAdaptive, TauCd::Shortest),
];

/// The paths with their names.
fn paths() -> Vec<(String, WirelessPath)> {
    let last_hop = |percent: f64| {
        let path = WirelessPath::LastHop(LastHop { error: percent / 100.0, ..LAST_HOP });
        (format!("one flow, {percent} % errors"), path)
    };
    let mut all = MODEL_ERRORS_PERCENT.map(last_hop).to_vec();
    let flows = MODEL_FLOWS;
    all.push((
        format!("{flows} flows, no errors"),
        WirelessPath::Dumbbell(Dumbbell { flows, ..Dumbbell::default() }),
    ));
    all
}

fn name(path: &str, form: &str, seconds: u64) -> String {
    format!("at once: {path}: {form}, {seconds} s")
}

pub(super) fn jobs(runs: u64, seconds: u64) -> Vec<Job<'static>> {
    let mut all = Vec::new();
    for (path_name, path) in paths() {
        for (form, scheme, tau_cd) in FORMS {
            let ncl = NclConfig { tau_cd, ..NclConfig::default() };
            let (path, window_max, rto_min) = (path.clone(), NO_BOUND, RTO_MIN);
            let experiment = NclExperiment { scheme, ncl, rto_min, window_max, path, seconds };
            for seed in 1..=runs {
                let experiment = experiment.clone();
                all.push(Job {
                    name: name(&path_name, form, seconds),
                    seed,
                    cost: experiment.path.mbps() * seconds as f64 / 200.0,
                    work: Box::new(move |watch| experiment.run(seed, watch).map(|run| cells::values(&run))),
                });
            }
        }
    }
    all
}

/// The results.
struct Measured<'a> {
    records: &'a Records,
    runs: u64,
    seconds: u64,
}

impl Measured<'_> {
    fn sample(&self, path: &str, form: &str, value: &str) -> Sample {
        self.records.values(&name(path, form, self.seconds), self.runs, value).into_iter().collect()
    }

    fn mean(&self, path: &str, form: &str, value: &str) -> f64 {
        self.sample(path, form, value).mean()
    }

    fn rows(&self, path: &str, of: &WirelessPath) -> Vec<Vec<Value>> {
        let flows = if let WirelessPath::Dumbbell(of) = of { f64::from(of.flows) } else { 1.0 };
        let per_kilosecond = 1_000.0 / (self.seconds as f64 / 2.0) / flows;
        let row = |(form, ..): &Form| {
            let goodput = self.sample(path, form, GOODPUT).estimate();
            let mean = |value: &str| self.mean(path, form, value);
            vec![
                path.into(),
                (*form).into(),
                number(goodput.mean, 3),
                number(goodput.half_width, 3),
                number(mean("resent_share") * 100.0, 2),
                number(mean("needless_share") * 100.0, 1),
                number(mean("answers") * per_kilosecond, 0),
                number(mean("timeouts") * per_kilosecond, 0),
            ]
        };
        FORMS.iter().map(row).collect()
    }
}

const GOODPUT: &str = "goodput_mbps";

pub(super) fn report(
    cells: &[CellResult],
    records: &Records,
    runs: u64,
    seconds: u64,
) -> (Section, Vec<Bound>) {
    let measured = Measured { records, runs, seconds };
    let rows = paths().iter().flat_map(|(path, of)| measured.rows(path, of)).collect();
    let section = Section { rows, ..Section::of("ncl", "at-once") };
    (section, bounds(cells, &measured))
}

fn bounds(cells: &[CellResult], measured: &Measured<'_>) -> Vec<Bound> {
    let mut bounds = Vec::new();
    let (from_model, paths) = (Compared::of(cells), paths());
    // Without errors Eq. (23) gives 0.
    for (path, _) in paths.iter().filter(|(_, path)| !has_errors(path)) {
        let Some(compared) = from_model.iter().find(|compared| compared.name() == *path) else { continue };
        let Some(best) = compared.best_fixed() else { continue };
        let at_once = |form: &str| measured.mean(path, form, GOODPUT) / best.goodput_mbps;
        let name = format!("Eq. (23)'s 0, {path}: RTTs still learnt, over the best fixed tau_CD, goodput");
        let as_printed = format!("{:.2} as printed; our choice of a bound", at_once(TEXT_AT_ONCE));
        bounds.push(Bound::at_least(name, 0.97, at_once(TEXT_LEARNS)).with_note(as_printed));
    }
    let ratio =
        |path: &String| measured.mean(path, ADAPTIVE, GOODPUT) / measured.mean(path, NEVER_AT_ONCE, GOODPUT);
    let least = paths.iter().map(|(path, _)| ratio(path)).fold(f64::NAN, f64::min);
    let name = "ncl-adaptive with Eq. (23)'s 0 over itself with at least the shortest RTT, goodput, least";
    bounds.push(Bound::at_least(name, 0.99, least).with_note("our choice of a bound"));
    bounds
}

fn has_errors(path: &WirelessPath) -> bool {
    matches!(path, WirelessPath::LastHop(path) if path.error > 0.0)
}
