//! Checks that types cannot express, such as keys that exclude or need each other.

use paceline_gateway::config::ShareConfig;
use std::path::Path as FilePath;

use super::{Direction, EventAction, Path, Protocol, Scenario};
use crate::profile::Profile;
use crate::units::Time;

type Fault = (&'static str, String);

/// # Errors
/// The dotted key at fault, and the fault in one line.
pub(super) fn check(scenario: &Scenario, folder: &FilePath) -> Result<(), Fault> {
    if scenario.duration == Time::default() {
        return Err(("duration", "give a duration above zero, such as \"60s\"".into()));
    }
    if scenario.runs == 0 {
        return Err(("runs", "give at least one run".into()));
    }
    if !scenario.name.chars().all(|c| c.is_ascii_alphanumeric() || c == '-' || c == '_')
        || scenario.name.is_empty()
    {
        return Err(("name", "a name has letters, digits, `-` and `_` only: it becomes a folder".into()));
    }
    flows(scenario)?;
    gateway(scenario)?;
    client(scenario)?;
    topology(scenario)?;
    for (key, path) in [("wired", &scenario.wired), ("radio", &scenario.radio)] {
        if path.rtt_steps.windows(2).any(|pair| pair[1].at <= pair[0].at) {
            return Err((key, format!("{key}: `rtt-steps` must be in rising order of `at`")));
        }
        path.resolve(folder).map_err(|why| (key, format!("{key}: {why}")))?;
    }
    Ok(())
}

fn topology(scenario: &Scenario) -> Result<(), Fault> {
    let links = [&scenario.wired, &scenario.radio].into_iter().any(|path| *path != Path::default());
    match &scenario.topology {
        Some(_) if links => Err(("topology", "give either `topology` or `wired` and `radio`".into())),
        Some(topology) => topology.check().map_err(|why| ("topology", format!("topology: {why}"))),
        None if scenario.radio == Path::default() => {
            Err(("radio", "no link: add [radio.down] with a rate, or a topology by name".into()))
        }
        None => Ok(()),
    }
}

fn flows(scenario: &Scenario) -> Result<(), Fault> {
    if scenario.flows.is_empty() {
        return Err(("flows", "no flow: add [[flows]] with name = \"download\"".into()));
    }
    for flow in &scenario.flows {
        let fault = |text: &str| Err(("flows", format!("flow `{}`: {text}", flow.name)));
        match (flow.protocol, flow.rate) {
            (Protocol::Udp, None) => return fault("UDP needs `rate`, such as \"10mbit\""),
            (Protocol::Udp, Some(rate)) if rate.to_wire().is_zero() => {
                return fault("UDP needs a `rate` above zero");
            }
            (Protocol::Tcp, Some(_)) => {
                return fault("`rate` is for protocol = \"udp\"; TCP sends as fast as it may");
            }
            (Protocol::Ping, Some(_)) => {
                return fault("`rate` is for protocol = \"udp\"; a ping has an `interval`");
            }
            _ => {}
        }
        if flow.protocol == Protocol::Udp && (flow.size.is_some() || flow.sequential) {
            return fault("UDP flows last until the run ends; leave `size` and `sequential` out");
        }
        if flow.protocol == Protocol::Ping
            && (flow.size.is_some() || flow.count > 1 || flow.direction == Direction::Up)
        {
            return fault("a ping lasts until the run ends; leave `size`, `count` and `direction` out");
        }
        if flow.count == 0 || flow.count > 10_000 {
            return fault("`count` is 1 to 10000");
        }
        if flow.sequential && flow.size.is_none() {
            return fault("`sequential` needs `size`: a flow without one lasts until the run ends");
        }
        let share = flow.share();
        if let Err(why) = share.check() {
            return fault(&why);
        }
        if share != ShareConfig::default() && flow.direction == Direction::Up {
            return fault(
                "`weight`, `priority`, `guaranteed` and `ceiling` are for downloads: the gateway schedules towards the client",
            );
        }
        if flow.start >= scenario.duration {
            return fault("it starts after the run has ended");
        }
    }
    let mut names: Vec<&str> = scenario.flows.iter().map(|flow| flow.name.as_str()).collect();
    names.sort_unstable();
    match names.windows(2).find(|pair| pair[0] == pair[1]) {
        Some(pair) => Err(("flows", format!("two flows are named `{}`", pair[0]))),
        None => Ok(()),
    }
}

fn gateway(scenario: &Scenario) -> Result<(), Fault> {
    let gateway = &scenario.gateway;
    // With profile = "off" events and configuration may be present but have no effect, because the same file has both
    // variants.
    gateway.resolve().map_err(|why| ("gateway.config", why))?;
    if gateway.profile == Profile::KernelSplit && !gateway.events.is_empty() {
        return Err(("gateway.events", "the proxy of kernel-split is no process that can be stopped".into()));
    }
    let mut running = gateway.profile != Profile::Off;
    let mut stopped = false;
    for event in &gateway.events {
        let at = event.at;
        match event.action {
            _ if gateway.profile == Profile::Off => {}
            EventAction::Start if running => {
                return Err(("gateway.events", format!("at {at}: the gateway runs already")));
            }
            EventAction::Start => running = true,
            _ if !running => return Err(("gateway.events", format!("at {at}: no gateway runs"))),
            EventAction::Kill | EventAction::Terminate => {
                running = false;
                stopped = false;
            }
            EventAction::Stop => stopped = true,
            EventAction::Continue if !stopped => {
                return Err(("gateway.events", format!("at {at}: the gateway is not stopped")));
            }
            EventAction::Continue => stopped = false,
        }
    }
    match gateway.events.windows(2).find(|pair| pair[1].at < pair[0].at) {
        Some(pair) => {
            Err(("gateway.events", format!("{} comes after {}: sort them by time", pair[1].at, pair[0].at)))
        }
        None => Ok(()),
    }
}

fn client(scenario: &Scenario) -> Result<(), Fault> {
    let client = &scenario.client;
    let Some(buffer) = client.receive_buffer else {
        return Ok(());
    };
    if buffer.bytes() < 2_000 {
        return Err(("client.receive-buffer", "below 2kb no full-sized packet fits".into()));
    }
    if buffer.bytes() > 65_535 && !client.window_scaling {
        let text = "windows above 65535 bytes need window-scaling = true";
        return Err(("client.receive-buffer", text.into()));
    }
    Ok(())
}
