//! Examines the machine as a gateway would use it, and recommends what to do.

mod finding;
mod network;
mod process;
mod rules;

use super::{configuration, control, http, policy};
use crate::Options;
use crate::error::Result;
pub use finding::{Finding, Status};
use finding::{Findings, Site};

/// Examines the machine as a gateway with these options would use it.
pub fn examine(options: &Options) -> Result<Vec<Finding>> {
    let (wan, radio) = options.interfaces()?;
    let site = Site { wan, radio, tun: options.tun.as_deref() };
    let mut found = machine(site);
    found.extend(of_options(options, site).into_iter().flat_map(|findings| findings.found));
    Ok(found)
}

/// Examines the other options.
fn of_options(options: &Options, site: Site<'_>) -> Vec<Findings> {
    let default = || control::default_path(&format!("{}-{}", site.wan, site.radio));
    let mut all: Vec<Findings> =
        process::running(&options.control.clone().unwrap_or_else(default)).into_iter().collect();
    if let Some(path) = &options.config {
        let findings = Findings::of("configuration", &path.display().to_string());
        all.push(match configuration::load(options, Some(path)) {
            Ok(config) => findings.ok(policy::summary(&config)),
            Err(error) => findings.problem(error.to_string(), "correct the file as the message says"),
        });
    }
    if let Some(address) = options.metrics {
        let findings = Findings::of("metrics", &address.to_string());
        all.push(match http::check(address) {
            Ok(()) => findings.ok("on a loopback address"),
            Err(error) => findings.problem(error.to_string(), "--metrics 127.0.0.1:9100"),
        });
    }
    all
}

fn machine(site: Site<'_>) -> Vec<Finding> {
    let mut all = Vec::new();
    all.extend(process::capabilities());
    all.extend(process::scheduling());
    all.extend(process::clock_source());
    all.extend(network::ports(site));
    if site.tun.is_some() {
        all.extend(network::routing(site));
    }
    all.extend(rules::rules(site));
    all.into_iter().flat_map(|findings| findings.found).collect()
}

#[cfg(test)]
mod tests;
