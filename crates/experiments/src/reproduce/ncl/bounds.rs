//! The paper's statements about its figures, as bounds.

use super::cells::{CellResult, Figure};
use super::grid::{FLAT, Point};
use super::model::Compared;
use crate::reproduce::report::Bound;

pub(super) fn judge(cells: &[CellResult]) -> Vec<Bound> {
    let mut bounds = of_grid(&Point::of(cells));
    bounds.extend(of_sensitivity(cells));
    bounds.extend(of_fairness(cells));
    bounds.extend(of_hops(cells));
    bounds.extend(of_delays(cells));
    bounds.extend(of_ad_hoc(cells));
    bounds.extend(of_model(cells));
    bounds
}

/// Fig. 9a.
fn of_grid(points: &[Point]) -> Vec<Bound> {
    if points.is_empty() {
        return Vec::new();
    }
    let mut bounds = Vec::new();
    for (scheme, what) in [
        ("ncl", "the text's TCP-NCL"),
        ("ncl-second-rd", "with a second RD"),
        ("ncl-adaptive", "ncl-adaptive"),
    ] {
        let flat: Vec<&Point> = points.iter().filter(|point| point.kept_by(scheme) >= FLAT).collect();
        let count = flat.len() as f64;
        let note = format!("of {} windows, rates and round trips", points.len());
        bounds.push(
            Bound::at_least(format!("Fig. 9a: places where the curve is flat, {what}"), 1.0, count)
                .with_note(note),
        );
        let both: Vec<String> =
            flat.iter().filter(|point| point.best_comparator().1 < 0.5).map(|point| point.name()).collect();
        let name = format!("Fig. 9a: places where it is flat and all others but Westwood below half, {what}");
        let reason = if scheme == "ncl" { NOWHERE } else { NOWHERE_SECOND_RD };
        let note = if both.is_empty() { reason.to_string() } else { both.join("; ") };
        bounds.push(Bound::at_least(name, 1.0, both.len() as f64).with_note(note));
        let best = flat.iter().map(|point| point.best_comparator());
        let best = best.fold(("none", f64::NAN), |best, one| if best.1 >= one.1 { best } else { one });
        let name =
            format!("Fig. 9a: where it is flat, {what}: what the best comparator but Westwood keeps at 15 %");
        let note = format!("{}: {SHORT_PATHS}", best.0);
        bounds.push(Bound::at_most(name, 0.5, best.1).with_note(note));
        let ahead = points.iter().filter(|point| point.kept_by(scheme) > point.best_comparator().1).count();
        let name =
            format!("Fig. 9a: share of all places where no comparator but Westwood keeps more, {what}");
        bounds.push(Bound::at_least(name, 1.0, ahead as f64 / points.len() as f64));
    }
    bounds
}

const NOWHERE: &str = "one packet in 44 is lost twice at 15 %, and costs a timeout and half of the window. This keeps the window near 8 packets. \
                       Where the path is short enough for that all others keep more than half";
const NOWHERE_SECOND_RD: &str = "one packet in 44 is lost twice at 15 %, and each of these halves the window";
const SHORT_PATHS: &str = "among the flat places are paths of a few packets, which any sender fills";

/// Mean goodput of the matching cells.
fn mean(cells: &[CellResult], which: impl Fn(&CellResult) -> bool) -> f64 {
    let of: Vec<f64> = cells.iter().filter(|cell| which(cell)).map(|cell| cell.goodput_mbps).collect();
    of.iter().sum::<f64>() / of.len() as f64
}

fn has(cells: &[CellResult], figure: Figure) -> bool {
    cells.iter().any(|cell| cell.figure == figure)
}

const SHORT_RUNS: &str = "at 5 m/s two stations stay near each other or apart for most of a run of 400 s. A few such runs are chance. Means of 12 \
                          runs of 2,000 s are below (docs/evidence/ad-hoc.md)";
const BETA_ONE: &str = "with beta = 1 an RTT of two transmissions is learnt only if the second one met no packet in any queue. It is so on a \
                        path that a window of four does not fill (3.5 times the timeouts there, at 9 %). A window that fills the link makes \
                        that rare";
const MRRLS: [u32; 4] = [250, 500, 800, 1_000];
const BETAS: [u32; 4] = [30, 50, 80, 95];

/// Figs. 3 to 5.
fn of_sensitivity(cells: &[CellResult]) -> Vec<Bound> {
    let of = |figure: Figure, mrrl: u32, beta: u32, from: f64| {
        mean(cells, |cell| {
            (cell.figure, cell.mrrl, cell.beta_percent) == (figure, Some(mrrl), Some(beta)) && cell.x >= from
        })
    };
    // The least mean goodput of these settings divided by the largest.
    let evenness = |figure, mrrls: &[u32], betas: &[u32]| {
        let all: Vec<f64> =
            mrrls.iter().flat_map(|m| betas.iter().map(|b| of(figure, *m, *b, 0.0))).collect();
        all.iter().copied().fold(f64::NAN, f64::min) / all.iter().copied().fold(f64::NAN, f64::max)
    };
    let mut bounds = Vec::new();
    if has(cells, Figure::Fig3) {
        let loss = MRRLS.map(|mrrl| of(Figure::Fig3, mrrl, 100, 9.0) / of(Figure::Fig3, mrrl, 80, 9.0));
        let loss = loss.into_iter().fold(f64::NAN, f64::max);
        bounds.push(
            Bound::at_most("Fig. 3: beta = 1 over 0.8, errors from 9 % on, largest of the MRRLs", 0.9, loss)
                .with_note(BETA_ONE),
        );
        let even = evenness(Figure::Fig3, &MRRLS, &BETAS);
        bounds.push(Bound::at_least(
            "Fig. 3: least over largest goodput, beta 0.3 to 0.95, every MRRL",
            0.95,
            even,
        ));
    }
    if has(cells, Figure::Fig4) {
        let even = evenness(Figure::Fig4, &MRRLS, &[30, 50, 80, 95, 100]);
        bounds.push(Bound::at_least("Fig. 4: least over largest goodput, every beta and MRRL", 0.95, even));
    }
    if has(cells, Figure::Fig5) {
        let one = MRRLS.map(|mrrl| of(Figure::Fig5, mrrl, 100, 0.0) / of(Figure::Fig5, mrrl, 80, 0.0));
        let one = one.into_iter().fold(f64::NAN, f64::max);
        bounds.push(Bound::at_most("Fig. 5: beta = 1 over 0.8, largest of the MRRLs", 1.0, one));
        let even = evenness(Figure::Fig5, &MRRLS[1..], &BETAS);
        bounds.push(Bound::at_least(
            "Fig. 5: least over largest goodput, MRRL from 500, beta to 0.95",
            0.95,
            even,
        ));
        let short =
            [50, 80, 95].map(|beta| of(Figure::Fig5, 250, beta, 0.0)).into_iter().fold(f64::NAN, f64::min);
        let others = MRRLS[1..].iter().flat_map(|m| BETAS.map(|b| of(Figure::Fig5, *m, b, 0.0)));
        let others = others.fold(f64::NAN, f64::max);
        bounds.push(
            Bound::at_least(
                "Fig. 5: MRRL 250, beta 0.5 to 0.95, over the best of all others",
                1.0,
                short / others,
            )
            .with_note("every setting is within six thousandths of the others"),
        );
        let cautious = of(Figure::Fig5, 250, 30, 0.0) / short;
        bounds.push(Bound::at_most(
            "Fig. 5: MRRL 250, beta 0.3 over the least of 0.5 to 0.95",
            1.0,
            cautious,
        ));
    }
    bounds
}

/// Fig. 7.
fn of_fairness(cells: &[CellResult]) -> Vec<Bound> {
    let mut bounds = Vec::new();
    for (scheme, what) in [("ncl", "the text's TCP-NCL"), ("ncl-second-rd", "with a second RD")] {
        let of: Vec<&CellResult> =
            cells.iter().filter(|cell| (cell.figure, cell.scheme) == (Figure::Fig7, scheme)).collect();
        if of.is_empty() {
            continue;
        }
        let normalised = || of.iter().filter_map(|cell| cell.normalised);
        let least = normalised().map(|n| n[0]).fold(f64::NAN, f64::min);
        let largest = normalised().map(|n| n[1]).fold(f64::NAN, f64::max);
        let jain = of.iter().filter_map(|cell| cell.jain).fold(f64::NAN, f64::min);
        let total = of.iter().map(|cell| cell.share).fold(f64::NAN, f64::min);
        let name = |quantity: &str| format!("Fig. 7: {quantity}, {what}");
        bounds.extend([
            Bound::at_least(name("least normalised goodput of a flow, mean over runs"), 0.95, least)
                .with_note(format!("least Jain's index of a number of flows: {jain:.4}")),
            Bound::at_most(name("largest normalised goodput of a flow, mean over runs"), 1.05, largest),
            Bound::at_least(name("least total goodput of a number of flows, of the link"), 0.95, total),
        ]);
    }
    let [first, ..] = &mut bounds[..] else { return bounds };
    if let Some(note) = &mut first.note {
        note.push_str(FULL_QUEUE);
    }
    bounds
}

const FULL_QUEUE: &str = ". A retransmission that leaves when a timer expires, and not when an ACK arrives, finds the queue full that made the loss. It is \
                          lost, too, and only a timeout repairs it. Whom it hits is chance";

const COMPARED: [&str; 6] = ["rr-tcp", "tcp-dcr", "tcp-door", "tcp-pr", "veno", "westwood"];

/// The least goodput of `best` divided by the largest of the others; 1 means equal.
fn lead(cells: &[CellResult], figure: Figure, best: &[&str], which: &dyn Fn(f64) -> bool) -> f64 {
    let of =
        |scheme: &str| mean(cells, |cell| cell.figure == figure && cell.scheme == scheme && which(cell.x));
    let least = best.iter().map(|scheme| of(scheme)).fold(f64::NAN, f64::min);
    let others = COMPARED.iter().chain(&["ncl"]).filter(|scheme| !best.contains(scheme));
    least / others.map(|scheme| of(scheme)).fold(f64::NAN, f64::max)
}

/// Fig. 9b.
fn of_hops(cells: &[CellResult]) -> Vec<Bound> {
    if !has(cells, Figure::Fig9b) {
        return Vec::new();
    }
    let figure = Figure::Fig9b;
    let high = |x: f64| x > 9.0;
    let of = |scheme: &str, which: &dyn Fn(f64) -> bool| {
        mean(cells, |cell| cell.figure == figure && cell.scheme == scheme && which(cell.x))
    };
    let answers = |scheme: &str| {
        let of = cells.iter().filter(|cell| cell.figure == figure && cell.scheme == scheme && cell.x > 0.0);
        of.map(|cell| cell.answers).sum::<f64>()
    };
    let below = |x: f64| (1.0..9.0).contains(&x);
    vec![
        Bound::at_least(
            "Fig. 9b: least of DCR, NCL, PR over the best other, errors below 9 %",
            1.0,
            lead(cells, figure, &["tcp-dcr", "ncl", "tcp-pr"], &below),
        )
        .with_note("the best other is RR-TCP, which learns this reordering, too; by itself it keeps up with all three"),
        Bound::at_least(
            "Fig. 9b: NCL over the best other, errors above 9 %",
            1.0,
            lead(cells, figure, &["ncl"], &high),
        )
        .with_note("TCP-DOOR, frozen, gives nothing back, and so is level with it at 15 %"),
        Bound::at_least(
            "Fig. 9b: NCL over PR, errors above 9 %",
            1.0,
            of("ncl", &high) / of("tcp-pr", &high),
        ),
        Bound::at_most(
            "Fig. 9b: DCR over NCL, errors above 9 %",
            0.8,
            of("tcp-dcr", &high) / of("ncl", &high),
        )
        .with_note(
            "our choice of what \"seriously deteriorated\" means. With three repetitions 4 p^4 = 0.2 % of the packets are lost at 15 %. That leaves \
             Reno a window of 27 packets, more than ns-2's 20",
        ),
        Bound::at_most(
            "Fig. 9b: answers to congestion by DOOR, per answer by Reno",
            0.2,
            answers("tcp-door") / answers("reno"),
        )
        .with_note("our choice of what \"frozen for almost the whole session\" means"),
    ]
}

/// Fig. 9c.
fn of_delays(cells: &[CellResult]) -> Vec<Bound> {
    if !has(cells, Figure::Fig9c) {
        return Vec::new();
    }
    let best = lead(cells, Figure::Fig9c, &["rr-tcp", "ncl", "tcp-pr"], &|_| true);
    vec![Bound::at_least("Fig. 9c: least of RR, NCL, PR over the best other, all delays", 1.0, best)]
}

/// Fig. 9d.
fn of_ad_hoc(cells: &[CellResult]) -> Vec<Bound> {
    let of: Vec<&CellResult> = cells.iter().filter(|cell| cell.figure == Figure::Fig9d).collect();
    if of.is_empty() {
        return Vec::new();
    }
    let in_paper = |cell: &&&CellResult| COMPARED.contains(&cell.scheme) || cell.scheme == "ncl";
    let most =
        of.iter().filter(in_paper).map(|cell| cell.goodput_mbps / cell.mbps * 100.0).fold(f64::NAN, f64::max);
    let lead = lead(cells, Figure::Fig9d, &["ncl"], &|_| true);
    vec![
        Bound::at_most("Fig. 9d: largest goodput of any sender of the paper, % of 2 Mbit/s", 15.0, most)
            .with_note(SHORT_RUNS),
        Bound::at_least("Fig. 9d: NCL over the best other, all speeds", 1.0, lead),
    ]
}

fn of_model(cells: &[CellResult]) -> Vec<Bound> {
    let mut bounds = Vec::new();
    for compared in Compared::of(cells) {
        let Some(best) = compared.best_fixed() else { continue };
        let at = best.tau_cd_ms.unwrap_or(f64::NAN);
        let note = format!("the best is {at:.1} ms with {:.3} Mbit/s", best.goodput_mbps);
        for (scheme, what, wanted) in
            [("ncl", "the shortest RTT", 0.9), ("ncl-adaptive", "ncl-adaptive", 1.0)]
        {
            let Some(own) = compared.by_sender(scheme) else { continue };
            let name = format!("tau_CD, {}: {what} over the best fixed one, goodput", compared.name());
            let ratio = own.goodput_mbps / best.goodput_mbps;
            bounds.push(
                Bound::at_least(name, wanted, ratio).with_note(format!("{note}; our choice of a bound")),
            );
        }
    }
    bounds
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn without_cells_nothing_is_judged() {
        assert!(judge(&[]).is_empty());
    }
}
