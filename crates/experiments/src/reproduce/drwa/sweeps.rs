//! Figs. 3, 5 and 10: sweeps of tcp_rmem_max and of lambda.

use std::path::Path;

use paceline_sim::reproduce::drwa::{Experiment, Network, Signal, Window};

use super::Part;
use super::case::{Case, GOODPUT, Measured, RTT};
use crate::error::Result;
use crate::plot::{self, Across, Line, Panel};
use crate::reproduce::report::Bound;

const NETWORKS: [Network; 2] = [Network::AttHspa, Network::VerizonLte];
/// The values of Table 1, and those of Fig. 5.
const RMEM_MAX: [u32; 9] = [35_040, 65_536, 110_208, 196_608, 262_144, 484_848, 655_360, 917_504, 1_310_720];
const LAMBDAS_PERCENT: [u32; 8] = [150, 200, 250, 300, 350, 400, 450, 500];

fn swept(network: Network, far: bool, rmem_max: u32) -> Case {
    let near = Experiment::near(network, Window::clamped(rmem_max));
    let (place, experiment) = match far {
        true => ("far", Experiment { rtt_ms: network.far_rtt_ms(), ..near }),
        false => ("near", near),
    };
    Case::new(format!("{}, {place}, tcp_rmem_max {rmem_max}", network.name()), experiment)
}

fn sweep(far: bool) -> Vec<Case> {
    NETWORKS.into_iter().flat_map(|network| RMEM_MAX.map(|bytes| swept(network, far, bytes))).collect()
}

pub(super) fn near() -> Vec<Case> {
    sweep(false)
}

pub(super) fn far() -> Vec<Case> {
    sweep(true)
}

/// Near server, weak signal, and far server (Section 4.3).
fn of_lambda(network: Network, percent: u32) -> [Case; 3] {
    let near = Experiment::near(network, Window::lambda(percent));
    let name = |place: &str| format!("{}, {place}, lambda {}", network.name(), f64::from(percent) / 100.0);
    [
        Case::new(name("near"), near.clone()),
        Case::new(name("weak"), Experiment { signal: Signal::Weak, ..near.clone() }),
        Case::new(name("far"), Experiment { rtt_ms: network.far_rtt_ms(), ..near }),
    ]
}

pub(super) fn lambdas() -> Vec<Case> {
    let of = |network| LAMBDAS_PERCENT.into_iter().flat_map(move |percent| of_lambda(network, percent));
    NETWORKS.into_iter().flat_map(of).collect()
}

pub(super) fn fig3(measured: &Measured<'_>, folder: &Path) -> Result<Part> {
    let of = |network, rmem_max, value| measured.mean(&swept(network, false, rmem_max), value);
    let bounds = [(Network::AttHspa, 110_208, 262_144), (Network::VerizonLte, 262_144, 484_848)]
        .into_iter()
        .flat_map(|(network, small, default)| {
            let ratio = |value| of(network, small, value) / of(network, default, value);
            [
                Bound::at_least(
                    format!("Fig. 3, {}: throughput with {small} over {default}", network.name()),
                    0.98,
                    ratio(GOODPUT),
                ),
                Bound::at_most(
                    format!("Fig. 3, {}: RTT with {small} over {default}", network.name()),
                    0.7,
                    ratio(RTT),
                ),
            ]
        });
    let bounds = bounds.map(|bound| bound.with_note("as the text tells; our choice of margins")).collect();
    draw(measured, folder, "fig-3", "Fig. 3: tcp_rmem_max, server nearby", false)?;
    Ok((measured.section("fig-3", &near()), bounds))
}

pub(super) fn fig5(measured: &Measured<'_>, folder: &Path) -> Result<Part> {
    let of = |network, rmem_max| measured.mean(&swept(network, true, rmem_max), GOODPUT);
    let bounds = [(Network::AttHspa, 655_360, 262_144), (Network::VerizonLte, 917_504, 484_848)].map(
        |(network, large, default)| {
            let name = format!("Fig. 5, {}: throughput with {large} over {default}", network.name());
            Bound::at_least(name, 1.2, of(network, large) / of(network, default))
                .with_note("the text: much higher")
        },
    );
    draw(measured, folder, "fig-5", "Fig. 5: tcp_rmem_max, server far away", true)?;
    Ok((measured.section("fig-5", &far()), bounds.to_vec()))
}

pub(super) fn fig10(measured: &Measured<'_>, folder: &Path) -> Result<Part> {
    let mean = |network, percent, value| {
        of_lambda(network, percent).iter().map(|case| measured.mean(case, value)).sum::<f64>() / 3.0
    };
    let mut bounds = Vec::new();
    for network in NETWORKS {
        let rtts = LAMBDAS_PERCENT.map(|percent| mean(network, percent, RTT));
        let rise = rtts.windows(2).map(|pair| pair[1] / pair[0]).fold(f64::INFINITY, f64::min);
        let name = network.name();
        bounds.push(Bound::at_least(
            format!("Fig. 10, {name}: least RTT of a lambda over that of the one before"),
            1.0,
            rise,
        ));
        let ratio = |low, high| mean(network, low, GOODPUT) / mean(network, high, GOODPUT);
        bounds.push(Bound::at_least(
            format!("Fig. 10, {name}: throughput with lambda 3 over lambda 5"),
            0.97,
            ratio(300, 500),
        ));
        bounds.push(Bound::at_most(
            format!("Fig. 10, {name}: throughput with lambda 1.5 over lambda 3"),
            0.995,
            ratio(150, 300),
        ));
    }
    let bounds = bounds.into_iter().map(|bound| bound.with_note("our choice of margins")).collect();
    let line = |colour: usize, network: Network, value| Line {
        label: network.name().into(),
        colour,
        points: LAMBDAS_PERCENT
            .iter()
            .map(|percent| (f64::from(*percent) / 100.0, mean(network, *percent, value)))
            .collect(),
    };
    let panel = |title: &str, value| Panel {
        title: title.into(),
        lines: NETWORKS.into_iter().enumerate().map(|(n, network)| line(n, network, value)).collect(),
    };
    let panels = [panel("throughput (Mbit/s)", GOODPUT), panel("RTT (ms)", RTT)];
    let title = "Fig. 10: lambda; mean of near, weak and far";
    plot::write_across(&folder.join("drwa-fig-10.svg"), title, Across::Logarithm("lambda"), &panels)?;
    Ok((measured.section("fig-10", &lambdas()), bounds))
}

fn draw(measured: &Measured<'_>, folder: &Path, name: &str, title: &str, far: bool) -> Result<()> {
    let line = |(colour, network): (usize, Network), value: &str| Line {
        label: network.name().into(),
        colour,
        points: RMEM_MAX
            .iter()
            .map(|bytes| (f64::from(*bytes) / 1e3, measured.mean(&swept(network, far, *bytes), value)))
            .collect(),
    };
    let panel = |title: &str, value: &str| Panel {
        title: title.into(),
        lines: NETWORKS.into_iter().enumerate().map(|of| line(of, value)).collect(),
    };
    let panels = [panel("throughput (Mbit/s)", GOODPUT), panel("RTT (ms)", RTT)];
    let across = Across::Logarithm("tcp_rmem_max (kB)");
    plot::write_across(&folder.join(format!("drwa-{name}.svg")), title, across, &panels)
}
