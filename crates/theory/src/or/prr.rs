//! Proportional rate reduction: below ssthresh it doubles each round, as slow start. Theorems 3 and 8.

use super::episode::{Episode, Recovery};

/// Theorem 3, Eq. (10): a burst of up to twice the packets left in flight is repaired in one round. A larger one takes
/// rounds that double.
pub fn theorem_3(episode: &Episode) -> Recovery {
    if fits_one_round(episode) { episode.rounds(1, episode.n_packets()) } else { doubling_rounds(episode) }
}

/// Theorem 8, Eq. (15): new data fills the one round up to ssthresh.
pub fn theorem_8(episode: &Episode) -> Recovery {
    if fits_one_round(episode) {
        episode.rounds(1, episode.ssthresh_packets())
    } else {
        doubling_rounds(episode)
    }
}

fn fits_one_round(episode: &Episode) -> bool {
    u64::from(episode.n_packets()) <= 2 * u64::from(episode.pipe_packets())
}

/// As many rounds as it takes to send n packets; round i carries (AW - n) 2^i, at most ssthresh.
fn doubling_rounds(episode: &Episode) -> Recovery {
    let ssthresh = u64::from(episode.ssthresh_packets().max(1));
    let mut window = u64::from(episode.pipe_packets());
    let (mut idle_s, mut sent, mut repaired) = (0.0, 0.0, 0);
    while repaired < u64::from(episode.n_packets()) {
        window = (2 * window).min(ssthresh);
        repaired += window;
        let before_ack = (window - 1) as f64;
        idle_s += episode.u_s() - before_ack / episode.c_packets_per_s();
        sent += before_ack;
    }
    episode.recovered(idle_s, sent)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn episode(n_packets: u32) -> Episode {
        Episode::new(1_000.0, 0.2, 180, n_packets, 0.7).unwrap()
    }

    #[test]
    fn both_cases_of_eq_10() {
        assert!((theorem_3(&episode(120)).i_min_s - (0.2 - 0.119)).abs() < 1e-12);
        // 10 remain: rounds of 20, 40, 80, 126 carry the 170.
        let rounds_s = 4.0 * 0.2 - (0.019 + 0.039 + 0.079 + 0.125);
        assert!((theorem_3(&episode(170)).i_min_s - rounds_s).abs() < 1e-12);
    }

    #[test]
    fn both_cases_of_eq_15() {
        assert!((theorem_8(&episode(120)).i_min_s - (0.2 - 0.125)).abs() < 1e-12);
        assert_eq!(theorem_8(&episode(170)), theorem_3(&episode(170)));
    }

    #[test]
    fn a_window_of_one_packet_ends() {
        let tiny = Episode::new(10.0, 0.1, 1_000, 999, 0.001).unwrap();
        assert!(theorem_3(&tiny).i_min_s.is_finite());
    }
}
