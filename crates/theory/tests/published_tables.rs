//! The numerical columns of Tables 1, 2, 4 and 5, from the published numbers.

use paceline_theory::or::{DomainError, Episode, RateReduction};

/// The calibration: packets of 1,500 bytes on 20 Mbit/s, and CUBIC's factor of 0.7. The window is 180 packets at 100
/// ms, in proportion to the delay. Bursts have 10 packets where the delay varies.
fn episode(burst_packets: u32, delay_ms: u32) -> Result<Episode, DomainError> {
    Episode::new(20e6 / 8.0 / 1_500.0, f64::from(delay_ms) / 1e3, 180 * delay_ms / 100, burst_packets, 0.7)
}

#[test]
fn seventy_two_of_seventy_two_cells() {
    let mut cells = 0;
    for line in include_str!("../../../published/opportunistic-retransmission.csv").lines().skip(1) {
        let [table, _, loss_recovery, variant, "numerical", axis, axis_value, value, _] =
            line.split(',').collect::<Vec<_>>()[..]
        else {
            continue;
        };
        let value: f64 = value.parse().unwrap();
        let axis_value: u32 = axis_value.parse().unwrap();
        let episode = match axis {
            "burst_packets" => episode(axis_value, 100),
            "propagation_delay_ms" => episode(10, axis_value),
            _ => panic!("{line}"),
        };
        let episode = episode.unwrap();
        let reduction = RateReduction::from_name(loss_recovery).unwrap();
        let ours = reduction.recovery(&episode, variant != "original").utilization();
        assert!((ours - value).abs() <= 0.0065, "Table {table}: {line}: ours {ours:.4}");
        cells += 1;
    }
    assert_eq!(cells, 72);
}
