//! Compares algorithms as printed with the forms that we recommend: a table for each pair, and the effect of each of
//! our changes alone.

mod additions;
mod assumptions;
mod case;
mod causes;
mod pairs;
mod tables;

use super::report::{Part, Report};
use crate::error::Result;
use crate::interrupt;
use crate::options::PrintedOptions;
use case::{Case, GOODPUT, Measured, PAIR_COLUMNS, TIMEOUTS};

/// Runs what is asked for, prints it beside the published results, and judges the bounds.
pub(crate) fn command(options: &PrintedOptions) -> Result<()> {
    interrupt::watch()?;
    let runs = u64::from(options.kept.how.runs);
    let all = Groups::new(options);
    let jobs = all.cases().flat_map(|case| case.jobs(runs)).collect();
    let records = super::run_all("printed", &options.kept, jobs)?;
    let mut report: Report<()> = Report::default();
    all.report(&Measured { records: &records, runs }).into_iter().for_each(|part| report.add(part));
    super::conclude("printed", &report, options.only.is_empty(), &options.kept.how, |_| {})
}

/// All comparisons.
struct Groups {
    tables: Vec<tables::Row>,
    pairs: Vec<pairs::Pair>,
    additions: Vec<additions::Row>,
    assumptions: Vec<assumptions::Row>,
    causes: Vec<causes::Row>,
}

impl Groups {
    fn new(options: &PrintedOptions) -> Groups {
        let wanted =
            |name: &str| options.only.is_empty() || options.only.iter().any(|part| name.contains(part));
        let mut all = Groups {
            tables: tables::all(),
            pairs: pairs::all(),
            additions: additions::all(),
            assumptions: assumptions::all(),
            causes: causes::all(),
        };
        all.tables.retain(|row| wanted(&row.name));
        all.pairs.retain(|pair| wanted(&pair.name));
        all.additions.retain(|row| wanted(&row.name));
        all.assumptions.retain(|row| wanted(&row.name));
        all.causes.retain(|row| wanted(&row.name));
        all
    }

    fn cases(&self) -> impl Iterator<Item = &Case> {
        let tables = self.tables.iter().flat_map(|row| [&row.printed, &row.improved]);
        let pairs = self.pairs.iter().flat_map(|pair| [&pair.printed, &pair.improved]);
        let additions = self.additions.iter().flat_map(|row| row.cases.iter());
        let assumptions =
            self.assumptions.iter().flat_map(|row| std::iter::once(&row.printed).chain(&row.others));
        tables
            .chain(pairs)
            .chain(additions)
            .chain(assumptions)
            .chain(self.causes.iter().flat_map(|row| row.cases.iter()))
    }

    fn report(&self, measured: &Measured<'_>) -> Vec<Part> {
        let mut parts = Vec::new();
        if !self.tables.is_empty() {
            parts.extend(tables::report(&self.tables, measured));
        }
        if !self.pairs.is_empty() {
            parts.push(pairs::report(&self.pairs, measured));
        }
        if !self.additions.is_empty() {
            parts.push((additions::report(&self.additions, measured), Vec::new()));
        }
        if !self.assumptions.is_empty() {
            parts.push(assumptions::report(&self.assumptions, measured));
        }
        if !self.causes.is_empty() {
            parts.push((causes::report(&self.causes, measured), Vec::new()));
        }
        parts
    }
}

/// All jobs with one run each, for samples of the page.
#[cfg(test)]
pub(super) fn sampled(options: &PrintedOptions) -> Vec<super::pool::Job<'static>> {
    Box::leak(Box::new(Groups::new(options))).cases().flat_map(|case| case.jobs(1)).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Cases of the same name must be the same scenario, so that no run is used for another one.
    #[test]
    fn every_case_of_a_name_is_the_same() {
        let how =
            crate::options::How { runs: 1, jobs: None, out: "unused".into(), json: false, check: false };
        let kept = crate::options::ResumableRun { fresh: false, how };
        let all = Groups::new(&PrintedOptions { only: Vec::new(), kept });
        let mut seen = std::collections::BTreeMap::new();
        for case in all.cases() {
            let scenario = format!("{:?}", (case.build)(1));
            let earlier = seen.entry(case.name.clone()).or_insert_with(|| scenario.clone());
            assert_eq!(*earlier, scenario, "{}", case.name);
        }
        assert_eq!(
            (all.tables.len(), all.additions.len(), all.assumptions.len(), all.causes.len()),
            (128, 16, 112, 14)
        );
        assert!(all.pairs.iter().all(
            |pair| format!("{:?}", (pair.printed.build)(1)) != format!("{:?}", (pair.improved.build)(1))
        ));
    }
}
