//! The receiver's RTT without timestamps (DRWA, Algorithm 1; Linux tcp_rcv_rtt_measure). It is the time
//! from the first acknowledgement of a byte to the arrival of data at least one window beyond it.

use paceline_wire::{Duration, Instant};

use super::Arrival;

/// A measurement in progress.
#[derive(Clone, Copy, Debug, Default, serde::Serialize, serde::Deserialize)]
pub(super) struct WindowRtt {
    /// When it began, and the position that ends it.
    until: Option<(Instant, u64)>,
}

impl WindowRtt {
    /// Takes arrived data. Returns a sample if the data is a window beyond the start of the measurement.
    pub(super) fn on_segment(&mut self, arrival: &Arrival) -> Option<Duration> {
        let end = arrival.nxt + arrival.len;
        let sample = match self.until {
            Some((_, seq)) if end < seq => return None,
            Some((since, _)) => Some(arrival.now.saturating_since(since)),
            None => None,
        };
        self.until = Some((arrival.now, arrival.edge.max(end + 1)));
        sample.filter(|rtt| !rtt.is_zero())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_window_of_data_takes_a_round_trip() {
        let mut rtt = WindowRtt::default();
        let at = |ms: u64, nxt: u64| Arrival {
            now: Instant::ZERO + Duration::from_millis(ms),
            len: 1_000,
            unread: 0,
            nxt,
            edge: nxt + 5_000,
        };
        // Five segments are a window: the fifth ends the first measurement.
        let samples: [_; 7] = core::array::from_fn(|n| rtt.on_segment(&at(20 * n as u64, 1_000 * n as u64)));
        assert_eq!(samples[..4], [None; 4]);
        assert_eq!(samples[4], Some(Duration::from_millis(80)));
        assert_eq!(samples[5..], [None; 2]);
    }
}
