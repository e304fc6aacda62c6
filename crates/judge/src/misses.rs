//! Bounds that are known to be missed, with the reason. They are in docs/evidence/misses.toml. Those that only the
//! simulator misses, or that only it has, are in docs/evidence/differences.toml.

use serde::Deserialize;

use crate::bounds::{Bound, Outcome, Statistic, is_named};

/// A file of known misses.
#[derive(Clone, Debug, Default, Deserialize)]
pub struct Misses {
    #[serde(default)]
    miss: Vec<Miss>,
}

/// A bound that is known to be missed, and why.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
struct Miss {
    scenario: String,
    metric: String,
    #[serde(default)]
    variant: String,
    /// Only bounds with this statistic; any if absent.
    statistic: Option<Statistic>,
    relative_to: Option<String>,
    /// Only bounds on this flow; any if absent.
    flow: Option<String>,
    reason: String,
    /// What is reached at present, in a scenario without random choices.
    reached: Option<f64>,
}

impl Misses {
    /// The reason why this bound of the scenario is missed, if it is known.
    pub fn reason(&self, scenario: &str, outcome: &Outcome) -> Option<&str> {
        self.known(scenario, outcome).map(|miss| miss.reason.as_str())
    }

    /// True if the miss is known and not worse than what had been reached.
    pub fn is_no_worse(&self, scenario: &str, outcome: &Outcome) -> bool {
        let reached = self.known(scenario, outcome).and_then(|miss| miss.reached);
        let Some((reached, measured)) = reached.zip(outcome.measured) else { return false };
        let Bound { min, max, .. } = outcome.bound;
        min.is_none_or(|min| measured.mean >= min.min(reached))
            && max.is_none_or(|max| measured.mean <= max.max(reached))
    }

    fn known(&self, scenario: &str, outcome: &Outcome) -> Option<&Miss> {
        self.miss.iter().find(|miss| miss.is_about(scenario, outcome))
    }
}

impl Miss {
    fn is_about(&self, scenario: &str, outcome: &Outcome) -> bool {
        let bound = &outcome.bound;
        self.scenario == scenario
            && self.metric == bound.metric
            && is_named(&outcome.variant, &self.variant)
            && self.statistic.is_none_or(|statistic| statistic == bound.statistic)
            && (self.relative_to.is_none() || self.relative_to == bound.relative_to)
            && (self.flow.is_none() || self.flow == bound.flow)
    }
}
