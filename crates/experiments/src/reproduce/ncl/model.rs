//! Compares the model's tau_CD with the best fixed one.

use paceline_theory::ncl::{Sts, TauCd};
use serde_json::Value;

use super::cells::{CellResult, Figure};
use crate::reproduce::report::{Section, number};

/// A path of the comparison.
pub(super) struct Compared<'a> {
    /// All cells with the same path.
    cells: Vec<&'a CellResult>,
}

impl<'a> Compared<'a> {
    pub(super) fn of(cells: &'a [CellResult]) -> Vec<Compared<'a>> {
        let mut all: Vec<Compared<'a>> = Vec::new();
        for cell in cells.iter().filter(|cell| cell.figure == Figure::Model) {
            let path = |other: &Compared<'_>| {
                other.cells.first().map(|first| (first.mbps, first.x)) == Some((cell.mbps, cell.x))
            };
            match all.iter_mut().find(|other| path(other)) {
                Some(compared) => compared.cells.push(cell),
                None => all.push(Compared { cells: vec![cell] }),
            }
        }
        all
    }

    /// The fixed tau_CD with the highest goodput.
    pub(super) fn best_fixed(&self) -> Option<&'a CellResult> {
        let fixed = self.cells.iter().filter(|cell| cell.tau_cd_ms.is_some());
        fixed.copied().max_by(|a, b| a.goodput_mbps.total_cmp(&b.goodput_mbps))
    }

    pub(super) fn by_sender(&self, scheme: &str) -> Option<&'a CellResult> {
        self.cells.iter().copied().find(|cell| cell.scheme == scheme && cell.tau_cd_ms.is_none())
    }

    pub(super) fn name(&self) -> String {
        match self.cells.first() {
            Some(cell) if cell.jain.is_some() => format!("{} flows, no errors", cell.x),
            Some(cell) => format!("one flow, {} % errors", cell.x),
            None => String::new(),
        }
    }

    /// Eq. (23) with the values of a run. p_w is the path's error rate; p_c is the rest of the necessary
    /// retransmissions.
    fn model(&self, cell: &CellResult) -> String {
        let lost = cell.resent_percent / 100.0 * (1.0 - cell.needless_percent / 100.0);
        let p_w = if cell.jain.is_some() { 0.0 } else { cell.x / 100.0 };
        let p_c = (lost - p_w).max(0.0);
        match Sts::new(p_c, p_w, cell.cwnd.round().max(1.0) as u32).map(|sts| sts.tau_cd(1.0)) {
            Ok(TauCd::Zero) => "0".into(),
            Ok(TauCd::Upper) => "tau_u".into(),
            Ok(TauCd::Quantile(share)) => format!("F^-1({share:.3})"),
            Err(_) => "-".into(),
        }
    }

    fn rows(&self) -> Vec<Vec<Value>> {
        let row = |cell: &&CellResult| -> Vec<Value> {
            vec![
                self.name().into(),
                cell.scheme.into(),
                cell.tau_cd_ms.map_or("its own".into(), |ms| number(ms, 1)),
                number(cell.goodput_mbps, 3),
                number(cell.share * 100.0, 1),
                number(cell.jain.unwrap_or(f64::NAN), 3),
                number(cell.answers, 0),
                number(cell.timeouts, 0),
                number(cell.resent_percent, 2),
                self.model(cell).into(),
            ]
        };
        self.cells.iter().map(row).collect()
    }
}

pub(super) fn section(cells: &[CellResult]) -> Option<Section> {
    let all = Compared::of(cells);
    if all.is_empty() {
        return None;
    }
    Some(Section { rows: all.iter().flat_map(Compared::rows).collect(), ..Section::of("ncl", "model") })
}
