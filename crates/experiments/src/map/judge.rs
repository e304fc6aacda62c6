//! Compares a mode with no gateway: ratios and differences over the same seeds, with their intervals.

use paceline_judge::Sample;

use super::outcome::Outcome;
use super::point::{Load, PROFILES, Point};
use super::work::Runs;

/// One mode at one point.
#[derive(Debug)]
pub(super) struct Cell<'a> {
    pub(super) point: &'a Point,
    pub(super) mode: &'static str,
    /// The runs that every point has.
    pub(super) first: Pairs<'a>,
    /// The runs that judge the cell: the further runs, or the first runs if there are no further ones. The first runs
    /// only select points for further runs; counting them again would count their chance twice.
    pub(super) judged: Pairs<'a>,
}

/// Runs without gateway and with it, by seed.
#[derive(Clone, Debug, Default)]
pub(super) struct Pairs<'a> {
    pub(super) off: Vec<&'a Outcome>,
    pub(super) on: Vec<&'a Outcome>,
}

/// A mean and half of its 95 % interval, which is zero for a single run.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Figure {
    pub(super) value: f64,
    pub(super) half_width: f64,
}

/// All cells that have first runs.
pub(super) fn judged<'a>(
    points: &'a [Point],
    modes: &[&'static str],
    runs: &'a Runs,
    first: u32,
    further: u32,
) -> Vec<Cell<'a>> {
    let cell = |point: &'a Point, mode: &'static str| {
        let of = |seeds: std::ops::Range<u32>| {
            let pairs = seeds
                .filter_map(|seed| Some((runs.get(point, PROFILES[0], seed)?, runs.get(point, mode, seed)?)));
            let (off, on) = pairs.unzip();
            Pairs { off, on }
        };
        let (early, later) = (of(0..first), of(first..first + further));
        let complete = later.on.len() == further as usize && further > 0;
        let judged = if complete { later } else { early.clone() };
        (!early.on.is_empty()).then_some(Cell { point, mode, first: early, judged })
    };
    points.iter().flat_map(|point| modes.iter().filter_map(move |mode| cell(point, mode))).collect()
}

impl Cell<'_> {
    /// True if further runs judge the cell.
    pub(super) fn again(&self) -> bool {
        self.judged.on.first().map(|run| std::ptr::from_ref(*run))
            != self.first.on.first().map(|run| std::ptr::from_ref(*run))
    }

    /// The main ratio of the point; more is better. It compares throughput, or the speed of objects.
    pub(super) fn ratio(&self, of: &Pairs<'_>) -> Figure {
        match self.point.load {
            Load::Bulk => of.ratio(Outcome::mbps),
            Load::Objects => of.swapped().ratio(|run| run.object_p50_s),
        }
    }
}

impl<'a> Pairs<'a> {
    /// The mean of `value` with the gateway divided by the mean without. The interval is that of a ratio of means of
    /// pairs (Cochran, Sampling Techniques, 1977, section 6.3), by Student's distribution.
    pub(super) fn ratio(&self, value: impl Fn(&Outcome) -> f64) -> Figure {
        let (off, on) = (self.mean_off(&value), self.mean_on(&value));
        if off <= 0.0 {
            // Nothing arrived without gateway, so the gateway cannot make it worse.
            return Figure { value: 1.0, half_width: 0.0 };
        }
        let ratio = on / off;
        let rest = |(off_run, on_run): (&&Outcome, &&Outcome)| (value(on_run) - ratio * value(off_run)) / off;
        Figure { value: ratio, half_width: half_width(self.off.iter().zip(&self.on).map(rest)) }
    }

    /// The mean of `value` with the gateway minus the mean without.
    pub(super) fn difference(&self, value: impl Fn(&Outcome) -> f64) -> Figure {
        let less = |(off, on): (&&Outcome, &&Outcome)| value(on) - value(off);
        Figure {
            value: self.mean_on(&value) - self.mean_off(&value),
            half_width: half_width(self.off.iter().zip(&self.on).map(less)),
        }
    }

    pub(super) fn mean_on(&self, value: impl Fn(&Outcome) -> f64) -> f64 {
        mean(&self.on, value)
    }

    pub(super) fn mean_off(&self, value: impl Fn(&Outcome) -> f64) -> f64 {
        mean(&self.off, value)
    }

    fn swapped(&self) -> Pairs<'a> {
        Pairs { off: self.on.clone(), on: self.off.clone() }
    }
}

fn mean(runs: &[&Outcome], value: impl Fn(&Outcome) -> f64) -> f64 {
    runs.iter().map(|run| value(run)).sum::<f64>() / runs.len().max(1) as f64
}

fn half_width(values: impl Iterator<Item = f64>) -> f64 {
    let sample: Sample = values.collect();
    Some(sample.estimate().half_width).filter(|width| sample.len() > 1 && width.is_finite()).unwrap_or(0.0)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn runs(mbps: &[f64]) -> Vec<Outcome> {
        mbps.iter().map(|mbps| Outcome { down_mbps: *mbps, ..Outcome::default() }).collect()
    }

    #[test]
    fn what_varies_together_is_no_doubt() {
        let (off, on) = (runs(&[10.0, 20.0, 30.0]), runs(&[9.0, 18.0, 27.0]));
        let pairs = Pairs { off: off.iter().collect(), on: on.iter().collect() };
        let ratio = pairs.ratio(Outcome::mbps);
        assert!((ratio.value - 0.9).abs() < 1e-12 && ratio.half_width < 1e-12, "{ratio:?}");
        let less = pairs.difference(Outcome::mbps);
        assert!((less.value + 2.0).abs() < 1e-12 && less.half_width > 2.0, "{less:?}");
    }

    #[test]
    fn one_run_has_no_interval_and_nothing_is_no_less_than_nothing() {
        let (off, on) = (runs(&[10.0]), runs(&[9.5]));
        let pairs = Pairs { off: off.iter().collect(), on: on.iter().collect() };
        assert_eq!(pairs.ratio(Outcome::mbps), Figure { value: 0.95, half_width: 0.0 });
        assert_eq!(pairs.ratio(|run| run.up_mbps), Figure { value: 1.0, half_width: 0.0 });
    }
}
