//! Not in the paper: compares a lambda that adapts to the link's variation with fixed ones, over traces.

use std::path::Path;

use paceline_sim::reproduce::drwa::{Experiment, Kind, Varying, Window};
use paceline_tcp::ReceiveWindowName;

use super::Part;
use super::case::{Case, GOODPUT, Measured, QUEUE, UTILIZATION};
use crate::error::Result;
use crate::plot::{self, Across, Line, Panel};
use crate::reproduce::report::{Bound, Section, number};

/// Lambdas in hundredths. The adaptive one must beat those from 1.5 to 5; the two lower ones are for comparison.
const LAMBDAS_PERCENT: [u32; 8] = [110, 125, 150, 200, 250, 300, 400, 500];
/// The number of lambdas below 1.5.
const BELOW: usize = 2;
/// The folder of the recorded traces, relative to the repository.
const FOLDER: &str = "../shared/traces";
/// The round-trip time of [`Experiment::over`] without a queue.
const BASE_RTT_MS: f64 = 100.0;

/// A fixed lambda, or the adaptive one, which comes last.
#[derive(Clone, Copy)]
enum Choice {
    Fixed(u32),
    Adaptive,
}

const CHOICES: usize = LAMBDAS_PERCENT.len() + 1;

fn choices() -> [Choice; CHOICES] {
    std::array::from_fn(|n| {
        LAMBDAS_PERCENT.get(n).map_or(Choice::Adaptive, |percent| Choice::Fixed(*percent))
    })
}

impl Choice {
    fn window(self) -> Window {
        match self {
            Choice::Fixed(percent) => Window::lambda(percent),
            Choice::Adaptive => Window { name: ReceiveWindowName::DrwaAdaptive, ..Window::drwa() },
        }
    }

    fn name(self) -> String {
        match self {
            Choice::Fixed(percent) => format!("lambda {}", f64::from(percent) / 100.0),
            Choice::Adaptive => "adaptive".into(),
        }
    }
}

fn case(varying: &Varying, choice: Choice) -> Option<Case> {
    let rate = varying.rate(Path::new(FOLDER))?;
    let experiment = Experiment::over(rate, varying.duration(), choice.window());
    Some(Case::new(name(varying, choice), experiment))
}

fn name(varying: &Varying, choice: Choice) -> String {
    format!("{} {}, {}", varying.kind.name(), varying.name, choice.name())
}

pub(super) fn cases() -> Vec<Case> {
    Varying::ALL.iter().flat_map(|varying| choices().map(|choice| case(varying, choice))).flatten().collect()
}

/// Losses compared with an ideal sender: the unused share of the link, and the queue's share of the round trip.
#[derive(Clone, Copy, Debug, PartialEq)]
struct Losses {
    unused: f64,
    delay: f64,
}

impl Losses {
    fn new(utilization: f64, queue_ms: f64) -> Losses {
        Losses { unused: 1.0 - utilization, delay: queue_ms / (queue_ms + BASE_RTT_MS) }
    }

    fn sum(self) -> f64 {
        self.unused + self.delay
    }
}

fn losses(measured: &Measured<'_>, varying: &Varying, choice: Choice) -> Losses {
    let mean = |value| measured.mean_of(&name(varying, choice), value);
    Losses::new(mean(UTILIZATION), mean(QUEUE))
}

/// Mean over the available traces of a kind.
fn mean_losses(measured: &Measured<'_>, kind: Kind, choice: Choice) -> Losses {
    let of_kind = Varying::ALL.iter().filter(|varying| varying.kind == kind);
    let all: Vec<Losses> = of_kind
        .map(|varying| losses(measured, varying, choice))
        .filter(|losses| losses.sum().is_finite())
        .collect();
    let mean = |of: fn(&Losses) -> f64| all.iter().map(of).sum::<f64>() / all.len() as f64;
    Losses { unused: mean(|losses| losses.unused), delay: mean(|losses| losses.delay) }
}

pub(super) fn report(measured: &Measured<'_>, folder: &Path) -> Result<Part> {
    let mut rows = Vec::new();
    let mut bounds = Vec::new();
    for kind in Kind::ALL {
        let all = choices().map(|choice| mean_losses(measured, kind, choice));
        if !all[0].sum().is_finite() {
            continue;
        }
        for (choice, losses) in choices().into_iter().zip(all) {
            rows.push(row(format!("mean of {}", kind.name()), choice, losses, f64::NAN));
        }
        let (fixed, adaptive) = (&all[BELOW..CHOICES - 1], all[CHOICES - 1]);
        let least = |of: &[Losses]| of.iter().map(|losses| losses.sum()).fold(f64::INFINITY, f64::min);
        let (best, below) = (least(fixed), least(&all[..BELOW]));
        let name = format!(
            "adaptive lambda, {}: sum of both losses over that of the best fixed one from 1.5 to 5",
            kind.name()
        );
        let note = format!("{:.3} against {best:.3}; with lambda 1.1 or 1.25 {below:.3}", adaptive.sum());
        bounds.push(Bound::at_most(name, 1.0, adaptive.sum() / best).with_note(note));
    }
    for varying in &Varying::ALL {
        for choice in choices() {
            let goodput = measured.mean_of(&name(varying, choice), GOODPUT);
            if goodput.is_finite() {
                let losses = losses(measured, varying, choice);
                rows.push(row(format!("{} {}", varying.kind.name(), varying.name), choice, losses, goodput));
            }
        }
    }
    draw(measured, folder)?;
    let section = Section { rows, ..Section::of("drwa", "adaptive") };
    Ok((section, bounds))
}

fn row(link: String, choice: Choice, losses: Losses, goodput: f64) -> Vec<serde_json::Value> {
    vec![
        link.into(),
        choice.name().into(),
        number(losses.unused, 3),
        number(losses.delay, 3),
        number(losses.sum(), 3),
        number(goodput, 3),
    ]
}

/// Draws both losses of the fixed lambdas and their sum. The adaptive lambda is a horizontal line.
fn draw(measured: &Measured<'_>, folder: &Path) -> Result<()> {
    let panel = |kind: Kind| {
        let fixed = |of: fn(Losses) -> f64| -> Vec<(f64, f64)> {
            LAMBDAS_PERCENT
                .iter()
                .map(|percent| {
                    let losses = mean_losses(measured, kind, Choice::Fixed(*percent));
                    (f64::from(*percent) / 100.0, of(losses))
                })
                .filter(|point| point.1.is_finite())
                .collect()
        };
        let adaptive = mean_losses(measured, kind, Choice::Adaptive).sum();
        let level =
            [1.1, 5.0].map(|lambda| (lambda, adaptive)).into_iter().filter(|point| point.1.is_finite());
        let line = |label: &str, colour, points| Line { label: label.into(), colour, points };
        Panel {
            title: format!("losses, {}", kind.name()),
            lines: vec![
                line("unused", 0, fixed(|losses| losses.unused)),
                line("delay added", 1, fixed(|losses| losses.delay)),
                line("sum", 2, fixed(Losses::sum)),
                line("sum, adaptive", 3, level.collect()),
            ],
        }
    };
    let title = "Fixed lambdas and the adaptive one";
    let path = folder.join("drwa-adaptive.svg");
    plot::write_across(&path, title, Across::Logarithm("lambda"), &Kind::ALL.map(panel))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn losses_are_shares_of_the_best() {
        let losses = Losses::new(0.9, 100.0);
        assert!((losses.unused - 0.1).abs() < 1e-12 && (losses.delay - 0.5).abs() < 1e-12);
    }

    #[test]
    fn generated_links_are_always_there() {
        let models = Varying::ALL.iter().filter(|varying| varying.kind == Kind::Model);
        assert!(models.flat_map(|varying| case(varying, Choice::Adaptive)).count() == 3);
    }
}
