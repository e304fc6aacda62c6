//! Rate-halving: cwnd follows pipe + 1 and never rises again during recovery. Theorems 2 and 7.

use super::episode::{Episode, Recovery};

/// Theorem 2, Eq. (9): a burst of up to half of the window is repaired in one round. A larger one takes several rounds,
/// each as large as the packets left in flight.
pub fn theorem_2(episode: &Episode) -> Recovery {
    if episode.n_packets() <= episode.aw_packets() / 2 {
        episode.rounds(1, episode.n_packets())
    } else {
        pipe_rounds(episode)
    }
}

/// Theorem 7, Eq. (14): new data fills a round up to ssthresh, or up to the packets left in flight.
pub fn theorem_7(episode: &Episode) -> Recovery {
    let ssthresh = episode.ssthresh_packets();
    if episode.n_packets() <= episode.aw_packets().saturating_sub(ssthresh) {
        episode.rounds(1, ssthresh)
    } else if episode.n_packets() <= episode.pipe_packets() {
        episode.rounds(1, episode.pipe_packets())
    } else {
        pipe_rounds(episode)
    }
}

fn pipe_rounds(episode: &Episode) -> Recovery {
    episode.rounds(episode.n_packets() / episode.pipe_packets(), episode.pipe_packets())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn episode(n_packets: u32) -> Episode {
        Episode::new(1_000.0, 0.2, 180, n_packets, 0.7).unwrap()
    }

    #[test]
    fn both_cases_of_eq_9() {
        assert!((theorem_2(&episode(90)).i_min_s - 0.111).abs() < 1e-12);
        assert!((theorem_2(&episode(91)).i_min_s - (0.2 - 0.088)).abs() < 1e-12);
        // 40 remain: 140 / 40 is three rounds.
        assert!((theorem_2(&episode(140)).i_min_s - 3.0 * (0.2 - 0.039)).abs() < 1e-12);
    }

    #[test]
    fn the_three_cases_of_eq_14() {
        assert!((theorem_7(&episode(54)).i_min_s - (0.2 - 0.125)).abs() < 1e-12);
        assert!((theorem_7(&episode(55)).i_min_s - (0.2 - 0.124)).abs() < 1e-12);
        assert!((theorem_7(&episode(90)).i_min_s - (0.2 - 0.089)).abs() < 1e-12);
        assert!((theorem_7(&episode(91)).i_min_s - (0.2 - 0.088)).abs() < 1e-12);
    }
}
