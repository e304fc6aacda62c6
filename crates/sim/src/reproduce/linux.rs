//! CUBIC, Veno, Westwood, Vegas and BBR beside Linux 6.1 on the same paths (`published/linux-6.1.csv`).

use paceline_tcp::CongestionName;

use super::or::{SenderSetup, Setup, SetupLoss};
use crate::scenario::Scenario;
use paceline_judge::Sample;

/// Result of Linux 6.1 with one congestion control at one loss: one flow of 200 s, 20 Mbit/s, 100 ms.
#[derive(Clone, Debug, PartialEq)]
pub struct LinuxRow {
    /// Congestion control.
    pub congestion: CongestionName,
    /// Random loss on the data, percent.
    pub loss_percent: f64,
    /// One value for each of Linux's runs.
    pub goodput_mbps: Sample,
}

impl LinuxRow {
    /// All rows, in the order of the file.
    pub fn all() -> Vec<LinuxRow> {
        let text = include_str!("../../../../published/linux-6.1.csv");
        let mut rows: Vec<(CongestionName, f64, Vec<f64>)> = Vec::new();
        for (congestion, loss_percent, mbps) in text.lines().skip(1).filter_map(parse) {
            match rows.last_mut().filter(|row| row.0 == congestion && row.1 == loss_percent) {
                Some(row) => row.2.push(mbps),
                None => rows.push((congestion, loss_percent, vec![mbps])),
            }
        }
        let row = |(congestion, loss_percent, mbps): (_, _, Vec<f64>)| LinuxRow {
            congestion,
            loss_percent,
            goodput_mbps: mbps.into_iter().collect(),
        };
        rows.into_iter().map(row).collect()
    }

    /// The same flow in this simulator.
    pub fn scenario(&self, seed: u64) -> Scenario {
        let setup = Setup { mbps: 20.0, rtt_ms: 100, loss: SetupLoss::Random(self.loss_percent) };
        setup.scenario(&SenderSetup { congestion: self.congestion, ..SenderSetup::default() }, seed)
    }
}

fn parse(line: &str) -> Option<(CongestionName, f64, f64)> {
    let columns: Vec<&str> = line.split(',').collect();
    let [congestion, loss_percent, _, _, mbps, ..] = columns[..] else { return None };
    Some((congestion.parse().ok()?, loss_percent.parse().ok()?, mbps.parse().ok()?))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::run::run_all;

    /// Ten runs of each quick row. The means are within 10 % of each other. `paceline reproduce or --part linux` has
    /// all rows.
    #[test]
    fn high_losses_are_as_in_linux() {
        for row in LinuxRow::all().iter().filter(|row| row.loss_percent == 0.1) {
            if matches!(row.congestion, CongestionName::Bbr | CongestionName::Westwood) {
                continue;
            }
            let scenarios: Vec<Scenario> = (1..=10).map(|seed| row.scenario(seed)).collect();
            let results = run_all(&scenarios).unwrap();
            let ours: Sample = results.iter().map(|result| result.flows[0].goodput_mbps).collect();
            let ratio = ours.mean() / row.goodput_mbps.mean();
            assert!((ratio - 1.0).abs() < 0.1, "{row:?}: {ratio}");
        }
    }

    #[test]
    fn every_row_is_read() {
        let rows = LinuxRow::all();
        assert_eq!(rows.len(), 15);
        assert!(rows.iter().all(|row| row.goodput_mbps.len() == 10));
        assert!((rows[0].goodput_mbps.mean() - 18.3082).abs() < 1e-3);
    }
}
