//! Figs. 14 to 16: three phones, with and without an upload.

use std::path::Path;

use paceline_sim::reproduce::rre::experiments::{PHONES, Phone, RUN_MAX_S};
use paceline_tcp::CongestionName;

use super::{Job, Records, Shown, cell, distribution, quantile, sorted, values};
use crate::error::Result;
use crate::plot::{self, Across, Panel};
use crate::reproduce::report::{Bound, Section, number};

const BOTH: [CongestionName; 2] = [CongestionName::Cubic, CongestionName::Rre];
const FIG16: &str = "\
by experiment, 21 tests each: with an uplink buffer of 100 or 300 kB it is 2.2 or 2.5, with the upload 30 s ahead 2.7. The text suspects \
losses beyond the radio: with 0.2 % it is 2.8, with 1 % it is 4.0";
/// Our choice: ten runs have 150 tests of each kind. The paper has 100 to 200.
const TESTS_A_RUN: u64 = 15;

pub(super) fn jobs(runs: u64) -> Vec<Job<'static>> {
    let mut jobs = Vec::new();
    for phone in PHONES {
        for (upload, scheme) in
            [false, true].into_iter().flat_map(|upload| BOTH.map(|scheme| (upload, scheme)))
        {
            jobs.extend((1..=runs * TESTS_A_RUN).map(|seed| job(phone, upload, scheme, seed)));
        }
    }
    jobs
}

fn job(phone: Phone, upload: bool, scheme: CongestionName, seed: u64) -> Job<'static> {
    Job {
        name: name(&phone, upload, scheme),
        seed,
        cost: 1.0,
        work: Box::new(move |watch| {
            let run = phone.setup(seed).run(&phone.transfers(scheme, upload), RUN_MAX_S, seed, watch)?;
            Ok(values([("goodput", run.goodput_mbps(0))]))
        }),
    }
}

fn name(phone: &Phone, upload: bool, scheme: CongestionName) -> String {
    format!("Fig. {} {scheme}{}", phone.figure, if upload { " beside an upload" } else { "" })
}

/// Our choice of a margin: it extends down to no gain at all.
fn beside_upload(figure: u8, median: f64) -> Bound {
    let name = format!("Fig. {figure}: goodput beside an upload, RRE over CUBIC, median");
    match figure {
        14 => Bound::exceeds(name, 1.0, median),
        16 => Bound::near(name, 2.0, 1.0, median).with_note(FIG16),
        _ => Bound::near(name, 2.0, 1.0, median),
    }
}

pub(super) fn show(records: &Records, runs: u64, folder: &Path) -> Result<Shown> {
    let mut shown = Shown::default();
    let mut rows = Vec::new();
    for phone in &PHONES {
        let goodput =
            |upload, scheme| records.values(&name(phone, upload, scheme), runs * TESTS_A_RUN, "goodput");
        let ratios = |upload| {
            let [cubic, rre] = BOTH.map(|scheme| goodput(upload, scheme));
            sorted(rre.iter().zip(&cubic).map(|(rre, cubic)| rre / cubic).collect())
        };
        let (without, with) = (ratios(false), ratios(true));
        let figure = phone.figure;
        shown.bounds.push(beside_upload(figure, quantile(&with, 0.5)));
        shown.bounds.push(Bound::at_least(
            format!("Fig. {figure}: goodput without upload, RRE over CUBIC, least"),
            0.97,
            quantile(&without, 0.0),
        ));
        let published = if figure == 14 { "a smaller drop" } else { "about 2" };
        shown.cells.push(cell(
            figure,
            "goodput beside an upload, RRE over CUBIC: median",
            published,
            quantile(&with, 0.5),
            "",
        ));
        shown.cells.push(cell(
            figure,
            "goodput without upload, RRE over CUBIC: median",
            "comparable",
            quantile(&without, 0.5),
            "",
        ));
        let kinds = [(false, "alone"), (true, "beside an upload")];
        let mut lines = Vec::new();
        for (upload, kind) in kinds {
            for scheme in BOTH {
                let goodputs = goodput(upload, scheme);
                let median = quantile(&sorted(goodputs.clone()), 0.5);
                rows.push(vec![
                    figure.into(),
                    phone.name.into(),
                    kind.into(),
                    scheme.to_string().into(),
                    number(median, 3),
                    goodputs.len().into(),
                ]);
                lines.push(distribution(format!("{scheme} {kind}"), lines.len(), goodputs));
            }
        }
        let panel = Panel { title: "tests at or below (%)".into(), lines };
        let across = Across::Logarithm("goodput (Mbit/s)");
        let title = format!("Fig. {figure}: {}", phone.name);
        plot::write_across(&folder.join(format!("rre-fig-{figure}.svg")), &title, across, &[panel])?;
    }
    shown.sections.push(Section { rows, ..Section::of("rre", "rre-fig-14-16") });
    Ok(shown)
}
