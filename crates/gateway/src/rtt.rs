//! The round-trip time between gateway and client: Eqs. (1), (2), (14), (15).

use paceline_wire::{Duration, Instant};

/// Smoothed RTT and its mean deviation.
#[derive(Clone, Copy, Debug, Default, serde::Serialize, serde::Deserialize)]
pub(crate) struct RttEstimator {
    smoothed: Option<Duration>,
    deviation: Duration,
}

impl RttEstimator {
    /// Takes a sample, Eq. (1): from the departure of a packet that left once to the arrival of its ACK. Karn's rule:
    /// no samples from retransmissions.
    pub(crate) fn on_sample(&mut self, sent_at: Instant, acked_at: Instant) -> Duration {
        let sample = acked_at.saturating_since(sent_at);
        match self.smoothed {
            // RFC 6298, Section 2.2; the text starts from nothing.
            None => {
                self.smoothed = Some(sample);
                self.deviation = sample / 2;
            }
            Some(smoothed) => {
                // Eqs. (14), (15), then Eq. (2) with alpha = 1/8.
                let deviation = sample.abs_diff(smoothed);
                self.deviation = self.deviation.mul_ratio(3, 4) + deviation / 4;
                self.smoothed = Some(smoothed.mul_ratio(7, 8) + sample / 8);
            }
        }
        sample
    }

    /// `rtt` of the text, once there is a sample.
    pub(crate) fn smoothed(&self) -> Option<Duration> {
        self.smoothed
    }

    /// `rtt_dev` of the text.
    pub(crate) fn deviation(&self) -> Duration {
        self.deviation
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn follows_the_equations() {
        let at = |ms| Instant::ZERO + Duration::from_millis(ms);
        let mut rtt = RttEstimator::default();
        rtt.on_sample(at(0), at(80));
        assert_eq!(
            (rtt.smoothed(), rtt.deviation()),
            (Some(Duration::from_millis(80)), Duration::from_millis(40))
        );
        rtt.on_sample(at(100), at(260));
        assert_eq!(rtt.smoothed(), Some(Duration::from_millis(90)));
        assert_eq!(rtt.deviation(), Duration::from_millis(50));
    }
}
