//! Dynamic receive window adjustment: the figures, Table 3, and a lambda that adapts to the link.

mod adaptive;
mod case;
mod fading;
mod fit;
mod loss;
mod objects;
mod paths;
mod sweeps;
mod table3;

use super::pool::Job;
use super::report::{Part, Report};
use crate::choices::DrwaPart;
use crate::error::Result;
use crate::interrupt;
use crate::options::DrwaOptions;
use case::{Case, Measured};

/// Runs what is asked for, prints it beside the published results, and judges the bounds.
pub(crate) fn command(options: &DrwaOptions) -> Result<()> {
    interrupt::watch()?;
    let plan = Plan::new(options);
    let out = &options.kept.how.out;
    let records = super::run_all("drwa", &options.kept, plan.jobs())?;
    let measured = Measured::new(&records, plan.runs);
    let mut report = Report::default();
    if plan.has(14) {
        report.cells = table3::results(&measured);
    }
    for (figure, make) in FIGURES {
        if plan.has(figure) {
            report.add(make(&measured, out)?);
        }
    }
    if plan.parts.contains(&DrwaPart::Fit) {
        report.add(fit::report(&measured));
    }
    if plan.parts.contains(&DrwaPart::Adaptive) {
        report.add(adaptive::report(&measured, out)?);
    }
    super::conclude("drwa", &report, plan.is_whole(), &options.kept.how, table3::print)
}

type Make = fn(&Measured<'_>, &std::path::Path) -> Result<Part>;

/// In the order of the paper. Number 4 includes 11, 15 includes 16, 17 includes 18; 14 includes Table 3.
const FIGURES: [(u8, Make); 12] = [
    (3, sweeps::fig3),
    (4, objects::report),
    (5, sweeps::fig5),
    (6, paths::fig6),
    (7, paths::fig7),
    (8, paths::fig8),
    (9, fading::report),
    (10, sweeps::fig10),
    (12, paths::fig12),
    (14, table3::report),
    (15, paths::fig15),
    (17, loss::report),
];

/// What will be run.
struct Plan {
    parts: Vec<DrwaPart>,
    figures: Vec<u8>,
    runs: u64,
}

/// A figure and its cases.
type FigureCases = (u8, fn() -> Vec<Case>);

impl Plan {
    fn new(options: &DrwaOptions) -> Plan {
        let parts = super::parts(&options.part, DrwaPart::Figures, !options.figure.is_empty());
        // Figures that are shown together.
        let shown_with = |figure: u8| match figure {
            11 => 4,
            16 => 15,
            18 => 17,
            other => other,
        };
        let figures = options.figure.iter().copied().map(shown_with).collect();
        Plan { parts, figures, runs: options.kept.how.runs.into() }
    }

    fn has(&self, figure: u8) -> bool {
        self.parts.contains(&DrwaPart::Figures) && (self.figures.is_empty() || self.figures.contains(&figure))
    }

    /// True if no figure or part was left out.
    fn is_whole(&self) -> bool {
        super::are_all(&self.parts) && self.figures.is_empty()
    }

    fn cases(&self) -> Vec<Case> {
        let of_figures: [FigureCases; 11] = [
            (3, sweeps::near),
            (4, objects::cases),
            (5, sweeps::far),
            (6, paths::vegas),
            (7, paths::unlimited),
            (8, paths::receivers),
            (9, fading::cases),
            (10, sweeps::lambdas),
            (12, paths::far),
            (14, table3::cases),
            (15, paths::near_and_weak),
        ];
        let mut cases: Vec<Case> =
            of_figures.into_iter().filter(|(figure, _)| self.has(*figure)).flat_map(|(_, of)| of()).collect();
        if self.has(17) {
            cases.extend(loss::cases());
        }
        if self.parts.contains(&DrwaPart::Fit) {
            cases.extend(fit::cases());
        }
        if self.parts.contains(&DrwaPart::Adaptive) {
            cases.extend(adaptive::cases());
        }
        cases
    }

    fn jobs(&self) -> Vec<Job<'static>> {
        case::jobs(self.cases(), self.runs)
    }
}

/// All jobs, for samples of the page.
#[cfg(test)]
pub(super) fn sampled(options: &DrwaOptions) -> Vec<Job<'static>> {
    Plan::new(options).jobs()
}
