//! The last MRRL RTTs, with the longest and the shortest of them: rttRcd of TCP-NCL, Section IV-A.

use alloc::collections::VecDeque;

use paceline_wire::Duration;

/// At most MRRL samples. A sample costs constant time on average. A full record allocates nothing.
#[derive(Clone, Debug, serde::Serialize, serde::Deserialize)]
pub(super) struct RttRecord {
    mrrl: u64,
    /// Samples so far.
    count: u64,
    /// Samples that no later one exceeds, and samples that no later one undercuts, with their numbers.
    longest: VecDeque<(u64, Duration)>,
    shortest: VecDeque<(u64, Duration)>,
}

impl RttRecord {
    pub(super) fn new(mrrl: u32) -> Self {
        RttRecord {
            mrrl: u64::from(mrrl.max(1)),
            count: 0,
            longest: VecDeque::new(),
            shortest: VecDeque::new(),
        }
    }

    /// Takes a sample. If there are MRRL already, the oldest one is dropped.
    pub(super) fn add(&mut self, rtt: Duration) {
        let (count, oldest) = (self.count, (self.count + 1).saturating_sub(self.mrrl));
        let put = |queue: &mut VecDeque<(u64, Duration)>, outdone: &dyn Fn(Duration) -> bool| {
            while queue.back().is_some_and(|(_, each)| outdone(*each)) {
                queue.pop_back();
            }
            queue.push_back((count, rtt));
            while queue.front().is_some_and(|(number, _)| *number < oldest) {
                queue.pop_front();
            }
        };
        put(&mut self.longest, &|each| each <= rtt);
        put(&mut self.shortest, &|each| each >= rtt);
        self.count += 1;
    }

    /// max(rttRcd); `None` without a sample.
    pub(super) fn max(&self) -> Option<Duration> {
        self.longest.front().map(|(_, rtt)| *rtt)
    }

    /// min(rttRcd).
    pub(super) fn min(&self) -> Option<Duration> {
        self.shortest.front().map(|(_, rtt)| *rtt)
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use std::vec::Vec;

    use super::*;

    proptest! {
        #[test]
        fn as_if_all_were_kept(samples in proptest::collection::vec(1u64..20, 1..200), mrrl in 1usize..30) {
            let mut record = RttRecord::new(mrrl as u32);
            let mut kept: Vec<u64> = Vec::new();
            for sample in samples {
                record.add(Duration::from_millis(sample));
                kept.push(sample);
                let last = &kept[kept.len().saturating_sub(mrrl)..];
                let of = |ms: Option<&u64>| ms.map(|ms| Duration::from_millis(*ms));
                prop_assert_eq!(record.max(), of(last.iter().max()));
                prop_assert_eq!(record.min(), of(last.iter().min()));
                prop_assert!(record.longest.len() <= mrrl && record.shortest.len() <= mrrl);
            }
        }
    }
}
