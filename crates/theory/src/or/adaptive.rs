//! Queue length and bandwidth adaptive rate reduction: cwnd is no limit. Theorems 4, 5 and 9.

use super::episode::{Episode, Recovery};

/// Theorem 4, Eq. (11), QARR: only the lost packets can be sent before the first ACK.
pub fn theorem_4(episode: &Episode) -> Recovery {
    episode.rounds(1, episode.n_packets())
}

/// Theorem 5, Eq. (12), BARR: as QARR.
pub fn theorem_5(episode: &Episode) -> Recovery {
    theorem_4(episode)
}

/// Theorem 9, QARR and BARR with opportunistic retransmission: no idle time at all.
pub fn theorem_9(episode: &Episode) -> Recovery {
    episode.recovered(0.0, episode.bdp_packets())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_the_window_limits() {
        let episode = Episode::new(1_000.0, 0.2, 220, 150, 0.7).unwrap();
        assert!((theorem_4(&episode).i_min_s - 0.051).abs() < 1e-12);
        assert_eq!(theorem_5(&episode), theorem_4(&episode));
        assert_eq!(theorem_9(&episode).utilization(), 1.0);
    }
}
