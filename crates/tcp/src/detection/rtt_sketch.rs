//! A distribution of recent RTTs in constant memory.
//!
//! Own code, because sketches of the registry (DDSketch, t-digest, HDR histograms) need std or floating point, and none
//! forgets.

use paceline_wire::Duration;

/// Counts in logarithmic bins, eight per octave, so that a value is exact to an eighth.
///
/// There are two halves. The older one is dropped as a whole. So at least the last `memory` samples are known, and at
/// most twice as many. If counts were halved instead, the longest RTT, which is rare, would be forgotten first.
#[derive(Clone, Debug, serde::Serialize, serde::Deserialize)]
pub(super) struct RttSketch {
    #[serde(with = "crate::snapshot::array")]
    counts: [u32; BINS],
    total: u32,
    #[serde(with = "crate::snapshot::array")]
    older: [u32; BINS],
    older_total: u32,
    memory: u32,
}

/// From a microsecond on, 28 octaves: more than four minutes.
const BINS: usize = 28 * PER_OCTAVE as usize;
const PER_OCTAVE: u64 = 8;

impl RttSketch {
    pub(super) fn new(memory: u32) -> Self {
        RttSketch { counts: [0; BINS], total: 0, older: [0; BINS], older_total: 0, memory: memory.max(2) }
    }

    pub(super) fn add(&mut self, rtt: Duration) {
        if self.total >= self.memory {
            (self.older, self.older_total) = (self.counts, self.total);
            (self.counts, self.total) = ([0; BINS], 0);
        }
        self.counts[bin(rtt)] += 1;
        self.total += 1;
    }

    /// The RTT that `per_mille` thousandths of the samples do not exceed: the upper edge of its bin. `None` without
    /// samples.
    pub(super) fn quantile(&self, per_mille: u64) -> Option<Duration> {
        let all = u64::from(self.total) + u64::from(self.older_total);
        let wanted = (all * per_mille).div_ceil(1_000).max(1);
        let mut below = 0;
        let bin = (0..BINS).find(|&bin| {
            below += self.count(bin);
            below >= wanted
        })?;
        Some(edge(bin + 1))
    }

    /// The lower edge of the bin of the shortest sample.
    pub(super) fn min(&self) -> Option<Duration> {
        (0..BINS).find(|&bin| self.count(bin) > 0).map(edge)
    }

    /// The upper edge of the bin of the longest sample.
    pub(super) fn max(&self) -> Option<Duration> {
        (0..BINS).rfind(|&bin| self.count(bin) > 0).map(|bin| edge(bin + 1))
    }

    fn count(&self, bin: usize) -> u64 {
        u64::from(self.counts[bin]) + u64::from(self.older[bin])
    }
}

fn bin(rtt: Duration) -> usize {
    let us = rtt.as_micros().max(1);
    let octave = u64::from(us.ilog2());
    let within = ((us - (1 << octave)) * PER_OCTAVE) >> octave;
    ((octave * PER_OCTAVE + within) as usize).min(BINS - 1)
}

/// The lower edge of a bin.
fn edge(bin: usize) -> Duration {
    let (octave, within) = (bin as u64 / PER_OCTAVE, bin as u64 % PER_OCTAVE);
    Duration::from_nanos((((PER_OCTAVE + within) * 1_000) << octave) / PER_OCTAVE)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    proptest! {
        #[test]
        fn every_rtt_lies_in_its_bin(us in 1u64..200_000_000) {
            let rtt = Duration::from_micros(us);
            let bin = bin(rtt);
            prop_assert!(edge(bin) <= rtt && rtt < edge(bin + 1) + Duration::from_micros(1));
            prop_assert!(edge(bin + 1).as_nanos() <= edge(bin).as_nanos() * 9 / 8 + 1);
        }
    }

    #[test]
    fn quantiles_are_known_to_an_eighth() {
        let mut sketch = RttSketch::new(1_000);
        (1..=100).for_each(|ms| sketch.add(Duration::from_millis(ms)));
        for per_mille in [100, 500, 900, 1_000] {
            let (found, true_us) = (sketch.quantile(per_mille).unwrap().as_micros(), per_mille * 100);
            assert!((true_us..=true_us * 9 / 8 + 1).contains(&found), "{per_mille}: {found}");
        }
        assert!(sketch.min().unwrap() <= Duration::from_millis(1));
    }

    #[test]
    fn what_is_old_is_forgotten() {
        let mut sketch = RttSketch::new(100);
        (0..100).for_each(|_| sketch.add(Duration::from_millis(300)));
        (0..1_000).for_each(|_| sketch.add(Duration::from_millis(50)));
        assert!(sketch.max().unwrap() < Duration::from_millis(60));
        assert_eq!(RttSketch::new(5).max(), None);
    }
}
