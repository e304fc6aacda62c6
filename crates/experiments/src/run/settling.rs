//! Measures how soon a run follows the changes of its scenario: rate, round-trip time, and a reader that returns.

use paceline_lab::emulator::Series;
use paceline_path::{LinkConfig, Outages, RateProcess};
use paceline_wire::Duration;

use super::collect::add;
use super::traces::Traces;
use crate::result::Change;
use crate::scenario::Scenario;

/// Returns the changes of the radio downlink's rate and round-trip time until the end of the run, and how soon the run
/// followed each.
pub(super) fn changes(scenario: &Scenario, downlink: &LinkConfig, traces: &Traces) -> Vec<Change> {
    let end = scenario.duration.to_wire();
    let mut times: Vec<Duration> = scenario.radio.rtt_steps.iter().map(|step| step.at).collect();
    if let RateProcess::Steps(steps) = &downlink.rate {
        times.extend(steps.iter().map(|step| step.at));
    }
    times.retain(|at| !at.is_zero() && *at < end);
    times.sort_unstable();
    times.dedup();
    let delivered = values(traces.link("radio_down").map(|link| &link.delivered_bytes));
    let delays = values(traces.path_delay_max_us.as_ref());
    let until = |index: usize| times.get(index + 1).copied().unwrap_or(end);
    (0..times.len())
        .map(|index| {
            let (at, until) = (times[index], until(index));
            let capacity = downlink.rate.capacity_bytes(at, at + RATE_WINDOW, &Outages::default());
            Change {
                at_s: at.as_secs_f64(),
                rate_settled_s: capacity.map(|bytes| rate_settled(&delivered, bin(at)..bin(until), bytes)),
                delay_settled_s: delay_settled(&delays, bin(at)..bin(until)),
            }
        })
        .collect()
}

/// Time from when a paused reader returns until the radio link delivers to its client again; `None` without a pause.
pub(super) fn resumed_s(scenario: &Scenario, series: &Series) -> Option<f64> {
    let pause = scenario.client.read_pause?;
    let back = bin(pause.at.to_wire() + pause.length.to_wire());
    let delivered = values(Some(series));
    let first = delivered.get(back..)?.iter().position(|bytes| *bytes > 0)?;
    Some(seconds(first))
}

/// Time until the first window in which 95 % of `capacity` arrived. The whole time if there is none.
fn rate_settled(delivered: &[u64], during: std::ops::Range<usize>, capacity: u64) -> f64 {
    let width = bin(RATE_WINDOW);
    let arrived =
        |start: usize| delivered.get(start..start + width).map_or(0, |bins| bins.iter().sum::<u64>());
    let mut starts = during.start..during.end.saturating_sub(width);
    let settled = starts.find(|start| arrived(*start) * 100 >= capacity * 95).unwrap_or(during.end);
    seconds(settled - during.start)
}

/// Time until the last packet with a delay of 200 ms or more.
fn delay_settled(delays: &[u64], during: std::ops::Range<usize>) -> Option<f64> {
    let within = delays.get(during.start..during.end.min(delays.len()))?;
    let last = within.iter().rposition(|us| *us >= DELAY_MAX_US);
    Some(last.map_or(0.0, |last| seconds(last + 1)))
}

fn values(series: Option<&Series>) -> Vec<u64> {
    let mut total = Vec::new();
    series.into_iter().for_each(|series| add(&mut total, series));
    total
}

fn bin(at: Duration) -> usize {
    (at.as_nanos() / Series::BIN.as_nanos()) as usize
}

fn seconds(bins: usize) -> f64 {
    bins as f64 * Series::BIN.as_secs_f64()
}

/// Our choice: long enough that a single packet does not decide.
const RATE_WINDOW: Duration = Duration::from_millis(500);
const DELAY_MAX_US: u64 = 200_000;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_rate_is_settled_with_the_first_full_window() {
        let mut delivered = vec![0u64; 200];
        delivered[130..].fill(10);
        assert_eq!(rate_settled(&delivered, 100..200, 500), 0.28);
        assert_eq!(rate_settled(&delivered, 100..200, 501), 0.28);
        assert_eq!(rate_settled(&delivered, 100..200, 5_000), 1.0);
    }

    #[test]
    fn a_delay_is_settled_after_its_last_excess() {
        let mut delays = vec![1_000u64; 200];
        assert_eq!(delay_settled(&delays, 100..200), Some(0.0));
        delays[150] = 300_000;
        assert_eq!(delay_settled(&delays, 100..200), Some(0.51));
    }
}
