//! Measures how evenly bulk downloads share the link.

use paceline_lab::emulator::Series;

use super::traces::Traces;
use crate::result::Fairness;
use crate::scenario::{Direction, Protocol, Scenario};

/// Returns Jain's index (Section 7.1) over windows of 1 s, 100 ms and 10 ms while all downloads were active, and their
/// shares. Throughputs are divided by the weights. `None` with fewer than two downloads, or if they never were active
/// together for a second.
pub(super) fn between(scenario: &Scenario, traces: &Traces) -> Option<Fairness> {
    let mut flows: Vec<(&Series, f64)> = Vec::new();
    for transfer in &traces.transfers {
        let spec = &scenario.flows[transfer.flow];
        if spec.protocol == Protocol::Tcp && spec.direction == Direction::Down && !spec.sequential {
            flows.push((transfer.delivered.as_ref()?, f64::from(spec.weight)));
        }
    }
    if flows.len() < 2 {
        return None;
    }
    // The time judged begins after slow start of the last flow, and ends with the first flow that ends.
    let per_second = (1_000_000_000 / Series::BIN.as_nanos()) as usize;
    let from = flows.iter().map(|(series, _)| series.first()).max()? + per_second * SETTLE_S;
    let to = flows.iter().map(|(series, _)| series.first() + series.values().len()).min()?;
    if to < from + per_second {
        return None;
    }
    let shares: Vec<Vec<f64>> =
        flows.iter().map(|(series, weight)| shares(series, *weight, from, to)).collect();
    let totals: Vec<f64> = shares.iter().map(|bins| bins.iter().sum()).collect();
    Some(Fairness {
        jain_1s: mean_index(&shares, per_second),
        jain_100ms: mean_index(&shares, per_second / 10),
        jain_10ms: mean_index(&shares, per_second / 100),
        ratios: totals.iter().map(|total| total / totals[0].max(1.0)).collect(),
        from_s: from as f64 / per_second as f64,
        to_s: to as f64 / per_second as f64,
    })
}

fn shares(series: &Series, weight: f64, from: usize, to: usize) -> Vec<f64> {
    let at = |bin: usize| bin.checked_sub(series.first()).and_then(|bin| series.values().get(bin)).copied();
    (from..to).map(|bin| f64::from(at(bin).unwrap_or(0)) / weight).collect()
}

/// The mean of Jain's index over windows of `width` bins, without windows in which nothing arrived.
fn mean_index(shares: &[Vec<f64>], width: usize) -> f64 {
    let windows = shares[0].len() / width;
    let sum = |bins: &Vec<f64>, window: usize| bins[window * width..(window + 1) * width].iter().sum::<f64>();
    let indices: Vec<f64> = (0..windows)
        .filter_map(|window| jain(&shares.iter().map(|bins| sum(bins, window)).collect::<Vec<f64>>()))
        .collect();
    indices.iter().sum::<f64>() / indices.len().max(1) as f64
}

/// (sum x)^2 / (n sum x^2).
fn jain(values: &[f64]) -> Option<f64> {
    let sum: f64 = values.iter().sum();
    let squares: f64 = values.iter().map(|value| value * value).sum();
    (squares > 0.0).then(|| sum * sum / (values.len() as f64 * squares))
}

/// Our choice: seconds between the last flow's first packet and the begin of the time judged.
const SETTLE_S: usize = 2;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_index_is_one_for_equals_and_one_over_n_for_one_winner() {
        assert_eq!(jain(&[3.0, 3.0]), Some(1.0));
        assert_eq!(jain(&[3.0, 0.0]), Some(0.5));
        assert_eq!(jain(&[0.0, 0.0]), None);
        assert_eq!(mean_index(&[vec![1.0, 0.0], vec![0.0, 1.0]], 2), 1.0);
        assert_eq!(mean_index(&[vec![1.0, 0.0], vec![0.0, 1.0]], 1), 0.5);
    }
}
