//! Bounds that are known to be missed, with the reason. They are in docs/evidence/misses.toml. Those that only the
//! simulator misses are in docs/evidence/differences.toml.

use serde::Deserialize;

use crate::bounds::{Outcome, Statistic, is_named};

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
}

impl Misses {
    /// The reason why this bound of the scenario is missed, if it is known.
    pub fn reason(&self, scenario: &str, outcome: &Outcome) -> Option<&str> {
        let known = self.miss.iter().find(|miss| miss.is_about(scenario, outcome));
        known.map(|miss| miss.reason.as_str())
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
