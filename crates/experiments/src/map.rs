//! `paceline map`: points drawn by seed over both sides of the path. It runs each point in the simulator, without and
//! with a gateway, and shows where the gateway makes results worse. docs/evidence/map.md explains the draws and the
//! output.

mod bounds;
mod clients;
mod draw;
mod files;
mod impair;
mod judge;
mod mixed;
mod outcome;
mod parts;
mod path;
mod point;
mod report;
mod sequence;
mod work;

#[cfg(test)]
mod tests;

use std::collections::HashMap;

use crate::choices::ModeChoice;
use crate::common::{self, PROGRAM};
use crate::error::Result;
use crate::files::write_whole;
use crate::interrupt;
use crate::options::MapOptions;
use crate::output::say;
use crate::pool::cores;
use crate::result::SCHEMA;
use crate::run::simulated;
use crate::run_cache;
use judge::{Cell, judged};
pub(crate) use point::Kind;
use point::{PROFILES, Plan, Point};
use work::{Runs, Wanted};

/// Draws the points, runs them, and prints the gateway's effect on each kind.
pub(crate) fn command(options: &MapOptions) -> Result<()> {
    let kinds = if options.kind.is_empty() { Kind::ALL.to_vec() } else { options.kind.clone() };
    let rate_max = options.rate_max.map_or(f64::INFINITY, |rate| rate.to_wire().as_mbps());
    let plan = |kind| Plan { kind, seed: options.seed, duration: options.duration, rate_max };
    if let Some(index) = options.show {
        kinds.iter().for_each(|kind| say!("{}", point::draw(plan(*kind), index).text.trim_end()));
        return Ok(());
    }
    interrupt::watch()?;
    common::make_folder(&options.out)?;
    let (mut objects, mut failures, mut missed) = (Vec::new(), Vec::new(), Vec::new());
    for kind in kinds {
        let indices = options
            .point
            .map_or(options.from..options.from.saturating_add(options.count), |point| point..point + 1);
        let points: Vec<Point> = indices.map(|index| point::draw(plan(kind), index)).collect();
        let mut runs = Runs::open(
            &options.out.join(format!("runs-{}.jsonl", kind.name())),
            &run_cache::program(),
            options.batch.fresh,
        )?;
        let modes = modes(&options.mode);
        make_all(&points, &modes, &mut runs, options)?;
        failures.append(&mut runs.failures);
        let cells = judged(&points, &modes, &runs, options.runs, options.recheck);
        let seconds =
            points.iter().map(|point| runs.seconds(point, options.runs + options.recheck)).sum::<f64>();
        let verdicts = bounds::verdicts(kind, &cells);
        missed.extend(verdicts.iter().filter(|verdict| !verdict.holds()).map(ToString::to_string));
        write_whole(&options.out.join(format!("{}.csv", kind.name())), &files::csv(&cells)?)?;
        if !options.batch.json {
            report::print(kind, options.seed, &cells, &verdicts, seconds);
        }
        let object = files::json(kind, &cells, &verdicts, seconds);
        write_whole(&options.out.join(format!("{}.json", kind.name())), &(common::json(&object)? + "\n"))?;
        objects.push(object);
    }
    if options.batch.json {
        let object = serde_json::json!({
            "schema": SCHEMA,
            "program": PROGRAM,
            "on": "sim",
            "seed": options.seed,
            "kinds": objects,
        });
        say!("{}", common::json(&object)?);
    } else {
        say!("All points: {0}/KIND.csv; all figures: {0}/KIND.json", options.out.display());
    }
    simulated::judge(&failures)?;
    common::check_missed(options.check, &missed)
}

/// Runs every point. Runs the points that miss a bound again with further seeds.
fn make_all(points: &[Point], modes: &[&'static str], runs: &mut Runs, options: &MapOptions) -> Result<()> {
    let threads = options.batch.jobs.unwrap_or_else(cores);
    let first = points.iter().map(|point| Wanted::of(point, modes, 0..options.runs)).collect();
    let name = points.first().map_or("", |point| point.kind.name());
    runs.make(first, threads, name, options.batch.json)?;
    if options.recheck == 0 {
        return Ok(());
    }
    let cells = judged(points, modes, runs, options.runs, 0);
    let of_point = |cells: &[Cell<'_>]| {
        let missed: Vec<&'static str> =
            cells.iter().filter(|cell| bounds::misses(cell)).map(|cell| cell.mode).collect();
        (cells[0].point.index, missed)
    };
    let missed: HashMap<u32, Vec<&'static str>> =
        cells.chunk_by(|a, b| a.point.index == b.point.index).map(of_point).collect();
    let again = |point: &Point| missed.get(&point.index).filter(|missed| !missed.is_empty());
    let further = options.runs..options.runs + options.recheck;
    let wanted = points
        .iter()
        .filter_map(|point| again(point).map(|missed| Wanted::of(point, missed, further.clone())))
        .collect();
    runs.make(wanted, threads, &format!("{name}, again"), options.batch.json)
}

/// Text of a `path` point of seed 1, for the samples of the page.
#[cfg(test)]
pub(crate) fn point_text(index: u32) -> String {
    point::draw(Plan { kind: Kind::Path, seed: 1, duration: None, rate_max: f64::INFINITY }, index).text
}

/// The requested profiles, or all profiles except the first.
fn modes(wanted: &[ModeChoice]) -> Vec<&'static str> {
    let name = |mode: &ModeChoice| match mode {
        ModeChoice::Full => PROFILES[1],
        ModeChoice::Auto => PROFILES[2],
        ModeChoice::Split => PROFILES[3],
    };
    if wanted.is_empty() { PROFILES[1..].to_vec() } else { wanted.iter().map(name).collect() }
}
