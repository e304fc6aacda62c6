//! Bounds that are known to be missed, with the reason: docs/evidence/misses.toml, and docs/evidence/differences.toml for those that
//! only the simulator misses.

use serde::Deserialize;

use crate::bounds::{Outcome, Statistic, is_named};

/// A file of them.
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
    /// Of bounds on one metric, those with this one; any when absent.
    statistic: Option<Statistic>,
    relative_to: Option<String>,
    /// Of bounds on several flows, those on this one; any when absent.
    flow: Option<String>,
    reason: String,
}

impl Misses {
    /// Why that bound of the scenario is missed, if it is known to be.
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
